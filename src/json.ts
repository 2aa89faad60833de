/**
 * JSON data: read from anywhere, where what is not of the kind that is asked for is undefined; copied;
 * compared.
 *
 * @module
 */

/** Deeper than any provider nests; below it a cycle is told from a tree. */
const MAX_DEPTH = 512;

/** Whether a JSON value is an object. */
export function isJsonObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** `value` if it is an object. */
export function objectOf(value: unknown): Record<string, unknown> | undefined {
  return isJsonObject(value) ? value : undefined;
}

/** `value` if it is a non-empty string. */
export function textOrUndefined(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}

/** The value of a JSON text; undefined if it is none. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
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
