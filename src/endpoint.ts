/**
 * Where requests go, and with which headers.
 *
 * @module
 */

import { readVariable } from "./environment.ts";
import { quote } from "./errors.ts";
import { isSecretName, Secrets } from "./secrets.ts";
import type { Style } from "./wire/style.ts";

/** The environment variables that hold the keys of well-known hosts. */
const KEY_VARIABLES: ReadonlyMap<string, string> = new Map([
  ["api.openai.com", "OPENAI_API_KEY"],
  ["api.anthropic.com", "ANTHROPIC_API_KEY"],
  ["openrouter.ai", "OPENROUTER_API_KEY"],
]);

/** What the client needs to know of an endpoint. */
export interface Endpoint {
  /** The whole URL of the endpoint. */
  readonly url: string;
  /** The headers of a request; made at the first one, since the key may have to be looked up. */
  headers(): Record<string, string>;
  /** Takes keys, header values and the URL's query values out of a text. */
  redact(text: string): string;
}

/** The options that describe an endpoint. */
export interface EndpointOptions {
  baseUrl: string;
  apiKey?: string | undefined;
  headers?: Record<string, string | null | undefined> | undefined;
}

/**
 * @throws {TypeError} if the base URL is no http URL or carries a password, or a header is wrong
 */
export function endpointOf(options: EndpointOptions, style: Style): Endpoint {
  const apiKey = options.apiKey?.trim();
  const base = baseOf(options.baseUrl);
  const given = headersOf(options.headers);
  if (apiKey !== undefined) checkKey(apiKey);
  const secrets = new Secrets();
  // The values as they are written, too: an encoded one may be repeated as it was sent.
  const inQuery = base.search.slice(1).split("&").map((pair) => pair.slice(pair.indexOf("=") + 1));
  for (const value of [...base.searchParams.values(), ...inQuery]) secrets.add(value);
  for (const [name, value] of given) secrets.add(value, isSecretName(name));
  secrets.add(apiKey, true);
  let headers: Record<string, string> | undefined;
  return {
    url: endpointUrl(base, style),
    headers() {
      if (headers !== undefined) return headers;
      const key = apiKey ?? environmentKey(base, given);
      secrets.add(key, true);
      headers = { "content-type": "application/json", ...style.headers(key || undefined) };
      for (const [name, value] of given) {
        if (value === null) delete headers[name];
        else headers[name] = value;
      }
      return headers;
    },
    redact: (text) => secrets.redact(text),
  };
}

function baseOf(baseUrl: unknown): URL {
  const base = typeof baseUrl === "string" ? URL.parse(baseUrl) : null;
  if (base === null || !/^https?:$/.test(base.protocol)) {
    throw new TypeError(`baseUrl must be an http or https URL: ${quote(publicPart(baseUrl))}`);
  }
  if (base.username !== "" || base.password !== "") {
    throw new TypeError("baseUrl must not carry a user name or password");
  }
  return base;
}

/** A URL, or what was meant for one, without what may be a key in it. */
function publicPart(url: unknown): unknown {
  return typeof url === "string" ? url.replace(/[?#].*$/s, "").replace(/^.*@/s, "") : url;
}

/** A base URL may end in slashes, in the version, or be the whole endpoint. */
function endpointUrl(base: URL, style: Style): string {
  const url = new URL(base);
  const path = url.pathname.replace(/\/+$/, "");
  if (path.endsWith(style.path)) url.pathname = path;
  else if (path.endsWith(style.version)) url.pathname = path + style.path;
  else url.pathname = path + style.version + style.path;
  return url.href;
}

/** By lower-case name; null takes a default away. */
function headersOf(given: EndpointOptions["headers"]): Map<string, string | null> {
  const headers = new Map<string, string | null>();
  for (const [name, value] of Object.entries(given ?? {})) {
    if (value === undefined) continue;
    if (value !== null && typeof value !== "string") {
      throw new TypeError(`headers[${quote(name)}] must be a string or null`);
    }
    if (value !== null) {
      try {
        new Headers([[name, value]]);
      } catch {
        // The value is never shown: it may be a key.
        throw new TypeError(`headers[${quote(name)}] has a name or value that HTTP does not allow`);
      }
    }
    headers.set(name.toLowerCase(), value?.trim() ?? null);
  }
  return headers;
}

/** The key that belongs to the host: no other host gets one. */
function environmentKey(base: URL, given: ReadonlyMap<string, unknown>): string | undefined {
  const variable = base.protocol === "https:" ? KEY_VARIABLES.get(base.hostname) : undefined;
  if (variable === undefined || given.has("authorization") || given.has("x-api-key")) {
    return undefined;
  }
  const need = `apiKey for ${base.hostname} is missing: pass it, or`;
  const key = readVariable(variable, need).trim();
  checkKey(key);
  return key;
}

/** @throws {TypeError} if no header can hold it; it is not shown */
function checkKey(key: string): void {
  try {
    new Headers([["authorization", `Bearer ${key}`]]);
  } catch {
    throw new TypeError("apiKey has a character that HTTP does not allow in a header");
  }
}
