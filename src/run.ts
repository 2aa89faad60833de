/**
 * A run: what is known of it while it goes on, and what is left of it when it ends.
 *
 * @module
 */

import { equalJson } from "./json.ts";
import type { Settings } from "./options.ts";
import { closedRound, interruptedRound, isKept, type Round } from "./round.ts";
import type { Toolkit } from "./tools/toolkit.ts";
import { balanceTranscript, NOT_EXECUTED } from "./transcript/balance.ts";
import type {
  Message,
  PendingRequest,
  RepairReport,
  RunResult,
  ToolCallRecord,
  Usage,
} from "./types.ts";
import { addUsage, NO_USAGE } from "./usage.ts";
import type { Progress, Show } from "./wire/request.ts";
import type { Completion } from "./wire/style.ts";

/** What a run works with. */
export interface RunContext {
  settings: Settings;
  toolkit: Toolkit;
  conversationId: string | undefined;
  signal: AbortSignal;
  /** Hands events to whoever watches, and waits until more are wanted. Without it nobody watches. */
  show?: Show | undefined;
  progress: Progress;
  /** Saves what the run has so far. */
  checkpoint?: ((run: Run) => Promise<void>) | undefined;
}

/** What a run begins with. */
export interface Beginning {
  /** A balanced transcript. */
  history: readonly Message[];
  /** What this run adds before the model is asked. */
  prompt: readonly Message[];
  repaired?: RepairReport | undefined;
  /** The round in which an earlier run had stopped. */
  round?: Round | undefined;
  /** How the earlier run ended, when there is nothing left to do; `pending` goes with it. */
  status?: RunResult["status"] | undefined;
  pending?: PendingRequest | undefined;
  /** The answer of the earlier run, or its part before the model paused. */
  text?: string | undefined;
}

/** A run. */
export class Run {
  readonly context: RunContext;
  readonly #beginning: Beginning;
  /** The transcript: the history, then the messages of this run. */
  messages: Message[];
  /** Whether a hook changed the history, so that the run's own part cannot be told any more. */
  hasRewrittenHistory = false;
  /** The tools that the last request declared: a hook can have given others. */
  declared: Toolkit;
  round: Round | undefined;
  /** Whether the model has given its answer. */
  isDone: boolean;
  pending: PendingRequest | undefined;
  limit: RunResult["limit"];
  /** Whether there is more than the prompt: an answer, a closed round, a part of an answer. */
  isWorthSaving = false;
  /** An answer that `afterLLM` has not passed: it is handed back, but not saved. */
  unapproved: Completion | undefined;
  text: string;
  /** What was said before the model paused: the next answer goes on with it. */
  textBeforePause = "";
  /** What the last answer said by itself. */
  #said = "";
  finishReason = "unknown";
  turns = 0;
  usage: Usage = NO_USAGE;
  readonly toolCalls: ToolCallRecord[] = [];

  constructor(context: RunContext, beginning: Beginning) {
    this.context = context;
    this.#beginning = beginning;
    const { history, prompt, round, status, pending, text = "" } = beginning;
    this.messages = [...history, ...prompt];
    this.declared = context.toolkit;
    this.round = round;
    this.isDone = status === "done";
    this.pending = pending;
    this.text = this.textBeforePause = text;
  }

  /** The messages that this run added. */
  get turn(): Message[] {
    return this.messages.slice(this.#beginning.history.length);
  }

  /** Whether the run has something that was paid for. */
  get hasResult(): boolean {
    return this.turns > 0 || this.toolCalls.length > 0 || this.context.progress.text !== "";
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
    this.#said = answer.text;
    this.text = this.textBeforePause + answer.text;
    // With calls it is an answer of its own: their results stand between it and the next one.
    this.textBeforePause = answer.isPaused && answer.calls.length === 0 ? this.text : "";
    this.finishReason = answer.finishReason;
    this.context.progress.text = "";
  }

  /** Puts a transcript of a hook's in the place of the old one, balanced: it will be sent and saved. */
  rewrite(messages: readonly Message[]): void {
    // Messages that came back as copies keep their identity: stores tell by it what is new.
    const same = messages.map((message, index) => {
      const before = this.messages[index];
      return before !== undefined && equalJson(before, message) ? before : message;
    });
    this.messages = balanceTranscript(same, this.context.settings.style.name).messages;
    this.hasRewrittenHistory ||= !this.#beginning.history.every((message, index) =>
      this.messages[index] === message
    );
  }

  /** Puts the round into the transcript. */
  closeRound(round: Round): void {
    const { messages, toolCalls, pending } = closedRound(round);
    this.pending = pending;
    this.toolCalls.push(...toolCalls);
    this.add(...messages);
    this.round = undefined;
  }

  /** Closes what a failure left open. What was said is kept when the run was ended from outside. */
  closeFailed(): void {
    const { round, context: { progress, signal } } = this;
    if (round !== undefined && isKept(round)) this.closeRound(interruptedRound(round));
    // What was said is kept, also where the calls that came with it are not.
    const said = progress.text || (this.round === undefined ? "" : this.#said);
    this.round = undefined;
    if (said === "") return;
    if (progress.text !== "") this.text = this.textBeforePause + said;
    if (signal.aborted) this.add({ role: "assistant", content: said });
  }

  /** The answer that was not passed, with its calls as ones that nobody has run. */
  #unapprovedMessages(): Message[] {
    if (this.unapproved === undefined) return [];
    const { message, calls } = this.unapproved;
    const results = calls.map(({ id, name }) => ({
      id,
      name,
      content: NOT_EXECUTED,
      isError: true,
    }));
    return [message, ...this.context.settings.style.results(message, results)];
  }

  /** What the run has come to. `messages` is the transcript as it is kept. */
  result(messages: Message[]): RunResult {
    const { repaired } = this.#beginning;
    return {
      text: this.text,
      messages: [...messages, ...this.#unapprovedMessages()],
      toolCalls: this.toolCalls,
      toolCallCount: this.toolCalls.length,
      turns: this.turns,
      usage: this.usage,
      model: this.context.settings.model,
      finishReason: this.finishReason,
      status: this.pending !== undefined ? "pending" : this.isDone ? "done" : "incomplete",
      ...(this.pending !== undefined && { pending: this.pending }),
      ...(this.limit !== undefined && { limit: this.limit }),
      ...(repaired !== undefined && { repaired }),
    };
  }
}
