/**
 * Puts an Anthropic-style answer together from its stream.
 * https://docs.anthropic.com/en/docs/build-with-claude/streaming
 *
 * @module
 */

import { StreamError } from "../errors.ts";
import { objectOf, parseJson, textOrUndefined } from "../json.ts";
import { argumentsText, type Part } from "../transcript/read.ts";
import type { StreamEvent } from "../types.ts";
import { grow } from "./grow.ts";
import { finishReasonOf, givenId, type StreamDecoder } from "./style.ts";

/** The decoder of the Anthropic style. */
export class AnthropicDecoder implements StreamDecoder {
  isFinished = false;
  isEnded = false;
  #message: Record<string, unknown> = {};
  #usage: Record<string, unknown> = {};
  #stop: Record<string, unknown> = {};
  /** In the order in which the blocks began. */
  #blocks: Part[] = [];
  #byIndex = new Map<unknown, Part>();
  /** Indexes of blocks that have ended. */
  #stopped = new Set<unknown>();
  /** The JSON text of a block's input, while it grows. */
  #inputs = new Map<Part, string>();

  get isComplete(): boolean {
    return this.isFinished;
  }

  push(data: Record<string, unknown>, event: string, events: StreamEvent[]): void {
    switch (textOrUndefined(data.type) ?? event) {
      case "message_start": {
        const { usage, content, ...message } = objectOf(data.message) ?? {};
        this.#message = message;
        this.#addUsage(usage);
        // Gateways that have the answer already may tell it at once.
        for (const block of Array.isArray(content) ? content : []) {
          this.#start(`of the start ${this.#blocks.length}`, objectOf(block), events);
        }
        break;
      }
      case "content_block_start":
        this.#start(data.index, objectOf(data.content_block), events);
        break;
      case "content_block_delta":
        this.#grow(data.index, objectOf(data.delta), events);
        break;
      case "content_block_stop":
        // Some gateways use one index for every block.
        this.#byIndex.delete(data.index);
        this.#stopped.add(data.index);
        break;
      case "message_delta": {
        const delta = objectOf(data.delta) ?? {};
        this.#addUsage(data.usage);
        this.#stop = { ...this.#stop, ...delta };
        if (finishReasonOf(delta.stop_reason) !== undefined) this.isFinished = true;
        break;
      }
      case "message_stop":
        this.isFinished = this.isEnded = true;
        break;
      case "message": {
        // A plain answer as the one event of a stream.
        const { stop_reason, stop_sequence, usage } = data;
        this.push({ type: "message_start", message: data }, event, events);
        this.push(
          { type: "message_delta", delta: { stop_reason, stop_sequence }, usage },
          event,
          events,
        );
        this.push({ type: "message_stop" }, event, events);
      }
    }
    // `ping` and whatever comes to be later say nothing to this client.
  }

  pushText(data: string): boolean {
    // Gateways that translate to this style leave the end marker of the other one.
    return data.trim() === "[DONE]";
  }

  payload(): Record<string, unknown> {
    for (const [block, text] of this.#inputs) {
      if (text === "") continue;
      // Input that never became whole, or is the word null, stays the text that it was: no tool runs
      // with it.
      block.input = parseJson(text) ?? text;
    }
    const hasBegun = this.#blocks.length > 0 || Object.keys(this.#message).length > 0;
    return {
      ...this.#message,
      ...this.#stop,
      ...(hasBegun && { content: this.#blocks }),
      usage: this.#usage,
    };
  }

  /** Counts are cumulative within a response: the last report of each wins. */
  #addUsage(reported: unknown): void {
    for (const [key, value] of Object.entries(objectOf(reported) ?? {})) {
      if (value !== null && value !== undefined) this.#usage[key] = value;
    }
  }

  #start(index: unknown, given: Part | undefined, events: StreamEvent[]): void {
    if (given === undefined) return;
    const known = this.#byIndex.get(index);
    if (known !== undefined && isSameCall(known, given)) return;
    const block = { ...given };
    this.#blocks.push(block);
    this.#byIndex.set(index, block);
    const text = textOrUndefined(block.text), thinking = textOrUndefined(block.thinking);
    if (block.type === "text" && text !== undefined) events.push({ type: "text", delta: text });
    if (block.type === "thinking" && thinking !== undefined) {
      events.push({ type: "reasoning", delta: thinking });
    }
  }

  #grow(index: unknown, delta: Record<string, unknown> | undefined, events: StreamEvent[]): void {
    if (delta === undefined) return;
    const block = this.#blockOf(index, delta);
    switch (delta.type) {
      case "text_delta":
        append(block, "text", delta.text);
        if (block.type === "text" && textOrUndefined(delta.text) !== undefined) {
          events.push({ type: "text", delta: delta.text as string });
        }
        break;
      case "thinking_delta":
        append(block, "thinking", delta.thinking);
        if (textOrUndefined(delta.thinking) !== undefined) {
          events.push({ type: "reasoning", delta: delta.thinking as string });
        }
        break;
      case "signature_delta":
        // A gateway may have told it with the start of the block already.
        if (block.signature !== delta.signature) append(block, "signature", delta.signature);
        break;
      case "input_json_delta":
        this.#inputs.set(
          block,
          (this.#inputs.get(block) ?? "") + argumentsText(delta.partial_json),
        );
        break;
      case "citations_delta":
        if (Array.isArray(block.citations)) block.citations.push(delta.citation);
        else block.citations = [delta.citation];
        break;
      default:
        for (const key in delta) if (key !== "type") append(block, key, delta[key]);
    }
  }

  /** The block that a delta is about: by its index, else the latest, else one that was not started. */
  #blockOf(index: unknown, delta: Record<string, unknown>): Part {
    const known = index === undefined ? this.#blocks.at(-1) : this.#byIndex.get(index);
    if (known !== undefined) return known;
    // Which call arguments belong to cannot be told then: no tool may run with or without them.
    if (delta.type === "input_json_delta" || this.#stopped.has(index)) {
      throw new StreamError(
        "stream_malformed",
        "LLM answer has a piece of a block that is not open",
      );
    }
    const block: Part = delta.type === "thinking_delta"
      ? { type: "thinking", thinking: "" }
      : { type: "text", text: "" };
    this.#blocks.push(block);
    this.#byIndex.set(index, block);
    return block;
  }
}

/** Whether two blocks are one call: ids alone can be given twice. */
export function isSameCall(a: Part, b: Part): boolean {
  return givenId(a.id) !== undefined && a.id === b.id && a.name === b.name;
}

function append(block: Part, key: string, piece: unknown): void {
  const before = block[key];
  if (typeof before === "string" && typeof piece === "string") block[key] = before + piece;
  else grow(block, key, piece);
}
