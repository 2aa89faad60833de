/**
 * The OpenAI style: `POST {baseUrl}/chat/completions`.
 * https://platform.openai.com/docs/api-reference/chat
 *
 * @module
 */

import { objectOf, textOrUndefined } from "../json.ts";
import {
  argumentsText,
  callsOf,
  isLegacyCall,
  parseArguments,
  textOf,
} from "../transcript/read.ts";
import { convertTranscript } from "../transcript/convert.ts";
import { toOpenAI } from "../tools/declarations.ts";
import type { Message, Usage } from "../types.ts";
import { OpenAIDecoder } from "./openai_decoder.ts";
import {
  type CallResult,
  type ChatRequest,
  type Completion,
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
    const messages = convertTranscript(request.messages, "openai").map(sendable);
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
    const finishReason = textOrUndefined(choice.finish_reason) ?? "unknown";
    if (finishReason === "error") throw new UnreadableAnswer("the provider stopped with an error");
    return {
      message,
      text: textOf(message).toWellFormed(),
      reasoning: textOrUndefined(message.reasoning_content) ?? textOrUndefined(message.reasoning) ??
        "",
      calls: calls.map((call) => call.id === "" ? { ...call, id: newCallId() } : call),
      finishReason,
      isCut: finishReason === "length" || finishReason === "content_filter",
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
  const seen = new Map<string, string>();
  const calls: unknown[] = [];
  let isChanged = false;
  for (const received of message.tool_calls) {
    const call = objectOf(received);
    if (call === undefined) {
      isChanged = true;
      continue;
    }
    const definition = objectOf(call.function) ?? {};
    const name = typeof definition.name === "string" ? definition.name : "";
    const given = definition.arguments;
    const text = argumentsText(given);
    const content = `${name}\n${text}`;
    let id = textOrUndefined(call.id);
    if (id !== undefined && seen.get(id) === content) {
      isChanged = true;
      continue;
    }
    if (id === undefined || seen.has(id)) id = newCallId();
    seen.set(id, content);
    if (id === call.id && text === given && call.type === "function" && name === definition.name) {
      calls.push(call);
    } else {
      isChanged = true;
      calls.push({
        ...call,
        id,
        type: "function",
        function: { ...definition, name, arguments: text },
      });
    }
  }
  return isChanged ? { ...message, tool_calls: calls } : message;
}

/** The copy that is sent: without our marks, nulls and empty lists that servers refuse. */
function sendable(message: Message): Message {
  if (message.role === "user" || message.role === "system") return message;
  if (message.role !== "assistant") {
    if (message.pending === undefined) return message;
    const { pending: _, ...rest } = message;
    return rest as Message;
  }
  const hasCalls = Array.isArray(message.tool_calls) && message.tool_calls.length > 0;
  const isEmpty = message.content === undefined || message.content === null;
  const hasInstead = hasCalls || Boolean(message.function_call) || Boolean(message.refusal) ||
    Boolean(message.audio);
  let copy = hasCalls ? withWholeArguments(message) : message;
  if (isEmpty && (!hasInstead || message.content === undefined)) {
    copy = { ...copy, content: hasInstead ? null : "" };
  }
  if (!hasCalls && copy.tool_calls !== undefined) copy = without(copy, "tool_calls");
  for (const key of ["function_call", "audio", "refusal"]) {
    if (copy[key] === null) copy = without(copy, key);
  }
  return copy;
}

/** Servers that read the arguments of earlier calls refuse those that are no JSON object. */
function withWholeArguments(message: Message): Message {
  const calls = message.tool_calls as Record<string, unknown>[];
  const isBroken = (call: Record<string, unknown>) => {
    const definition = objectOf(call.function);
    if (definition === undefined) return false;
    const { arguments: text } = definition;
    return parseArguments(text) === undefined || (typeof text === "string" && text.trim() === "");
  };
  if (!calls.some(isBroken)) return message;
  const tool_calls = calls.map((call) =>
    isBroken(call) ? { ...call, function: { ...objectOf(call.function), arguments: "{}" } } : call
  );
  return { ...message, tool_calls };
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
    usage.prompt_cache_hit_tokens;
  const reasoning = objectOf(usage.completion_tokens_details)?.reasoning_tokens;
  return {
    promptTokens,
    completionTokens,
    totalTokens: tokenCount(usage.total_tokens) || promptTokens + completionTokens,
    ...(typeof cached === "number" && { cachedTokens: tokenCount(cached) }),
    ...(typeof reasoning === "number" && { reasoningTokens: tokenCount(reasoning) }),
  };
}
