/**
 * What a provider sent, read as a payload: the answer, or an error in its place.
 *
 * @module
 */

import { isJsonObject, objectOf } from "../json.ts";

/** A JSON value without the list of one that some servers put around a payload. */
export function unwrapped(value: unknown): unknown {
  return Array.isArray(value) && value.length === 1 ? value[0] : value;
}

/** The error that a payload is, or has with it or with its choice, as a payload of its own. */
export function carriedError(
  payload: Record<string, unknown>,
): Record<string, unknown> | undefined {
  const { type, object, error, choices } = payload;
  if (type === "error" || object === "error" || isError(error)) return payload;
  const ofChoice = Array.isArray(choices) ? objectOf(choices[0])?.error : undefined;
  return isError(ofChoice) ? { error: ofChoice } : undefined;
}

/** Some servers send an empty error beside each good answer. */
function isError(value: unknown): boolean {
  return isJsonObject(value) ? Object.values(value).some(Boolean) : Boolean(value);
}
