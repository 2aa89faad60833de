/**
 * The one rule for conversation ids, shared by every store.
 *
 * @module
 */

import { quote } from "./errors.ts";

/** The largest conversation id, in UTF-8 bytes. */
const MAX_ID_BYTES = 1024;

/**
 * Checks a conversation id: a non-empty, well-formed string of at most 1,024 UTF-8 bytes.
 *
 * @throws {TypeError} if it is anything else
 */
export function checkConversationId(id: unknown): asserts id is string {
  if (typeof id !== "string") throw new TypeError(`conversation id must be a string: ${quote(id)}`);
  if (id === "") throw new TypeError("conversation id must not be empty");
  if (!id.isWellFormed()) {
    throw new TypeError(`conversation id is ill-formed Unicode: ${quote(id)}`);
  }
  // A UTF-16 unit is at most three bytes of UTF-8, so short ids need no encoder.
  if (id.length * 3 > MAX_ID_BYTES && new TextEncoder().encode(id).length > MAX_ID_BYTES) {
    throw new TypeError(`conversation id is longer than ${MAX_ID_BYTES} bytes: ${quote(id)}`);
  }
}
