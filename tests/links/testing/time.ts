// Stands in for jsr:@std/testing/time where JSR cannot be reached: the part of it that the tests use.
// @ts-types="./fake_timers.d.ts"
import { type Clock, install } from "npm:@sinonjs/fake-timers@15.5.0";

const realSetTimeout = globalThis.setTimeout;

/**
 * Replaces `Date`, `setTimeout`, `setInterval` and their `clear…` by a clock that the test moves.
 * All else stays real: `performance`, `queueMicrotask`, `AbortSignal.timeout`, the network.
 */
export class FakeTime {
  readonly #clock: Clock;

  /** `start` is what the clock shows at first, by default the real time. */
  constructor(start?: number | string | Date | null) {
    const now = new Date(start ?? Date.now()).getTime();
    if (Number.isNaN(now)) throw new TypeError(`FakeTime cannot start at ${start}`);
    this.#clock = install({
      now,
      toFake: ["Date", "setTimeout", "clearTimeout", "setInterval", "clearInterval"],
    });
  }

  /** What the clock shows, in milliseconds since 1970. */
  get now(): number {
    return this.#clock.now;
  }

  /** Moves the clock on and runs the timers that fall due, all in one go. */
  tick(milliseconds = 0): void {
    this.#clock.tick(milliseconds);
  }

  /** Lets what is ready run (one turn of the real event loop), then does what `tick` does. */
  async tickAsync(milliseconds = 0): Promise<void> {
    await this.#settle();
    this.tick(milliseconds);
  }

  /** Lets what is ready run, then moves the clock to the next timer; false if there is none. */
  async nextAsync(): Promise<boolean> {
    await this.#settle();
    const waiting = this.#clock.countTimers() > 0;
    this.#clock.next();
    return waiting;
  }

  /** Calls `nextAsync` until no timer is left. */
  async runAllAsync(): Promise<void> {
    while (await this.nextAsync());
  }

  /** Brings the real time back. */
  restore(): void {
    this.#clock.uninstall();
  }

  /** Same as `restore`, for `using`. */
  [Symbol.dispose](): void {
    this.restore();
  }

  #settle(): Promise<void> {
    return new Promise((resolve) => realSetTimeout(resolve, 0));
  }
}
