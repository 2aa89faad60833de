/**
 * How OpenAPI writes lists and objects into URLs, headers and forms (OpenAPI 3.1.1, "Style Values").
 *
 * @module
 */

import { isNode, type Node } from "./openapi_document.ts";

/** A name and its text, not yet encoded. */
type Pair = [name: string, text: string];

/** What stands between the values of a list that is one text. */
const SEPARATORS: Readonly<Record<string, string>> = { spaceDelimited: " ", pipeDelimited: "|" };

/** A value as text; lists and objects as JSON. */
export function textOf(value: unknown): string {
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

/** A query or cookie parameter as pairs. */
export function parameterPairs(key: string, value: unknown, spec: Node): Pair[] {
  if (spec.content !== undefined) return [[key, JSON.stringify(value)]];
  const { style = "form", explode = style === "form" } = spec;
  if (style === "deepObject") return deepPairs(key, value);
  const separator = SEPARATORS[String(style)] ?? ",";
  if (Array.isArray(value)) {
    if (explode) return value.map((each) => [key, textOf(each)]);
    return [[key, value.map(textOf).join(separator)]];
  }
  if (!isNode(value)) return [[key, textOf(value)]];
  const fields = Object.entries(value).map(([name, each]): Pair => [name, textOf(each)]);
  return explode ? fields : [[key, fields.flat().join(separator)]];
}

/** A path or header parameter: the style `simple`. */
export function joined(value: unknown, spec: Node): string {
  if (spec.content !== undefined) return JSON.stringify(value);
  if (Array.isArray(value)) return value.map(textOf).join(",");
  if (!isNode(value)) return textOf(value);
  const between = spec.explode === true ? "=" : ",";
  return Object.entries(value).map(([name, each]) => name + between + textOf(each)).join(",");
}

/**
 * A property of a form; null is left out. Where the document does not say how, what has parts is in
 * brackets.
 */
export function formPairs(key: string, value: unknown, encoding: Node): Pair[] {
  if (value === null) return [];
  const hasParts = isNode(value) || Array.isArray(value) && value.some((each) => isNode(each));
  if (encoding.style === undefined && hasParts) return deepPairs(key, value);
  return parameterPairs(key, value, { style: encoding.style, explode: encoding.explode });
}

/** `filter[price][gt]=1`, `ids[0]=7`. */
function deepPairs(key: string, value: unknown): Pair[] {
  if (value === null) return [];
  if (typeof value !== "object") return [[key, String(value)]];
  return Object.entries(value as object).flatMap(([name, each]) =>
    deepPairs(`${key}[${name}]`, each)
  );
}
