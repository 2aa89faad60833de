/**
 * The OpenAI style: `POST {baseUrl}/chat/completions`.
 * https://platform.openai.com/docs/api-reference/chat
 *
 * @module
 */

import { isJsonObject, objectOf, textOrUndefined } from "../json.ts";
import {
  argumentsText,
  callsOf,
  isLegacyCall,
  isSaidBy,
  parseArguments,
  type Part,
  textOf,
} from "../transcript/read.ts";
import { convertTranscript } from "../transcript/convert.ts";
import { legalName } from "../transcript/ids.ts";
import { toOpenAI } from "../tools/declarations.ts";
import type { Message, Usage } from "../types.ts";
import { OpenAIDecoder } from "./openai_decoder.ts";
import {
  type CallResult,
  type ChatRequest,
  type Completion,
  finishReasonOf,
  givenId,
  isCutReason,
  newCallId,
  type Style,
  tokenCount,
  UnreadableAnswer,
} from "./style.ts";

/** The OpenAI style. */
export const openai: Style = {
  name: "openai",
  version: "",
  path: "/chat/completions",

  headers(apiKey): Record<string, string> {
    return apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` };
  },

  body(request: ChatRequest): Record<string, unknown> {
    const declared = new Set(request.tools.map(({ name }) => name));
    const messages = convertTranscript(request.messages, "openai")
      .map((message) => sendable(message, declared));
    if (request.system !== "") messages.unshift({ role: "system", content: request.system });
    return {
      model: request.model,
      messages,
      ...(request.tools.length > 0 && { tools: toOpenAI(request.tools) }),
      ...(request.maxTokens !== undefined && { max_tokens: request.maxTokens }),
      ...(request.stream && { stream: true, stream_options: { include_usage: true } }),
    };
  },

  read(payload): Completion {
    const choice = Array.isArray(payload.choices) ? objectOf(payload.choices[0]) : undefined;
    const received = objectOf(choice?.message);
    if (choice === undefined || received === undefined) {
      throw new UnreadableAnswer("the answer has no choices[0].message");
    }
    const message = storable(received);
    const calls = callsOf(message);
    const finishReason = finishReasonOf(choice.finish_reason) ?? "unknown";
    if (finishReason === "error") throw new UnreadableAnswer("the provider stopped with an error");
    return {
      message,
      text: textOf(message).toWellFormed(),
      reasoning: textOrUndefined(message.reasoning_content) ?? textOrUndefined(message.reasoning) ??
        "",
      calls: calls.map((call) => call.id === "" ? { ...call, id: newCallId() } : call),
      finishReason,
      isCut: isCutReason(finishReason),
      isPaused: false,
      usage: usageOf(payload.usage),
      payload,
    };
  },

  decoder: () => new OpenAIDecoder(),

  toolChoice: (choice) => choice,

  results(answer: Message, results: readonly CallResult[]): Message[] {
    const isLegacy = isLegacyCall(answer);
    return results.map(({ id, name, content, pending }) => ({
      role: isLegacy ? "function" : "tool",
      ...(isLegacy ? { name } : { tool_call_id: id }),
      content,
      ...(pending !== undefined && { pending }),
    }));
  },
};

/**
 * The message as it is stored: as it came, but each call with an id of its own and its arguments as
 * a string, and a call that was sent twice only once.
 */
function storable(received: Record<string, unknown>): Message {
  let message: Message = { ...received, role: "assistant" };
  const legacy = objectOf(message.function_call);
  if (legacy !== undefined && typeof legacy.arguments !== "string") {
    message = {
      ...message,
      function_call: { ...legacy, arguments: argumentsText(legacy.arguments) },
    };
  }
  if (!Array.isArray(message.tool_calls) || message.tool_calls.length === 0) return message;
  const ids = new Set<string>();
  const told: { given: string; name: unknown; text: string }[] = [];
  const calls: unknown[] = [];
  for (const received of message.tool_calls as unknown[]) {
    if (!isJsonObject(received)) continue;
    const call = storableCall(received);
    const { name, arguments: text, input } = (objectOf(call.custom) ?? call.function) as Part;
    const given = givenId(received.id);
    const sent = argumentsText(text ?? input);
    if (name === "" && sent.trim() === "") continue; // an entry that says nothing
    if (given !== undefined) {
      const same = told.filter((before) => before.given === given && before.name === name);
      if (same.some((before) => isSaidBy(before.text, sent))) continue;
      told.push({ given, name, text: sent });
    }
    const id = given === undefined || ids.has(given) ? newCallId() : given;
    ids.add(id);
    calls.push(id === call.id ? call : { ...call, id });
  }
  // Some servers tell a call in the old form too.
  if (calls.length > 0 && legacy !== undefined) message = without(message, "function_call");
  return { ...message, tool_calls: calls };
}

/** A call as this style has it. Some servers send it flat: its name and arguments beside its id. */
function storableCall(call: Part): Part {
  if (objectOf(call.custom) !== undefined) return call;
  const { function: sent, ...rest } = call;
  const definition = objectOf(sent);
  const { name: givenName, arguments: given, ...others } = definition ?? rest;
  const name = typeof givenName === "string" ? givenName : "", text = argumentsText(given);
  if (definition === undefined) {
    return { ...others, type: "function", function: { name, arguments: text } };
  }
  if (call.type === "function" && name === givenName && text === given) return call;
  return { ...call, type: "function", function: { ...definition, name, arguments: text } };
}

/**
 * The copy that is sent: without our marks, and without nulls, empty lists and names of tools that
 * servers refuse. Names that are `declared` they take.
 */
function sendable(message: Message, declared: ReadonlySet<string>): Message {
  if (message.role !== "assistant") {
    const { content, role } = message;
    const isEmpty = content === undefined || content === null ||
      (Array.isArray(content) && content.length === 0);
    const copy = isEmpty ? { ...message, content: "" } : message;
    const isResult = role !== "user" && role !== "system";
    return isResult && message.pending !== undefined ? without(copy, "pending") : copy;
  }
  const hasCalls = Array.isArray(message.tool_calls) && message.tool_calls.length > 0;
  const isEmpty = message.content === undefined || message.content === null;
  const hasInstead = hasCalls || Boolean(message.function_call) || Boolean(message.refusal) ||
    Boolean(message.audio);
  let copy = hasCalls ? withSendableCalls(message, declared) : message;
  if (isEmpty && (!hasInstead || message.content === undefined)) {
    copy = { ...copy, content: hasInstead ? null : "" };
  }
  if (!hasCalls && copy.tool_calls !== undefined) copy = without(copy, "tool_calls");
  for (const key of ["function_call", "audio", "refusal"]) {
    if (copy[key] === null) copy = without(copy, key);
  }
  return copy;
}

/** A message with calls that servers accept which read them: of a legal name, with an object. */
function withSendableCalls(message: Message, declared: ReadonlySet<string>): Message {
  const calls = message.tool_calls as Record<string, unknown>[];
  const tool_calls = calls.map((call) => {
    const definition = objectOf(call.function);
    if (definition === undefined) return call;
    const { name: givenName, arguments: given } = definition;
    const isBlank = typeof given === "string" && given.trim() === "";
    const text = isBlank || parseArguments(given) === undefined ? "{}" : given;
    const name = legalName(givenName, declared);
    if (name === givenName && text === given) return call;
    return { ...call, function: { ...definition, name, arguments: text } };
  });
  return calls.every((call, index) => call === tool_calls[index])
    ? message
    : { ...message, tool_calls };
}

function without(message: Message, key: string): Message {
  const { [key]: _, ...rest } = message;
  return rest as Message;
}

function usageOf(reported: unknown): Usage {
  const usage = objectOf(reported) ?? {};
  const promptTokens = tokenCount(usage.prompt_tokens);
  const completionTokens = tokenCount(usage.completion_tokens);
  const cached = objectOf(usage.prompt_tokens_details)?.cached_tokens ??
    usage.cached_tokens ?? usage.prompt_cache_hit_tokens;
  const reasoning = objectOf(usage.completion_tokens_details)?.reasoning_tokens;
  return {
    promptTokens,
    completionTokens,
    // Counts can come one by one: a total below its parts is from an earlier report.
    totalTokens: Math.max(tokenCount(usage.total_tokens), promptTokens + completionTokens),
    ...(typeof cached === "number" && { cachedTokens: tokenCount(cached) }),
    ...(typeof reasoning === "number" && { reasoningTokens: tokenCount(reasoning) }),
  };
}
