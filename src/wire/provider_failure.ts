/**
 * Makes a `ProviderError` of whatever a provider sent instead of an answer.
 *
 * @module
 */

import { ProviderError } from "../errors.ts";
import { objectOf, parseJson, textOrUndefined } from "../json.ts";
import { unwrapped } from "./payload.ts";

/** How much of a body an error carries, in characters. */
const MAX_BODY = 2_000;

/** How much of the provider's message the error's message carries, in characters. */
const MAX_MESSAGE = 1_000;

/** Statuses that may go away by themselves, besides all of 500 to 599. */
const RETRYABLE = new Set([408, 409, 425, 429]);

/** Error types that name a status, in a stream that began with 200. */
const STATUS_OF_TYPE: Record<string, number> = {
  invalid_request_error: 400,
  authentication_error: 401,
  billing_error: 402,
  permission_error: 403,
  not_found_error: 404,
  request_too_large: 413,
  insufficient_quota: 429,
  rate_limit_error: 429,
  rate_limit_exceeded: 429,
  api_error: 500,
  server_error: 500,
  internal_server_error: 500,
  timeout_error: 504,
  overloaded_error: 529,
};

/** What a failure is made of. */
export interface Failure {
  status: number;
  headers?: Headers | undefined;
  /** The body as text. */
  body?: string | undefined;
  /** The body as JSON, when it was read already. */
  payload?: unknown;
  /** What is wrong, when the body does not say it. */
  summary?: string | undefined;
  /** Given for an error inside an answer, whose words name the status: whether it came first. */
  isFirst?: boolean | undefined;
}

/** The error of a refused request. `redact` takes secrets out of whatever the provider repeats. */
export function providerError(failure: Failure, redact: (text: string) => string): ProviderError {
  const { headers, body, isFirst, summary } = failure;
  const payload = failure.payload ?? unwrapped(parseJson(body ?? ""));
  const providerMessage = messageOf(payload);
  const code = codeOf(payload);
  const status = isFirst === undefined ? failure.status : namedStatus(payload) ?? failure.status;
  const says = providerMessage ?? summary ?? snippet(body && redact(body)) ?? code ?? "no message";
  const retryAfter = headers === undefined ? undefined : retryAfterMs(headers);
  const requestId = headers?.get("x-request-id") ?? headers?.get("request-id") ?? undefined;
  const words = redact(says).replace(/(?<!\.)\.$/, ""); // no message ends in a period
  return new ProviderError(`LLM ${status}: ${bounded(words, MAX_MESSAGE)}`, {
    status,
    providerMessage: providerMessage && bounded(redact(providerMessage), MAX_BODY),
    providerCode: code && redact(code),
    // JSON is written anew: there is more than one way to write a secret in it.
    body: bounded(redact(payload === undefined ? body ?? "" : JSON.stringify(payload)), MAX_BODY),
    requestId: requestId && redact(requestId),
    retryable: isFirst !== false && !isQuota(payload) && isRetryable(status, headers),
    retryAfterMs: retryAfter,
  });
}

/**
 * The delay that the provider asks for: whole seconds as RFC 9110 §10.2.3 writes them, or
 * `retry-after-ms`. Dates and other forms are not taken up.
 */
function retryAfterMs(headers: Headers): number | undefined {
  const milliseconds = headers.get("retry-after-ms")?.trim() ?? "";
  if (/^\d{1,13}(\.\d+)?$/.test(milliseconds)) return Number(milliseconds);
  const seconds = headers.get("retry-after")?.trim() ?? "";
  if (!/^\d{1,10}$/.test(seconds) || Number(seconds) > 2_147_483_647) return undefined;
  return Number(seconds) * 1000;
}

function isRetryable(status: number, headers: Headers | undefined): boolean {
  const word = headers?.get("x-should-retry")?.trim().toLowerCase();
  if (word === "true" || word === "false") return word === "true";
  return RETRYABLE.has(status) || (status >= 500 && status <= 599);
}

/** Whether what was paid for is used up: no wait helps. */
function isQuota(payload: unknown): boolean {
  const error = objectOf(objectOf(payload)?.error) ?? objectOf(payload);
  return error?.code === "insufficient_quota" || error?.type === "insufficient_quota";
}

function namedStatus(payload: unknown): number | undefined {
  const error = objectOf(objectOf(payload)?.error) ?? objectOf(payload);
  for (const value of [error?.code, error?.status, error?.status_code]) {
    const status = Number(value);
    if (Number.isInteger(status) && status >= 400 && status <= 599) return status;
  }
  for (const value of [error?.type, error?.code]) {
    if (typeof value === "string" && Object.hasOwn(STATUS_OF_TYPE, value)) {
      return STATUS_OF_TYPE[value];
    }
  }
  return undefined;
}

/** The provider's words, in any of the shapes that servers use. */
function messageOf(payload: unknown): string | undefined {
  const body = objectOf(payload);
  if (body === undefined) return undefined;
  const error = objectOf(body.error);
  const detail = Array.isArray(body.detail) ? objectOf(body.detail[0])?.msg : body.detail;
  const first = Array.isArray(body.errors) ? body.errors[0] : undefined;
  for (
    const value of [
      error?.message,
      body.error,
      body.message,
      detail,
      objectOf(first)?.message ?? first,
      body.error_message,
      error?.metadata && objectOf(error.metadata)?.raw,
      error?.type,
    ]
  ) {
    const text = textOrUndefined(value);
    if (text !== undefined) return text;
  }
  return undefined;
}

function codeOf(payload: unknown): string | undefined {
  const body = objectOf(payload);
  const error = objectOf(body?.error) ?? body;
  const values = [error?.code, error?.type, error?.error_code, error?.status];
  const word = values.find((value) =>
    typeof value === "string" && value !== "" && value !== "error"
  );
  // A number is most often the status once more.
  const code = word ?? values.find((value) => typeof value === "number");
  return code === undefined ? undefined : String(code);
}

/** A body that is no JSON in one line: the title of a page, else its start. */
function snippet(body: string | undefined): string | undefined {
  if (body === undefined || body.trim() === "") return undefined;
  const title = /<title[^>]*>([^<]*)<\/title>/i.exec(body)?.[1]?.trim();
  if (/^\s*</.test(body)) return `an HTML page${title ? `: ${title}` : ""}`;
  return body.trim().slice(0, 200);
}

function bounded(text: string, limit: number): string {
  return text.length > limit ? `${text.slice(0, limit - 1)}…` : text;
}
