/**
 * Tools as each provider wants them declared.
 *
 * @module
 */

import type { JsonSchema, Tool } from "../types.ts";
import { objectSchema } from "./object_schema.ts";

/** A tool in the OpenAI shape. */
export interface OpenAITool {
  /** Always `function`. */
  type: "function";
  /** The declaration. */
  function: { name: string; description: string; parameters: JsonSchema };
}

/** A tool in the Anthropic shape. */
export interface AnthropicTool {
  /** The tool's name. */
  name: string;
  /** What it does. */
  description: string;
  /** The schema of its arguments. */
  input_schema: JsonSchema;
}

/** The one list that the Gemini API wants its functions in. */
export interface GeminiTools {
  /** The declarations. */
  functionDeclarations: { name: string; description: string; parameters: JsonSchema }[];
}

/**
 * Declares tools in the OpenAI shape. Providers refuse a schema that is a union at its top, or
 * combined there in another way: such a one is declared as one object with the properties of all.
 *
 * @example
 * ```ts
 * import { defineTool, toOpenAI } from "@toolnexus/client";
 * import { assertEquals } from "@std/assert";
 *
 * const ping = defineTool({ name: "ping", description: "Says pong", run: () => "pong" });
 * assertEquals(toOpenAI([ping])[0]?.function.name, "ping");
 * ```
 */
export function toOpenAI(tools: readonly Tool[]): OpenAITool[] {
  return tools.map((tool) => {
    const { name, description, inputSchema } = tool;
    return declarations.get(tool) ?? {
      type: "function",
      // The API refuses an object schema without properties, which MCP servers send.
      function: { name, description, parameters: { properties: {}, ...objectSchema(inputSchema) } },
    };
  });
}

/** Tools that are nothing but a declaration, which is sent as it was written. */
const declarations = new WeakMap<Tool, OpenAITool>();

/** Makes `declaration` what {@linkcode toOpenAI} gives for the tool. */
export function declareAs(tool: Tool, declaration: OpenAITool): void {
  declarations.set(tool, declaration);
}

/** Declares tools in the Anthropic shape; their schemas as {@linkcode toOpenAI} does. */
export function toAnthropic(tools: readonly Tool[]): AnthropicTool[] {
  return tools.map(({ name, description, inputSchema }) => ({
    name,
    description,
    input_schema: objectSchema(inputSchema),
  }));
}

/**
 * Declares tools in the Gemini shape, their schemas as {@linkcode toOpenAI} does; no tools give an
 * empty list.
 */
export function toGemini(tools: readonly Tool[]): GeminiTools[] {
  if (tools.length === 0) return [];
  const functionDeclarations = tools.map(({ name, description, inputSchema }) => ({
    name,
    description,
    parameters: objectSchema(inputSchema),
  }));
  return [{ functionDeclarations }];
}

/**
 * A name that every provider accepts as part of a tool's name: whatever is not an ASCII letter, a
 * digit, `_` or `-` becomes `_`.
 *
 * @example
 * ```ts
 * import { sanitize } from "@toolnexus/client";
 * import { assertEquals } from "@std/assert";
 *
 * assertEquals(sanitize("file.read all"), "file_read_all");
 * ```
 */
export function sanitize(name: string): string {
  return name.replace(/[^a-zA-Z0-9_-]/g, "_");
}
