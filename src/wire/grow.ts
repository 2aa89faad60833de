/**
 * Values that come in pieces, under keys that this client knows nothing of.
 *
 * @module
 */

import { isJsonObject } from "../json.ts";

/** Keys of texts that come in pieces: a piece that equals all before it is no repetition. */
const TEXT_KEYS = new Set(["content", "data", "input", "text", "thinking", "transcript"]);

/**
 * Adds the next piece of the value under a key: texts are joined, lists go on, objects grow key by
 * key, and any other value takes the place of the one before. What is only told again stays as it
 * is: nothing, an equal value, an `id` or a `type`.
 */
export function grow(target: Record<string, unknown>, key: string, piece: unknown): void {
  const before = Object.hasOwn(target, key) ? target[key] : undefined;
  if (before === undefined || before === null) target[key] = piece;
  else if (piece === null || (piece === before && !TEXT_KEYS.has(key))) return;
  else if (typeof before === "string" && typeof piece === "string") {
    if (key !== "id" && key !== "type") target[key] = before + piece;
  } else if (Array.isArray(before) && Array.isArray(piece)) {
    for (const entry of piece) before.push(entry);
  } else if (isJsonObject(before) && isJsonObject(piece)) growAll(before, piece);
  else target[key] = piece;
}

/** Adds the next piece under each key of `pieces`. */
export function growAll(
  target: Record<string, unknown>,
  pieces: Record<string, unknown>,
): void {
  for (const key in pieces) grow(target, key, pieces[key]);
}
