/**
 * What ends a run from outside.
 *
 * @module
 */

import { RunAbortedError } from "./errors.ts";
import { Scope } from "./scope.ts";

/**
 * The scope of a run: the caller's signal and `timeoutMs`, with reasons in this client's terms.
 *
 * @throws {RunAbortedError} if the signal is aborted already
 */
export function runScope(signal: AbortSignal | undefined, timeoutMs: number | undefined): Scope {
  const scope = new Scope(signal, abortedBy);
  if (scope.signal.aborted) throw scope.signal.reason;
  const late = `run took longer than ${timeoutMs} ms`;
  scope.limit(timeoutMs, () => new RunAbortedError("timeout", late));
  return scope;
}

/** The caller's reason in this client's terms; a time limit of the caller's is told as one. */
function abortedBy(cause: unknown): RunAbortedError {
  const isTimeout = cause instanceof Error && cause.name === "TimeoutError";
  return isTimeout
    ? new RunAbortedError("timeout", "run took longer than its signal allows", { cause })
    : new RunAbortedError("aborted", "run was aborted", { cause });
}
