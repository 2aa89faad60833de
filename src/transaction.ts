/**
 * One turn of a stored conversation: what it was built on, and how it is saved so that no other turn
 * is lost.
 *
 * @module
 */

import { ConversationConflictError, quote, StoreError, type ToolnexusError } from "./errors.ts";
import { equalJson, objectOf } from "./json.ts";
import { equalMessages, isMessage } from "./messages.ts";
import { abortable, sleep } from "./scope.ts";
import { balanceTranscript, INTERRUPTED, NOT_EXECUTED } from "./transcript/balance.ts";
import { hasOnlyResults, lastTurn, withoutRequests } from "./transcript/last_turn.ts";
import { resultId, resultParts, resultsOf } from "./transcript/read.ts";
import type { ConversationStore, Message, RepairReport, StyleName } from "./types.ts";

/** How often a save is tried again after a conflict. */
const MAX_CONFLICTS = 30;

/** The longest wait between two tries, in milliseconds. */
const MAX_CONFLICT_WAIT_MS = 250;

/** A transcript in which nothing is open. */
export interface ClosedTranscript {
  messages: Message[];
  report: RepairReport;
}

/** A transcript with its open calls answered and its open requests declined. */
export function closedTranscript(messages: readonly Message[], style: StyleName): ClosedTranscript {
  return balanceTranscript(withoutRequests(messages), style);
}

/** A turn of the conversation `id`. */
export class Transaction {
  readonly #store: ConversationStore;
  readonly #id: string;
  readonly #style: StyleName;
  /** What the next save is built on, as the store knows it. */
  #base: readonly Message[] = [];
  /** What stands before this turn: closed, and with what others have said meanwhile. */
  #front: readonly Message[] = [];
  /** A turn of others that was begun meanwhile and waits for a human: its request stays open. */
  #rear: readonly Message[] = [];
  /** This turn's messages as they are in the store. */
  #recorded: readonly Message[] = [];
  /** The request that this turn closes, or has the answer to. */
  #request: string | undefined;
  /** Whether others have said something that this turn's run does not know. */
  #hasForeign = false;

  constructor(store: ConversationStore, id: string, style: StyleName) {
    this.#store = store;
    this.#id = id;
    this.#style = style;
  }

  /**
   * Reads the conversation as it is stored.
   *
   * @throws {StoreError}
   */
  async read(signal: AbortSignal): Promise<readonly Message[]> {
    try {
      return this.#base = await abortable(this.#get(), signal);
    } catch (error) {
      throw signal.aborted ? signal.reason : error;
    }
  }

  /**
   * Says what stands before this turn, and what of the turn itself was read: both with nothing left
   * open, which is how others save them.
   */
  begin(front: readonly Message[], recorded: readonly Message[] = []): void {
    this.#request = lastTurn(this.#base).request?.id;
    this.#front = front;
    this.#recorded = recorded;
  }

  /**
   * Saves this turn over what was read; whether nobody was faster.
   *
   * @throws {StoreError}
   */
  async claim(turn: readonly Message[]): Promise<boolean> {
    try {
      await this.#put([...this.#front, ...turn]);
    } catch (error) {
      if (isConflict(error)) return false;
      throw error;
    }
    this.#recorded = turn;
    return true;
  }

  /**
   * Saves the conversation with this turn, and returns it as it was saved. The turn stands at its end,
   * unless another one waits for a human by now: that one stays the last, so that it can be answered.
   *
   * @throws {StoreError} if the store failed
   * @throws {ConversationConflictError} if others were faster too often, or went on with this turn
   */
  async save(turn: readonly Message[]): Promise<Message[]> {
    for (let conflicts = 0;; conflicts++) {
      const messages = this.#joined(turn);
      try {
        await this.#put(messages);
        this.#recorded = turn;
        return [...messages];
      } catch (error) {
        if (!isConflict(error) || conflicts === MAX_CONFLICTS) throw error;
      }
      await sleep(Math.random() * Math.min(2 ** conflicts * 5, MAX_CONFLICT_WAIT_MS));
      await this.#rebase(turn);
    }
  }

  /**
   * Saves a transcript whose history was rewritten: it takes the place of what was read, or fails.
   *
   * @throws {StoreError | ConversationConflictError}
   */
  async replace(messages: readonly Message[]): Promise<Message[]> {
    // What others have said is in the store by now, and would be lost with it.
    if (this.#hasForeign) throw new ConversationConflictError(this.#id);
    await this.#put([...messages]);
    return [...messages];
  }

  /**
   * Reads what others have saved, and takes this turn's own part out of it.
   *
   * @throws {ConversationConflictError} if others have made this turn theirs: they went on with it,
   * or they know the result of a call that `turn` does not
   */
  async #rebase(turn: readonly Message[]): Promise<void> {
    const current = await this.#get();
    // Turns that read the same are not this one when others went on with them.
    const places = placesOf(this.#recorded, current);
    const mine = places.filter(({ start, end }) =>
      (current[end]?.role ?? "user") === "user" &&
      knowsResults(turn, current.slice(start, end), this.#request)
    );
    // The place that still reads as it was recorded is the one; an equal turn may have just begun.
    const own =
      mine.find(({ start, end }) => equalMessages(current.slice(start, end), this.#recorded)) ??
        mine[0];
    if (own === undefined && places.length > 0) throw new ConversationConflictError(this.#id);
    const others = own === undefined ? current : current.toSpliced(own.start, own.end - own.start);
    const { request, start } = lastTurn(others);
    const isNew = request !== undefined && request.id !== this.#request;
    const end = isNew ? start : others.length;
    const front = closedTranscript(others.slice(0, end), this.#style).messages;
    this.#hasForeign ||= isNew || !equalMessages(front, this.#front);
    this.#base = current;
    this.#front = front;
    this.#rear = others.slice(end);
  }

  /**
   * The whole transcript. Only the request of its last turn can be answered; what stands before that is
   * closed, also calls that are about to run.
   */
  #joined(turn: readonly Message[]): Message[] {
    if (this.#rear.length === 0) return [...this.#front, ...turn];
    const waits = lastTurn(turn).request !== undefined;
    const [before, last] = waits ? [this.#rear, turn] : [turn, this.#rear];
    return [...this.#front, ...closedTranscript(before, this.#style).messages, ...last];
  }

  async #get(): Promise<readonly Message[]> {
    try {
      const messages = await this.#store.get(this.#id) ?? [];
      if (isTranscript(messages)) return messages;
      throw new TypeError(`it gave no transcript: ${quote(messages)}`);
    } catch (error) {
      throw asStoreError("get", this.#id, error);
    }
  }

  async #put(messages: Message[]): Promise<void> {
    try {
      await this.#store.save(this.#id, messages, this.#base);
      this.#base = messages;
    } catch (error) {
      throw isConflict(error) ? asConflict(this.#id, error) : asStoreError("save", this.#id, error);
    }
  }
}

function isTranscript(value: unknown): value is readonly Message[] {
  return Array.isArray(value) && value.every(isMessage);
}

/** A store that tells its failures in this client's terms is not told again. */
function asStoreError(operation: "get" | "save", id: string, error: unknown): StoreError {
  return error instanceof StoreError ? error : new StoreError(operation, id, error);
}

function asConflict(id: string, error: unknown): ConversationConflictError {
  return error instanceof ConversationConflictError
    ? error
    : new ConversationConflictError(id, { cause: error });
}

/** Whether a store refused a stale write, also a store that has its own copy of this package. */
function isConflict(error: unknown): boolean {
  return error instanceof Error && (error as Partial<ToolnexusError>).code === "store_conflict";
}

/**
 * Where a turn stands in a transcript, the last place first. Others may have given results to its open
 * calls: whatever results stand between its messages or behind them belong to it.
 */
function placesOf(
  turn: readonly Message[],
  transcript: readonly Message[],
): { start: number; end: number }[] {
  const places: { start: number; end: number }[] = [];
  const own = turn.filter((message) => !hasOnlyResults(message));
  if (own.length === 0) return places;
  for (let start = transcript.length - own.length; start >= 0; start--) {
    let end = start;
    const isHere = own.every((message) => {
      while (end > start && end < transcript.length && hasOnlyResults(transcript[end]!)) end++;
      return equalJson(transcript[end++], message);
    });
    if (!isHere) continue;
    while (end < transcript.length && hasOnlyResults(transcript[end]!)) end++;
    places.push({ start, end });
  }
  return places;
}

/**
 * Whether a turn has every result that `stored` has. Those that were only made up do not count, nor
 * does the request that it has the answer to: a store can have lost the claim.
 */
function knowsResults(
  turn: readonly Message[],
  stored: readonly Message[],
  request: string | undefined,
): boolean {
  const known = turn.flatMap(resultsOf);
  const answered = stored.flatMap(resultParts)
    .find(({ pending }) => request !== undefined && objectOf(pending)?.id === request);
  return withoutRequests(stored).flatMap(resultsOf).every(({ id, content }) =>
    content === INTERRUPTED || content === NOT_EXECUTED ||
    (answered !== undefined && id === resultId(answered)) ||
    known.some((result) => result.id === id && equalJson(result.content, content))
  );
}
