/**
 * Checks of arguments: each error names the argument and its value.
 *
 * @module
 */

import { quote } from "./errors.ts";

/** @throws {TypeError} if `value` is given and no function */
export function checkFunction(name: string, value: unknown): void {
  if (value !== undefined && typeof value !== "function") {
    throw new TypeError(`${name} must be a function: ${quote(value)}`);
  }
}

/** @throws {TypeError} if `signal` is given and none */
export function checkSignal(signal: unknown): void {
  if (signal !== undefined && !(signal instanceof AbortSignal)) {
    throw new TypeError(`signal must be an AbortSignal: ${quote(signal)}`);
  }
}

/** @throws {TypeError} if `value` is no object */
export function checkObject(name: string, value: unknown): void {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new TypeError(`${name} must be an object: ${quote(value)}`);
  }
}

/** @throws {TypeError} if `value` is no string */
export function checkString(name: string, value: unknown): asserts value is string {
  if (typeof value !== "string") throw new TypeError(`${name} must be a string: ${quote(value)}`);
}

/** @throws {TypeError} if `value` is no number */
export function checkNumber(name: string, value: unknown): asserts value is number {
  if (typeof value !== "number") throw new TypeError(`${name} must be a number: ${quote(value)}`);
}

/**
 * A whole number from `least`; `fallback` where none is given.
 *
 * @throws {TypeError | RangeError} if it is none
 */
export function wholeNumber(
  name: string,
  value: unknown,
  least: number,
  fallback?: number,
): number {
  if (value === undefined && fallback !== undefined) return fallback;
  checkNumber(name, value);
  if (!Number.isInteger(value) || value < least) {
    throw new RangeError(`${name} must be a whole number from ${least}: ${value}`);
  }
  return value;
}

/**
 * A time in milliseconds, at least `least`; `fallback` where none is given.
 *
 * @throws {TypeError | RangeError} if it is none
 */
export function milliseconds(
  name: string,
  value: unknown,
  least: number,
  fallback?: number,
): number {
  if (value === undefined && fallback !== undefined) return fallback;
  checkNumber(name, value);
  if (!(value >= least)) throw new RangeError(`${name} must be at least ${least}: ${value}`);
  return value;
}

/**
 * A limit in milliseconds, above 0; undefined for no limit, as `Infinity` is one.
 *
 * @throws {TypeError | RangeError} if it is none
 */
export function timeLimit(name: string, value: unknown): number | undefined {
  if (value === undefined) return undefined;
  checkNumber(name, value);
  if (!(value > 0)) throw new RangeError(`${name} must be above 0: ${value}`);
  return value === Infinity ? undefined : value;
}
