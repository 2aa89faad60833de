/**
 * The line in which the asks of one conversation wait for each other, in this process.
 *
 * @module
 */

import { type AsyncContext, asyncHooks } from "./async_hooks.ts";
import { ConversationBusyError } from "./errors.ts";
import { abortable } from "./scope.ts";
import type { ConversationStore } from "./types.ts";

/** A place in the line of one conversation. */
export interface Place {
  readonly store: ConversationStore;
  readonly id: string;
  /** Whether it is this place's turn. */
  isHeld: boolean;
  /** The place of the run whose tool or hook took this one. */
  readonly outer: Place | undefined;
}

/** By store, the end of the line of each conversation. */
const lines = new WeakMap<ConversationStore, Map<string, Promise<void>>>();

/** The async context; null where the runtime has none, undefined before it is needed. */
let context: AsyncContext<Place> | null | undefined;

/** A new place, not yet in the line. */
export function placeOf(store: ConversationStore, id: string): Place {
  return { store, id, isHeld: false, outer: asyncContext()?.getStore() };
}

/** Does work that belongs to a place, so that an ask inside of it can be told. */
export function within<Result>(place: Place, work: () => Result): Result {
  const context = asyncContext();
  return context === null ? work() : context.run(place, work);
}

/**
 * Waits for the place's turn. The returned function ends it.
 *
 * @throws {ConversationBusyError} if a run that holds the conversation waits for this very ask
 */
export async function takeTurn(place: Place, signal: AbortSignal): Promise<() => void> {
  const { store, id } = place;
  for (let outer = place.outer; outer !== undefined; outer = outer.outer) {
    if (outer.isHeld && outer.store === store && outer.id === id) {
      throw new ConversationBusyError(id);
    }
  }
  const { promise: mine, resolve: end } = Promise.withResolvers<void>();
  const line = lines.get(store) ?? new Map<string, Promise<void>>();
  lines.set(store, line);
  const before = line.get(id);
  const tail = before === undefined ? mine : before.then(() => mine);
  line.set(id, tail);
  const leave = () => {
    place.isHeld = false;
    end();
    if (line.get(id) === tail) line.delete(id);
  };
  try {
    if (before !== undefined) await abortable(before, signal);
  } catch (error) {
    // Those behind still wait for those before.
    end();
    tail.then(leave);
    throw error;
  }
  place.isHeld = true;
  return leave;
}

/** How many conversations of a store are being asked. */
export function busyConversations(store: ConversationStore): number {
  return lines.get(store)?.size ?? 0;
}

function asyncContext(): AsyncContext<Place> | null {
  if (context !== undefined) return context;
  const hooks = asyncHooks();
  return context = hooks === undefined ? null : new hooks.AsyncLocalStorage();
}
