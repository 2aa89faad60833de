/**
 * A round: an answer with tool calls, and what came of them.
 *
 * @module
 */

import type { Toolkit } from "./tools/toolkit.ts";
import { INTERRUPTED } from "./transcript/balance.ts";
import { isClaim } from "./transcript/last_turn.ts";
import { parseArguments } from "./transcript/read.ts";
import type { Answer, Message, PendingRequest, ToolCallRecord, ToolResult } from "./types.ts";
import type { CallResult, CompletionCall, Style } from "./wire/style.ts";

const INTERRUPTED_RESULT: ToolResult = { output: INTERRUPTED, isError: true };

/** How a call of a round ended. */
export interface CallOutcome {
  args: Record<string, unknown>;
  result: ToolResult;
  /** The request of a call that is suspended. */
  pending?: PendingRequest | undefined;
  /** Whether `afterTool` has not passed the result: it is handed back, but nobody else may see it. */
  isWithheld?: boolean | undefined;
  stored?: undefined;
}

/** A result that an earlier run has put into the transcript. */
export interface StoredOutcome {
  stored: { content: unknown; isError: boolean };
  pending?: undefined;
}

/** What is known of a call: how it ended, or what stands in the transcript. */
export type Outcome = CallOutcome | StoredOutcome;

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
  /** The tools that the calls are of. */
  toolkit: Toolkit;
  /** By the index of the call. */
  outcomes: (Outcome | undefined)[];
  turn: number;
  /** Whether a limit cut the answer. */
  isCut: boolean;
  /** Whether the round is kept however it ends: the store knows its calls, or a tool has run. */
  mustBeAnswered: boolean;
  /** The answer for which an earlier run had stopped. */
  approval?: Approval | undefined;
}

/** What a round comes to. */
export interface ClosedRound {
  messages: Message[];
  /** The calls that this run has made. */
  toolCalls: ToolCallRecord[];
  /** The request that it waits for. */
  pending: PendingRequest | undefined;
}

/** Closes a round. A call without an outcome is left without a result. */
export function closedRound(round: Round): ClosedRound {
  // The first suspension stands for all: the others come up again when it is answered.
  const first = round.outcomes.findIndex((outcome) => outcome?.pending !== undefined);
  const outcomes = round.outcomes.map((outcome, index) =>
    outcome?.pending !== undefined && index !== first ? undefined : outcome
  );
  const toolCalls = outcomes.flatMap((outcome, index) => {
    if (outcome === undefined || outcome.stored !== undefined) return [];
    const { id, name } = round.calls[index]!;
    const { output, isError, metadata } = outcome.result;
    return [{ id, name, args: outcome.args, output, isError, ...metadataOf(metadata) }];
  });
  const messages = roundMessages(round, outcomes);
  return { messages, toolCalls, pending: outcomes[first]?.pending };
}

/**
 * Whether a round that failed is kept: a call of it finished, or it must be answered because its
 * other calls may have run. Otherwise it is as if it had never been.
 */
export function isKept(round: Round): boolean {
  return round.mustBeAnswered || round.outcomes.some(isFinished);
}

/** The round with the calls that did not finish as interrupted. */
export function interruptedRound(round: Round): Round {
  const outcomes = round.calls.map((call, index) => {
    const outcome = round.outcomes[index];
    if (isFinished(outcome)) return outcome;
    return { args: parseArguments(call.arguments) ?? {}, result: INTERRUPTED_RESULT };
  });
  return { ...round, outcomes };
}

function isFinished(outcome: Outcome | undefined): boolean {
  return outcome !== undefined && outcome.pending === undefined;
}

/** A round as messages: the answer with its calls, and the results that are there. */
export function roundMessages(
  round: Round,
  outcomes: readonly (Outcome | undefined)[],
): Message[] {
  const results: CallResult[] = [];
  outcomes.forEach((outcome, index) => {
    if (outcome === undefined) return;
    const { id, name } = round.calls[index]!;
    results.push({ id, name, ...saidOf(outcome), pending: outcome.pending });
  });
  return [round.answer, ...round.style.results(round.answer, results)];
}

/** What the transcript says of an outcome. */
function saidOf(outcome: Outcome): { content: unknown; isError: boolean } {
  if (outcome.stored !== undefined) {
    const { content, isError } = outcome.stored;
    return { content: content ?? "", isError };
  }
  const { output, isError } = outcome.isWithheld ? INTERRUPTED_RESULT : outcome.result;
  return { content: contentOf(output), isError };
}

/** A result that reads like a claim is written as a list of parts, so that it is not taken for one. */
function contentOf(output: string): unknown {
  return isClaim(output) ? [{ type: "text", text: output }] : output;
}

/** A tool's own data; the request of a suspension is told elsewhere. */
function metadataOf(metadata: ToolResult["metadata"]): { metadata?: Record<string, unknown> } {
  if (metadata === undefined) return {};
  const { pending: _, ...rest } = metadata;
  return Object.keys(rest).length > 0 ? { metadata: rest } : {};
}
