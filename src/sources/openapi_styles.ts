/**
 * How OpenAPI writes lists and objects into URLs, headers and forms (OpenAPI 3.1.1, "Style Values",
 * and RFC 6570, which it follows).
 *
 * @module
 */

import { entriesOf, isNode, type Node } from "./openapi_document.ts";

/** A name and its text, both encoded: what stands between values must not be. */
type Pair = [name: string, text: string];

type Encode = (text: string) => string;

/** What stands between the values of a list that is one text. */
const SEPARATORS = new Map<unknown, string>([["spaceDelimited", "%20"], ["pipeDelimited", "%7C"]]);

/** What stands before each value of a path. */
const MARKS = new Map<unknown, string>([["label", "."], ["matrix", ";"]]);

/** A value as text; lists and objects as JSON. */
export function plainText(value: unknown): string {
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

/** A query or cookie parameter as pairs; null in a list or an object is left out. */
export function parameterPairs(
  key: string,
  value: unknown,
  spec: Node,
  encode: Encode = encodeText,
): Pair[] {
  const text = (each: unknown) => encode(plainText(each));
  const name = encode(key);
  const [media] = entriesOf(spec.content)[0] ?? [];
  if (media !== undefined) {
    return [[name, isJson(media) ? encode(JSON.stringify(value)) : text(value)]];
  }
  const { style = "form", explode = style === "form" } = spec;
  if (style === "deepObject") return deepPairs(key, value);
  const separator = SEPARATORS.get(style) ?? ",";
  // A list or an object of nothing is no value (RFC 6570, 2.3).
  const joined = (texts: string[]): Pair[] => texts.length ? [[name, texts.join(separator)]] : [];
  if (Array.isArray(value)) {
    const texts = value.filter(isGiven).map(text);
    return explode ? texts.map((each) => [name, each]) : joined(texts);
  }
  if (!isNode(value)) return [[name, text(value)]];
  const fields = Object.entries(value).filter(([, each]) => isGiven(each))
    .map(([field, each]): Pair => [encode(field), text(each)]);
  return explode ? fields : joined(fields.flat());
}

/** A path parameter: the style `simple`, `label` or `matrix`. */
export function pathText(key: string, value: unknown, spec: Node, encode?: Encode): string {
  const { style = "simple", explode = false } = spec;
  const isNamed = style === "matrix" || explode === true && isNode(value);
  const texts = parameterPairs(key, value, { ...spec, style, explode }, encode)
    .map(([name, text]) => isNamed ? `${name}=${text}` : text);
  const mark = MARKS.get(style);
  return mark === undefined ? texts.join(",") : texts.map((text) => mark + text).join("");
}

/** A header parameter: the style `simple`; nothing is encoded. */
export function headerText(key: string, value: unknown, spec: Node): string {
  return pathText(key, value, { ...spec, style: "simple" }, (text) => text);
}

/**
 * A property of a form; null is left out. Where the document does not say how, what has parts is in
 * brackets.
 */
export function formPairs(key: string, value: unknown, encoding: Node): Pair[] {
  if (value === null) return [];
  const { style, explode, contentType } = encoding;
  if (style === undefined && explode === undefined) {
    if (isJson(contentType)) return [[encodeText(key), encodeText(JSON.stringify(value))]];
    const hasParts = isNode(value) || Array.isArray(value) && value.some((each) => isNode(each));
    if (hasParts) return deepPairs(key, value);
  }
  return parameterPairs(key, value, { style, explode });
}

/** `filter[price][gt]=1`, `ids[0]=7`. */
function deepPairs(key: string, value: unknown): Pair[] {
  if (!isGiven(value)) return [];
  if (typeof value !== "object") return [[encodeText(key), encodeText(String(value))]];
  return Object.entries(value as object).flatMap(([name, each]) =>
    deepPairs(`${key}[${name}]`, each)
  );
}

function isJson(mediaType: unknown): boolean {
  return typeof mediaType === "string" && /\bjson\b/i.test(mediaType);
}

function isGiven(value: unknown): boolean {
  return value !== null && value !== undefined;
}

function encodeText(text: string): string {
  return encodeURIComponent(text.toWellFormed());
}
