/**
 * A run: what is known of it while it goes on, and what is left of it when it ends.
 *
 * @module
 */

import { equalJson } from "./messages.ts";
import type { Settings } from "./options.ts";
import type { Toolkit } from "./tools/toolkit.ts";
import { balanceTranscript, INTERRUPTED } from "./transcript/balance.ts";
import { parseArguments } from "./transcript/read.ts";
import type {
  Answer,
  Message,
  PendingRequest,
  RepairReport,
  RunResult,
  ToolCallRecord,
  ToolResult,
  Usage,
} from "./types.ts";
import { addUsage, NO_USAGE } from "./usage.ts";
import type { Progress } from "./wire/request.ts";
import type { CallResult, Completion, CompletionCall, Style } from "./wire/style.ts";

/** How a call of a round ended. */
export interface CallOutcome {
  args: Record<string, unknown>;
  result: ToolResult;
  /** The request of a call that is suspended. */
  pending?: PendingRequest | undefined;
  /** The content of a result that an earlier run has put into the transcript. */
  stored?: { content: unknown } | undefined;
}

/** The human's answer to the suspended call of a round. */
export interface Approval {
  index: number;
  request: PendingRequest;
  answer: Answer;
}

/** An answer with tool calls, and the outcomes that are there so far. */
export interface Round {
  answer: Message;
  /** The style in which the answer is written, and its results. */
  style: Style;
  calls: readonly CompletionCall[];
  /** By the index of the call. */
  outcomes: (CallOutcome | undefined)[];
  turn: number;
  /** Whether a limit cut the answer. */
  isCut: boolean;
  /** Whether the round is kept however it ends: the store knows its calls, or a tool has run. */
  mustBeAnswered: boolean;
  /** The answer for which an earlier run had stopped. */
  approval?: Approval | undefined;
}

/** What a run is made of. */
export interface RunInput {
  settings: Settings;
  toolkit: Toolkit;
  /** A balanced transcript. */
  history: readonly Message[];
  /** What this run adds before the model is asked. */
  prompt: readonly Message[];
  repaired?: RepairReport | undefined;
  /** The round in which an earlier run had stopped. */
  round?: Round | undefined;
  /** What an earlier run waits for, or has answered, when there is nothing to do. */
  status?: RunResult["status"] | undefined;
  pending?: PendingRequest | undefined;
  text?: string | undefined;
  conversationId: string | undefined;
  signal: AbortSignal;
  streaming: boolean;
  progress: Progress;
  /** Saves what the run has so far. */
  checkpoint?: ((run: Run) => Promise<void>) | undefined;
}

/** A run. */
export class Run implements RunInput {
  readonly settings: Settings;
  readonly toolkit: Toolkit;
  readonly history: readonly Message[];
  readonly prompt: readonly Message[];
  readonly repaired: RepairReport | undefined;
  readonly conversationId: string | undefined;
  readonly signal: AbortSignal;
  readonly streaming: boolean;
  readonly progress: Progress;
  readonly checkpoint: ((run: Run) => Promise<void>) | undefined;

  /** The transcript: the history, then the messages of this run. */
  messages: Message[];
  /** Whether a hook changed the history, so that the run's own part cannot be told any more. */
  hasRewrittenHistory = false;
  round: Round | undefined;
  status: RunResult["status"];
  pending: PendingRequest | undefined;
  limit: RunResult["limit"];
  /** Whether there is more than the prompt: an answer, a closed round, a part of an answer. */
  isWorthSaving = false;
  /** An answer that `afterLLM` has not passed: it is handed back, but not saved. */
  unapproved: Message | undefined;
  text: string;
  /** What was said before the model paused: the next answer goes on with it. */
  textBeforePause = "";
  finishReason = "unknown";
  turns = 0;
  usage: Usage = NO_USAGE;
  readonly toolCalls: ToolCallRecord[] = [];

  constructor(input: RunInput) {
    this.settings = input.settings;
    this.toolkit = input.toolkit;
    this.history = input.history;
    this.prompt = input.prompt;
    this.repaired = input.repaired;
    this.conversationId = input.conversationId;
    this.signal = input.signal;
    this.streaming = input.streaming;
    this.progress = input.progress;
    this.checkpoint = input.checkpoint;
    this.round = input.round;
    this.status = input.status ?? "incomplete";
    this.pending = input.pending;
    this.text = input.text ?? "";
    this.messages = [...input.history, ...input.prompt];
  }

  /** The messages that this run added. */
  get turn(): Message[] {
    return this.messages.slice(this.history.length);
  }

  /** Whether the run has something that was paid for. */
  get hasResult(): boolean {
    return this.turns > 0 || this.toolCalls.length > 0 || this.progress.text !== "";
  }

  /** Adds what will be saved. */
  add(...messages: Message[]): void {
    this.messages.push(...messages);
    this.isWorthSaving = true;
  }

  /** Takes note of an answer; its message is added when it is known where it belongs. */
  take(answer: Completion): void {
    this.turns++;
    this.usage = addUsage(this.usage, answer.usage);
    this.text = this.textBeforePause + answer.text;
    this.textBeforePause = answer.isPaused ? this.text : "";
    this.finishReason = answer.finishReason;
    this.progress.text = "";
  }

  /** Puts a transcript of a hook's in the place of the old one, balanced: it will be sent and saved. */
  rewrite(messages: readonly Message[]): void {
    // Messages that came back as copies keep their identity: stores tell by it what is new.
    const same = messages.map((message, index) => {
      const before = this.messages[index];
      return before !== undefined && equalJson(before, message) ? before : message;
    });
    this.messages = balanceTranscript(same, this.settings.style.name).messages;
    this.hasRewrittenHistory ||= !this.history.every((message, index) =>
      this.messages[index] === message
    );
  }

  /** Puts the round into the transcript. A call without an outcome is left without a result. */
  closeRound(round: Round): void {
    // The first suspension stands for all: the others come up again when it is answered.
    const first = round.outcomes.findIndex((outcome) => outcome?.pending !== undefined);
    const outcomes = round.outcomes.map((outcome, index) =>
      outcome?.pending !== undefined && index !== first ? undefined : outcome
    );
    this.pending = outcomes[first]?.pending;
    if (this.pending !== undefined) this.status = "pending";
    outcomes.forEach((outcome, index) => {
      if (outcome === undefined || outcome.stored !== undefined) return;
      const { id, name } = round.calls[index]!;
      const { output, isError, metadata } = outcome.result;
      const record = { id, name, args: outcome.args, output, isError };
      this.toolCalls.push({ ...record, ...metadataOf(metadata) });
    });
    this.add(...roundMessages(round, outcomes));
    this.round = undefined;
  }

  /**
   * Closes what a failure left open. A round in which a call finished is kept, and so is one that must
   * be answered: its other calls may have run. Otherwise the round is as if it had never been. What was
   * said is kept when the run was ended from outside.
   */
  closeFailed(): void {
    const { round, progress } = this;
    const isFinished = (outcome: CallOutcome | undefined) =>
      outcome !== undefined && outcome.pending === undefined;
    if (round !== undefined && (round.mustBeAnswered || round.outcomes.some(isFinished))) {
      round.calls.forEach((call, index) => {
        if (isFinished(round.outcomes[index])) return;
        const args = parseArguments(call.arguments) ?? {};
        round.outcomes[index] = { args, result: { output: INTERRUPTED, isError: true } };
      });
      this.closeRound(round);
    }
    // What was said is kept, also where the calls that came with it are not.
    const said = progress.text || (this.round === undefined ? "" : this.text);
    this.round = undefined;
    if (said === "") return;
    this.text = said;
    if (this.signal.aborted) this.add({ role: "assistant", content: said });
  }

  /** What the run has come to. `messages` is the transcript as it is kept. */
  result(messages: Message[]): RunResult {
    return {
      text: this.text,
      messages: this.unapproved === undefined ? messages : [...messages, this.unapproved],
      toolCalls: this.toolCalls,
      toolCallCount: this.toolCalls.length,
      turns: this.turns,
      usage: this.usage,
      model: this.settings.model,
      finishReason: this.finishReason,
      status: this.status,
      ...(this.pending !== undefined && { pending: this.pending }),
      ...(this.limit !== undefined && { limit: this.limit }),
      ...(this.repaired !== undefined && { repaired: this.repaired }),
    };
  }
}

/** A round as messages: the answer with its calls, and the results that are there. */
export function roundMessages(
  round: Round,
  outcomes: readonly (CallOutcome | undefined)[],
): Message[] {
  const results: CallResult[] = [];
  outcomes.forEach((outcome, index) => {
    if (outcome === undefined) return;
    const { id, name } = round.calls[index]!;
    const { result: { output, isError }, stored, pending } = outcome;
    results.push({ id, name, content: stored?.content ?? output, isError, pending });
  });
  return [round.answer, ...round.style.results(round.answer, results)];
}

/** A tool's own data; the request of a suspension is told elsewhere. */
function metadataOf(metadata: ToolResult["metadata"]): { metadata?: Record<string, unknown> } {
  if (metadata === undefined) return {};
  const { pending: _, ...rest } = metadata;
  return Object.keys(rest).length > 0 ? { metadata: rest } : {};
}
