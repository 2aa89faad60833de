/**
 * Reading a message in whichever style it is written: its style, calls, results and text.
 *
 * A transcript comes from a store, from a user, or from a server: nothing in it can be trusted to
 * have the shape it should. These functions never throw on JSON data; what cannot be read is absent.
 *
 * @module
 */

import { quote } from "../errors.ts";
import { equalJson, isJsonObject, objectOf, parseJson } from "../json.ts";
import type { Message, StyleName } from "../types.ts";

/** One part of a message's content; the Anthropic style calls it a block. */
export type Part = Record<string, unknown>;

/** A tool call, read from a message of either style. */
export interface CallPart {
  /** The id of the call; empty where the message gives none, as the old `function_call` does. */
  id: string;
  /** The name of the tool; empty where the message gives none. */
  name: string;
  /** As written: a JSON text in OpenAI shape, an object in Anthropic shape. */
  arguments: unknown;
}

/** A tool result, read from a message of either style. */
export interface ResultPart {
  /** The id of the call that it answers; empty where none is given, as in the old `function` role. */
  id: string;
  /** As written: a text, or a list of parts. */
  content: unknown;
  /** Whether it is marked as an error; only the Anthropic style can. */
  isError: boolean;
}

/** Which style alone knows a part. OpenAI style is that of all the servers that speak it. */
const PART_STYLES: ReadonlyMap<unknown, StyleName> = new Map(Object.entries({
  audio_url: "openai",
  compaction: "anthropic",
  container_upload: "anthropic",
  file: "openai",
  image_url: "openai",
  input_audio: "openai",
  mcp_tool_use: "anthropic",
  reasoning: "openai",
  redacted_thinking: "anthropic",
  reference: "openai",
  refusal: "openai",
  search_result: "anthropic",
  server_tool_use: "anthropic",
  tool_result: "anthropic",
  tool_use: "anthropic",
  video_url: "openai",
}));

/** What an Anthropic response carries around its content. */
const ANTHROPIC_ENVELOPE: ReadonlySet<string> = new Set([
  "container",
  "context_management",
  "id",
  "model",
  "stop_details",
  "stop_reason",
  "stop_sequence",
  "type",
  "usage",
]);

/**
 * Checks what a public function was given as a transcript.
 *
 * @throws {TypeError} if `messages` is no array of objects, or `style` no style
 */
export function checkTranscript(messages: readonly Message[], style: StyleName): void {
  if (!Array.isArray(messages)) {
    throw new TypeError(`messages must be an array: ${quote(messages)}`);
  }
  if (style !== "openai" && style !== "anthropic") {
    throw new TypeError(`style must be "openai" or "anthropic": ${quote(style)}`);
  }
  for (let index = 0; index < messages.length; index++) {
    const message: unknown = messages[index];
    if (!isJsonObject(message)) {
      throw new TypeError(`messages[${index}] must be an object: ${quote(message)}`);
    }
  }
}

/**
 * The style that a message is written in; undefined for one that reads the same in both, such as a
 * plain text from the user.
 */
export function styleOf(message: Message): StyleName | undefined {
  const openai = fitsOpenAI(message), anthropic = fitsAnthropic(message);
  if (openai !== anthropic) return openai ? "openai" : "anthropic";
  if (openai) return undefined;
  // Fits neither: malformed, or a blend. What it does decides, not how it is dressed.
  if (isResultMessage(message) || toolCallsOf(message).length > 0) return "openai";
  const parts = Array.isArray(message.content) ? message.content : [];
  return parts.some((part) => partStyle(part) === "anthropic") ? "anthropic" : "openai";
}

/** Whether an OpenAI style endpoint can be sent the message as it is; ids and blank texts aside. */
export function fitsOpenAI(message: Message): boolean {
  const { role, content } = message;
  if (Array.isArray(content)) {
    // Assistants of this style speak in strings, and many servers take nothing else. A list without
    // a part of this style is an Anthropic answer.
    let own = role !== "assistant";
    for (const part of content) {
      const style = partStyle(part);
      if (style === "anthropic" || !isJsonObject(part)) return false;
      own ||= style === "openai";
    }
    if (!own) return false;
  } else if (typeof content !== "string") {
    if (content !== null && content !== undefined) return false;
    if (role === "tool") return false;
  }
  if (role !== "assistant") return true;
  const { tool_calls: calls, function_call: legacy } = message;
  if (legacy !== undefined && legacy !== null) {
    if (!isLegacyCall(message)) return false;
    if (typeof (legacy as Part).arguments !== "string") return false;
  }
  if (calls === undefined || calls === null) return true;
  return Array.isArray(calls) &&
    calls.every((call) =>
      isJsonObject(call) && typeof call.type === "string" &&
      (!isJsonObject(call.function) ||
        text(call.function.name) !== "" && typeof call.function.arguments === "string")
    );
}

/** Whether an Anthropic style endpoint can be sent the message as it is; ids and blank texts aside. */
export function fitsAnthropic(message: Message): boolean {
  const { role, content } = message;
  if (role !== "user" && role !== "assistant") return false;
  for (const key in message) {
    if (key !== "role" && key !== "content" && !ANTHROPIC_ENVELOPE.has(key)) return false;
  }
  if (typeof content === "string") return true;
  if (!Array.isArray(content) || content.length === 0) return false;
  for (const block of content) {
    if (!isJsonObject(block) || typeof block.type !== "string") return false;
    if (partStyle(block) === "openai") return false;
    if (block.type === "text" && typeof block.text !== "string") return false;
    if (block.type === "tool_use") {
      if (role !== "assistant" || text(block.name) === "" || !isJsonObject(block.input)) {
        return false;
      }
    }
    if (block.type === "tool_result" && !(role === "user" && isResultContent(block.content))) {
      return false;
    }
  }
  return true;
}

function isResultContent(content: unknown): boolean {
  return typeof content === "string" || content === undefined ||
    Array.isArray(content) &&
      content.every((part) => isJsonObject(part) && partStyle(part) !== "openai");
}

/** Which style alone knows a part; undefined for text, and for what neither is known to have. */
export function partStyle(part: unknown): StyleName | undefined {
  if (!isJsonObject(part) || typeof part.type !== "string") return undefined;
  switch (part.type) {
    case "text":
      return part.citations === undefined ? undefined : "anthropic";
    case "image":
    case "document":
      return isJsonObject(part.source) ? "anthropic" : undefined;
    case "thinking": // Mistral, an OpenAI style server, has a list of parts here
      return Array.isArray(part.thinking) ? "openai" : "anthropic";
  }
  return PART_STYLES.get(part.type) ?? (isServerToolBlock(part) ? "anthropic" : undefined);
}

/** Whether a block is of a tool that the provider itself ran: it is no call for us to answer. */
export function isServerToolBlock(part: Part): boolean {
  const { type } = part;
  return type === "server_tool_use" || type === "mcp_tool_use" ||
    typeof type === "string" && type.endsWith("_tool_result");
}

/** Whether a key of a message is part of an Anthropic response's envelope. */
export function isEnvelopeKey(key: string): boolean {
  return ANTHROPIC_ENVELOPE.has(key);
}

/** Whether a message is itself a tool result: role `tool`, or `function` in the old form. */
export function isResultMessage(message: Message): boolean {
  return message.role === "tool" || message.role === "function";
}

/** Whether a part is an Anthropic tool result. */
export function isResultBlock(part: unknown): part is Part {
  return isJsonObject(part) && part.type === "tool_result";
}

const NONE: readonly Part[] = [];

/** The tool calls that a message makes, in order, whichever way it is written. */
export function callsOf(message: Message): CallPart[] {
  const calls: CallPart[] = [];
  if (message.role !== "assistant") return calls;
  for (const call of toolCallsOf(message)) {
    // OpenAI's custom tools keep their name and text in `custom`.
    const body = isJsonObject(call.function) ? call.function : call.custom;
    const { name, arguments: args, input } = isJsonObject(body) ? body : call;
    calls.push({ id: text(call.id), name: text(name), arguments: args ?? input });
  }
  const own = calls.length;
  if (Array.isArray(message.content)) {
    for (const part of message.content) {
      if (!isJsonObject(part) || part.type !== "tool_use") continue;
      const id = text(part.id);
      // Some gateways tell a call twice, once in each style.
      if (own > 0 && calls.some((call, index) => index < own && call.id === id)) continue;
      calls.push({ id, name: text(part.name), arguments: part.input });
    }
  }
  if (calls.length === 0 && isLegacyCall(message)) {
    const { name, arguments: args } = message.function_call as Part;
    calls.push({ id: "", name: text(name), arguments: args });
  }
  return calls;
}

/** The entries of `tool_calls`, as they are written. */
export function toolCallsOf(message: Message): readonly Part[] {
  const calls = message.role === "assistant" ? message.tool_calls : undefined;
  if (!Array.isArray(calls)) return NONE;
  return calls.every(isJsonObject) ? calls : calls.filter(isJsonObject);
}

/**
 * Whether a message makes its one call in the old form, `function_call`. Some servers tell a call
 * in both forms, or send an empty one beside a text: neither is a call of its own.
 */
export function isLegacyCall(message: Message): boolean {
  const { role, content, function_call: call } = message;
  return isJsonObject(call) && text(call.name) !== "" && role === "assistant" &&
    toolCallsOf(message).length === 0 &&
    !(Array.isArray(content) && content.some((part) => part?.type === "tool_use"));
}

/** The tool results that a message holds, in order, whichever way it is written. */
export function resultsOf(message: Message): ResultPart[] {
  return resultParts(message).map((part) => ({
    id: resultId(part),
    content: part.content,
    isError: part.is_error === true,
  }));
}

/** The results of a message as they are written: the message itself, or blocks of its content. */
export function resultParts(message: Message): readonly Part[] {
  if (isResultMessage(message)) return [message];
  return Array.isArray(message.content) ? message.content.filter(isResultBlock) : NONE;
}

/** The id of the call that a result message or a result block answers; empty where none is given. */
export function resultId(result: Part): string {
  return text(result.role === "tool" ? result.tool_call_id : result.tool_use_id);
}

/** The mark of a suspended call: its result keeps it in whatever shape it is stored. */
export function markOf(result: Part | undefined): { pending?: unknown } {
  return result?.pending === undefined ? {} : { pending: result.pending };
}

/** The tool's name on a result message; empty where none is given. */
export function resultName(result: Part): string {
  return text(result.name);
}

/** The text of a message: a string, or its text parts joined. */
export function textOf(message: Message): string {
  return textOfContent(message.content);
}

/** The text of a message's or a result's content: a string, or its text parts joined. */
export function textOfContent(content: unknown): string {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  let joined = "";
  for (const part of content) {
    if (isJsonObject(part) && part.type === "text") joined += text(part.text);
  }
  return joined;
}

/**
 * The arguments of a call as an object. Nothing, null, or an empty text is no arguments: `{}`.
 * Undefined for whatever is no JSON object: a list, a text in a text, a text cut short.
 */
export function parseArguments(raw: unknown): Record<string, unknown> | undefined {
  if (raw === undefined || raw === null || (typeof raw === "string" && raw.trim() === "")) {
    return {};
  }
  return objectOf(typeof raw === "string" ? parseJson(raw) : raw);
}

/**
 * The arguments of a call as a text. A text stays as it is, a value becomes its JSON, and nothing an
 * empty text.
 */
export function argumentsText(raw: unknown): string {
  if (typeof raw === "string") return raw;
  if (raw === undefined || raw === null) return "";
  try {
    return JSON.stringify(raw);
  } catch {
    return "nested too deep to be written"; // no JSON, so that no tool runs with it
  }
}

/** Whether the arguments of a call, told once more, add nothing to what was told. */
export function isSaidBy(told: string, again: string): boolean {
  return told === again || again.trim() === "" ||
    equalJson(parseJson(told) ?? told, parseJson(again) ?? again);
}

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}
