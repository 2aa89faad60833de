/**
 * How each style writes what the model says.
 *
 * @module
 */

import type { StyleName, Usage } from "../../mod.ts";
import type { StubAnswer, StubRequestBody } from "./stub_replies.ts";

/** What the writers need to know beside the reply. */
export interface ReplyContext {
  style: StyleName;
  body: StubRequestBody;
  /** Counts the requests of this stub, from 1. */
  call: number;
  /** The most characters of one delta. */
  deltaLength: number;
  /** Counts the tool calls of this stub, from 1. */
  nextToolCall: () => number;
}

/** Writes an answer in the style of the request: as one JSON body, or as the events of a stream. */
export function writeAnswer(answer: StubAnswer, context: ReplyContext): Answer {
  return context.style === "openai"
    ? new OpenAIAnswer(answer, context)
    : new AnthropicAnswer(answer, context);
}

/** An answer with its defaults filled in. */
abstract class Answer {
  protected readonly text: string;
  protected readonly reasoning: string | undefined;
  protected readonly calls: { id: string; name: string; args: string }[];
  protected readonly usage: Partial<Usage> & { promptTokens: number; completionTokens: number };
  protected readonly finishReason: string | undefined;
  protected readonly context: ReplyContext;

  constructor(answer: StubAnswer, context: ReplyContext, idPrefix: string) {
    this.context = context;
    this.text = answer.text ?? "";
    this.reasoning = answer.reasoning;
    this.finishReason = answer.finishReason;
    this.calls = (answer.toolCalls ?? []).map((
      { id, name, arguments: given = {}, args = given },
    ) => ({
      id: id ?? `${idPrefix}_${context.nextToolCall()}`,
      name,
      args: typeof args === "string" ? args : JSON.stringify(args),
    }));
    this.usage = {
      ...answer.usage,
      promptTokens: answer.usage?.promptTokens ?? 10,
      completionTokens: answer.usage?.completionTokens ?? 5,
    };
  }

  abstract json(): unknown;
  abstract events(): string[];

  /** Cuts a text into deltas, never inside a character. */
  protected cut(text: string): string[] {
    const { deltaLength } = this.context;
    const characters = Array.from(text);
    const deltas: string[] = [];
    for (let at = 0; at < characters.length; at += deltaLength) {
      deltas.push(characters.slice(at, at + deltaLength).join(""));
    }
    return deltas;
  }
}

class OpenAIAnswer extends Answer {
  constructor(answer: StubAnswer, context: ReplyContext) {
    super(answer, context, "call");
  }

  json(): unknown {
    const message: Record<string, unknown> = {
      role: "assistant",
      content: this.text === "" && this.calls.length > 0 ? null : this.text,
    };
    if (this.reasoning !== undefined) message.reasoning_content = this.reasoning;
    if (this.calls.length > 0) {
      message.tool_calls = this.calls.map(({ id, name, args }) => ({
        id,
        type: "function",
        function: { name, arguments: args },
      }));
    }
    return {
      ...this.#envelope("chat.completion"),
      choices: [{ index: 0, message, finish_reason: this.#finishReason() }],
      usage: this.#usage(),
    };
  }

  events(): string[] {
    const options = this.context.body.stream_options as { include_usage?: unknown } | undefined;
    const counted = options?.include_usage === true;
    const chunk = (choices: unknown[], usage: unknown = null) =>
      `data: ${
        JSON.stringify({
          ...this.#envelope("chat.completion.chunk"),
          choices,
          ...(counted ? { usage } : {}),
        })
      }\n\n`;
    const delta = (delta: unknown, finish_reason: string | null = null) =>
      chunk([{ index: 0, delta, finish_reason }]);
    const content = this.text === "" && this.calls.length > 0 ? null : "";
    const events = [delta({ role: "assistant", content })];
    for (const piece of this.cut(this.reasoning ?? "")) {
      events.push(delta({ reasoning_content: piece }));
    }
    for (const piece of this.cut(this.text)) events.push(delta({ content: piece }));
    this.calls.forEach(({ id, name, args }, index) => {
      const start = { index, id, type: "function", function: { name, arguments: "" } };
      events.push(delta({ tool_calls: [start] }));
      for (const piece of this.cut(args)) {
        events.push(delta({ tool_calls: [{ index, function: { arguments: piece } }] }));
      }
    });
    events.push(delta({}, this.#finishReason()));
    if (counted) events.push(chunk([], this.#usage()));
    events.push("data: [DONE]\n\n");
    return events;
  }

  #envelope(object: string): Record<string, unknown> {
    const { call, body } = this.context;
    return { id: `chatcmpl-${call}`, object, created: 1_700_000_000 + call, model: body.model };
  }

  #finishReason(): string {
    return this.finishReason ?? (this.calls.length > 0 ? "tool_calls" : "stop");
  }

  #usage(): unknown {
    const { promptTokens, completionTokens, totalTokens, cachedTokens, reasoningTokens } =
      this.usage;
    return {
      prompt_tokens: promptTokens,
      completion_tokens: completionTokens,
      total_tokens: totalTokens ?? promptTokens + completionTokens,
      ...(cachedTokens === undefined
        ? {}
        : { prompt_tokens_details: { cached_tokens: cachedTokens } }),
      ...(reasoningTokens === undefined
        ? {}
        : { completion_tokens_details: { reasoning_tokens: reasoningTokens } }),
    };
  }
}

/** A content block, and the deltas that fill it in a stream. */
interface Block {
  whole: Record<string, unknown>;
  start: Record<string, unknown>;
  deltas: Record<string, unknown>[];
}

class AnthropicAnswer extends Answer {
  constructor(answer: StubAnswer, context: ReplyContext) {
    super(answer, context, "toolu");
  }

  json(): unknown {
    return {
      ...this.#envelope(),
      content: this.#blocks().map((block) => block.whole),
      stop_reason: this.#stopReason(),
      usage: this.#usage(this.usage.completionTokens),
    };
  }

  events(): string[] {
    const events: string[] = [];
    const event = (type: string, data: Record<string, unknown>) =>
      void events.push(`event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`);
    const message = { ...this.#envelope(), content: [], stop_reason: null, usage: this.#usage(1) };
    event("message_start", { message });
    this.#blocks().forEach(({ start, deltas }, index) => {
      event("content_block_start", { index, content_block: start });
      if (index === 0) event("ping", {});
      for (const delta of deltas) event("content_block_delta", { index, delta });
      event("content_block_stop", { index });
    });
    event("message_delta", {
      delta: { stop_reason: this.#stopReason(), stop_sequence: null },
      usage: { output_tokens: this.usage.completionTokens },
    });
    event("message_stop", {});
    return events;
  }

  #blocks(): Block[] {
    const blocks: Block[] = [];
    if (this.reasoning !== undefined) {
      const signature = `signature-${this.context.call}`;
      blocks.push({
        whole: { type: "thinking", thinking: this.reasoning, signature },
        start: { type: "thinking", thinking: "", signature: "" },
        deltas: [
          ...this.cut(this.reasoning).map((thinking) => ({ type: "thinking_delta", thinking })),
          { type: "signature_delta", signature },
        ],
      });
    }
    if (this.text !== "") {
      blocks.push({
        whole: { type: "text", text: this.text },
        start: { type: "text", text: "" },
        deltas: this.cut(this.text).map((text) => ({ type: "text_delta", text })),
      });
    }
    for (const { id, name, args } of this.calls) {
      blocks.push({
        whole: { type: "tool_use", id, name, input: parsed(args) },
        start: { type: "tool_use", id, name, input: {} },
        // A call without arguments is streamed as one empty delta.
        deltas: (args === "{}" ? [""] : this.cut(args))
          .map((partial_json) => ({ type: "input_json_delta", partial_json })),
      });
    }
    return blocks;
  }

  #envelope(): Record<string, unknown> {
    const { call, body } = this.context;
    return {
      id: `msg_${call}`,
      type: "message",
      role: "assistant",
      model: body.model,
      stop_sequence: null,
    };
  }

  #stopReason(): string {
    return this.finishReason ?? (this.calls.length > 0 ? "tool_use" : "end_turn");
  }

  #usage(outputTokens: number): unknown {
    const { promptTokens, cachedTokens, cacheCreationTokens } = this.usage;
    return {
      input_tokens: promptTokens,
      ...(cachedTokens === undefined ? {} : { cache_read_input_tokens: cachedTokens }),
      ...(cacheCreationTokens === undefined
        ? {}
        : { cache_creation_input_tokens: cacheCreationTokens }),
      output_tokens: outputTokens,
    };
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
