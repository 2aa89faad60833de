/**
 * Where the last turn of a transcript stands, and what it waits for.
 *
 * @module
 */

import { objectOf } from "../json.ts";
import { isRequest } from "../pending.ts";
import type { Message, PendingRequest } from "../types.ts";
import { INTERRUPTED } from "./balance.ts";
import {
  callsOf,
  isResultBlock,
  isResultMessage,
  isServerToolBlock,
  type Part,
  resultId,
  resultParts,
  textOf,
} from "./read.ts";

/** A result that stands in a transcript. */
export interface StoredResult {
  content: unknown;
  isError: boolean;
  /** The open request of a suspended call. */
  pending: PendingRequest | undefined;
}

/** The last turn of a transcript. */
export interface LastTurn {
  /** The index of its first message, the prompt. */
  start: number;
  /** The answer whose calls, with the results behind it, the transcript ends with. */
  round: { index: number; results: Map<string, StoredResult> } | undefined;
  /** What it waits for. */
  request: PendingRequest | undefined;
  /** Whether the model has had the last word. */
  isFinished: boolean;
}

/** Reads the end of a transcript. */
export function lastTurn(transcript: readonly Message[]): LastTurn {
  const index = transcript.findLastIndex((message) => !hasOnlyResults(message));
  const last = transcript[index];
  let round: LastTurn["round"];
  let request: PendingRequest | undefined;
  if (last !== undefined && callsOf(last).length > 0) {
    const results = new Map<string, StoredResult>();
    for (const part of transcript.slice(index + 1).flatMap(resultParts)) {
      const pending = requestOf(part);
      request ??= pending;
      const { content } = part;
      results.set(resultId(part), { content, isError: part.is_error === true, pending });
    }
    round = { index, results };
  }
  const prompt = lastPrompt(transcript);
  return {
    start: prompt >= 0 ? prompt : Math.max(index, 0),
    round,
    request,
    isFinished: last?.role === "assistant" && round === undefined &&
      index === transcript.length - 1 && !isPaused(last),
  };
}

/** The index of the last prompt; -1 where there is none. */
export function lastPrompt(transcript: readonly Message[]): number {
  return transcript.findLastIndex((message) =>
    message.role === "user" && resultParts(message).length === 0
  );
}

/** The text of the answer at the end of a transcript, with what was said before the model paused. */
export function lastText(transcript: readonly Message[]): string {
  const start = transcript.findLastIndex(({ role }) => role !== "assistant") + 1;
  return transcript.slice(start).map(textOf).join("").toWellFormed();
}

/** Whether an answer ends with the work of a tool of the provider's own: the model has yet to speak. */
function isPaused({ content }: Message): boolean {
  const last = Array.isArray(content) ? objectOf(content.at(-1)) : undefined;
  return last !== undefined && isServerToolBlock(last);
}

/**
 * The transcript with its open requests closed: nobody will answer them any more. A call at its end
 * that was claimed and is still without a result was interrupted. Messages without either stay the
 * same objects.
 */
export function withoutRequests(transcript: readonly Message[]): Message[] {
  const end = transcript.findLastIndex((message) => !hasOnlyResults(message)) + 1;
  const last = transcript.slice(end).flatMap(resultParts);
  // A request that is open was claimed by nobody.
  const isInterrupted = !last.some(isMarked) && last.some(isClaimed);
  return transcript.map((message, index) => {
    const isOpen = isInterrupted && index >= end ? isClaimed : isMarked;
    if (!resultParts(message).some(isOpen)) return message;
    if (isResultMessage(message)) return closed(message) as Message;
    const blocks = message.content as unknown[];
    const content = blocks.map((block) =>
      isResultBlock(block) && isOpen(block) ? closed(block) : block
    );
    return { ...message, content };
  });
}

function isMarked(part: Part): boolean {
  return part.pending !== undefined;
}

function isClaimed(part: Part): boolean {
  return isClaim(part.content);
}

function closed(part: Part): Part {
  const { pending, ...rest } = part;
  const request = requestOf(part);
  if (request === undefined && pending !== undefined) return rest;
  const content = request === undefined ? INTERRUPTED : declined(request);
  return { ...rest, content, ...(isResultBlock(part) && { is_error: true }) };
}

const CLAIM = "resuming: ";

/** What stands in the place of a result from the claim of a call until it has run. */
export function claimOf(request: PendingRequest): string {
  return CLAIM + request.prompt;
}

/** Whether the content of a result is a claim's. */
export function isClaim(content: unknown): boolean {
  return typeof content === "string" && content.startsWith(CLAIM);
}

/** What the model is told of a request that was not granted. */
export function declined(request: PendingRequest): string {
  return `declined/expired: ${request.prompt}`;
}

/** Whether a message holds tool results and nothing else. */
export function hasOnlyResults(message: Message): boolean {
  if (isResultMessage(message)) return true;
  const { content } = message;
  return message.role === "user" && Array.isArray(content) && content.length > 0 &&
    content.every(isResultBlock);
}

/** The request of a suspended call; what is marked as one, but cannot be one, is none. */
function requestOf({ pending }: Part): PendingRequest | undefined {
  return isRequest(pending) ? pending : undefined;
}
