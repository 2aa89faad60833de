/**
 * Headers that name environment variables, so that keys stand in no source and no configuration.
 *
 * @module
 */

import { quote } from "../errors.ts";

/** Headers as they are sent, and what must not be shown of them. */
export interface ExpandedHeaders {
  headers: Record<string, string>;
  /** Takes every secret out of a text. */
  redact(text: string): string;
  /** The length in UTF-16 units of the longest form of a secret. */
  longestSecret: number;
}

/** Shorter values are words, not secrets. */
const MIN_SECRET_LENGTH = 6;

/** Headers whose values are secret, wherever they come from. */
const SECRET_NAME = /auth|cookie|credential|key|password|secret|signature|token/i;

const VARIABLE = /\$\{([A-Za-z_][A-Za-z0-9_]*)\}/g;

/**
 * Puts the values of environment variables in the place of `${NAME}` in header values. The variables
 * are read when it is called, and only those.
 *
 * @throws {TypeError} if a variable is not set or must not be read; the error names it
 *
 * @example
 * ```ts
 * import { expandEnvHeaders } from "@toolnexus/client";
 * import { assertEquals } from "@std/assert";
 *
 * Deno.env.set("TOOLNEXUS_DEMO_TOKEN", "sesame");
 * const headers = expandEnvHeaders({ authorization: "Bearer ${TOOLNEXUS_DEMO_TOKEN}" });
 * assertEquals(headers, { authorization: "Bearer sesame" });
 * ```
 */
export function expandEnvHeaders(
  headers: Readonly<Record<string, string>> | undefined,
): Record<string, string> {
  return expandHeaders(headers).headers;
}

/** As {@linkcode expandEnvHeaders}, and keeps in mind what is secret. */
export function expandHeaders(
  given: Readonly<Record<string, string>> | undefined,
): ExpandedHeaders {
  const headers: Record<string, string> = {};
  const secrets = new Set<string>();
  for (const [name, template] of Object.entries(given ?? {})) {
    const value = template.replace(VARIABLE, (_, variable: string) => {
      const secret = readVariable(variable, name);
      formsOf(secret).forEach((form) => secrets.add(form));
      return secret;
    });
    if (SECRET_NAME.test(name)) {
      formsOf(value).forEach((form) => secrets.add(form));
      // `Bearer` and the key in it.
      formsOf(/^\w+ (\S+)$/.exec(value)?.[1] ?? "").forEach((form) => secrets.add(form));
    }
    headers[name] = value;
  }
  // The longest first: one secret may be a part of another.
  const sorted = [...secrets].sort((a, b) => b.length - a.length);
  return {
    headers,
    longestSecret: sorted[0]?.length ?? 0,
    redact: (text) => sorted.reduce((text, secret) => text.replaceAll(secret, "[redacted]"), text),
  };
}

/** A secret as it may come back: as it is, in JSON, in a URL. */
function formsOf(secret: string): string[] {
  if (secret.length < MIN_SECRET_LENGTH) return [];
  return [
    secret,
    JSON.stringify(secret).slice(1, -1),
    encodeURIComponent(secret.toWellFormed()),
  ];
}

function readVariable(variable: string, header: string): string {
  const { process } = globalThis as {
    process?: { env?: Record<string, string | undefined> };
  };
  let value: string | undefined;
  let cause: unknown;
  try {
    value = process?.env?.[variable];
  } catch (error) {
    cause = error;
  }
  if (!value) {
    throw new TypeError(
      `${quote(header)} needs the environment variable ${variable}: set it and allow ` +
        `--allow-env=${variable}`,
      { cause },
    );
  }
  return value;
}

/**
 * Checks headers without showing a value.
 *
 * @throws {TypeError} if one has a name or value that HTTP does not allow; the value is not shown
 */
export function checkHeaders(headers: Readonly<Record<string, string>> | undefined): void {
  for (const [name, value] of Object.entries(headers ?? {})) {
    try {
      if (typeof value !== "string") throw value;
      new Headers([[name, value]]);
    } catch {
      throw new TypeError(`header ${quote(name)} has a name or value that HTTP does not allow`);
    }
  }
}
