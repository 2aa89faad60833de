/**
 * The same conversation in the other provider's shape.
 *
 * @module
 */

import { isJsonObject, objectOf } from "../json.ts";
import type { Message, StyleName } from "../types.ts";
import { CallIds, hasLegalIds, legalName } from "./ids.ts";
import { isClaim } from "./last_turn.ts";
import { partsOf, textPart, toAnthropicBlock, toOpenAIPart, toOpenAIText } from "./parts.ts";
import {
  argumentsText,
  type CallPart,
  callsOf,
  checkTranscript,
  fitsAnthropic,
  fitsOpenAI,
  isEnvelopeKey,
  isLegacyCall,
  isResultBlock,
  isResultMessage,
  markOf,
  parseArguments,
  type Part,
  toolCallsOf,
} from "./read.ts";
import { leadingSystem } from "./system.ts";

/**
 * Gives the transcript in the shape of `style`. Each message is read in whichever style it is
 * written in, so a conversation can move between providers at any turn.
 *
 * - Calls, results and texts are kept, in their order. Arguments that are no JSON object become
 *   `{}` towards Anthropic. That a result is an error is kept as far as its text says so.
 * - Ids of calls are made legal, on both sides of the pair: towards Anthropic letters, digits, `_`
 *   and `-`, each id once in the transcript; towards OpenAI not empty, each id once in a message.
 *   The same transcript always gets the same ids, and so does its continuation.
 * - Images and PDF documents are kept, as data or address. Towards OpenAI, those of a tool result go
 *   to a user message after it. What the other style has no place for becomes a short text note.
 * - Reasoning of the other provider is dropped, and the work of tools that it ran itself. A message
 *   that holds nothing else is left out.
 * - A result keeps the request of a suspended call, so that the transcript can be resumed. The client
 *   sends no such mark.
 * - Towards Anthropic, `system` and `developer` messages at the start stay as they are, for the
 *   request's `system`; later ones become user texts.
 *
 * Nothing that is given is changed. Messages that are in the target style come back as the same
 * objects, unless an id in them is not legal. Neither neighbours of one role nor blank texts are
 * touched. The result is as sendable as `messages` are: see {@linkcode balanceTranscript}.
 *
 * @param messages The transcript, in either style or both
 * @param style The style to write it in
 * @returns A new array
 * @throws {TypeError} if `messages` is no array of objects, or `style` is no style
 *
 * @example A conversation moves from an OpenAI style server to Anthropic
 * ```ts
 * import { convertTranscript } from "@toolnexus/client";
 * import { assertEquals } from "@std/assert";
 *
 * const messages = convertTranscript([
 *   { role: "user", content: "Weather in Rome?" },
 *   {
 *     role: "assistant",
 *     content: null,
 *     tool_calls: [{
 *       id: "weather:0",
 *       type: "function",
 *       function: { name: "weather", arguments: '{"city":"Rome"}' },
 *     }],
 *   },
 *   { role: "tool", tool_call_id: "weather:0", content: "sunny" },
 * ], "anthropic");
 *
 * assertEquals(messages, [
 *   { role: "user", content: "Weather in Rome?" },
 *   {
 *     role: "assistant",
 *     content: [{ type: "tool_use", id: "weather_0", name: "weather", input: { city: "Rome" } }],
 *   },
 *   {
 *     role: "user",
 *     content: [{ type: "tool_result", tool_use_id: "weather_0", content: "sunny" }],
 *   },
 * ]);
 * ```
 */
export function convertTranscript(messages: readonly Message[], style: StyleName): Message[] {
  checkTranscript(messages, style);
  const fits = style === "openai" ? fitsOpenAI : fitsAnthropic;
  const start = style === "openai" ? 0 : leadingSystem(messages);
  // The common case, before each request of a conversation that never moved.
  if (messages.every((message, index) => index < start || fits(message))) {
    if (hasLegalIds(messages, style)) return [...messages];
  }
  return style === "openai" ? toOpenAI(messages) : toAnthropic(messages, start);
}

function toOpenAI(messages: readonly Message[]): Message[] {
  const ids = new CallIds("openai");
  const converted: Message[] = [];
  // Images and files of tool results, until the round is over.
  let attachments: Part[] = [];
  for (const message of messages) {
    const fits = fitsOpenAI(message);
    if (message.role === "tool") {
      converted.push(openAIResult(message, fits, ids, attachments));
      continue;
    }
    const calls = callsOf(message);
    const callIds = calls.length === 0 ? [] : ids.ofCalls(message, calls, !fits);
    const blocks = Array.isArray(message.content) && !fits
      ? message.content.filter(isResultBlock)
      : [];
    for (const block of blocks) converted.push(openAIResult(block, false, ids, attachments));
    if (attachments.length > 0 && blocks.length === 0) {
      converted.push({ role: "user", content: attachments });
      attachments = [];
    }
    if (fits) {
      converted.push(calls.length === 0 ? message : withCallIds(message, callIds));
    } else if (message.role === "assistant") {
      const assistant = openAIAssistant(message, calls, callIds);
      if (assistant !== undefined) converted.push(assistant);
    } else {
      const parts = partsOf(message.content).filter((part) => !isResultBlock(part))
        .map(toOpenAIPart).filter((part) => part !== undefined);
      const content = contentOf([...attachments, ...parts]);
      attachments = [];
      if (content !== undefined) converted.push({ role: message.role, content });
    }
  }
  if (attachments.length > 0) converted.push({ role: "user", content: attachments });
  return converted;
}

/** A result message, from one of either style or from a result block. */
function openAIResult(result: Part, fits: boolean, ids: CallIds, attachments: Part[]): Message {
  const id = ids.ofResult(result);
  const own = result.role === "tool" ? result as Message : undefined;
  if (own && fits) return own.tool_call_id === id ? own : { ...own, tool_call_id: id };
  const texts: Part[] = [];
  for (const part of partsOf(result.content).map(toOpenAIPart)) {
    if (part?.type === "text") texts.push(part);
    else if (part !== undefined) {
      attachments.push(part);
      texts.push(textPart("[attachment: see the next message]"));
    }
  }
  const lone = contentOf(texts) ?? (result.is_error === true ? "error" : "");
  // A list that must not be taken for a claim stays one.
  const content = isClaim(lone) && !isClaim(result.content) ? texts : lone;
  return { ...own, role: "tool", tool_call_id: id, content, ...markOf(result) };
}

/** Parts as the content of a message: a lone text as a string, undefined for nothing. */
function contentOf(parts: readonly Part[]): unknown {
  if (parts.length === 0) return undefined;
  return parts.length === 1 && parts[0]!.type === "text" ? parts[0]!.text : parts;
}

/** An assistant's message of OpenAI style; undefined if there is nothing in it for OpenAI. */
function openAIAssistant(
  message: Message,
  calls: readonly CallPart[],
  callIds: readonly string[],
): Message | undefined {
  const legacy = isLegacyCall(message);
  const assistant: Message = { ...message, content: null };
  for (const key of Object.keys(message)) if (isEnvelopeKey(key)) delete assistant[key];
  delete assistant.tool_calls;
  if (!legacy) delete assistant.function_call;
  const text = partsOf(message.content).map(toOpenAIText).join("");
  if (text !== "") assistant.content = text;
  if (calls.length === 0) {
    if (text === "" && Object.keys(assistant).length === 2) return undefined;
    assistant.content = text;
  } else if (legacy) {
    const call = message.function_call as Part;
    assistant.function_call = { ...call, arguments: argumentsText(call.arguments ?? {}) };
  } else {
    const written = toolCallsOf(message);
    assistant.tool_calls = calls.map((call, index) => {
      const own = written[index];
      if (own?.custom !== undefined) return { type: "custom", ...own, id: callIds[index] };
      const body = objectOf(own?.function);
      const name = body && call.name !== "" ? call.name : legalName(call.name);
      return {
        ...own,
        id: callIds[index],
        type: "function",
        function: { ...body, name, arguments: argumentsText(call.arguments ?? {}) },
      };
    });
  }
  return assistant;
}

/** An OpenAI message with these ids on its calls; itself if it has them. */
function withCallIds(message: Message, callIds: readonly string[]): Message {
  const calls = toolCallsOf(message);
  if (calls.every((call, index) => call.id === callIds[index])) return message;
  return {
    ...message,
    tool_calls: calls.map((call, index) => ({ ...call, id: callIds[index] })),
  };
}

/** `start`: how many system messages it begins with. */
function toAnthropic(messages: readonly Message[], start: number): Message[] {
  const ids = new CallIds("anthropic");
  const converted = messages.slice(0, start);
  // The content of the user message that collects the results of a round.
  let results: Part[] | undefined;
  for (const message of messages.slice(start)) {
    if (isResultMessage(message)) {
      if (results === undefined) {
        results = [];
        converted.push({ role: "user", content: results });
      }
      results.push(anthropicResult(message, ids));
      continue;
    }
    results = undefined;
    const fits = fitsAnthropic(message);
    const calls = callsOf(message);
    const callIds = calls.length === 0 ? [] : ids.ofCalls(message, calls, !fits);
    const written = fits
      ? withLegalIds(message, callIds, ids)
      : anthropicMessage(message, calls, callIds, ids);
    if (written !== undefined) converted.push(written);
  }
  return converted;
}

/** An Anthropic message with legal ids on its calls and results; itself if it has them. */
function withLegalIds(message: Message, callIds: readonly string[], ids: CallIds): Message {
  if (!Array.isArray(message.content)) return message;
  let changed: unknown[] | undefined;
  let next = 0;
  for (const [index, block] of message.content.entries()) {
    let key: "id" | "tool_use_id" = "id";
    let id: string | undefined;
    if (block.type === "tool_use") id = callIds[next++];
    else if (block.type === "tool_result") [key, id] = ["tool_use_id", ids.ofResult(block)];
    if (id === undefined || block[key] === id) continue;
    changed ??= [...message.content];
    changed[index] = { ...block, [key]: id };
  }
  return changed === undefined ? message : { ...message, content: changed };
}

/** A result block, from a result message or a block that is not as it should be. */
function anthropicResult(result: Part, ids: CallIds): Part {
  const isError = result.is_error === true;
  const blocks = blocksOf(result.content, "user");
  const content = typeof result.content === "string" ? result.content : blocks;
  return {
    type: "tool_result",
    tool_use_id: ids.ofResult(result),
    content: content.length > 0 ? content : isError ? "error" : "",
    ...(isError ? { is_error: true } : {}),
    ...markOf(result),
  };
}

function blocksOf(content: unknown, role: string): Part[] {
  return partsOf(content).map((part) => toAnthropicBlock(part, role))
    .filter((block) => block !== undefined);
}

/** A message of Anthropic style; undefined if there is nothing in it for Anthropic. */
function anthropicMessage(
  message: Message,
  calls: readonly CallPart[],
  callIds: readonly string[],
  ids: CallIds,
): Message | undefined {
  const role = message.role === "assistant" ? "assistant" : "user";
  const results: Part[] = [];
  const parts: unknown[] = [];
  for (const part of partsOf(message.content)) {
    const block = objectOf(part);
    if (role === "user" && isResultBlock(block)) results.push(anthropicResult(block, ids));
    else if (role === "user" || block?.type !== "tool_use") parts.push(part);
  }
  if (typeof message.refusal === "string") parts.push(message.refusal);
  if (isJsonObject(message.audio)) parts.push(message.audio.transcript);
  const uses = calls.map((call, index) => ({
    type: "tool_use",
    id: callIds[index],
    name: legalName(call.name),
    input: parseArguments(call.arguments) ?? {},
  }));
  const blocks = blocksOf(parts, role).filter((block) => !isBlank(block));
  const content = [...results, ...blocks, ...uses];
  if (content.length === 0) return undefined;
  // A string stays a string.
  const only = content.length === 1 && typeof message.content === "string" ? content[0]! : {};
  return { role, content: only.type === "text" ? (only as Part).text : content };
}

function isBlank(block: Part): boolean {
  return block.type === "text" && typeof block.text === "string" && block.text.trim() === "";
}
