/**
 * The line in which the asks of one conversation wait for each other, in this process.
 *
 * @module
 */

import { type AsyncContext, asyncContext } from "./async_hooks.ts";
import { ConversationBusyError } from "./errors.ts";
import { abortable } from "./scope.ts";
import type { ConversationStore } from "./types.ts";

/** A place in the line of one conversation. */
export interface Place {
  readonly store: ConversationStore;
  readonly id: string;
  /** The place of the run whose tool or hook took this one, until that is over. */
  outer: Place | undefined;
  /** The places, in any line, that this place's run waits for. */
  readonly inner: Set<Place>;
  /** The place before it, until that one is over. */
  before: Place | undefined;
  hasLeft: boolean;
  /** Resolves when this place, and all before it, are over. */
  isOver: Promise<void>;
}

/** By store, the last place in the line of each conversation. */
const lines = new WeakMap<ConversationStore, Map<string, Place>>();

/** The async context; null where the runtime has none, undefined before it is needed. */
let context: AsyncContext<Place> | null | undefined;

/** A new place, not yet in the line. */
export function placeOf(store: ConversationStore, id: string): Place {
  const outer = placeContext()?.getStore();
  const isOver = Promise.resolve();
  return { store, id, outer, inner: new Set(), before: undefined, hasLeft: false, isOver };
}

/** Does work that belongs to a place, so that an ask inside of it can be told. */
export function within<Result>(place: Place, work: () => Result): Result {
  const context = placeContext();
  return context === null ? work() : context.run(place, work);
}

/**
 * Waits for the place's turn. The returned function ends it.
 *
 * @throws {ConversationBusyError} if whoever is before it waits, by whatever detour, for this very ask
 */
export async function takeTurn(place: Place, signal: AbortSignal): Promise<() => void> {
  const { store, id } = place;
  const line = lines.get(store) ?? new Map<string, Place>();
  lines.set(store, line);
  const before = line.get(id);
  while (place.outer?.hasLeft) place.outer = place.outer.outer;
  if (before !== undefined && waits(before, outersOf(place))) throw new ConversationBusyError(id);
  const { promise: mine, resolve: end } = Promise.withResolvers<void>();
  place.before = before;
  place.isOver = before === undefined ? mine : before.isOver.then(() => mine);
  line.set(id, place);
  place.outer?.inner.add(place);
  const leave = () => {
    place.outer?.inner.delete(place);
    // They would keep it, and by it all that were before, for ever.
    for (const one of place.inner) one.outer = place.outer;
    place.before = undefined;
    place.hasLeft = true;
    end();
    if (line.get(id) === place) line.delete(id);
  };
  try {
    if (before !== undefined) await abortable(before.isOver, signal);
  } catch (error) {
    // Those behind still wait for those before.
    place.outer?.inner.delete(place);
    end();
    place.isOver.then(leave);
    throw error;
  }
  place.before = undefined;
  return leave;
}

/** Whether a place waits, in its own line or by an ask of its run, for one of `others`; or is one. */
function waits(place: Place, others: ReadonlySet<Place>): boolean {
  if (others.size === 0) return false;
  const waitedFor = new Set([place]);
  for (const one of waitedFor) {
    if (others.has(one)) return true;
    if (one.before !== undefined) waitedFor.add(one.before);
    for (const inner of one.inner) waitedFor.add(inner);
  }
  return false;
}

function outersOf(place: Place): Set<Place> {
  const outers = new Set<Place>();
  for (let { outer } = place; outer !== undefined; outer = outer.outer) outers.add(outer);
  return outers;
}

/** How many conversations of a store are being asked. */
export function busyConversations(store: ConversationStore): number {
  return lines.get(store)?.size ?? 0;
}

function placeContext(): AsyncContext<Place> | null {
  return context === undefined ? context = asyncContext() ?? null : context;
}
