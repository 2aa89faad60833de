// Numbers that look random and are the same for the same seed.

/** A generator of random values (mulberry32). */
export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** A whole number from 0 up to, but not including, `limit`. */
  below(limit: number): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return Math.floor(((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32 * limit);
  }

  /** One of the values. */
  of<Value>(values: readonly Value[]): Value {
    return values[this.below(values.length)]!;
  }

  /** A text cut into pieces of any size, empty ones too. */
  pieces(text: string): string[] {
    const pieces: string[] = [];
    for (let start = 0; start < text.length;) {
      const end = start + this.below(this.of([2, 4, 64]));
      pieces.push(text.slice(start, end));
      start = end;
    }
    return pieces;
  }
}
