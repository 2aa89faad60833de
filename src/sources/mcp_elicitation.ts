/**
 * A server's question to a human, as the client asks it everywhere else.
 *
 * @module
 */

import type { Answer, PendingRequest } from "../../mod.ts";

/** The parameters of an `elicitation/create` request. */
export interface ElicitationParams {
  /** The question. */
  message: string;
  /** Whether a form is to be filled in or a page to be visited. @default form */
  mode?: "form" | "url" | undefined;
  /** JSON Schema of the form. */
  requestedSchema?: unknown;
  /** The page. */
  url?: string | undefined;
  /** Whatever else the server sent. */
  [key: string]: unknown;
}

/** The result of an `elicitation/create` request. */
export interface ElicitationResult {
  /** What the human did. */
  action: "accept" | "decline" | "cancel";
  /** What was filled in, when it was accepted. */
  content?: Record<string, unknown> | undefined;
}

/**
 * A server's question as a request to a human: a form is of kind `input` with its schema in
 * `data.schema`, a page to visit of kind `authorization` with its `url`. Ids start with `elc-`.
 *
 * @example
 * ```ts
 * import { elicitationToRequest } from "@toolnexus/client/mcp";
 * import { assertEquals } from "@std/assert";
 *
 * const { kind, url } = elicitationToRequest({ message: "Log in", mode: "url", url: "https://a.test" });
 * assertEquals([kind, url], ["authorization", "https://a.test"]);
 * ```
 */
export function elicitationToRequest(params: ElicitationParams): PendingRequest {
  const { message, mode, url, requestedSchema } = params;
  const request = { id: `elc-${crypto.randomUUID()}`, prompt: message };
  if (mode === "url") return { ...request, kind: "authorization", ...url ? { url } : {} };
  const data = requestedSchema ? { data: { schema: requestedSchema } } : {};
  return { ...request, kind: "input", ...data };
}

/**
 * A human's answer as the server reads it: `ok` accepts with the answer's `data`, the reason
 * `declined` declines, anything else cancels.
 *
 * @example
 * ```ts
 * import { answerToElicitResult } from "@toolnexus/client/mcp";
 * import { assertEquals } from "@std/assert";
 *
 * assertEquals(answerToElicitResult({ id: "elc-1", ok: true, data: { name: "Ann" } }), {
 *   action: "accept",
 *   content: { name: "Ann" },
 * });
 * assertEquals(answerToElicitResult({ id: "elc-1", ok: false }), { action: "cancel" });
 * ```
 */
export function answerToElicitResult(answer: Answer): ElicitationResult {
  if (answer.ok) return { action: "accept", content: answer.data ?? {} };
  return { action: answer.reason === "declined" ? "decline" : "cancel" };
}
