/**
 * A run from its first step to the last: wait for the conversation's turn, load, run, and settle,
 * however the run ends.
 *
 * @module
 */

import { beginTurn, type ExecutionInput, resumeTurn } from "./beginning.ts";
import { reasonOf, type ToolnexusError } from "./errors.ts";
import { loop } from "./loop.ts";
import { type Place, placeOf, takeTurn, within } from "./queue.ts";
import { Run } from "./run.ts";
import { runScope } from "./run_scope.ts";
import type { Scope } from "./scope.ts";
import { traceRun } from "./tracing.ts";
import { Transaction } from "./transaction.ts";
import type { Message, RunResult, StreamEvent } from "./types.ts";
import { NO_USAGE } from "./usage.ts";

/** Gets the events of a run, a batch at a time; the run goes on when it resolves. */
export type Watch = (events: StreamEvent[], signal: AbortSignal) => Promise<void>;

/** A run that is about to happen, happens, or has happened; once. */
export class Execution {
  readonly #input: ExecutionInput;
  readonly #place: Place | undefined;
  readonly #progress = { text: "" };
  #scope: Scope | undefined;
  /** The run, when it has got as far as to have a transcript. */
  #begun: Run | undefined;
  /** Why it ended before its end, when whoever watches left. */
  #closed: ToolnexusError | undefined;

  constructor(input: ExecutionInput) {
    this.#input = input;
    this.#place = input.id === undefined ? undefined : placeOf(input.store, input.id);
  }

  /** Runs to the end. The answer is streamed if somebody watches. */
  run(watch?: Watch): Promise<RunResult> {
    const { settings, id } = this.#input;
    const work = () => traceRun({ settings, conversationId: id }, () => this.#steps(watch));
    // An ask of its tools and hooks knows by its place where it comes from.
    return this.#place === undefined ? work() : within(this.#place, work);
  }

  /** Ends the run because whoever watches it left, and has not seen `unread`. */
  close(unread: readonly StreamEvent[], reason: ToolnexusError): void {
    // What came before the last count of tokens belongs to answers that are whole.
    const current = unread.slice(unread.findLastIndex(({ type }) => type === "usage") + 1);
    const unseen = current.reduce(
      (sum, event) => event.type === "text" ? sum + event.delta.length : sum,
      0,
    );
    this.#progress.text = this.#progress.text.slice(0, this.#progress.text.length - unseen);
    this.#closed = reason;
    this.#scope?.abort(reason);
  }

  async #steps(watch: Watch | undefined): Promise<RunResult> {
    const started = performance.now();
    let leave: (() => void) | undefined;
    let error: unknown;
    try {
      using scope = runScope(this.#input.signal, this.#input.settings.timeoutMs);
      this.#scope = scope;
      leave = this.#place && await takeTurn(this.#place, scope.signal);
      return await this.#run(scope.signal, watch);
    } catch (thrown) {
      error = thrown;
      throw thrown;
    } finally {
      leave?.();
      this.#emit(performance.now() - started, error);
    }
  }

  #emit(ms: number, error: unknown): void {
    const { settings } = this.#input;
    const { turns = 0, toolCalls = [], usage = NO_USAGE } = this.#begun ?? {};
    settings.emit({
      event: "run",
      model: settings.model,
      turns,
      toolCalls: toolCalls.length,
      totalTokens: usage.totalTokens,
      ms,
      ...(error !== undefined && { error: reasonOf(error) }),
    });
  }

  async #run(signal: AbortSignal, watch: Watch | undefined): Promise<RunResult> {
    const { settings, toolkit, store, id, prompt } = this.#input;
    const transaction = id === undefined
      ? undefined
      : new Transaction(store, id, settings.style.name);
    const beginning = prompt !== undefined
      ? await beginTurn(this.#input, transaction, prompt, signal)
      : await resumeTurn(this.#input, transaction, signal);
    const run = this.#begun = new Run({
      settings,
      toolkit,
      conversationId: id,
      signal,
      show: watch && ((events) => this.#show(events, watch, signal)),
      progress: this.#progress,
      checkpoint: transaction && ((run) => checkpoint(run, transaction)),
    }, beginning);
    if (beginning.status !== undefined) {
      const { pending } = beginning;
      if (pending !== undefined) await run.context.show?.([{ type: "pending", request: pending }]);
      return run.result(run.messages);
    }
    let failure: { error: unknown } | undefined;
    try {
      await loop(run);
    } catch (error) {
      failure = { error };
    }
    return await settle(run, transaction, failure);
  }

  async #show(events: StreamEvent[], watch: Watch, signal: AbortSignal): Promise<void> {
    await watch(events, signal);
    if (this.#closed !== undefined) throw this.#closed;
  }
}

/** The one way in which a run ends: what it has is saved, and returned or thrown. */
async function settle(
  run: Run,
  transaction: Transaction | undefined,
  failure: { error: unknown } | undefined,
): Promise<RunResult> {
  if (failure !== undefined) run.closeFailed();
  let messages = run.messages;
  let unsaved: ToolnexusError | undefined;
  if (transaction !== undefined && run.isWorthSaving) {
    try {
      messages = await save(run, transaction);
    } catch (error) {
      // A transaction throws nothing else.
      unsaved = error as ToolnexusError;
    }
  }
  const result = run.result(messages);
  const error = failure === undefined ? unsaved : failure.error;
  if (failure === undefined && unsaved === undefined) return result;
  // Also a fault that nobody thought of hands back what was paid for, and so does what whoever left a
  // stream gets: that nothing was saved.
  const { text } = run.context.progress;
  const paid = { ...(run.hasResult && { result }), ...(text !== "" && { partialText: text }) };
  if (unsaved !== undefined) Object.assign(unsaved, paid);
  if (failure !== undefined && error instanceof Error) {
    Object.assign(error, paid, unsaved !== undefined && { suppressed: unsaved });
  }
  throw error;
}

/** Saves what the run has, and `open`, which is about to be answered. */
function save(run: Run, transaction: Transaction, open: Message[] = []): Promise<Message[]> {
  return run.hasRewrittenHistory
    ? transaction.replace([...run.messages, ...open])
    : transaction.save([...run.turn, ...open]);
}

/** Saves what a run has so far, with the calls that are about to run. */
async function checkpoint(run: Run, transaction: Transaction): Promise<void> {
  const { round } = run;
  await save(run, transaction, round === undefined ? [] : [round.answer]);
  if (round !== undefined) round.mustBeAnswered = true;
}
