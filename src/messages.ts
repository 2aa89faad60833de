/**
 * The one encoder of messages, shared by every store.
 *
 * @module
 */

import { quote } from "./errors.ts";
import { equalJson, isPlainObject } from "./json.ts";
import { copyJson } from "./json_copy.ts";
import type { Message, MessageInput } from "./types.ts";

/**
 * Copies messages as JSON data: the copy shares no object with the original.
 *
 * @param start the index of the first message that is copied, 0 unless given
 * @throws {TypeError} if a message is no object, or holds what JSON cannot: a BigInt, a function, a
 * cycle, a hole, a class instance, NaN. The error names the place.
 */
export function copyMessages(messages: readonly MessageInput[], start: number = 0): Message[] {
  if (!Array.isArray(messages)) {
    throw new TypeError(`messages must be an array: ${quote(messages)}`);
  }
  const copy: Message[] = [];
  for (let index = start; index < messages.length; index++) {
    copy.push(copyMessage(messages[index], index));
  }
  return copy;
}

/**
 * The JSON text of each message, one string a message, by the same rules as {@linkcode copyMessages}.
 *
 * @throws {TypeError} as {@linkcode copyMessages} does
 */
export function encodeMessages(messages: readonly Message[]): string[] {
  return copyMessages(messages).map((message) => JSON.stringify(message));
}

/**
 * Reads one message from its JSON text.
 *
 * @throws {TypeError} if the text is no JSON or no message
 */
export function decodeMessage(text: string): Message {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw new TypeError(`message is not JSON: ${quote(text)}`, { cause });
  }
  if (!isMessage(value)) {
    throw new TypeError(`message must be an object with a role: ${quote(value)}`);
  }
  return value;
}

/** Whether a value is a message, as far as every message has to be: a plain object with a role. */
export function isMessage(value: unknown): value is Message {
  return isPlainObject(value) && typeof value.role === "string";
}

/**
 * Whether two transcripts hold the same messages, whatever the order of their keys. Stores compare
 * `base` with what they hold by it.
 */
export function equalMessages(a: readonly Message[], b: readonly Message[]): boolean {
  return equalJson(a, b);
}

function copyMessage(message: unknown, index: number): Message {
  if (isMessage(message)) return copyJson(message, `messages[${index}]`);
  const lack = isPlainObject(message) ? "have a role" : "be a plain object";
  throw new TypeError(`messages[${index}] must ${lack}: ${quote(message)}`);
}
