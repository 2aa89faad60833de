/**
 * Conversations in memory.
 *
 * @module
 */

import { count } from "./checks.ts";
import { ConversationConflictError, quote } from "./errors.ts";
import { checkConversationId, cloneJson, copyMessages, equalMessages } from "./messages.ts";
import type { ConversationInfo, ConversationStore, ListOptions, Message } from "./types.ts";

/**
 * The default store: it keeps conversations as long as the process lives. It copies what it is given
 * and what it gives, so nobody can change a conversation by reference.
 *
 * @example
 * ```ts
 * import { InMemoryConversationStore } from "@toolnexus/client";
 * import { assertEquals } from "@std/assert";
 *
 * const store = new InMemoryConversationStore();
 * await store.save("thread-1", [{ role: "user", content: "hello" }]);
 * assertEquals((await store.get("thread-1"))?.length, 1);
 * ```
 */
export class InMemoryConversationStore implements ConversationStore {
  readonly #conversations = new Map<string, { messages: readonly Message[]; updatedAt: number }>();

  /** A copy of the transcript kept under `id`; undefined if there is none. */
  // deno-lint-ignore require-await -- as with every other store, what is wrong is a rejection
  async get(id: string): Promise<Message[] | undefined> {
    checkConversationId(id);
    const kept = this.#conversations.get(id);
    return kept && kept.messages.map(cloneJson);
  }

  /**
   * Keeps a copy of `messages` under `id`.
   *
   * @throws {ConversationConflictError} if `base` is given and is not what is kept
   * @throws {TypeError} if a message is not JSON
   */
  // deno-lint-ignore require-await
  async save(id: string, messages: readonly Message[], base?: readonly Message[]): Promise<void> {
    checkConversationId(id);
    const kept = this.#conversations.get(id)?.messages;
    let isAppend = false;
    if (base !== undefined) {
      if (!equalMessages(kept ?? [], base)) throw new ConversationConflictError(id);
      isAppend = messages.length >= base.length &&
        base.every((message, index) => messages[index] === message);
    }
    const copy = isAppend && kept !== undefined
      ? [...kept, ...copyMessages(messages, kept.length)]
      : copyMessages(messages);
    this.#conversations.set(id, { messages: copy, updatedAt: Date.now() });
  }

  /** Forgets a conversation; whether there was one. */
  // deno-lint-ignore require-await
  async delete(id: string): Promise<boolean> {
    checkConversationId(id);
    return this.#conversations.delete(id);
  }

  /**
   * Tells of the conversations, by id.
   *
   * @throws {TypeError | RangeError} at once, if an option is wrong
   */
  list(options: ListOptions = {}): AsyncGenerator<ConversationInfo> {
    const { prefix = "" } = options;
    if (typeof prefix !== "string" || !prefix.isWellFormed()) {
      throw new TypeError(`prefix must be a well-formed string: ${quote(prefix)}`);
    }
    return this.#listed(prefix, count("limit", options.limit, 0, Number.MAX_SAFE_INTEGER));
  }

  async *#listed(prefix: string, limit: number): AsyncGenerator<ConversationInfo> {
    const ids = [...this.#conversations.keys()].filter((id) => id.startsWith(prefix)).sort();
    for (const id of ids.slice(0, limit)) {
      const kept = this.#conversations.get(id);
      if (kept === undefined) continue;
      yield { id, updatedAt: new Date(kept.updatedAt), messageCount: kept.messages.length };
    }
  }
}
