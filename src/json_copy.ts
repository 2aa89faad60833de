/**
 * Copies of JSON data.
 *
 * @module
 */

import { isPlainObject } from "./json.ts";

/** Deeper than any provider nests; below it a cycle is told from a tree. */
const MAX_DEPTH = 512;

/**
 * Copies an object of JSON data.
 *
 * @throws {TypeError} if it holds what JSON cannot: a BigInt, a function, a cycle, a hole, a class
 * instance, NaN. `name` and a path say where
 */
export function copyJson<Type extends object>(object: Type, name: string): Type {
  try {
    return copyObject(object as Record<string, unknown>, 0) as Type;
  } catch (error) {
    if (error instanceof NotJson) throw new TypeError(`${name}${error.path} is ${error.what}`);
    throw error;
  }
}

/** Copies JSON data that needs no check: what {@linkcode copyJson} or `JSON.parse` made. */
export function cloneJson<Type>(value: Type): Type {
  return cloneAt(value, 0);
}

function cloneAt<Type>(value: Type, depth: number): Type {
  if (typeof value !== "object" || value === null) return value;
  // A stranger may nest deeper than the stack is; the engine's own reader does not mind.
  if (depth > MAX_DEPTH) return JSON.parse(JSON.stringify(value));
  if (Array.isArray(value)) return value.map((item) => cloneAt(item, depth + 1)) as Type;
  const copy = { ...value };
  for (const key in copy) {
    if (typeof copy[key] === "object" && Object.hasOwn(copy, key)) {
      copy[key] = cloneAt(copy[key], depth + 1);
    }
  }
  return copy;
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
