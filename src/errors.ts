/**
 * The errors of the client. Each carries a `code` of the closed union {@linkcode ErrorCode}; wrong
 * arguments are plain `TypeError`s and `RangeError`s.
 *
 * @module
 */

import type { RunResult } from "./types.ts";

/** Every code that a {@linkcode ToolnexusError} can carry. */
export type ErrorCode =
  | "provider_error"
  | "stream_truncated"
  | "stream_malformed"
  | "stream_idle"
  | "aborted"
  | "timeout"
  | "hook_failed"
  | "conversation_busy"
  | "store_failed"
  | "store_conflict"
  | "stale_answer";

/** The base of all errors of the client. */
export class ToolnexusError extends Error {
  /** What went wrong, as a word that a program can compare. */
  readonly code: ErrorCode;
  /** What the run had achieved, when it had got somewhere: nothing paid for is lost. */
  result?: RunResult | undefined;
  /** The answer text that had arrived before the failure. */
  partialText?: string | undefined;
  /** A second failure while this one was being settled: a {@linkcode StoreError}. */
  suppressed?: ToolnexusError | undefined;

  /** Creates the error. */
  constructor(code: ErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "ToolnexusError";
    this.code = code;
  }
}

/** What is known of a refused or failed request. */
export interface ProviderErrorDetails {
  /** The HTTP status; 0 when no answer came. */
  status: number;
  /** The provider's own message. */
  providerMessage?: string | undefined;
  /** The provider's own code or type, such as `insufficient_quota`. */
  providerCode?: string | undefined;
  /** The start of the body, at most 2,000 characters. */
  body?: string | undefined;
  /** The `x-request-id` or `request-id` header. */
  requestId?: string | undefined;
  /** Whether the same request may succeed later. */
  retryable: boolean;
  /** The delay that the provider asked for, in milliseconds. */
  retryAfterMs?: number | undefined;
}

/** The provider answered with an error, with something that is no answer, or not at all. */
export class ProviderError extends ToolnexusError {
  /** The HTTP status; 0 when no answer came. */
  readonly status: number;
  /** The provider's own message. */
  readonly providerMessage: string | undefined;
  /** The provider's own code or type. */
  readonly providerCode: string | undefined;
  /** The start of the body, at most 2,000 characters. */
  readonly body: string | undefined;
  /** The id that the provider gave the request. */
  readonly requestId: string | undefined;
  /** Whether the same request may succeed later. */
  readonly retryable: boolean;
  /** The delay that the provider asked for, in milliseconds. */
  readonly retryAfterMs: number | undefined;
  /** How many times the request was sent. */
  attempts = 1;

  /** Creates the error. */
  constructor(message: string, details: ProviderErrorDetails, options?: ErrorOptions) {
    super("provider_error", message, options);
    this.name = "ProviderError";
    this.status = details.status;
    this.providerMessage = details.providerMessage;
    this.providerCode = details.providerCode;
    this.body = details.body;
    this.requestId = details.requestId;
    this.retryable = details.retryable;
    this.retryAfterMs = details.retryAfterMs;
  }
}

/** An answer began and did not end as it should: cut short, unreadable, or silent for too long. */
export class StreamError extends ToolnexusError {
  /** Creates the error. */
  constructor(
    code: "stream_truncated" | "stream_malformed" | "stream_idle",
    message: string,
    options?: ErrorOptions,
  ) {
    super(code, message, options);
    this.name = "StreamError";
  }
}

/**
 * The run was ended from outside or by one of its time limits. `name` is `AbortError` or
 * `TimeoutError`, as with `fetch`; `cause` is the reason of the caller's signal.
 */
export class RunAbortedError extends ToolnexusError {
  /** Creates the error. */
  constructor(code: "aborted" | "timeout", message: string, options?: ErrorOptions) {
    super(code, message, options);
    this.name = code === "aborted" ? "AbortError" : "TimeoutError";
  }
}

/** A hook threw, or another function of the host's. `cause` is what it threw. */
export class HookError extends ToolnexusError {
  /**
   * What threw: `beforeLLM`, `afterLLM`, `beforeTool`, `afterTool`, `onText`, `onError`, `waitFor` or
   * `bodyTransform`.
   */
  readonly hook: string;

  /** Creates the error. */
  constructor(hook: string, cause: unknown) {
    super("hook_failed", `hook ${hook} failed: ${reasonOf(cause)}`, { cause });
    this.name = "HookError";
    this.hook = hook;
  }
}

/** A tool or hook asked the very conversation that is waiting for it. */
export class ConversationBusyError extends ToolnexusError {
  /** The conversation. */
  readonly id: string;

  /** Creates the error. */
  constructor(id: string) {
    super("conversation_busy", `conversation ${quote(id)} is waiting for the caller of this ask`);
    this.name = "ConversationBusyError";
    this.id = id;
  }
}

/** What a store can be asked to do. */
export type StoreOperation = "get" | "save" | "delete" | "list";

/** A store failed; when the run itself was done, its outcome is on `result`. */
export class StoreError extends ToolnexusError {
  /** What failed. */
  readonly operation: StoreOperation;
  /** The conversation; for `list` the prefix. */
  readonly id: string;

  /** Creates the error. */
  constructor(operation: StoreOperation, id: string, cause: unknown) {
    super("store_failed", `store ${operation} of ${quote(id)} failed: ${reasonOf(cause)}`, {
      cause,
    });
    this.name = "StoreError";
    this.operation = operation;
    this.id = id;
  }
}

/** A save was refused: the conversation is no longer what the new transcript was built on. */
export class ConversationConflictError extends ToolnexusError {
  /** The conversation. */
  readonly id: string;

  /** Creates the error. Stores throw it. */
  constructor(id: string, options?: ErrorOptions) {
    super("store_conflict", `conversation ${quote(id)} was changed by someone else`, options);
    this.name = "ConversationConflictError";
    this.id = id;
  }
}

/** An answer came for a request that is not open: answered, superseded, or never made. */
export class StaleAnswerError extends ToolnexusError {
  /** Creates the error. */
  constructor(message: string, options?: ErrorOptions) {
    super("stale_answer", message, options);
    this.name = "StaleAnswerError";
  }
}

/** What a caught value says of itself, for the message of the error that carries it as `cause`. */
export function reasonOf(cause: unknown): string {
  try {
    return String(cause instanceof Error ? cause.message : cause);
  } catch {
    return "a value that cannot be told";
  }
}

/** A value as a short JSON-like text, for error messages. */
export function quote(value: unknown): string {
  let text: string | undefined;
  try {
    text = typeof value === "bigint" ? `${value}n` : JSON.stringify(value);
  } catch { /* a cycle: named by its type below */ }
  text ??= typeof value === "function" ? "a function" : String(value);
  return text.length > 100 ? text.slice(0, 99) + "…" : text;
}
