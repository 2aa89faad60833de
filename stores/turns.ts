/**
 * Whose turn it is among the calls of one object.
 *
 * @module
 */

/** Lets the calls of one object take turns: those with the same key, in their order. */
export class Turns {
  /** The last in line for each key. */
  readonly #last = new Map<string, Promise<void>>();

  /** Gets in line at once, and does `work` when all who came before are done. */
  async take<T>(key: string, work: () => Promise<T>): Promise<T> {
    const before = this.#last.get(key);
    const mine = (async () => {
      await before;
      return await work();
    })();
    const over = mine.then(() => {}, () => {});
    this.#last.set(key, over);
    try {
      return await mine;
    } finally {
      if (this.#last.get(key) === over) this.#last.delete(key);
    }
  }
}
