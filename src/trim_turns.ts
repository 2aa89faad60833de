/**
 * A transcript of bounded length.
 *
 * @module
 */

import { checkNumber } from "./checks.ts";
import { quote } from "./errors.ts";
import { isPlainObject } from "./json.ts";
import { leadingSystem } from "./transcript/system.ts";
import { turnStarts } from "./transcript/turns.ts";
import type { Message } from "./types.ts";

/**
 * The last `count` turns of a transcript, in either style or both, behind the system messages that
 * it begins with.
 *
 * A turn is a prompt and all that follows it up to the next one. A user message that holds tool
 * results, or that was said while a call was open, begins none: no call is ever parted from its
 * result, and a turn that waits for a human is kept whole.
 *
 * @param messages The transcript; it is not changed
 * @param count How many turns to keep: a whole number from 1, or `Infinity`
 * @returns A new array of the same messages; all of them if there are no more turns than that
 * @throws {TypeError} if `messages` is no array of objects, or `count` no number
 * @throws {RangeError} if `count` is below 1, or not whole
 *
 * @example
 * ```ts
 * import { trimTurns } from "@toolnexus/client";
 * import { assertEquals } from "@std/assert";
 *
 * const transcript = [
 *   { role: "user", content: "Hello" },
 *   { role: "assistant", content: "Hello." },
 *   { role: "user", content: "What time is it?" },
 *   { role: "assistant", content: [{ type: "tool_use", id: "t1", name: "clock", input: {} }] },
 *   { role: "user", content: [{ type: "tool_result", tool_use_id: "t1", content: "noon" }] },
 *   { role: "assistant", content: "It is noon." },
 * ];
 * assertEquals(trimTurns(transcript, 1), transcript.slice(2));
 * assertEquals(trimTurns(transcript, 5), transcript);
 * ```
 */
export function trimTurns(messages: readonly Message[], count: number): Message[] {
  if (!Array.isArray(messages) || messages.some((message) => !isPlainObject(message))) {
    throw new TypeError(`messages must be an array of objects: ${quote(messages)}`);
  }
  checkNumber("count", count);
  if (!(count >= 1) || count !== Infinity && !Number.isInteger(count)) {
    throw new RangeError(`count must be a whole number from 1, or Infinity: ${count}`);
  }
  const starts = turnStarts(messages);
  if (starts.length <= count) return [...messages];
  return [...messages.slice(0, leadingSystem(messages)), ...messages.slice(starts.at(-count))];
}
