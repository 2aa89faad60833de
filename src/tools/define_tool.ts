/**
 * Tools from functions.
 *
 * @module
 */

import { timeLimit } from "../checks.ts";
import { quote, reasonOf } from "../errors.ts";
import { isJsonObject, isPlainObject } from "../json.ts";
import { pending } from "../pending.ts";
import type { Awaitable, JsonSchema, Tool, ToolContext, ToolResult } from "../types.ts";
import type { FromSchema } from "./from_schema.ts";
import {
  argumentsSchema,
  isStandardSchema,
  issuesText,
  jsonSchemaOf,
  type StandardJsonSchema,
} from "./standard_schema.ts";

/**
 * The type of the arguments that a schema describes: what a Standard Schema makes of them, or what a
 * JSON Schema says; an object of unknown values where it does not say.
 */
export type ArgumentsOf<Schema> = Schema extends StandardJsonSchema<infer _Input, infer Output>
  ? Output
  : unknown extends FromSchema<Schema> ? Record<string, unknown>
  : FromSchema<Schema>;

/** What {@linkcode defineTool} takes. */
export interface ToolDefinition<Schema> {
  /** What the model calls it: letters, digits, `_` and `-`. */
  name: string;
  /** Tells the model what it does and when to use it. */
  description: string;
  /**
   * The arguments: a JSON Schema of an object, whose literal types `args`, or a Standard Schema with
   * a JSON form, which also validates them.
   *
   * @default no arguments: `{ type: "object", properties: {}, additionalProperties: false }`
   */
  inputSchema?: Schema | undefined;
  /**
   * Does the work. A string is the output as it is; `{ output, isError }` is the result itself; any
   * other value becomes JSON; a throw becomes an error result.
   */
  run: (args: ArgumentsOf<Schema>, context: ToolContext) => unknown;
  /**
   * The longest time one call may take, in milliseconds; `Infinity` for no limit.
   *
   * @default the client's `toolTimeoutMs`
   */
  timeoutMs?: number | undefined;
  /**
   * Whether a human must approve the call first: always, or when the function says so; a string is
   * the question that is asked.
   *
   * @default false
   */
  needsApproval?:
    | boolean
    | ((args: ArgumentsOf<Schema>) => Awaitable<boolean | string>)
    | undefined;
}

/** A tool made by {@linkcode defineTool}; it can be called without a context. */
export interface DefinedTool extends Tool {
  /** Runs the tool; never rejects. */
  execute(args: Record<string, unknown>, context?: ToolContext): Promise<ToolResult>;
}

const NO_ARGUMENTS: JsonSchema = { type: "object", properties: {}, additionalProperties: false };

/**
 * Makes a tool of a function.
 *
 * @throws {TypeError} if the definition is wrong
 *
 * @example
 * ```ts
 * import { defineTool } from "@toolnexus/client";
 * import { assertEquals } from "@std/assert";
 *
 * const weather = defineTool({
 *   name: "weather",
 *   description: "The weather in a city",
 *   inputSchema: {
 *     type: "object",
 *     properties: { city: { type: "string" } },
 *     required: ["city"],
 *   },
 *   run: ({ city }) => `Sunny in ${city}`,
 * });
 * assertEquals((await weather.execute({ city: "Paris" })).output, "Sunny in Paris");
 * ```
 */
export function defineTool<const Schema extends JsonSchema | StandardJsonSchema = JsonSchema>(
  definition: ToolDefinition<Schema>,
): DefinedTool {
  const { name, description, inputSchema, run, timeoutMs, needsApproval } = definition;
  if (typeof name !== "string" || name === "") {
    throw new TypeError(`tool name must be a non-empty string: ${quote(name)}`);
  }
  if (typeof description !== "string") {
    throw new TypeError(`description of tool ${name} must be a string: ${quote(description)}`);
  }
  if (!["undefined", "boolean", "function"].includes(typeof needsApproval)) {
    const given = quote(needsApproval);
    throw new TypeError(`needsApproval of tool ${name} must be a boolean or a function: ${given}`);
  }
  if (typeof run !== "function") throw new TypeError(`run of tool ${name} must be a function`);
  timeLimit(`timeoutMs of tool ${name}`, timeoutMs);
  const standard = isStandardSchema(inputSchema) ? inputSchema : undefined;
  const json = standard !== undefined ? jsonSchemaOf(standard, name) : inputSchema ?? NO_ARGUMENTS;
  return {
    name,
    description,
    inputSchema: argumentsSchema(json, name),
    source: "native",
    timeoutMs,
    async execute(given, context = loneContext()) {
      try {
        let args: unknown = given;
        if (standard !== undefined) {
          const checked = await standard["~standard"].validate(given);
          if (checked.issues !== undefined) {
            const output = `invalid arguments for ${name}: ${issuesText(checked.issues)}`;
            return { output, isError: true };
          }
          args = checked.value;
        }
        const typed = args as ArgumentsOf<Schema>;
        if (needsApproval && context.answer?.ok !== true) {
          const asked = needsApproval === true ? true : await needsApproval(typed);
          if (asked !== false) {
            const prompt = asked === true ? `Allow ${name} with ${JSON.stringify(given)}?` : asked;
            return pending({ kind: "approval", prompt, data: { tool: name, args: given } });
          }
        }
        return resultOf(await run(typed, context));
      } catch (error) {
        return failureOf(name, error);
      }
    },
  };
}

/** A value as a result: a result as it is, a string as it is, anything else as JSON. */
export function resultOf(value: unknown): ToolResult {
  if (typeof value === "string") return { output: value, isError: false };
  if (value === undefined) return { output: "", isError: false };
  if (
    isJsonObject(value) && typeof value.output === "string" && typeof value.isError === "boolean"
  ) {
    const { output, isError, metadata } = value;
    return { output, isError, ...(isPlainObject(metadata) && { metadata: { ...metadata } }) };
  }
  return { output: JSON.stringify(value) ?? "", isError: false };
}

/** What a tool has thrown as a result. */
export function failureOf(name: string, error: unknown): ToolResult {
  return { output: reasonOf(error) || `${name} failed`, isError: true };
}

/** The context of a tool that is called outside a run. */
export function loneContext(): ToolContext {
  return {
    signal: new AbortController().signal,
    callId: `call_${crypto.randomUUID()}`,
    turn: 1,
  };
}
