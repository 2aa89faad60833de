/**
 * One call to the provider, OpenAI shapes in and out, whatever the endpoint speaks.
 *
 * @module
 */

import { checkSignal, checkString, wholeNumber } from "./checks.ts";
import { quote } from "./errors.ts";
import { isPlainObject, textOrUndefined } from "./json.ts";
import { askModel } from "./loop.ts";
import { copyMessages } from "./messages.ts";
import type { CallOptions, Settings } from "./options.ts";
import { Run } from "./run.ts";
import { runScope } from "./run_scope.ts";
import { declareAs, type OpenAITool } from "./tools/declarations.ts";
import { Toolkit, toolkitOf } from "./tools/toolkit.ts";
import { closedTranscript } from "./transaction.ts";
import { argumentsText } from "./transcript/read.ts";
import { leadingSystem } from "./transcript/system.ts";
import type { JsonSchema, MessageInput, Tool, Usage } from "./types.ts";

/** Whether the model may or must call a tool, or the one that it must call. */
export type ToolChoice =
  | "auto"
  | "none"
  | "required"
  | { type: string; function: { name: string } };

/** A tool in the OpenAI shape, with whatever else the endpoint knows. */
export interface ToolDeclaration {
  /** `function`. */
  type: string;
  /** The declaration. */
  function: {
    name: string;
    description?: string | undefined;
    parameters?: object | undefined;
    [key: string]: unknown;
  };
}

/** What {@linkcode Client.translate} takes. */
export interface TranslateRequest extends Pick<CallOptions, "signal"> {
  /** The transcript, in the OpenAI shape. A leading system message is taken for the system prompt. */
  messages: readonly MessageInput[];
  /** Tools that the model may call; they are declared and never run. @default no tools */
  toolkit?: Toolkit | readonly Tool[] | undefined;
  /** More tools, declared in the OpenAI shape; before those of the toolkit's by name. @default [] */
  tools?: readonly ToolDeclaration[] | undefined;
  /** Whether the model must call a tool, or which. @default the provider's: `auto` */
  toolChoice?: ToolChoice | undefined;
  /** The system prompt. @default the transcript's, else the client's */
  system?: string | undefined;
  /** The maximum number of tokens of the answer. @default the client's */
  maxTokens?: number | undefined;
}

/** What {@linkcode Client.translate} gives. */
export interface TranslateResult {
  /** The text of the answer. */
  text: string;
  /** The calls that the model makes, with their arguments as JSON text. */
  toolCalls: { id: string; name: string; arguments: string }[];
  /** `tool_calls` whenever there is a call. */
  finishReason: "tool_calls" | "length" | "content_filter" | "stop";
  /** Tokens of this call. */
  usage: Usage;
  /** The model that was asked. */
  model: string;
  /** The provider's decoded payload. */
  raw: unknown;
}

/** Reasons of a provider that will not say more. */
const FILTERED = new Set(["content_filter", "refusal", "sensitive"]);

/** Makes the one call. Hooks and retries are those of a run; no tool runs, no store is touched. */
export async function translate(
  settings: Settings,
  request: TranslateRequest,
): Promise<TranslateResult> {
  const { tools = [], toolkit, toolChoice, maxTokens, system, signal } = request;
  const messages = copyMessages(request.messages);
  checkSignal(signal);
  checkToolChoice(toolChoice);
  if (maxTokens !== undefined) wholeNumber("maxTokens", maxTokens, 1);
  if (system !== undefined) checkString("system", system);
  const { style } = settings;
  if (!Array.isArray(tools)) throw new TypeError(`tools must be an array: ${quote(tools)}`);
  const ofRequest = tools.map(declaredTool);
  const isDeclared = ({ name }: Tool) => ofRequest.some((tool) => tool.name === name);
  const declared = new Toolkit({
    tools: [...toolkitOf(toolkit).tools().filter((tool) => !isDeclared(tool)), ...ofRequest],
  });
  using scope = runScope(signal, settings.timeoutMs);
  const run = new Run({
    settings: {
      ...settings,
      systemPrompt: system ?? (leadingSystem(messages) > 0 ? "" : settings.systemPrompt),
      maxTokens: maxTokens ?? settings.maxTokens,
      requestParams: {
        ...(toolChoice !== undefined && { tool_choice: style.toolChoice(toolChoice) }),
        ...settings.requestParams,
      },
    },
    toolkit: declared,
    conversationId: undefined,
    signal: scope.signal,
    progress: { text: "" },
  }, { history: closedTranscript(messages, style.name).messages, prompt: [] });
  const { text, calls, isCut, finishReason, usage, payload } = await askModel(run);
  const isFiltered = FILTERED.has(finishReason.toLowerCase());
  return {
    text,
    toolCalls: calls.map(({ id, name, arguments: given }) => ({
      id,
      name,
      arguments: argumentsText(given ?? {}),
    })),
    finishReason: calls.length > 0
      ? "tool_calls"
      : isFiltered
      ? "content_filter"
      : isCut
      ? "length"
      : "stop",
    usage,
    model: settings.model,
    raw: payload,
  };
}

function checkToolChoice(choice: unknown): void {
  if (choice === undefined || choice === "auto" || choice === "none" || choice === "required") {
    return;
  }
  const { type, function: named } = isPlainObject(choice) ? choice : {};
  if (type === "function" && isPlainObject(named) && typeof named.name === "string") return;
  throw new TypeError(
    `toolChoice must be auto, none, required or name a function: ${quote(choice)}`,
  );
}

/** A declaration as a tool, which is never run. */
function declaredTool(declaration: ToolDeclaration): Tool {
  const { name, description, parameters } = declaration?.function ?? {};
  if (typeof name !== "string" || name === "") {
    throw new TypeError(`tools must be declared as OpenAI functions: ${quote(declaration)}`);
  }
  const inputSchema: JsonSchema = isPlainObject(parameters) ? parameters : { type: "object" };
  const tool: Tool = {
    name,
    description: textOrUndefined(description) ?? "",
    inputSchema,
    source: "custom",
    execute: () => ({ output: "not executed", isError: true }),
  };
  // An endpoint of this very style gets the declaration as it is.
  declareAs(tool, declaration as OpenAITool);
  return tool;
}
