/**
 * JSON data that comes from anywhere: what it is, and whether it is the same.
 *
 * @module
 */

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

/** Whether a value is an object as `{}` and `JSON.parse` make them, from any realm. */
export function isPlainObject(value: unknown): value is Record<string, unknown> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
  const prototype = Object.getPrototypeOf(value);
  return prototype === null || prototype === Object.prototype ||
    Object.getPrototypeOf(prototype) === null;
}
