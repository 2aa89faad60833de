/**
 * A run as a stream of events, with its result.
 *
 * @module
 */

import type { Execution } from "./execution.ts";
import type { RunResult, StreamEvent } from "./types.ts";

/**
 * A run that is read event by event. It starts when it is first read; {@linkcode RunStream.result}
 * reads it too. Leaving the loop early ends the run: the request is cancelled, what was said so far
 * is saved, and `result` rejects as aborted.
 */
export class RunStream implements AsyncIterable<StreamEvent> {
  readonly #execution: Execution;
  readonly #events: AsyncGenerator<StreamEvent[], RunResult>;
  readonly #result = Promise.withResolvers<RunResult>();
  /** Events that nobody has read yet. */
  #ready: StreamEvent[] = [];
  #position = 0;
  #pulling: Promise<void> | undefined;
  #isEnded = false;
  /** What the next read throws, once. */
  #failure: { error: unknown } | undefined;

  /** @internal Use `client.stream()`. */
  constructor(execution: Execution) {
    this.#execution = execution;
    this.#events = execution.events();
    // A reader that only iterates gets the error from the loop.
    this.#result.promise.catch(() => {});
  }

  /** The result, when the run has ended and was saved. Rejects with what ended it. */
  get result(): Promise<RunResult> {
    // A loop that starts in the same breath reads the stream; otherwise nobody else does.
    queueMicrotask(() => void this.#drain());
    return this.#result.promise;
  }

  /** Reads the events. All readers share one position. */
  [Symbol.asyncIterator](): AsyncIterator<StreamEvent, undefined> {
    return {
      next: () => this.#next(),
      return: async () => {
        await this.#close();
        return { done: true, value: undefined };
      },
    };
  }

  #next(): Promise<IteratorResult<StreamEvent, undefined>> {
    const event = this.#ready[this.#position];
    if (event === undefined) return this.#nextPulled();
    this.#position++;
    return Promise.resolve({ done: false, value: event });
  }

  async #nextPulled(): Promise<IteratorResult<StreamEvent, undefined>> {
    while (this.#position === this.#ready.length) {
      if (this.#failure !== undefined) {
        const { error } = this.#failure;
        this.#failure = undefined;
        throw error;
      }
      if (this.#isEnded) return { done: true, value: undefined };
      await (this.#pulling ??= this.#pull());
    }
    return { done: false, value: this.#ready[this.#position++]! };
  }

  async #drain(): Promise<void> {
    // Whoever waits for an event will read on.
    while (!this.#isEnded && this.#pulling === undefined) await (this.#pulling = this.#pull());
  }

  async #pull(): Promise<void> {
    try {
      const step = await this.#execution.within(() => this.#events.next());
      if (this.#isEnded) return;
      const events: StreamEvent[] = step.done ? [{ type: "done", result: step.value }] : step.value;
      if (this.#position === this.#ready.length) {
        this.#ready = events;
        this.#position = 0;
      } else for (const event of events) this.#ready.push(event);
      if (step.done) {
        this.#isEnded = true;
        this.#result.resolve(step.value);
      }
    } catch (error) {
      if (this.#isEnded) return;
      this.#isEnded = true;
      this.#failure = { error };
      this.#result.reject(error);
    } finally {
      this.#pulling = undefined;
    }
  }

  async #close(): Promise<void> {
    const unread = this.#ready.slice(this.#position);
    this.#ready = [];
    this.#position = 0;
    if (this.#isEnded) return;
    this.#isEnded = true;
    const reason = this.#execution.close(unread);
    await this.#execution.within(() => this.#events.return(undefined as never));
    this.#result.reject(reason);
    // Whoever leaves need not look at the result, but must know that nothing was saved.
    if (reason.suppressed !== undefined) throw reason.suppressed;
  }
}
