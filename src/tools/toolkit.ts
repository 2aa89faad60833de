/**
 * The tools of a run, from wherever they come.
 *
 * @module
 */

import { quote, reasonOf } from "../errors.ts";
import type { Awaitable, Tool, ToolContext, ToolResult } from "../types.ts";
import {
  type AnthropicTool,
  type GeminiTools,
  type OpenAITool,
  toAnthropic,
  toGemini,
  toOpenAI,
} from "./declarations.ts";
import { failureOf, loneContext, resultOf } from "./define_tool.ts";

/** Something that brings tools: an MCP connection, a folder of skills, your own. */
export interface ToolSourceProvider {
  /** The tools it has. */
  tools(): readonly Tool[];
  /** What it adds to the system prompt. */
  prompt?: (() => string) | undefined;
  /** How its parts are, by name. */
  status?: (() => Record<string, string>) | undefined;
  /** Releases what it holds. */
  close?: (() => Awaitable<void>) | undefined;
}

/** What {@linkcode createToolkit} takes. */
export interface ToolkitOptions {
  /** Tools of your own. @default [] */
  tools?: readonly Tool[] | undefined;
  /** Sources of more tools; the toolkit closes them. @default [] */
  sources?: readonly ToolSourceProvider[] | undefined;
  /** Names of tools that are left out. @default [] */
  disableTools?: readonly string[] | undefined;
}

const ORDER: Partial<Record<Tool["source"], number>> = { mcp: 0, skill: 1 };

/** A set of tools with unique names. */
export class Toolkit implements AsyncDisposable {
  readonly #tools = new Map<string, Tool>();
  readonly #sources: readonly ToolSourceProvider[];
  readonly #disabled: ReadonlySet<string>;
  #closing: Promise<void> | undefined;

  /** @internal Use {@linkcode createToolkit}. */
  constructor({ tools = [], sources = [], disableTools = [] }: ToolkitOptions = {}) {
    for (const [name, list] of Object.entries({ tools, sources, disableTools })) {
      if (!Array.isArray(list)) throw new TypeError(`${name} must be an array: ${quote(list)}`);
    }
    this.#sources = sources;
    this.#disabled = new Set(disableTools);
    const brought = this.#ask("tools", (source) => source.tools().filter(isTool)).flat()
      .sort((a, b) => (ORDER[a.source] ?? 2) - (ORDER[b.source] ?? 2));
    for (const tool of brought) this.#add(tool);
    this.register(...tools);
  }

  /** What each source says. One that fails is told of on the console, and breaks no other. */
  #ask<Result>(what: string, ask: (source: ToolSourceProvider) => Result | undefined): Result[] {
    return this.#sources.flatMap((source) => {
      try {
        const said = ask(source);
        return said === undefined ? [] : [said];
      } catch (error) {
        console.warn(`tool source left out, its ${what} failed: ${reasonOf(error)}`);
        return [];
      }
    });
  }

  /** The tools, in the order in which they are declared. */
  tools(): Tool[] {
    return [...this.#tools.values()];
  }

  /** The tool of that name. */
  get(name: string): Tool | undefined {
    return this.#tools.get(name);
  }

  /**
   * Adds tools. The first tool of a name stays; a later one is left out with a warning.
   *
   * @throws {TypeError} if something is no tool
   */
  register(...tools: readonly Tool[]): this {
    for (const tool of tools) {
      checkTool(tool);
      this.#add(tool);
    }
    return this;
  }

  #add(tool: Tool): void {
    if (this.#disabled.has(tool.name)) return;
    if (this.#tools.has(tool.name)) {
      console.warn(`toolkit has a tool ${quote(tool.name)} already: the first one stays`);
    } else this.#tools.set(tool.name, tool);
  }

  /** Runs a tool, also outside a run; an unknown name and a throw are error results. */
  async execute(
    name: string,
    args: Record<string, unknown>,
    context: ToolContext = loneContext(),
  ): Promise<ToolResult> {
    const tool = this.#tools.get(name);
    if (tool === undefined) return unknownTool(name);
    try {
      return resultOf(await tool.execute(args, context));
    } catch (error) {
      return failureOf(name, error);
    }
  }

  /** What the sources add to the system prompt. */
  prompt(): string {
    return this.#ask("prompt", (source) => source.prompt?.() || undefined).join("\n\n");
  }

  /** The states of all sources' parts, by name. */
  status(): Record<string, string> {
    return Object.assign({}, ...this.#ask("status", (source) => source.status?.()));
  }

  /** The tools in the OpenAI shape. */
  toOpenAI(): OpenAITool[] {
    return toOpenAI(this.tools());
  }

  /** The tools in the Anthropic shape. */
  toAnthropic(): AnthropicTool[] {
    return toAnthropic(this.tools());
  }

  /** The tools in the Gemini shape. */
  toGemini(): GeminiTools[] {
    return toGemini(this.tools());
  }

  /**
   * Closes every source, also when one of them fails to; once, however often it is called.
   *
   * @throws {AggregateError} with what failed
   */
  close(): Promise<void> {
    return this.#closing ??= this.#close();
  }

  async #close(): Promise<void> {
    const outcomes = await Promise.allSettled(this.#sources.map(async (s) => await s.close?.()));
    const errors = outcomes.filter((outcome) => outcome.status === "rejected")
      .map((outcome) => outcome.reason);
    if (errors.length > 0) {
      throw new AggregateError(errors, `close failed: ${errors.map(reasonOf).join("; ")}`);
    }
  }

  /** As {@linkcode Toolkit.close}. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

/**
 * Puts tools together. MCP tools come first, then skills, then your own; the first of a name wins. A
 * source that fails, or a tool of a source that is none, is left out with a warning.
 *
 * @throws {TypeError} if a list is no array, or something in `tools` is no tool
 *
 * @example
 * ```ts
 * import { createToolkit, defineTool } from "@toolnexus/client";
 * import { assertEquals } from "@std/assert";
 *
 * const ping = defineTool({ name: "ping", description: "Says pong", run: () => "pong" });
 * await using toolkit = createToolkit({ tools: [ping] });
 * assertEquals(toolkit.tools().length, 1);
 * ```
 */
export function createToolkit(options?: ToolkitOptions): Toolkit {
  return new Toolkit(options);
}

/** The result of a call of a tool that there is not. */
export function unknownTool(name: string): ToolResult {
  return { output: `unknown tool: ${name}`, isError: true };
}

/** A toolkit as call options take it. */
export function toolkitOf(toolkit: Toolkit | readonly Tool[] | undefined): Toolkit {
  if (toolkit instanceof Toolkit) return toolkit;
  if (toolkit === undefined || Array.isArray(toolkit)) return new Toolkit({ tools: toolkit });
  throw new TypeError(`toolkit must be a Toolkit or an array of tools: ${quote(toolkit)}`);
}

/** Whether a source's tool is one; of one that is not the console tells. */
function isTool(tool: unknown): boolean {
  try {
    checkTool(tool);
    return true;
  } catch (error) {
    console.warn(`tool of a source left out: ${reasonOf(error)}`);
    return false;
  }
}

function checkTool(tool: unknown): asserts tool is Tool {
  const { name, execute, inputSchema } = (tool ?? {}) as Partial<Tool>;
  if (typeof name !== "string" || name === "") {
    throw new TypeError(`tool must have a name: ${quote(tool)}`);
  }
  if (typeof execute !== "function") throw new TypeError(`tool ${name} must have execute()`);
  if (typeof inputSchema !== "object" || inputSchema === null) {
    throw new TypeError(`tool ${name} must have an inputSchema object`);
  }
}
