/**
 * Suspension: how a tool says that a human must act first, and how that is read.
 *
 * @module
 */

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
  const id = request.id ?? `pnd-${crypto.randomUUID()}`;
  return {
    output: request.url === undefined ? request.prompt : `${request.prompt}\n${request.url}`,
    isError: false,
    metadata: { pending: { ...request, id } },
  };
}

/**
 * A suspension of kind `authorization`: the human must log in at `url` first.
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
