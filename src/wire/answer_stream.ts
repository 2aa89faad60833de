/**
 * From the text of an event stream to the events that a user sees, and to the payload of the answer.
 *
 * @module
 */

import { StreamError } from "../errors.ts";
import { objectOf, parseJson } from "../json.ts";
import type { StreamEvent } from "../types.ts";
import { carriedError, unwrapped } from "./payload.ts";
import { SseParser } from "./sse.ts";
import type { StreamDecoder } from "./style.ts";
import { WellFormedPieces } from "./well_formed.ts";

/** What an answer stream needs of the request. */
export interface AnswerStreamOptions {
  decoder: StreamDecoder;
  /** The error that a stream carries, and whether it came before anything else. */
  carriedError(payload: Record<string, unknown>, isFirst: boolean): Error;
  /** Takes secrets out of a text. */
  redact(text: string): string;
}

/** An answer that comes as an event stream. */
export class AnswerStream {
  /** Whether any event has come. */
  hasBegun = false;
  readonly #options: AnswerStreamOptions;
  readonly #decoder: StreamDecoder;
  readonly #parser = new SseParser((data, event) => this.#event(data, event));
  readonly #text = new WellFormedPieces();
  readonly #reasoning = new WellFormedPieces();
  #events: StreamEvent[] = [];
  #isFirst = true;
  #isAtEnd = false;
  #failure: unknown;

  constructor(options: AnswerStreamOptions) {
    this.#options = options;
    this.#decoder = options.decoder;
  }

  /** Whether the provider has said why it stopped: a stream that ends or breaks then is whole. */
  get isFinished(): boolean {
    return this.#decoder.isFinished;
  }

  /** Whether what follows cannot change the answer any more. */
  get isComplete(): boolean {
    return this.#decoder.isComplete;
  }

  /** Whether nothing more need be read. */
  get isOver(): boolean {
    return this.#decoder.isEnded || this.#failure !== undefined;
  }

  push(text: string): void {
    if (!this.isOver) this.#parser.push(text);
  }

  /** The body has ended. */
  end(): void {
    this.#isAtEnd = true;
    if (!this.isOver) this.#parser.end();
    this.#add("text", this.#text.end());
    this.#add("reasoning", this.#reasoning.end());
  }

  /** The events since the last time. */
  take(): StreamEvent[] {
    if (this.#events.length === 0) return this.#events;
    const events: StreamEvent[] = [];
    for (const event of this.#events) {
      // Decoders make no other events than these two.
      if (event.type !== "text" && event.type !== "reasoning") continue;
      const pieces = event.type === "text" ? this.#text : this.#reasoning;
      event.delta = pieces.next(event.delta);
      if (event.delta !== "") events.push(event);
    }
    this.#events = [];
    return events;
  }

  /**
   * The payload of the answer.
   *
   * @throws what the stream carried, or a `StreamError` if it was broken or cut short
   */
  payload(): Record<string, unknown> {
    if (this.#failure !== undefined) throw this.#failure;
    if (!this.#decoder.isFinished) {
      throw new StreamError("stream_truncated", "LLM answer ended before it was finished");
    }
    return this.#decoder.payload();
  }

  #add(type: "text" | "reasoning", delta: string): void {
    if (delta !== "") this.#events.push({ type, delta });
  }

  #event(data: string, event: string): void {
    if (this.isOver) return;
    this.hasBegun = true;
    if (!data.startsWith("{")) {
      // Keep-alive comments that a gateway sends as data begin with a colon.
      if (this.#decoder.pushText(data) || data.trim() === "" || data.startsWith(":")) return;
    }
    const value = parseJson(data);
    const payload = objectOf(unwrapped(value));
    if (payload === undefined) {
      // The last event of a body that was cut is no event, nor are a gateway's words after the answer.
      if (this.isFinished || (value === undefined && this.#isAtEnd)) return;
      this.#failure = this.#malformed(data);
      return;
    }
    try {
      const error = carriedError(payload) ?? (event === "error" ? payload : undefined);
      if (error !== undefined) throw this.#options.carriedError(error, this.#isFirst);
      if (payload.type !== "ping") this.#isFirst = false;
      this.#decoder.push(payload, event, this.#events);
    } catch (error) {
      this.#failure = error;
    }
  }

  #malformed(data: string): StreamError {
    const start = this.#options.redact(data).slice(0, 100);
    const words = `LLM answer has an event that is no JSON object: ${start}`;
    return new StreamError("stream_malformed", words);
  }
}
