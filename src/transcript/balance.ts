/**
 * Mending a transcript so that every tool call is answered exactly once.
 *
 * @module
 */

import type { Message, RepairReport, StyleName } from "../types.ts";
import { Pairing } from "./pairs.ts";
import {
  type CallPart,
  callsOf,
  checkTranscript,
  fitsAnthropic,
  isLegacyCall,
  isResultBlock,
  isResultMessage,
  markOf,
  parseArguments,
  type Part,
  resultId,
  resultName,
  resultParts,
  toolCallsOf,
} from "./read.ts";

/** The result given to a call whose outcome nobody knows. */
export const INTERRUPTED = "interrupted: may or may not have run";

/** The result given to a call that cannot have run: its arguments are no whole JSON object. */
export const NOT_EXECUTED = "not executed";

/** A call, and the message or block that answers it. */
interface Slot {
  call: CallPart;
  answer: Part | undefined;
}

/**
 * Gives the transcript in a form in which every tool call is answered exactly once, right after it
 * and in call order, as both providers demand; and tells what was mended.
 *
 * - A call without a result gets an error result, `interrupted: may or may not have run`, or
 *   `not executed` where its arguments are no whole JSON object.
 * - Results that answer no call, and second results of one call, are dropped.
 * - Results that stand elsewhere, or out of order, are moved to their call.
 *
 * Each message is read in the style it is written in, so a transcript may hold both. A new result
 * takes the shape of its call: a `tool` message in OpenAI style (a `function` message for the old
 * `function_call`), a block in Anthropic style, where all results of a round come first in one user
 * message. A result belongs to the nearest message before it that makes a call with its id: ids may
 * be used again in a later round. Ids are left as they are; {@linkcode convertTranscript} makes them
 * legal.
 *
 * Nothing that is given is changed. Messages that need no mending come back as the same objects; a
 * valid transcript comes back as a new array of just those, with an empty report.
 *
 * @param messages The transcript, in either style or both
 * @param style The style of a new result for a call that is written in both styles at once
 * @returns The mended transcript, and the ids of calls that were closed and of results that were
 * dropped (names where there are no ids). Moving a result is not reported
 * @throws {TypeError} if `messages` is no array of objects, or `style` is no style
 *
 * @example A process died while a tool ran
 * ```ts
 * import { balanceTranscript } from "@toolnexus/client";
 * import { assertEquals } from "@std/assert";
 *
 * const { messages, report } = balanceTranscript([
 *   { role: "user", content: "Pay the rent" },
 *   {
 *     role: "assistant",
 *     content: [{ type: "tool_use", id: "toolu_1", name: "pay", input: { amount: 900 } }],
 *   },
 *   { role: "user", content: "Did it work?" },
 * ], "anthropic");
 *
 * assertEquals(report, { closedCalls: ["toolu_1"], droppedResults: [] });
 * assertEquals(messages[2]?.content, [
 *   {
 *     type: "tool_result",
 *     tool_use_id: "toolu_1",
 *     content: "interrupted: may or may not have run",
 *     is_error: true,
 *   },
 *   { type: "text", text: "Did it work?" },
 * ]);
 * ```
 */
export function balanceTranscript(
  messages: readonly Message[],
  style: StyleName,
): { messages: Message[]; report: RepairReport } {
  checkTranscript(messages, style);
  const report: RepairReport = { closedCalls: [], droppedResults: [] };
  const rounds = pairResults(messages, report);
  const balanced: Message[] = [];
  // The result blocks of the latest round: they go first in the next user message.
  let waiting: Part[] | undefined;
  messages.forEach((message, index) => {
    if (isResultMessage(message)) return; // written with its call, or dropped
    if (waiting !== undefined) {
      const results = waiting;
      waiting = undefined;
      if (takesResults(message)) return void balanced.push(withResults(message, results));
      balanced.push({ role: "user", content: results });
    }
    const rest = withoutResults(message);
    if (rest !== undefined) balanced.push(rest);
    const slots = rounds[index];
    if (slots === undefined) return;
    if (answerStyle(message, slots, style) === "anthropic") waiting = slots.map(asBlock);
    else for (const slot of slots) balanced.push(asMessage(slot, message));
  });
  if (waiting !== undefined) balanced.push({ role: "user", content: waiting });
  return { messages: balanced, report };
}

/** Finds the answer of each call. The slots of a message stand at its index. */
function pairResults(messages: readonly Message[], report: RepairReport): (Slot[] | undefined)[] {
  const pairing = new Pairing<Slot>();
  const rounds = messages.map((message) => {
    const calls = callsOf(message);
    let slots: Slot[] | undefined;
    if (calls.length > 0) {
      slots = calls.map((call) => ({ call, answer: undefined }));
      pairing.open(message, calls, slots);
    }
    for (const result of resultParts(message)) {
      const pair = pairing.answer(result);
      if (pair?.first) pair.item.answer = result;
      else report.droppedResults.push(resultId(result) || resultName(result));
    }
    return slots;
  });
  for (const slots of rounds) {
    for (const { call, answer } of slots ?? []) {
      if (answer === undefined) report.closedCalls.push(call.id || call.name);
    }
  }
  return rounds;
}

/**
 * The style in which a round is answered: that of the call, unless all answers are there in the
 * other one. They are right as they stand, then: each message is sent in the style asked for anyway.
 */
function answerStyle(message: Message, slots: readonly Slot[], style: StyleName): StyleName {
  const messages = slots.filter(({ answer }) => answer && isMessage(answer)).length;
  const blocks = slots.filter(({ answer }) => answer && !isMessage(answer)).length;
  if (messages === slots.length) return "openai";
  if (blocks === slots.length) return "anthropic";
  const openai = toolCallsOf(message).length;
  if (openai === slots.length || isLegacyCall(message)) return "openai";
  return openai === 0 ? "anthropic" : style;
}

function asMessage({ call, answer }: Slot, message: Message): Message {
  if (answer !== undefined && isMessage(answer)) return answer;
  const content = answer === undefined ? closing(call) : answer.content ?? "";
  if (isLegacyCall(message)) return { role: "function", name: call.name, content };
  return { role: "tool", tool_call_id: call.id, content, ...markOf(answer) };
}

function asBlock({ call, answer }: Slot): Part {
  if (answer !== undefined && !isMessage(answer)) return answer;
  const block = { type: "tool_result", tool_use_id: call.id };
  if (answer === undefined) return { ...block, content: closing(call), is_error: true };
  return { ...block, content: answer.content ?? "", ...markOf(answer) };
}

function closing(call: CallPart): string {
  return parseArguments(call.arguments) === undefined ? NOT_EXECUTED : INTERRUPTED;
}

/** Whether an answer is a message of its own, not a block of one. */
function isMessage(answer: Part): answer is Message {
  return isResultMessage(answer as Message);
}

/** Whether result blocks can be put into a message: a user message of Anthropic shape. */
function takesResults(message: Message): boolean {
  return message.role === "user" && (resultParts(message).length > 0 || fitsAnthropic(message));
}

/** A user message with these results first; itself when it is so already. */
function withResults(message: Message, results: readonly Part[]): Message {
  const { content } = message;
  if (!Array.isArray(content)) {
    const blank = typeof content !== "string" || content.trim() === "";
    const text = blank ? [] : [{ type: "text", text: content }];
    return { ...message, content: [...results, ...text] };
  }
  const blocks = [...results, ...content.filter((part) => !isResultBlock(part))];
  const same = blocks.length === content.length &&
    blocks.every((block, index) => block === content[index]);
  return same ? message : { ...message, content: blocks };
}

/** A message without its results; itself if it has none, undefined if nothing else is in it. */
function withoutResults(message: Message): Message | undefined {
  if (resultParts(message).length === 0) return message;
  const content = (message.content as unknown[]).filter((part) => !isResultBlock(part));
  if (content.length > 0) return { ...message, content };
  return callsOf(message).length > 0 ? { ...message, content: null } : undefined;
}
