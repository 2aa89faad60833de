/**
 * Suspension: how a tool says that a human must act first, and how that is read.
 *
 * @module
 */

import { quote } from "./errors.ts";
import { isPlainObject } from "./json.ts";
import type { PendingRequest, ToolResult } from "./types.ts";

/** What {@linkcode pending} takes: a request whose id is made up unless given. */
export type PendingInit = Omit<PendingRequest, "id"> & {
  /** @default a random id that starts with `pnd-` */
  id?: string | undefined;
};

/**
 * The result of a tool that waits for a human. The run stops with `status: "pending"`, or goes on
 * with the answer of the client's `waitFor`.
 *
 * @throws {TypeError} if the request is none that a human could answer
 *
 * @example
 * ```ts
 * import { pending } from "@toolnexus/client";
 * import { assertEquals } from "@std/assert";
 *
 * const result = pending({ kind: "approval", prompt: "Pay 20 EUR?", url: "https://pay.test/7" });
 * assertEquals(result.output, "Pay 20 EUR?\nhttps://pay.test/7");
 * ```
 */
export function pending(request: PendingInit): ToolResult {
  checkRequest(request);
  const id = request.id ?? `pnd-${crypto.randomUUID()}`;
  return {
    output: request.url === undefined ? request.prompt : `${request.prompt}\n${request.url}`,
    isError: false,
    metadata: { pending: { ...request, id } },
  };
}

/** @throws {TypeError} if a human could not answer it */
function checkRequest({ kind, prompt, url, data, expiresAt }: PendingInit): void {
  for (const [name, value] of Object.entries({ kind, prompt })) {
    if (typeof value !== "string" || value === "") {
      throw new TypeError(
        `${name} of a pending request must be a non-empty string: ${quote(value)}`,
      );
    }
  }
  if (url !== undefined && (typeof url !== "string" || url === "")) {
    throw new TypeError(`url of a pending request must be a non-empty string: ${quote(url)}`);
  }
  if (data !== undefined && !isPlainObject(data)) {
    throw new TypeError(`data of a pending request must be an object: ${quote(data)}`);
  }
  if (expiresAt !== undefined && Number.isNaN(timeOf(expiresAt))) {
    throw new TypeError(
      `expiresAt of a pending request must be an RFC 3339 date-time: ${quote(expiresAt)}`,
    );
  }
}

const DATE_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/i;

/**
 * An RFC 3339 date-time in milliseconds since 1970; NaN for anything else. One without an offset would
 * mean another time on each machine.
 */
export function timeOf(dateTime: unknown): number {
  const isDateTime = typeof dateTime === "string" && DATE_TIME.test(dateTime);
  return isDateTime ? Date.parse(dateTime.toUpperCase()) : NaN;
}

/**
 * A suspension of kind `authorization`: the human must log in at `url` first.
 *
 * @param prompt the question; "Authorization required to continue" unless given
 *
 * @example
 * ```ts
 * import { authRequired, pendingOf } from "@toolnexus/client";
 * import { assertEquals } from "@std/assert";
 *
 * assertEquals(pendingOf(authRequired("https://login.test"))?.kind, "authorization");
 * ```
 */
export function authRequired(
  url: string,
  prompt: string = "Authorization required to continue",
): ToolResult {
  return pending({ kind: "authorization", prompt, url });
}

/** The request of a suspended tool's result; undefined for any other result. */
export function pendingOf(result: ToolResult): PendingRequest | undefined {
  return result.metadata?.pending as PendingRequest | undefined;
}

/** Whether a value is a request, as far as that is needed to ask it and to match its answer. */
export function isRequest(value: unknown): value is PendingRequest {
  return isPlainObject(value) && typeof value.id === "string" && typeof value.prompt === "string";
}
