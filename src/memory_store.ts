/**
 * Conversations in memory.
 *
 * @module
 */

import { wholeNumber } from "./checks.ts";
import { ConversationConflictError, quote } from "./errors.ts";
import { checkConversationId } from "./conversation_id.ts";
import { cloneJson } from "./json_copy.ts";
import { copyMessages, equalMessages } from "./messages.ts";
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

  /**
   * The transcript kept under `id`, as a copy of the caller's own; null when there is none.
   *
   * @throws {TypeError} if `id` is no conversation id
   */
  // deno-lint-ignore require-await -- as with every other store, what is wrong is a rejection
  async get(id: string): Promise<Message[] | null> {
    checkConversationId(id);
    return this.#conversations.get(id)?.messages.map(cloneJson) ?? null;
  }

  /**
   * Keeps a copy of `messages` under `id`.
   *
   * @param base the transcript that `messages` were built on: what `get` returned, what was last
   * saved, or an equal copy; `[]` for "only if nothing is there". Absent: whatever is there is
   * overwritten.
   * @throws {TypeError} if `id` is no conversation id, or a message holds what JSON cannot
   * @throws {ConversationConflictError} if the conversation is no longer what `base` says
   */
  // deno-lint-ignore require-await
  async save(id: string, messages: readonly Message[], base?: readonly Message[]): Promise<void> {
    checkConversationId(id);
    const kept = this.#conversations.get(id)?.messages;
    let isAppend = false;
    if (base !== undefined) {
      if (!Array.isArray(base)) throw new TypeError(`base must be an array: ${quote(base)}`);
      if (!equalMessages(kept ?? [], base)) throw new ConversationConflictError(id);
      isAppend = messages.length >= base.length &&
        base.every((message, index) => messages[index] === message);
    }
    const copy = isAppend && kept !== undefined
      ? [...kept, ...copyMessages(messages, kept.length)]
      : copyMessages(messages);
    this.#conversations.set(id, { messages: copy, updatedAt: Date.now() });
  }

  /**
   * Removes the conversation; one that is not there is no error.
   *
   * @throws {TypeError} if `id` is no conversation id
   */
  // deno-lint-ignore require-await
  async delete(id: string): Promise<void> {
    checkConversationId(id);
    this.#conversations.delete(id);
  }

  /**
   * The conversations, in the order of their ids' UTF-16 units.
   *
   * @param options `prefix`: only ids that begin with it; `limit`: at most so many
   * @throws {TypeError} if `prefix` is no well-formed string or `limit` no number
   * @throws {RangeError} if `limit` is no whole number from 0
   */
  list(options: ListOptions = {}): AsyncGenerator<ConversationInfo> {
    const { prefix = "" } = options;
    if (typeof prefix !== "string" || !prefix.isWellFormed()) {
      throw new TypeError(`prefix must be a well-formed string: ${quote(prefix)}`);
    }
    return this.#listed(prefix, wholeNumber("limit", options.limit, 0, Number.MAX_SAFE_INTEGER));
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
