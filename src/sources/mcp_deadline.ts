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
  readonly #ended = Promise.withResolvers<void>();
  #timer: ReturnType<typeof setTimeout> | undefined;
  #pauses = 0;
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

  /** Resolves when the work has ended. */
  get ended(): Promise<void> {
    return this.#ended.promise;
  }

  /** Gives the whole time again; it begins when nothing lets it stand still. */
  restart(): void {
    clearTimeout(this.#timer);
    if (this.#isStopped || this.#pauses > 0) return;
    this.#timer = setTimeout(() => {
      this.#isOver = true;
      this.#controller.abort(new DOMException(`${this.#limitMs} ms are over`, "TimeoutError"));
    }, this.#limitMs);
  }

  /** Stands still until {@linkcode resume} was called as often as this. */
  pause(): void {
    this.#pauses++;
    clearTimeout(this.#timer);
  }

  /** Takes one {@linkcode pause} back. */
  resume(): void {
    this.#pauses--;
    this.restart();
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
    clearTimeout(this.#timer);
    this.#outer?.removeEventListener("abort", this.#onAbort);
    this.#ended.resolve();
  }
}
