/**
 * What every operation of the stores in this folder has in common: how its arguments are checked, and
 * how a failure is told.
 *
 * @module
 */

import { encodeMessages, StoreError, ToolnexusError } from "../mod.ts";
import type { Awaitable, Message, StoreOperation } from "../mod.ts";

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
export function shown(value: unknown): string {
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
