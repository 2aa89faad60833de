/**
 * How a conversation is read from its rows and written to them: the protocol that makes a reader see
 * the old transcript or the new one, and a writer lose to whoever was faster.
 *
 * @module
 */

import type { Message } from "../mod.ts";
import { commit, PATIENCE_MS } from "./kv_database.ts";
import type { KvAtomicOperation, KvDatabase, KvEntry, KvKeyPart } from "./kv_database.ts";
import {
  addWrite,
  CHUNKS_PER_COMMIT,
  decodeChunks,
  decodeHead,
  encodeChunks,
  encodeHead,
  isLive,
  newGeneration,
  newWriteId,
  NO_LINES,
  Unreadable,
} from "./kv_layout.ts";
import type { Fingerprint, Head, Keys } from "./kv_layout.ts";

/** What chunks live longer than the head they belong to, at least, in milliseconds. */
const CHUNK_MARGIN_MS = 60_000;

/** Rows removed in one commit: KV counts 819,200 bytes of keys, and a key has 2,048 at most. */
const REMOVALS_PER_COMMIT = 100;

/** The largest batch of a list that Deno documents. */
const BATCH_SIZE = 500;

/** A head as it was found, with the version of its row; neither where there is none. */
export interface Place {
  readonly versionstamp: string | null;
  readonly head: Head | undefined;
}

/** What is added to a conversation: chunks that hold `count` messages. */
export interface Addition extends Place {
  readonly head: Head;
  readonly count: number;
  readonly chunks: readonly Uint8Array[];
}

/** A whole transcript on its way into the database, under a generation of its own. */
export interface Draft {
  readonly generation: string;
  readonly chunks: readonly Uint8Array[];
  /** The number of messages. */
  readonly count: number;
  /** When its first chunk may vanish. */
  readonly chunksExpireAt: number | undefined;
  /** How many of the chunks are in the database, where nobody sees them yet. */
  staged: number;
  /** The version of the first of those. */
  stamp: string | undefined;
  /** Whether a commit was begun that would make it the conversation, and its end is not known. */
  isDoubtful: boolean;
}

/** What a save commits along with the head. */
interface Write {
  readonly generation: string;
  /** The index of the first chunk. */
  readonly index: number;
  readonly chunks: readonly Uint8Array[];
  /** The number of messages and of bytes of the whole conversation, after this write. */
  readonly count: number;
  readonly bytes: number;
  readonly chunksExpireAt: number | undefined;
  /** The version of the generation's first chunk, if that has to be there already. */
  readonly stamp?: string | undefined;
}

/** How a save ended: done, or refused because someone else was faster. */
export interface Written {
  readonly isDone: boolean;
  /** Where the conversation stands now, unless it was written again since. */
  readonly place?: Place | undefined;
}

/** The rows of one store. */
export class Rows {
  readonly #kv: KvDatabase;
  readonly #keys: Keys;
  readonly #expireIn: number | undefined;
  readonly #chunkExpireIn: number | undefined;

  constructor(kv: KvDatabase, keys: Keys, expireIn: number | undefined) {
    this.#kv = kv;
    this.#keys = keys;
    this.#expireIn = expireIn;
    this.#chunkExpireIn = expireIn && 2 * expireIn + CHUNK_MARGIN_MS;
  }

  /** Reads the head of a conversation. */
  async place(part: KvKeyPart): Promise<Place> {
    const entry = await this.#kv.get(this.#keys.head(part));
    return { versionstamp: entry.versionstamp, head: decodeHead(entry) };
  }

  /** Reads a conversation; without messages where there is none. */
  async load(part: KvKeyPart): Promise<Place & { messages?: Message[]; print: Fingerprint }> {
    const deadline = Date.now() + PATIENCE_MS;
    let place = await this.place(part);
    for (;;) {
      const { head } = place;
      if (!isLive(head)) return { ...place, print: NO_LINES };
      const keyOf = (index: number) => this.#keys.chunk(part, head.generation, index);
      try {
        const rows: KvEntry[] = [];
        if (head.chunks > 0) {
          const range = { start: keyOf(0), end: keyOf(head.chunks) };
          const list = this.#kv.list(range, { limit: head.chunks, batchSize: BATCH_SIZE });
          for await (const row of list) rows.push(row);
        }
        return { ...place, ...decodeChunks(head, rows, keyOf) };
      } catch (error) {
        if (!(error instanceof Unreadable)) throw error;
        // Rows of a generation do not change; they vanish once the head names another one.
        const now = await this.place(part);
        if (now.versionstamp === place.versionstamp || Date.now() > deadline) throw error;
        place = now;
      }
    }
  }

  /**
   * Whether the chunks of a head live long enough for a head that is written now, and no longer than
   * a chunk that is written now: the head tells when the first of them may vanish.
   */
  canExtend(head: Head): boolean {
    if (head.chunks === 0) return false;
    const left = (head.chunksExpireAt ?? Infinity) - Date.now();
    return left >= (this.#expireIn ?? Infinity) + CHUNK_MARGIN_MS &&
      left <= (this.#chunkExpireIn ?? Infinity);
  }

  /** Adds messages to a conversation, if it is still at this place. */
  append(part: KvKeyPart, id: string, addition: Addition): Promise<Written> {
    const { head, chunks, count } = addition;
    return this.#commit(part, id, addition, {
      generation: head.generation,
      index: head.chunks,
      chunks,
      count: head.count + count,
      bytes: head.bytes + byteLength(chunks),
      chunksExpireAt: head.chunksExpireAt,
    });
  }

  /** Begins to write a whole transcript. */
  draft(lines: readonly string[]): Draft {
    const ttl = this.#chunkExpireIn;
    return {
      generation: newGeneration(),
      chunks: encodeChunks(lines),
      count: lines.length,
      chunksExpireAt: ttl && Date.now() + ttl,
      staged: 0,
      stamp: undefined,
      isDoubtful: false,
    };
  }

  /** Puts a draft in the place of a conversation, if that is still at this place. */
  async replace(part: KvKeyPart, id: string, place: Place, draft: Draft): Promise<Written> {
    const { generation, chunks, count, chunksExpireAt } = draft;
    while (chunks.length - draft.staged > CHUNKS_PER_COMMIT) {
      const batch = chunks.slice(draft.staged, draft.staged + CHUNKS_PER_COMMIT);
      const outcome = await commit(() =>
        this.#setChunks(this.#kv.atomic(), part, generation, draft.staged, batch)
      );
      if (outcome.ok) draft.stamp ??= outcome.versionstamp;
      draft.staged += batch.length;
    }
    draft.isDoubtful = true;
    const written = await this.#commit(part, id, place, {
      generation,
      index: draft.staged,
      chunks: chunks.slice(draft.staged),
      count,
      bytes: byteLength(chunks),
      chunksExpireAt,
      stamp: draft.stamp,
    });
    draft.isDoubtful = false;
    // What cannot be removed now is left for a sweep: the save is done.
    const old = place.head;
    if (written.isDone && old) {
      await this.remove(part, old.generation, 0, old.chunks).catch(() => {});
    }
    return written;
  }

  /** Takes back what was staged of a draft that became nothing. */
  async discard(part: KvKeyPart, draft: Draft): Promise<void> {
    if (draft.isDoubtful) return;
    await this.remove(part, draft.generation, 0, draft.staged).catch(() => {});
  }

  /** Removes the chunks `start` to `end` of a generation that belongs to no head. */
  async remove(part: KvKeyPart, generation: string, start: number, end: number): Promise<void> {
    for (let from = start; from < end; from += REMOVALS_PER_COMMIT) {
      await commit(() => {
        let operation = this.#kv.atomic();
        for (let index = from; index < Math.min(end, from + REMOVALS_PER_COMMIT); index++) {
          operation = operation.delete(this.#keys.chunk(part, generation, index));
        }
        return operation;
      });
    }
  }

  /**
   * Commits a save: its chunks first, then the head, since KV in a local file keeps the mutations
   * before one that fails. Where the answer is a refusal or is lost, the head tells by its list of
   * writes whether the save was done: clients of KV Connect repeat a request whose answer they did
   * not get, and are refused by the very write that they made.
   */
  async #commit(
    part: KvKeyPart,
    id: string,
    place: Place,
    write: Write,
  ): Promise<Written> {
    const { generation, index, chunks, count, bytes, chunksExpireAt, stamp } = write;
    const key = this.#keys.head(part);
    const writeId = newWriteId();
    const now = Date.now();
    const head: Head = {
      format: 1,
      version: (place.head?.version ?? 0) + 1,
      generation,
      chunks: index + chunks.length,
      count,
      bytes,
      updatedAt: now,
      ...(this.#expireIn !== undefined && { expiresAt: now + this.#expireIn }),
      ...(chunksExpireAt !== undefined && { chunksExpireAt }),
      writes: addWrite(place.head?.writes, writeId),
      ...(part !== id && { id }),
    };
    const build = () => {
      let operation = this.#kv.atomic().check({ key, versionstamp: place.versionstamp });
      if (stamp !== undefined) {
        // A sweep may have taken the staged rows away, the first one first.
        const first = this.#keys.chunk(part, generation, 0);
        operation = operation.check({ key: first, versionstamp: stamp });
      }
      operation = this.#setChunks(operation, part, generation, index, chunks);
      return operation.set(key, encodeHead(head), expiry(this.#expireIn));
    };
    let lost: { error: unknown } | undefined;
    try {
      const outcome = await commit(build);
      if (outcome.ok) return { isDone: true, place: { versionstamp: outcome.versionstamp, head } };
    } catch (error) {
      lost = { error };
    }
    const found = await this.place(part).catch((error: unknown) => {
      throw lost ? lost.error : error;
    });
    if (found.head?.writes.includes(writeId)) {
      return { isDone: true, place: found.head.writes.endsWith(writeId) ? found : undefined };
    }
    if (lost) throw lost.error;
    return { isDone: false };
  }

  #setChunks(
    operation: KvAtomicOperation,
    part: KvKeyPart,
    generation: string,
    index: number,
    chunks: readonly Uint8Array[],
  ): KvAtomicOperation {
    return chunks.reduce(
      (built, chunk, offset) =>
        built.set(
          this.#keys.chunk(part, generation, index + offset),
          chunk,
          expiry(this.#chunkExpireIn),
        ),
      operation,
    );
  }
}

function expiry(expireIn: number | undefined): { expireIn?: number } {
  return expireIn === undefined ? {} : { expireIn };
}

function byteLength(chunks: readonly Uint8Array[]): number {
  return chunks.reduce((sum, chunk) => sum + chunk.length, 0);
}
