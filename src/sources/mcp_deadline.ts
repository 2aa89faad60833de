/**
 * A time limit that can begin anew and stand still.
 *
 * @module
 */

/** A time limit for one piece of work, together with its caller's signal. */
export class Deadline {
  readonly #controller = new AbortController();
  readonly #limitMs: number;
  readonly #outer: AbortSignal | undefined;
  readonly #onAbort = () => this.#controller.abort(this.#outer?.reason);
  #timer: ReturnType<typeof setTimeout> | undefined;
  #isOver = false;
  #isStopped = false;

  /** Starts to run. */
  constructor(limitMs: number, outer: AbortSignal | undefined) {
    this.#limitMs = limitMs;
    this.#outer = outer;
    outer?.addEventListener("abort", this.#onAbort, { once: true });
    if (outer?.aborted) this.#onAbort();
    this.restart();
  }

  /** Aborts when the time is over, or the caller gives up. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Whether the time ran out. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** Gives the whole time again. */
  restart(): void {
    this.pause();
    if (this.#isStopped) return;
    this.#timer = setTimeout(() => {
      this.#isOver = true;
      this.#controller.abort(new DOMException(`${this.#limitMs} ms are over`, "TimeoutError"));
    }, this.#limitMs);
  }

  /** Stands still until {@linkcode restart}. */
  pause(): void {
    clearTimeout(this.#timer);
  }

  /** The outcome of the work, or a rejection as soon as the signal aborts, whatever the work does. */
  async race<T>(work: () => Promise<T>): Promise<T> {
    const { signal } = this;
    signal.throwIfAborted();
    const aborted = Promise.withResolvers<never>();
    const onAbort = () => aborted.reject(signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
    try {
      return await Promise.race([work(), aborted.promise]);
    } finally {
      signal.removeEventListener("abort", onAbort);
    }
  }

  /** Releases the timer and the listener. */
  stop(): void {
    this.#isStopped = true;
    this.pause();
    this.#outer?.removeEventListener("abort", this.#onAbort);
  }
}
