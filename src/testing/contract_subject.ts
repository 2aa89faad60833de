/**
 * A store on trial: the questions that the contract's cases put to it. A wrong answer is an error
 * that says what the store did.
 *
 * @module
 */

import {
  type Awaitable,
  ConversationConflictError,
  type ConversationInfo,
  type ConversationStore,
  equalMessages,
  type ListOptions,
  type Message,
} from "../../mod.ts";

/** What a store may offer beyond `get` and `save`. */
export type StoreAbility =
  /** It honours the `base` of a save. */
  | "base"
  /** It has `delete(id)`. */
  | "delete"
  /** It has `list({ prefix?, limit? })`. */
  | "list"
  /** It can be opened a second time over the same data. */
  | "reopen";

/** A store with whatever optional methods it has. */
export interface StoreUnderTest extends ConversationStore {
  /** Forgets a conversation. */
  delete?(id: string): Awaitable<unknown>;
  /** Names the conversations. */
  list?(options?: ListOptions): AsyncIterable<ConversationInfo>;
}

/** One case of the contract. */
export interface Case {
  name: string;
  /** The abilities without which there is nothing to try. */
  needs?: readonly StoreAbility[];
  /** The option of the contract that leaves this case out when it is false. */
  expects?: "copies" | "validates";
  run(subject: Subject): Promise<void>;
}

/** The store of one case. */
export class Subject {
  readonly store: StoreUnderTest;
  /** What the store offers. */
  readonly abilities: ReadonlySet<StoreAbility>;
  readonly #reopen: (() => Awaitable<StoreUnderTest>) | undefined;

  constructor(
    store: StoreUnderTest,
    abilities: ReadonlySet<StoreAbility>,
    reopen?: (() => Awaitable<StoreUnderTest>) | undefined,
  ) {
    this.store = store;
    this.abilities = abilities;
    this.#reopen = reopen;
  }

  /** A second handle on the same data. */
  async reopen(): Promise<Subject> {
    if (this.#reopen === undefined) throw new Error("the store cannot be opened again");
    return new Subject(await this.#reopen(), this.abilities, this.#reopen);
  }

  async get(id: string): Promise<readonly Message[] | null | undefined> {
    return await this.store.get(id);
  }

  async save(id: string, messages: readonly Message[], base?: readonly Message[]): Promise<void> {
    if (base === undefined) await this.store.save(id, messages);
    else await this.store.save(id, messages, base);
  }

  async delete(id: string): Promise<void> {
    if (this.store.delete === undefined) throw new Error("the store has no delete()");
    await this.store.delete(id);
  }

  /** What `list` shows, by id; an id that it shows twice is an error. */
  async list(options?: ListOptions): Promise<Map<string, ConversationInfo>> {
    if (this.store.list === undefined) throw new Error("the store has no list()");
    const listed = new Map<string, ConversationInfo>();
    for await (const conversation of this.store.list(options)) {
      check(!listed.has(conversation.id), `list() showed ${show(conversation.id)} twice`);
      listed.set(conversation.id, conversation);
    }
    return listed;
  }

  /** The store must hold exactly this. */
  async holds(id: string, expected: readonly Message[], when: string): Promise<void> {
    const found = await this.get(id);
    if (found === null || found === undefined) {
      throw new Error(`get(${show(id)}) returned ${found} ${when}`);
    }
    const difference = differenceOf(expected, found);
    check(difference === undefined, `get(${show(id)}) is wrong ${when}: ${difference}`);
  }

  /** The store must hold nothing. */
  async knowsNothingOf(id: string, when: string): Promise<void> {
    const found = await this.get(id);
    check(
      found === null || found === undefined,
      `get(${show(id)}) returned ${show(found)} instead of null or undefined ${when}`,
    );
  }

  /** A save must be refused as stale, and change nothing. */
  async conflicts(
    id: string,
    messages: readonly Message[],
    base: readonly Message[],
    when: string,
  ): Promise<void> {
    const before = await this.get(id);
    const error = await errorOf(() => this.save(id, messages, base));
    check(error !== undefined, `save(${show(id)}, …, base) overwrote ${when}`);
    check(
      error instanceof ConversationConflictError,
      `save(${show(id)}, …, base) failed with ${
        show(error)
      } instead of a ConversationConflictError ${when}`,
    );
    if (before === null || before === undefined) await this.knowsNothingOf(id, `after a conflict`);
    else await this.holds(id, before, "after a conflict");
  }
}

/** An action must fail with a `TypeError`. */
export async function refuses(what: string, action: () => Awaitable<unknown>): Promise<void> {
  const error = await errorOf(action);
  check(error !== undefined, `${what} was accepted instead of a TypeError`);
  check(error instanceof TypeError, `${what} failed with ${show(error)} instead of a TypeError`);
}

/** What an action failed with; undefined if it did not. */
export async function errorOf(action: () => Awaitable<unknown>): Promise<unknown> {
  try {
    await action();
    return undefined;
  } catch (error) {
    return error ?? new Error(`${error} was thrown`);
  }
}

/** Lets all else go on. A loop that waits for others must do it, since a store may answer at once. */
export function turnOfOthers(): Promise<void> {
  return new Promise((resolve) => void setImmediate(resolve));
}

/** Waits, where a clock must have moved on. */
export function pause(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}

/** Throws unless a condition holds. */
export function check(condition: boolean, message: string): asserts condition {
  if (!condition) throw new Error(message);
}

/** A value, short, for an error message. */
export function show(value: unknown): string {
  let text: string | undefined;
  if (value instanceof Error) text = `${value.name}: ${value.message}`;
  else if (value instanceof Date) text = `Date ${value.getTime()}`;
  else {
    try {
      text = JSON.stringify(value);
    } catch { /* shown by its type */ }
  }
  text ??= String(value);
  return text.length > 120 ? `${text.slice(0, 80)}… (${text.length} characters)` : text;
}

/** The first difference of two transcripts; undefined if there is none. */
export function differenceOf(expected: readonly Message[], found: unknown): string | undefined {
  if (!Array.isArray(found)) return `it is ${show(found)}, no array`;
  const length = Math.min(expected.length, found.length);
  for (let index = 0; index < length; index++) {
    if (!equalMessages(expected.slice(index, index + 1), found.slice(index, index + 1))) {
      return `message ${index} should be ${show(expected[index])} and is ${show(found[index])}`;
    }
  }
  if (expected.length === found.length) return undefined;
  return `it has ${found.length} messages instead of ${expected.length}`;
}

/** A message from the user. */
export function user(text: string): Message {
  return { role: "user", content: text };
}

/** A message from the assistant. */
export function assistant(text: string): Message {
  return { role: "assistant", content: text };
}

/** A transcript of whole turns that all carry a name, so that mixtures show. */
export function conversation(name: string, turns: number): Message[] {
  return Array.from({ length: turns }, (_, turn) => [
    user(`${name} question ${turn}`),
    assistant(`${name} answer ${turn}`),
  ]).flat();
}
