/**
 * Where a transcript can be cut.
 *
 * @module
 */

import type { Message } from "../types.ts";
import { Pairing } from "./pairs.ts";
import { callsOf, resultParts } from "./read.ts";

/** The calls of one message. */
interface Round {
  /** Where the last of their results stands. */
  end: number;
  /** How many have no result yet, or one that waits for a human. */
  open: number;
}

/**
 * The indexes at which turns begin: a user message that holds no tool result, while no call before
 * it is open. Whatever is cut there, no call is parted from its result.
 *
 * A call is open until its result stands there. One that has none is open while the model has not
 * spoken again: after that nobody will answer it.
 */
export function turnStarts(messages: readonly Message[]): number[] {
  const starts: number[] = [];
  const rounds = roundsOf(messages);
  let end = -1;
  messages.forEach((message, index) => {
    const isPrompt = message.role === "user" && resultParts(message).length === 0;
    if (isPrompt && end < index) starts.push(index);
    end = Math.max(end, rounds[index]?.end ?? -1);
  });
  return starts;
}

/** The rounds, each at the index of the message that makes its calls. */
function roundsOf(messages: readonly Message[]): (Round | undefined)[] {
  const pairing = new Pairing<Round>();
  const rounds = messages.map((message, index) => {
    const calls = callsOf(message);
    let round: Round | undefined;
    if (calls.length > 0) {
      round = { end: index, open: calls.length };
      pairing.open(message, calls, calls.map(() => round!));
    }
    for (const result of resultParts(message)) {
      const pair = pairing.answer(result);
      if (pair === undefined) continue;
      pair.item.end = index;
      if (pair.first && result.pending === undefined) pair.item.open--;
    }
    return round;
  });
  const last = rounds[messages.findLastIndex(({ role }) => role === "assistant")];
  if (last !== undefined && last.open > 0) last.end = Infinity;
  return rounds;
}
