/**
 * The one encoder of messages and the one rule for conversation ids, shared by every store.
 *
 * @module
 */

import { quote } from "./errors.ts";
import type { Message, MessageInput } from "./types.ts";

/** The largest conversation id, in UTF-8 bytes. */
const MAX_ID_BYTES = 1024;

/** Deeper than any provider nests; below it a cycle is told from a tree. */
const MAX_DEPTH = 512;

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

/**
 * Copies messages as JSON data, from `start` on: the copy shares no object with the original.
 *
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

/** Whether two JSON values are the same, whatever the order of their keys. */
export function equalJson(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  if (Array.isArray(a) || Array.isArray(b)) {
    if (!Array.isArray(a) || !Array.isArray(b) || a.length !== b.length) return false;
    for (let index = 0; index < a.length; index++) {
      if (!equalJson(a[index], b[index])) return false;
    }
    return true;
  }
  const left = a as Record<string, unknown>, right = b as Record<string, unknown>;
  // An undefined property is no property in JSON. Where all of one side's are on the other, and there
  // are as many, they are the same.
  let surplus = 0;
  for (const key in left) {
    const value = left[key];
    if (value === undefined) continue;
    surplus++;
    if (value === right[key]) continue;
    if (!Object.hasOwn(right, key) || !equalJson(value, right[key])) return false;
  }
  for (const key in right) if (right[key] !== undefined) surplus--;
  return surplus === 0;
}

/**
 * Copies an object of JSON data.
 *
 * @throws {TypeError} as {@linkcode copyMessages} does; `name` says where
 */
export function copyJson<Type extends object>(object: Type, name: string): Type {
  try {
    return copyObject(object as Record<string, unknown>, 0) as Type;
  } catch (error) {
    if (error instanceof NotJson) throw new TypeError(`${name}${error.path} is ${error.what}`);
    throw error;
  }
}

/** Copies JSON data that needs no check: what {@linkcode copyMessages} or `JSON.parse` made. */
export function cloneJson<Type>(value: Type): Type {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(cloneJson) as Type;
  const copy = { ...value };
  for (const key in copy) {
    if (typeof copy[key] === "object" && Object.hasOwn(copy, key)) copy[key] = cloneJson(copy[key]);
  }
  return copy;
}

function copyMessage(message: unknown, index: number): Message {
  if (isMessage(message)) return copyJson(message, `messages[${index}]`);
  const lack = isPlainObject(message) ? "have a role" : "be a plain object";
  throw new TypeError(`messages[${index}] must ${lack}: ${quote(message)}`);
}

/** What {@linkcode copyValue} throws inside: the path is put together on the way out. */
class NotJson {
  path = "";
  what: string;
  constructor(what: string) {
    this.what = what;
  }
}

function copyValue(value: unknown, depth: number): unknown {
  switch (typeof value) {
    case "string":
    case "boolean":
      return value;
    case "number":
      if (Number.isFinite(value)) return value;
      throw new NotJson(`${value}, which JSON cannot hold`);
    case "object":
      if (value === null) return null;
      if (depth > MAX_DEPTH) throw new NotJson("nested too deep, or a cycle");
      if (Array.isArray(value)) return copyArray(value, depth + 1);
      if (isPlainObject(value)) return copyObject(value, depth + 1);
      throw notJson(value.constructor?.name || "class instance");
    case "undefined":
      throw new NotJson("undefined, which JSON cannot hold");
    default:
      throw notJson(typeof value);
  }
}

function notJson(kind: string): NotJson {
  return new NotJson(`${/^[aeio]/i.test(kind) ? "an" : "a"} ${kind}, which JSON cannot hold`);
}

function copyArray(array: readonly unknown[], depth: number): unknown[] {
  const copy = new Array<unknown>(array.length);
  for (let index = 0; index < array.length; index++) {
    try {
      copy[index] = copyValue(array[index], depth);
    } catch (error) {
      if (error instanceof NotJson) error.path = `[${index}]${error.path}`;
      throw error;
    }
  }
  return copy;
}

function copyObject(object: Record<string, unknown>, depth: number): Record<string, unknown> {
  const copy: Record<string, unknown> = {};
  for (const key of Object.keys(object)) {
    const value = object[key];
    if (value === undefined) continue;
    try {
      setOwn(copy, key, typeof value === "string" ? value : copyValue(value, depth));
    } catch (error) {
      if (error instanceof NotJson) error.path = `.${key}${error.path}`;
      throw error;
    }
  }
  return copy;
}

/** Sets a key that may come from a stranger: `__proto__` is a name like any other. */
function setOwn(object: Record<string, unknown>, key: string, value: unknown): void {
  if (key === "__proto__") {
    Object.defineProperty(object, key, {
      value,
      enumerable: true,
      configurable: true,
      writable: true,
    });
  } else object[key] = value;
}

/** Whether a value is an object as `{}` and `JSON.parse` make them, from any realm. */
export function isPlainObject(value: unknown): value is Record<string, unknown> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
  const prototype = Object.getPrototypeOf(value);
  return prototype === null || prototype === Object.prototype ||
    Object.getPrototypeOf(prototype) === null;
}
