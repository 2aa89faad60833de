/**
 * The Anthropic style: `POST {baseUrl}/v1/messages`. https://docs.anthropic.com/en/api/messages
 *
 * @module
 */

import { equalJson, objectOf, textOrUndefined } from "../json.ts";
import { callsOf, type Part, textOf } from "../transcript/read.ts";
import { convertTranscript } from "../transcript/convert.ts";
import { toAnthropic } from "../tools/declarations.ts";
import type { Message, Usage } from "../types.ts";
import { AnthropicDecoder, isSameCall } from "./anthropic_decoder.ts";
import { sendableMessages } from "./anthropic_cleanup.ts";
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

/** The API demands an output limit; this one every model accepts. */
const DEFAULT_MAX_TOKENS = 4096;

/** The Anthropic style. */
export const anthropic: Style = {
  name: "anthropic",
  version: "/v1",
  path: "/messages",

  headers: (apiKey) => ({
    "anthropic-version": "2023-06-01",
    ...(apiKey !== undefined && { "x-api-key": apiKey }),
  }),

  body(request: ChatRequest): Record<string, unknown> {
    const declared = new Set(request.tools.map(({ name }) => name));
    return {
      model: request.model,
      max_tokens: request.maxTokens ?? DEFAULT_MAX_TOKENS,
      ...(request.system !== "" && { system: request.system }),
      messages: sendableMessages(convertTranscript(request.messages, "anthropic"), declared),
      ...(request.tools.length > 0 && { tools: toAnthropic(request.tools) }),
      ...(request.stream && { stream: true }),
    };
  },

  read(payload): Completion {
    const content = payload.content ?? (payload.stop_reason ? [] : undefined);
    if (!Array.isArray(content) && typeof content !== "string") {
      throw new UnreadableAnswer("the answer has no content");
    }
    const message: Message = { role: "assistant", content: storable(content) };
    const finishReason = finishReasonOf(payload.stop_reason) ?? "unknown";
    return {
      message,
      text: textOf(message).toWellFormed(),
      reasoning: reasoningOf(message.content),
      calls: callsOf(message),
      finishReason,
      isCut: isCutReason(finishReason),
      isPaused: finishReason === "pause_turn",
      usage: usageOf(payload.usage),
      payload,
    };
  },

  decoder: () => new AnthropicDecoder(),

  /** https://docs.anthropic.com/en/docs/agents-and-tools/tool-use/implement-tool-use#forcing-tool-use */
  toolChoice(choice) {
    const name = textOrUndefined(objectOf(objectOf(choice)?.function)?.name);
    if (name !== undefined) return { type: "tool", name };
    return { type: choice === "required" ? "any" : choice };
  },

  results(_answer: Message, results: readonly CallResult[]): Message[] {
    if (results.length === 0) return [];
    const blocks = results.map(({ id, content, isError, pending }) => ({
      type: "tool_result",
      tool_use_id: id,
      content,
      ...(isError && { is_error: true }),
      ...(pending !== undefined && { pending }),
    }));
    return [{ role: "user", content: blocks }];
  },
};

/**
 * The blocks as they came, but each call once, and with an id of its own. One that is begun again
 * without an input of its own is the same call.
 */
function storable(content: unknown): unknown {
  if (!Array.isArray(content)) return content;
  const seen: Part[] = [];
  return content.flatMap((block) => {
    if (objectOf(block)?.type !== "tool_use") return [block];
    const id = givenId(block.id);
    const same = id === undefined ? [] : seen.filter((before) => before.id === id);
    const isEmpty = equalJson(block.input ?? {}, {});
    if (same.some((before) => isEmpty ? isSameCall(before, block) : equalJson(before, block))) {
      return [];
    }
    seen.push(block);
    return [id !== undefined && same.length === 0 ? block : { ...block, id: newCallId() }];
  });
}

function reasoningOf(content: unknown): string {
  if (!Array.isArray(content)) return "";
  return content.map((block) => textOrUndefined(objectOf(block)?.thinking) ?? "").join("");
}

/** https://docs.anthropic.com/en/api/messages#response-usage: input tokens are without the cache's. */
function usageOf(reported: unknown): Usage {
  const usage = objectOf(reported) ?? {};
  const promptTokens = tokenCount(usage.input_tokens);
  const completionTokens = tokenCount(usage.output_tokens);
  const cached = usage.cache_read_input_tokens;
  const created = usage.cache_creation_input_tokens;
  return {
    promptTokens,
    completionTokens,
    totalTokens: promptTokens + completionTokens,
    ...(typeof cached === "number" && { cachedTokens: tokenCount(cached) }),
    ...(typeof created === "number" && { cacheCreationTokens: tokenCount(created) }),
  };
}
