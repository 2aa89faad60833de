/**
 * Conversations in Deno KV: on a laptop in a local file, on Deno Deploy, or over KV Connect.
 *
 * A conversation is a small head and chunks of JSON lines. A turn writes its new messages and the
 * head in one atomic commit, however long the conversation is; nothing is limited to the 64 KiB of
 * one value; two writers never overwrite each other, whichever machines they run on.
 *
 * @example
 * ```ts
 * import { KvConversationStore } from "@toolnexus/client/stores/kv";
 *
 * using kv = await Deno.openKv(":memory:");
 * const store = new KvConversationStore(kv, { expireIn: 30 * 24 * 3_600_000 });
 *
 * await store.save("user-7", [{ role: "user", content: "Hello" }], []);
 * const messages = await store.get("user-7") ?? [];
 * await store.save("user-7", [...messages, { role: "assistant", content: "Hi" }], messages);
 * ```
 *
 * Deno has KV behind a flag: `"unstable": ["kv"]` in `deno.json`, or `--unstable-kv`. On Node, pass
 * what `openKv` of the npm package `@deno/kv` gives.
 *
 * @module
 */

import {
  checkConversationId,
  ConversationConflictError,
  decodeMessage,
  encodeMessages,
  equalMessages,
  ToolnexusError,
} from "../mod.ts";
import type { ConversationInfo, ConversationStore, ListOptions, Message } from "../mod.ts";
import { commit, PATIENCE_MS } from "./kv_database.ts";
import type { KvDatabase, KvEntry, KvKey, KvKeyPart, KvSelector } from "./kv_database.ts";
import {
  CHUNKS_PER_COMMIT,
  decodeHead,
  encodeChunks,
  fingerprint,
  generationTime,
  idPart,
  isLive,
  Keys,
} from "./kv_layout.ts";
import type { Fingerprint, Head } from "./kv_layout.ts";
import { Rows } from "./kv_rows.ts";
import type { Addition, Draft, Place } from "./kv_rows.ts";
import { listed } from "./listing.ts";
import { checkBase, checkWhole, encodeBase, guarded, reasonOf } from "./operation.ts";
import { Turns } from "./turns.ts";

export type {
  KvAtomicOperation,
  KvCheck,
  KvDatabase,
  KvEntry,
  KvKey,
  KvKeyPart,
  KvListOptions,
  KvOutcome,
  KvSelector,
} from "./kv_database.ts";

/** Options of a {@linkcode KvConversationStore}. */
export interface KvConversationStoreOptions {
  /**
   * What the keys of this store begin with, at most 900 bytes. No other program may write below it.
   *
   * @default ["toolnexus"]
   */
  prefix?: KvKey | undefined;
  /**
   * How long a conversation lives after its last save, in whole milliseconds. Reading does not
   * prolong it. When it is over the conversation is absent, to the millisecond; its rows vanish
   * later, the last of them after twice this time.
   *
   * @default never ends
   */
  expireIn?: number | undefined;
}

/** The longest life of a conversation in milliseconds, over 3,000 years: dates and KV end somewhere. */
const MAX_EXPIRE_IN = 100_000_000_000_000;

/** Heads read at once. */
const LIST_BATCH_SIZE = 500;

/** A conversation at a place, with a hash of its messages; no hash: whatever they are. */
interface Found extends Place {
  readonly print?: Fingerprint | undefined;
}

/** What an array that a caller holds stood for when it was returned or saved. */
interface Known extends Found {
  readonly id: string;
}

/**
 * A {@linkcode ConversationStore} in Deno KV.
 *
 * `save` with a `base` writes only the messages that are new, and refuses with a
 * `ConversationConflictError` when the conversation is no longer what `base` says. A base is told by
 * identity when it is the very array that this store returned or saved; a copy of it is compared
 * with what is stored. Either way the messages before the new ones are checked against a hash of
 * what is stored: one that was changed in place is noticed, and the transcript is written anew.
 *
 * A turn costs one commit of two rows: the new messages, and a head of about 700 bytes.
 *
 * Written anew, too, are transcripts saved without a `base`, new messages of more than 720,000
 * bytes, and, once every `expireIn`, the chunks of a conversation that goes on. All of that is put
 * beside what is there, then the head is switched, then the old rows are removed: at any moment a
 * reader sees the old transcript or the new one. {@linkcode KvConversationStore.sweep} removes what
 * a crash in between has left.
 *
 * The store keeps no transcript in memory and needs no permission: it uses the database it is given.
 */
export class KvConversationStore implements ConversationStore {
  readonly #kv: KvDatabase;
  readonly #keys: Keys;
  readonly #rows: Rows;
  /** Saves and deletes of one conversation take effect in the order of the calls. */
  readonly #turns = new Turns();
  /** Small facts about the arrays that callers hold, for as long as they hold them. */
  readonly #known = new WeakMap<readonly Message[], Known>();

  /**
   * Creates a store in an open database; it never opens or closes one.
   *
   * @throws {TypeError} if `kv` is no database, `prefix` no key or `expireIn` no number
   * @throws {RangeError} if `expireIn` is no whole number from 1 to 10¹⁴
   */
  constructor(kv: KvDatabase, options: KvConversationStoreOptions = {}) {
    const isDatabase = typeof kv?.get === "function" && typeof kv.list === "function" &&
      typeof kv.atomic === "function";
    if (!isDatabase) throw new TypeError(`kv must be an open Deno.Kv: ${kv}`);
    const { prefix = ["toolnexus"], expireIn } = options;
    if (expireIn !== undefined) checkWhole("expireIn", expireIn, 1, MAX_EXPIRE_IN);
    this.#kv = kv;
    this.#keys = new Keys(prefix);
    this.#rows = new Rows(kv, this.#keys, expireIn);
  }

  /**
   * The transcript kept under `id`, as a copy of the caller's own; null when there is none.
   *
   * @throws {TypeError} if `id` is no conversation id
   * @throws {StoreError} if the database fails, or a row is not what this store writes: the error
   * names its key
   */
  async get(id: string): Promise<Message[] | null> {
    checkConversationId(id);
    return await guarded("get", id, async () => {
      const { messages, ...found } = await this.#rows.load(await idPart(id));
      if (!messages) return null;
      this.#known.set(messages, { ...found, id });
      return messages;
    });
  }

  /**
   * Keeps `messages` under `id`.
   *
   * @param base the transcript that `messages` were built on: an array that `get` returned or that
   * was saved, or an equal one; `[]` for "only if nothing is there". Absent: whatever is there is
   * overwritten, readable or not.
   * @throws {TypeError} if `id` is no conversation id, or a message holds what JSON cannot
   * @throws {ConversationConflictError} if the conversation is no longer what `base` says
   * @throws {StoreError} if the database fails; also if `base` is given and a row is damaged
   */
  async save(id: string, messages: readonly Message[], base?: readonly Message[]): Promise<void> {
    checkConversationId(id);
    checkBase(base);
    // Encoded, and in line, before the first await: the caller may go on with its arrays.
    const lines = encodeMessages(messages);
    const baseLines = base && encodeBase(base, messages, lines);
    await guarded("save", id, () =>
      this.#turns.take(id, async () => {
        const place = await this.#save(id, lines, this.#recognise(id, base), baseLines);
        if (!place) this.#known.delete(messages);
        else {
          this.#known.set(messages, { ...place, id, print: fingerprint(lines, 0, lines.length) });
        }
      }));
  }

  /**
   * Removes a conversation with all its rows, readable or not; one that is not there is no error.
   *
   * @throws {TypeError} if `id` is no conversation id
   * @throws {StoreError} if the database fails: the conversation is there as it was, or it is gone
   * and rows of it are left, which another `delete` removes, or a sweep
   */
  async delete(id: string): Promise<void> {
    checkConversationId(id);
    await guarded("delete", id, () =>
      this.#turns.take(id, async () => {
        const part = await idPart(id);
        await commit(() => this.#kv.atomic().delete(this.#keys.head(part)));
        // Without a head all of its rows are left-overs, whoever wrote them and when.
        await this.#sweep(this.#keys.chunks(part), Infinity);
      }));
  }

  /**
   * The conversations, in the order of their ids' UTF-8 bytes, read as they are asked for. Ids that a
   * key has no room for, of over 1,024 bytes when each NUL counts twice, come first.
   *
   * @param options `prefix`: only ids that begin with it; `limit`: at most so many
   * @throws {TypeError} if `prefix` is no well-formed string or `limit` no number
   * @throws {RangeError} if `limit` is no whole number from 0
   * @throws {StoreError} while it is read: if the database fails; and, after all others have been
   * listed, if a head is not what this store writes. Its `id` is the prefix
   */
  list(options: ListOptions = {}): AsyncIterableIterator<ConversationInfo> {
    return listed(options, {
      rows: (prefix) => this.#heads(prefix),
      read(entry) {
        const head = decodeHead(entry);
        if (!isLive(head)) return undefined;
        const id = head.id ?? String(entry.key.at(-1));
        return { id, updatedAt: new Date(head.updatedAt), messageCount: head.count };
      },
    });
  }

  /**
   * Removes the rows that belong to no conversation: what saves left that were killed half-way, and
   * what is left of expired conversations. Reads one or two rows a conversation. Run it now and
   * then, say once a day. It may run at any time, beside any writer: no conversation is harmed.
   *
   * @param options `graceMs`: rows younger than this are left alone, since a save may still be
   * writing them (if it is and they are removed, that save starts anew); 3_600_000 unless given
   * @returns the number of rows removed
   * @throws {TypeError | RangeError} if `graceMs` is no whole number from 0
   * @throws {ToolnexusError} `store_failed` if the database fails
   */
  async sweep(options: { graceMs?: number | undefined } = {}): Promise<number> {
    const { graceMs = 3_600_000 } = options;
    checkWhole("graceMs", graceMs, 0);
    try {
      return await this.#sweep(this.#keys.chunks(), Date.now() - graceMs);
    } catch (cause) {
      throw new ToolnexusError("store_failed", `store sweep failed: ${reasonOf(cause)}`, { cause });
    }
  }

  /** Removes the chunks below a prefix that no head names, of generations begun by `latest`. */
  async #sweep(prefix: KvKey, latest: number): Promise<number> {
    const chunks = this.#keys.chunks();
    let selector: KvSelector = { prefix };
    let removed = 0;
    for (;;) {
      const first = await this.#firstRow(selector);
      if (!first) return removed;
      const [part, generation, low] = first.key.slice(chunks.length) as [KvKeyPart, string, number];
      // Behind all rows of this generation: booleans come after numbers.
      const next = { prefix, start: [...chunks, part, generation, true] };
      if (typeof low !== "number" || !(generationTime(generation) <= latest)) {
        selector = next;
        continue;
      }

      const entry = await this.#kv.get(this.#keys.head(part));
      const head = readableHead(entry);
      const isUnreadable = !head && entry.versionstamp !== null;
      if (isUnreadable || (isLive(head) && head.generation === generation)) {
        selector = next;
        continue;
      }
      const last = await this.#firstRow({ prefix: [...chunks, part, generation] }, true);
      const end = Number(last?.key.at(-1) ?? low) + 1;
      // With an expired head goes the last chance that a writer adds to these rows; a writer that is
      // still staging them, and so has none yet, looks for the first of them when it is done.
      const { ok } = await commit(() => {
        const operation = this.#kv.atomic()
          .check({ key: entry.key as KvKey, versionstamp: entry.versionstamp })
          .delete(this.#keys.chunk(part, generation, low));
        return head && !isLive(head) ? operation.delete(this.#keys.head(part)) : operation;
      });
      // Refused, it is looked at again: the head is another one, or the answer was lost.
      if (!ok) continue;
      await this.#rows.remove(part, generation, low + 1, end);
      removed += end - low;
      selector = next;
    }
  }

  async #save(
    id: string,
    lines: readonly string[],
    recognised: Found | undefined,
    base: readonly string[] | undefined,
  ): Promise<Place | undefined> {
    const part = await idPart(id);
    const deadline = Date.now() + PATIENCE_MS;
    let found = recognised ?? await this.#find(id, part, base);
    let draft: Draft | undefined;
    try {
      for (;;) {
        const addition = this.#addition(found, lines);
        const written = addition
          ? await this.#rows.append(part, id, addition)
          : await this.#rows.replace(part, id, found, draft ??= this.#rows.draft(lines));
        if (written.isDone) {
          if (!addition) draft = undefined;
          return written.place;
        }
        if (Date.now() > deadline) throw new ConversationConflictError(id);

        const { versionstamp } = found;
        found = await this.#find(id, part, base);
        if (draft && found.versionstamp === versionstamp) {
          // The head is the same, so what the commit missed are staged rows: a sweep took them.
          await this.#rows.discard(part, draft);
          draft = undefined;
        }
      }
    } finally {
      if (draft) await this.#rows.discard(part, draft);
    }
  }

  /** The place that a base stands for by identity. */
  #recognise(id: string, base: readonly Message[] | undefined): Found | undefined {
    const known = base && this.#known.get(base);
    return known?.id === id && isLive(known.head) ? known : undefined;
  }

  /** The place of a conversation that is what `base` says. */
  async #find(id: string, part: KvKeyPart, base: readonly string[] | undefined): Promise<Found> {
    if (!base) {
      const entry = await this.#kv.get(this.#keys.head(part));
      // What cannot be read is overwritten like anything else.
      return { versionstamp: entry.versionstamp, head: readableHead(entry) };
    }
    const { messages = [], ...found } = await this.#rows.load(part);
    if (!equalMessages(messages, base.map(decodeMessage))) throw new ConversationConflictError(id);
    return found;
  }

  /** What is new; undefined where the transcript has to be written anew. */
  #addition({ versionstamp, head, print }: Found, lines: readonly string[]): Addition | undefined {
    if (!print || !isLive(head) || !this.#rows.canExtend(head)) return undefined;
    if (head.count > lines.length) return undefined;
    const kept = fingerprint(lines, 0, head.count);
    if (kept[0] !== print[0] || kept[1] !== print[1]) return undefined;
    const chunks = encodeChunks(lines.slice(head.count));
    if (chunks.length > CHUNKS_PER_COMMIT) return undefined;
    return { versionstamp, head, count: lines.length - head.count, chunks };
  }

  /** The heads of the conversations whose ids may begin so. */
  async *#heads(prefix: string): AsyncGenerator<KvEntry> {
    const heads = this.#keys.heads();
    // A key has room for the beginning of any prefix; ids known by their digest come before texts.
    const start = [...prefix].slice(0, 100).join("");
    const selectors: KvSelector[] = start === "" ? [{ prefix: heads }] : [
      { prefix: heads, end: [...heads, ""] },
      { prefix: heads, start: [...heads, start] },
    ];
    for (const selector of selectors) {
      for await (const entry of this.#kv.list(selector, { batchSize: LIST_BATCH_SIZE })) {
        const part = entry.key[heads.length];
        if (typeof part === "string" && !part.startsWith(start)) break;
        // Longer keys are those of a store whose prefix ends in "head".
        if (entry.key.length === heads.length + 1) yield entry;
      }
    }
  }

  async #firstRow(selector: KvSelector, reverse = false): Promise<KvEntry | undefined> {
    for await (const row of this.#kv.list(selector, { limit: 1, reverse })) return row;
    return undefined;
  }
}

/** The head of an entry, where there is one that can be read. */
function readableHead(entry: KvEntry): Head | undefined {
  try {
    return decodeHead(entry);
  } catch {
    return undefined;
  }
}
