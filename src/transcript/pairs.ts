/**
 * Which call a result answers: the one rule, for balancing and for converting.
 *
 * A result belongs to the nearest message before it that makes a call with its id. Servers that
 * number their calls anew in each round repeat ids over a conversation, so an id alone says little.
 * Where one message uses an id twice, the first result is that of the first call.
 *
 * @module
 */

import { type CallPart, isLegacyCall, type Part, resultId, resultName } from "./read.ts";
import type { Message } from "../types.ts";

/** Calls of one message under one key, and how many of them were answered. */
interface Queue<T> {
  round: number;
  items: T[];
  taken: number;
}

/** Remembers calls while a transcript is read from its start, and finds them for results. */
export class Pairing<T> {
  readonly #queues = new Map<string, Queue<T>>();
  #round = 0;

  /** Remembers what stands for each of the calls of a message. */
  open(message: Message, calls: readonly CallPart[], items: readonly T[]): void {
    const round = ++this.#round;
    const legacy = isLegacyCall(message);
    calls.forEach((call, index) => {
      const key = legacy ? `name ${call.name}` : `id ${call.id}`;
      const queue = this.#queues.get(key);
      if (queue?.round === round) queue.items.push(items[index]!);
      else this.#queues.set(key, { round, items: [items[index]!], taken: 0 });
    });
  }

  /**
   * Finds what stands for the call that a result message or block answers: `item`, and whether this
   * is its `first` result. Undefined when nobody made the call.
   */
  answer(result: Part): { item: T; first: boolean } | undefined {
    const key = result.role === "function"
      ? `name ${resultName(result)}`
      : `id ${resultId(result)}`;
    const queue = this.#queues.get(key);
    if (queue === undefined) return undefined;
    const first = queue.taken < queue.items.length;
    const item = queue.items[first ? queue.taken++ : queue.items.length - 1]!;
    return { item, first };
  }
}
