/**
 * Headers that name environment variables, so that keys stand in no source and no configuration.
 *
 * @module
 */

import { readVariable } from "../environment.ts";
import { quote } from "../errors.ts";
import { isSecretName, Secrets } from "../secrets.ts";

/** Headers as they are sent, and what must not be shown of them. */
export interface ExpandedHeaders {
  headers: Record<string, string>;
  secrets: Secrets;
}

const VARIABLE = /\$\{([A-Za-z_][A-Za-z0-9_]*)\}/g;

/**
 * Puts the values of environment variables in the place of `${NAME}` in header values. The variables
 * are read when it is called, and only those; white space around a value, such as the line break at
 * the end of a mounted secret, is left out.
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
  const secrets = new Secrets();
  for (const [name, template] of Object.entries(given ?? {})) {
    const value = template.replace(VARIABLE, (_, variable: string) => {
      const secret = readVariable(variable, `header ${quote(name)} needs an environment variable:`);
      secrets.add(secret);
      return secret.trim();
    });
    if (isSecretName(name)) secrets.add(value);
    headers[name] = value;
  }
  return { headers, secrets };
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
