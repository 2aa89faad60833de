/**
 * What bounds a piece of work from outside: the caller's signal and time limits, in one signal that
 * leaves nothing behind.
 *
 * @module
 */

/** The longest delay that a timer holds: a longer one fires at once. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/** A signal that follows another one and has time limits of its own. Dispose it when the work ends. */
export class Scope implements Disposable {
  readonly #controller = new AbortController();
  readonly #parent: AbortSignal | undefined;
  readonly #follow: () => void;
  readonly #timers: { stop(): void }[] = [];

  /** `reason` makes the reason of this scope from the parent's. */
  constructor(parent?: AbortSignal, reason: (parentReason: unknown) => unknown = (same) => same) {
    this.#parent = parent;
    this.#follow = () => this.abort(reason(parent?.reason));
    if (parent?.aborted) this.#follow();
    else parent?.addEventListener("abort", this.#follow, { once: true });
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  abort(reason: unknown): void {
    if (!this.signal.aborted) this.#controller.abort(reason);
  }

  /** Aborts after `ms`, with what `reason` makes then. */
  limit(ms: number | undefined, reason: () => unknown): void {
    if (ms !== undefined) this.#timers.push(new Timer(ms, () => this.abort(reason())));
  }

  /** Aborts when nothing was heard for `ms`; each `touch()` of the returned watch is a sign of life. */
  watch(ms: number, reason: () => unknown): IdleWatch {
    const watch = new IdleWatch(ms, () => this.abort(reason()));
    this.#timers.push(watch);
    return watch;
  }

  [Symbol.dispose](): void {
    this.#parent?.removeEventListener("abort", this.#follow);
    for (const timer of this.#timers) timer.stop();
  }
}

/** A timer of any length. */
class Timer {
  #id: ReturnType<typeof setTimeout> | undefined;

  constructor(ms: number, fire: () => void) {
    this.#start(ms, fire);
  }

  #start(ms: number, fire: () => void): void {
    this.#id = ms > MAX_TIMER_MS
      ? setTimeout(() => this.#start(ms - MAX_TIMER_MS, fire), MAX_TIMER_MS)
      : setTimeout(fire, ms);
  }

  stop(): void {
    clearTimeout(this.#id);
  }
}

/** Fires after silence. A sign of life costs a look at the clock, not a new timer. */
export class IdleWatch {
  #ms: number;
  readonly #fire: () => void;
  #last = 0;
  #isPaused = false;
  #timer: Timer;

  constructor(ms: number, fire: () => void) {
    this.#ms = ms;
    this.#fire = fire;
    this.touch();
    this.#timer = new Timer(ms, () => this.#check());
  }

  touch(): void {
    this.#last = Date.now();
    this.#isPaused = false;
  }

  /** Until the next `touch()` nothing is waited for. */
  pause(): void {
    this.#isPaused = true;
  }

  /** Makes the limit shorter from now on. */
  shorten(ms: number): void {
    if (ms >= this.#ms) return;
    this.#ms = ms;
    this.touch();
    this.stop();
    this.#timer = new Timer(ms, () => this.#check());
  }

  stop(): void {
    this.#timer.stop();
  }

  #check(): void {
    const now = Date.now();
    // From a clock that was set back the time of the last sign cannot be told: it counts from now.
    if (this.#isPaused || now < this.#last) this.#last = now;
    const left = this.#last + this.#ms - now;
    if (left > 0) this.#timer = new Timer(left, () => this.#check());
    else this.#fire();
  }
}

/** Waits for `promise`, but no longer than the signal allows. Rejects with the signal's reason. */
export async function abortable<T>(promise: PromiseLike<T> | T, signal: AbortSignal): Promise<T> {
  if (signal.aborted) {
    Promise.resolve(promise).catch(() => {});
    throw signal.reason;
  }
  let onAbort = () => {};
  const aborted = new Promise<never>((_, reject) => {
    onAbort = () => reject(signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
  });
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}

/** Waits for `ms`, however long; rejects with the signal's reason. */
export async function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  let timer: Timer | undefined;
  const over = new Promise<void>((resolve) => timer = new Timer(ms, resolve));
  try {
    await (signal === undefined ? over : abortable(over, signal));
  } finally {
    timer?.stop();
  }
}
