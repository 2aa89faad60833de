/**
 * A run as a stream of events, with its result.
 *
 * @module
 */

import { RunAbortedError, ToolnexusError } from "./errors.ts";
import type { Execution } from "./execution.ts";
import type { RunResult, StreamEvent } from "./types.ts";

/**
 * A run that is read event by event. It starts when it is first read; {@linkcode RunStream.result}
 * reads it too. Leaving the loop early ends the run: the request is cancelled, what was said so far
 * is saved, and `result` rejects as aborted.
 */
export class RunStream implements AsyncIterable<StreamEvent> {
  readonly #execution: Execution;
  readonly #result = Promise.withResolvers<RunResult>();
  /** The run, from its start until it is over; it never rejects. */
  #running: Promise<void> | undefined;
  /** Events that nobody has read yet. */
  #ready: StreamEvent[] = [];
  #position = 0;
  /** Resolves when there are events, or there will be no more. */
  #arrival: PromiseWithResolvers<void> | undefined;
  /** Resolves when more events are wanted: the run waits for it. */
  #demand: PromiseWithResolvers<void> | undefined;
  /** Of the run: once it is aborted, the run waits for nobody. */
  #signal: AbortSignal | undefined;
  #isEnded = false;
  /** What ended the run; the next read throws it, once. */
  #failure: { error: unknown } | undefined;
  #leaving: Promise<void> | undefined;

  /** @internal Use `client.stream()`. */
  constructor(execution: Execution) {
    this.#execution = execution;
    // A reader that only iterates gets the error from the loop.
    this.#result.promise.catch(() => {});
  }

  /**
   * The result, when the run has ended and was saved. Rejects with what ended it. A `next()` or a loop
   * that starts in the same breath reads the stream in its place, and has to read it to the end.
   */
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
        await (this.#leaving ??= this.#leave());
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
      if (this.#leaving !== undefined) return { done: true, value: undefined };
      if (this.#failure !== undefined) {
        const { error } = this.#failure;
        this.#failure = undefined;
        throw error;
      }
      if (this.#isEnded) return { done: true, value: undefined };
      await this.#pull();
    }
    return { done: false, value: this.#ready[this.#position++]! };
  }

  async #drain(): Promise<void> {
    // Whoever waits for an event will read on.
    while (!this.#isEnded && this.#arrival === undefined) await this.#pull();
  }

  /** Lets the run go on until it has more to show, or ends. */
  #pull(): Promise<void> {
    if (this.#arrival !== undefined) return this.#arrival.promise;
    const { promise } = this.#arrival = Promise.withResolvers<void>();
    this.#running ??= this.#run();
    this.#goOn();
    return promise;
  }

  readonly #goOn = (): void => {
    this.#demand?.resolve();
    this.#demand = undefined;
  };

  async #run(): Promise<void> {
    try {
      const result = await this.#execution.run((events, signal) => this.#show(events, signal));
      this.#add([{ type: "done", result }]);
      this.#result.resolve(result);
    } catch (error) {
      this.#failure = { error };
      this.#result.reject(error);
    } finally {
      // A signal that is listened to outlives its run by far.
      this.#signal?.removeEventListener("abort", this.#goOn);
      this.#isEnded = true;
      this.#arrive();
    }
  }

  /** Waits until the events are read and more are wanted; a run that is ended does not wait. */
  async #show(events: StreamEvent[], signal: AbortSignal): Promise<void> {
    this.#add(events);
    this.#arrive();
    if (signal.aborted) return;
    if (this.#signal === undefined) signal.addEventListener("abort", this.#goOn);
    this.#signal = signal;
    this.#demand ??= Promise.withResolvers();
    await this.#demand.promise;
  }

  #add(events: StreamEvent[]): void {
    if (this.#leaving !== undefined) return;
    if (this.#position === this.#ready.length) {
      this.#ready = events;
      this.#position = 0;
    } else for (const event of events) this.#ready.push(event);
  }

  #arrive(): void {
    this.#arrival?.resolve();
    this.#arrival = undefined;
  }

  /** Ends the run, and waits for its end. */
  async #leave(): Promise<void> {
    const unread = this.#ready.slice(this.#position);
    this.#ready = [];
    this.#position = 0;
    const reason = new RunAbortedError("aborted", "stream was left before its end");
    if (this.#running === undefined) {
      this.#isEnded = true;
      return this.#result.reject(reason);
    }
    if (!this.#isEnded) this.#execution.close(unread, reason);
    this.#goOn();
    await this.#running;
    // Whoever leaves need not look at the result, but must know that nothing was saved.
    const unsaved = unsavedBy(this.#failure?.error);
    if (unsaved !== undefined) throw unsaved;
  }
}

/** The failure of the store in what ended a run. */
function unsavedBy(error: unknown): ToolnexusError | undefined {
  if (!(error instanceof ToolnexusError)) return undefined;
  const { code, suppressed } = error;
  return code === "store_failed" || code === "store_conflict" ? error : suppressed;
}
