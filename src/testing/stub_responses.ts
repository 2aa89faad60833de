/**
 * The responses that the replies of {@linkcode stubLlm} become.
 *
 * @module
 */

import type { StyleName } from "../../mod.ts";
import { type ReplyContext, writeAnswer } from "./stub_answers.ts";
import type { StubAnswer, StubRawReply, StubReply } from "./stub_replies.ts";

/** A response before it is sent: a whole body, or chunks that are written one by one. */
export interface StubResponse {
  status: number;
  headers: Headers;
  body: Uint8Array<ArrayBuffer> | string | {
    chunks: readonly (string | Uint8Array)[];
    end: StubEnd;
  };
}

/** How a streamed response ends. */
export type StubEnd = "close" | "hang" | "reset";

/** Turns a reply into the response of a style. */
export function responseOf(reply: StubReply, context: ReplyContext): StubResponse {
  if (typeof reply !== "string") {
    if ("sse" in reply) {
      const headers = headersOf(reply.headers, "text/event-stream; charset=utf-8");
      const body = { chunks: reply.sse, end: reply.end ?? "close" };
      return { status: reply.status ?? 200, headers, body };
    }
    if ("status" in reply || "headers" in reply || "body" in reply) {
      return rawResponse(reply, context);
    }
  }
  const answer: StubAnswer = typeof reply === "string" ? { text: reply } : reply as StubAnswer;
  const written = writeAnswer(answer, context);
  if (context.body.stream !== true) return jsonResponse(200, written.json());
  const headers = headersOf(undefined, "text/event-stream; charset=utf-8");
  return { status: 200, headers, body: { chunks: written.events(), end: "close" } };
}

/** A provider's own error body. */
export function errorResponse(style: StyleName, status: number, message: string): StubResponse {
  const type = ERROR_TYPES[style][status] ??
    (status < 500 ? "invalid_request_error" : style === "openai" ? "server_error" : "api_error");
  return jsonResponse(
    status,
    style === "openai"
      ? { error: { message, type, param: null, code: null } }
      : { type: "error", error: { type, message } },
  );
}

const ERROR_TYPES: Record<StyleName, Record<number, string>> = {
  openai: { 429: "rate_limit_error" },
  anthropic: {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
  },
};

function rawResponse(reply: StubRawReply, { style }: ReplyContext): StubResponse {
  const { status = 200, body } = reply;
  const headers = new Headers(reply.headers);
  const text = typeof body === "string";
  if (text || body instanceof Uint8Array) {
    if (!headers.has("content-type")) {
      headers.set("content-type", text ? "text/plain; charset=utf-8" : "application/octet-stream");
    }
    return { status, headers, body: text ? body : new Uint8Array(body) };
  }
  if (body === undefined && status < 400) return { status, headers, body: "" };
  const response = body === undefined
    ? errorResponse(style, status, `stub reply with status ${status}`)
    : jsonResponse(status, body);
  headers.forEach((value, name) => response.headers.set(name, value));
  return response;
}

function jsonResponse(status: number, body: unknown): StubResponse {
  return { status, headers: headersOf(undefined, "application/json"), body: JSON.stringify(body) };
}

function headersOf(init: HeadersInit | undefined, contentType: string): Headers {
  const headers = new Headers(init);
  if (!headers.has("content-type")) headers.set("content-type", contentType);
  return headers;
}
