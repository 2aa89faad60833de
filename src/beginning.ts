/**
 * How a run begins: with a new user turn, or where an earlier run had stopped.
 *
 * @module
 */

import { ConversationConflictError, quote, StaleAnswerError } from "./errors.ts";
import type { Settings } from "./options.ts";
import { type Round, roundMessages, type StoredOutcome } from "./round.ts";
import type { Beginning } from "./run.ts";
import { closedTranscript, type Transaction } from "./transaction.ts";
import { claimOf, lastPrompt, lastText, type LastTurn, lastTurn } from "./transcript/last_turn.ts";
import { leadingSystem } from "./transcript/system.ts";
import { callsOf, styleOf } from "./transcript/read.ts";
import type { Toolkit } from "./tools/toolkit.ts";
import type { Answer, ConversationStore, Message, PendingRequest, RepairReport } from "./types.ts";
import { newCallId } from "./wire/style.ts";
import { STYLES } from "./wire/styles.ts";

/** How often another resume may be faster, before it must be told. */
const MAX_CLAIMS = 10;

/** What an execution is asked to do. */
export interface ExecutionInput {
  settings: Settings;
  store: ConversationStore;
  toolkit: Toolkit;
  /** The new user turn; undefined to go on with the last one. */
  prompt: readonly Message[] | undefined;
  /** The answer that the last turn waits for. */
  answer?: Answer | undefined;
  /** The transcript to go on from, when it is not in the store. */
  history: readonly Message[];
  id: string | undefined;
  signal: AbortSignal | undefined;
}

/** A new user turn after what was said before. */
export async function beginTurn(
  input: ExecutionInput,
  transaction: Transaction | undefined,
  prompt: readonly Message[],
  signal: AbortSignal,
): Promise<Beginning> {
  const transcript = await transaction?.read(signal) ?? input.history;
  const { messages: history, report } = closedTranscript(transcript, input.settings.style.name);
  transaction?.begin(history);
  return { history, prompt, repaired: repairedOf(report) };
}

/**
 * The last turn again: with the answer that it waits for, or, without one, from where it was
 * interrupted.
 *
 * @throws {StaleAnswerError} if the answer is for no open request, or there is no conversation
 */
export async function resumeTurn(
  input: ExecutionInput,
  transaction: Transaction | undefined,
  signal: AbortSignal,
): Promise<Beginning> {
  for (let claims = 0; claims < MAX_CLAIMS; claims++) {
    const transcript = transaction === undefined ? input.history : await transaction.read(signal);
    if (transcript.length === leadingSystem(transcript)) {
      throw new StaleAnswerError(`there is nothing to resume in ${nameOf(input)}`);
    }
    const turn = lastTurn(transcript);
    const beginning = input.answer === undefined
      ? continued(input, transaction, transcript, turn)
      : approved(input, transaction, transcript, turn, input.answer);
    const { prompt, round } = beginning;
    if (transaction === undefined || round === undefined) return beginning;
    if (await transaction.claim([...prompt, ...claimed(round)])) return beginning;
  }
  throw new ConversationConflictError(input.id ?? "");
}

function nameOf({ id }: ExecutionInput): string {
  return id === undefined ? "this history" : `conversation ${quote(id)}`;
}

/** A turn without an answer: it waits, it is finished, or it goes on. */
function continued(
  input: ExecutionInput,
  transaction: Transaction | undefined,
  transcript: readonly Message[],
  { request, isFinished }: LastTurn,
): Beginning {
  if (request !== undefined || isFinished) {
    const text = isFinished ? lastText(transcript) : "";
    const status = isFinished ? "done" : "pending";
    return { history: transcript, prompt: [], status, pending: request, text };
  }
  const { messages, report } = closedTranscript(transcript, input.settings.style.name);
  const cut = lastTurn(messages).start;
  const history = messages.slice(0, cut);
  const prompt = messages.slice(cut);
  transaction?.begin(history, prompt);
  return { history, prompt, repaired: repairedOf(report), text: lastText(messages) };
}

/** A turn with the answer that it waits for. */
function approved(
  input: ExecutionInput,
  transaction: Transaction | undefined,
  transcript: readonly Message[],
  turn: LastTurn,
  answer: Answer,
): Beginning {
  const { round, request } = turn;
  const open = round && request &&
    roundOf(transcript[round.index]!, round.results, { request, answer, toolkit: input.toolkit });
  if (open === undefined || round === undefined || request?.id !== answer.id) {
    throw new StaleAnswerError(`no request ${quote(answer.id)} is open in ${nameOf(input)}`);
  }
  const before = transcript.slice(0, round.index);
  const { messages, report } = closedTranscript(before, input.settings.style.name);
  const cut = lastPrompt(messages);
  const history = cut < 0 ? messages : messages.slice(0, cut);
  transaction?.begin(history);
  const prompt = messages.slice(history.length);
  return { history, prompt, repaired: repairedOf(report), round: open };
}

/** The round that waits, with the results that it has; undefined if none of its calls does. */
function roundOf(
  message: Message,
  results: NonNullable<LastTurn["round"]>["results"],
  given: { request: PendingRequest; answer: Answer; toolkit: Toolkit },
): Round | undefined {
  const { request, answer, toolkit } = given;
  let index = -1;
  const calls = callsOf(message);
  const outcomes = calls.map((call, position): StoredOutcome | undefined => {
    const stored = results.get(call.id);
    if (stored?.pending?.id === request.id) index = position;
    if (stored === undefined || stored.pending !== undefined) return undefined;
    return { stored };
  });
  if (index < 0) return undefined;
  return {
    answer: message,
    style: STYLES[styleOf(message) ?? "openai"],
    // The old form of a call has no id in the transcript; the request has kept the one it was given.
    calls: calls.map((call) => call.id === "" ? { ...call, id: callIdOf(request) } : call),
    toolkit,
    outcomes,
    turn: 1,
    isCut: false,
    mustBeAnswered: true,
    approval: { index, request, answer },
  };
}

/**
 * The round as it is saved before the tool runs: whoever saves it may run the tool, and no later
 * answer finds the request.
 */
function claimed(round: Round): Message[] {
  const { index, request } = round.approval!;
  const claim = { stored: { content: claimOf(request), isError: false } };
  return roundMessages(round, round.outcomes.with(index, claim));
}

function repairedOf(report: RepairReport): RepairReport | undefined {
  return report.closedCalls.length > 0 || report.droppedResults.length > 0 ? report : undefined;
}

function callIdOf({ data }: PendingRequest): string {
  return typeof data?.toolCallId === "string" ? data.toolCallId : newCallId();
}
