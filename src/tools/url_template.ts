/**
 * URLs with `{placeholders}`: where a call goes within a host that never changes.
 *
 * @module
 */

import { quote } from "../errors.ts";

/** A URL whose path and query have places for arguments. */
export interface UrlTemplate {
  /** The names of the placeholders. */
  readonly names: ReadonlySet<string>;
  /**
   * The URL with arguments in their places, and with more query pairs after its own. Of what is
   * encoded already, only what a part of a URL cannot hold is encoded.
   *
   * @throws {TypeError} if an argument of the path is missing, or would leave its segment
   */
  fill(args: Readonly<Record<string, unknown>>, query: QueryPairs, isEncoded?: boolean): URL;
}

/** Names and values of a query; a name may come more than once. */
export type QueryPairs = readonly (readonly [name: string, value: string])[];

const PLACEHOLDER = /\{([^{}]*)\}/g;

/**
 * Reads a template.
 *
 * @throws {TypeError} if it is no http URL, carries a password, or has a placeholder before its path
 */
export function urlTemplate(template: unknown): UrlTemplate {
  const parts = typeof template === "string"
    ? /^(https?:\/\/[^/?#\\]+)((?:\/[^?#]*)?)(?:\?([^#]*))?(?:#.*)?$/is.exec(template)
    : null;
  if (/[{}]/.test(parts?.[1] ?? "")) {
    throw new TypeError(`url must have no placeholder before its path: ${quote(template)}`);
  }
  const origin = URL.parse(parts?.[1] ?? "");
  if (parts === null || origin === null) {
    throw new TypeError(`url must be an http or https URL: ${quote(template)}`);
  }
  if (origin.username !== "" || origin.password !== "") {
    throw new TypeError("url must not carry a user name or password");
  }
  const segments = parts[2]!.split("/").slice(1);
  const pairs = parts[3]?.split("&") ?? [];
  const names = [...segments, ...pairs].flatMap((part) => namesIn(part));
  if (names.includes("") || /[{}]/.test([...segments, ...pairs].join().replace(PLACEHOLDER, ""))) {
    throw new TypeError(`url has a placeholder without a name or end: ${quote(template)}`);
  }
  return {
    names: new Set(names),
    fill(given, query, isEncoded = false) {
      const encode = isEncoded ? encodeRest : encodeAll;
      // Without what every object inherits: `{constructor}` is a name like any other.
      const args: Record<string, unknown> = Object.assign(Object.create(null), given);
      const path = segments.map((segment) => `/${fillSegment(segment, args, encode)}`).join("");
      const search = [
        // An argument that was left out takes its pair of the query with it.
        ...pairs.filter((pair) => namesIn(pair).every((name) => isGiven(args[name])))
          .map((pair) => fillIn(pair, args, encode)),
        ...query.map(([name, value]) => `${encode(name)}=${encode(value)}`),
      ].join("&");
      // Not relative to the origin: a path of two slashes would name a host.
      return new URL(origin.origin + path + (search && `?${search}`));
    },
  };
}

function namesIn(text: string): string[] {
  return [...text.matchAll(PLACEHOLDER)].map((match) => match[1]!);
}

type Encode = (text: string) => string;

function fillIn(text: string, args: Readonly<Record<string, unknown>>, encode: Encode): string {
  return text.replace(PLACEHOLDER, (_, name: string) => encode(urlText(args[name])));
}

function fillSegment(
  segment: string,
  args: Readonly<Record<string, unknown>>,
  encode: Encode,
): string {
  const names = namesIn(segment);
  if (names.length === 0) return segment;
  for (const name of names) {
    if (!isGiven(args[name]) || urlText(args[name]) === "") {
      throw new TypeError(`argument ${name} is missing: the URL needs it`);
    }
  }
  const filled = fillIn(segment, args, encode);
  // Everything else is encoded; dots have no encoding that a URL parser does not see through.
  if (/^(\.|%2e){1,2}$/i.test(filled)) {
    throw new TypeError(`argument ${names.join(", ")} must not lead to another path`);
  }
  return filled;
}

function isGiven(value: unknown): boolean {
  return value !== undefined && value !== null;
}

/** An argument as text in a URL: the parts of a list are joined with commas. */
export function urlText(value: unknown): string {
  if (Array.isArray(value)) return value.map(urlText).join(",");
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

function encodeAll(text: string): string {
  return encodeURIComponent(text.toWellFormed());
}

/** Encodes what neither a segment of a path nor a value of a query can hold (RFC 3986, 3.3, 3.4). */
function encodeRest(text: string): string {
  return text.replace(/[^\w.~!$'()*+,;=:@%-]+/g, encodeAll);
}
