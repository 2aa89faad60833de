/**
 * What every operation of the stores in this folder has in common: how its arguments are checked,
 * whose turn it is, and how a failure is told.
 *
 * @module
 */

import { encodeMessages, StoreError, ToolnexusError } from "../mod.ts";
import type { Awaitable, ConversationInfo, ListOptions, Message, StoreOperation } from "../mod.ts";

/**
 * Checks an option that is a number.
 *
 * @throws {TypeError} if it is none
 * @throws {RangeError} if it is no whole number within its bounds
 */
export function checkWhole(
  name: string,
  value: unknown,
  least: number,
  most?: number,
): void {
  if (typeof value !== "number") throw new TypeError(`${name} must be a number: ${shown(value)}`);
  if (!Number.isInteger(value) || value < least || value > (most ?? value)) {
    const range = most === undefined ? `from ${least}` : `from ${least} to ${most}`;
    throw new RangeError(`${name} must be a whole number ${range}: ${value}`);
  }
}

/**
 * Checks the `base` of a save.
 *
 * @throws {TypeError} if it is neither absent nor an array
 */
export function checkBase(base: unknown): void {
  if (base !== undefined && !Array.isArray(base)) {
    throw new TypeError(`base must be an array: ${shown(base)}`);
  }
}

/** A wrong value as an error shows it. */
function shown(value: unknown): string {
  let text: string | undefined;
  try {
    text = JSON.stringify(value);
  } catch { /* a cycle, or a BigInt: named by its type */ }
  return text ?? (typeof value === "object" ? "an object" : `a ${typeof value}`);
}

/** The lines of `base`: those of `messages` as far as it holds the very same messages. */
export function encodeBase(
  base: readonly Message[],
  messages: readonly Message[],
  lines: readonly string[],
): readonly string[] {
  let same = 0;
  while (same < lines.length && base[same] === messages[same]) same++;
  return same === base.length ? lines.slice(0, same) : encodeMessages(base);
}

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

/** Does the work of an operation; whatever else than an error of the client it throws is its cause. */
export async function guarded<T>(
  operation: StoreOperation,
  id: string,
  work: () => Awaitable<T>,
): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw error instanceof ToolnexusError ? error : new StoreError(operation, id, error);
  }
}

/** What a caught value says of itself. */
export function reasonOf(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause);
}

/** How a store finds its conversations. */
export interface Listing<Row> {
  /** Whatever may be a conversation whose id begins with the prefix. */
  rows(prefix: string): AsyncIterable<Row>;
  /** What a row tells; undefined when there is no conversation in it. */
  read(row: Row): Awaitable<ConversationInfo | undefined>;
}

/**
 * The `list` of a store. A row that cannot be read hides no other: it is told at the end.
 *
 * @throws {TypeError | RangeError} at once, if an option is wrong
 */
export function listed<Row>(
  options: ListOptions,
  listing: Listing<Row>,
): AsyncIterableIterator<ConversationInfo> {
  const { prefix = "", limit = Number.MAX_SAFE_INTEGER } = options;
  if (typeof prefix !== "string" || !prefix.isWellFormed()) {
    throw new TypeError(`prefix must be a well-formed string: ${shown(prefix)}`);
  }
  checkWhole("limit", limit, 0);
  return entries(prefix, limit, listing);
}

async function* entries<Row>(
  prefix: string,
  limit: number,
  { rows, read }: Listing<Row>,
): AsyncGenerator<ConversationInfo, void> {
  if (limit === 0) return;
  const damage: unknown[] = [];
  let left = limit;
  try {
    for await (const row of rows(prefix)) {
      let info: ConversationInfo | undefined;
      try {
        info = await read(row);
      } catch (cause) {
        damage.push(cause);
      }
      if (!info?.id.startsWith(prefix)) continue;
      yield info;
      if (--left === 0) return;
    }
  } catch (cause) {
    throw new StoreError("list", prefix, cause);
  }
  if (damage.length === 0) return;
  const reasons = damage.map(reasonOf).join("; ");
  const cause = damage.length === 1 ? damage[0] : new AggregateError(damage, reasons);
  throw new StoreError("list", prefix, cause);
}
