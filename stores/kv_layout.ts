/**
 * What the rows of the KV store look like: keys, the head, and chunks of JSON lines.
 *
 * @module
 */

import { decodeMessage } from "../mod.ts";
import type { Message } from "../mod.ts";
import type { KvEntry, KvKey, KvKeyPart } from "./kv_database.ts";

/** The largest chunk in bytes; KV takes values of 65,536 bytes. */
const CHUNK_BYTES = 60_000;

/**
 * The most chunks in one commit: 720,000 bytes. With twelve keys of 2,048 bytes, each counted twice,
 * and the head that stays below the 819,200 bytes that KV takes.
 */
export const CHUNKS_PER_COMMIT = 12;

/** How many of the last writes a head names. */
const WRITES_KEPT = 64;
const WRITE_ID_LENGTH = 8;

/** What an id of 1,024 bytes without a NUL makes of a key, in bytes as KV writes them. */
const MAX_ID_PART_BYTES = 1026;

/** What is left of KV's 2,048 bytes a key by an id, a generation, an index and the table's name. */
const MAX_PREFIX_BYTES = 900;

const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { fatal: true });

/** The row that says what a conversation is; without it there is none. */
export interface Head {
  /** The layout of these rows. */
  readonly format: 1;
  /** The number of saves. */
  readonly version: number;
  /** Names the chunks that belong to this head. */
  readonly generation: string;
  /** The number of chunks. */
  readonly chunks: number;
  /** The number of messages. */
  readonly count: number;
  /** The size of all chunks together. */
  readonly bytes: number;
  /** When it was saved, in milliseconds since 1970. */
  readonly updatedAt: number;
  /** When the conversation ends, in milliseconds since 1970; absent: never. */
  readonly expiresAt?: number;
  /** When its first chunk may vanish, in milliseconds since 1970; absent: never. */
  readonly chunksExpireAt?: number;
  /** The ids of the last writes, oldest first, with blanks between them. */
  readonly writes: string;
  /** The conversation's id, where the key holds but its digest. */
  readonly id?: string;
}

/** Rows that are not what they should be: torn by a writer, if the head has changed, else corrupt. */
export class Unreadable extends Error {}

/** The keys of one store. */
export class Keys {
  readonly #prefix: KvKey;

  /** @throws {TypeError} if the prefix is no key, or too long */
  constructor(prefix: KvKey) {
    if (!Array.isArray(prefix)) throw new TypeError(`prefix must be an array: ${prefix}`);
    const bytes = prefix.reduce<number>((sum, part) => sum + partBytes(part), 0);
    if (bytes > MAX_PREFIX_BYTES) {
      throw new TypeError(`prefix takes ${bytes} bytes, of which ${MAX_PREFIX_BYTES} are allowed`);
    }
    this.#prefix = [...prefix];
  }

  /** The prefix of all heads; the part after it names the conversation. */
  heads(): KvKey {
    return [...this.#prefix, "head"];
  }

  /** The prefix of all chunks, or of those of a conversation; then come generation and index. */
  chunks(part?: KvKeyPart): KvKey {
    const all = [...this.#prefix, "chunk"];
    return part === undefined ? all : [...all, part];
  }

  /** The key of a head. */
  head(part: KvKeyPart): KvKey {
    return [...this.#prefix, "head", part];
  }

  /** The key of a chunk. */
  chunk(part: KvKeyPart, generation: string, index: number): KvKey {
    return [...this.#prefix, "chunk", part, generation, index];
  }
}

/**
 * The part of a key that stands for a conversation: its id as it is. KV writes each NUL of a text as
 * two bytes, and on Node a key is read back without a byte order mark at its start: an id that grows
 * too long, or begins so, is known by its digest, which is no text and so the name of no other
 * conversation.
 */
export async function idPart(id: string): Promise<string | Uint8Array> {
  const isTooLong = id.includes("\0") && partBytes(id) > MAX_ID_PART_BYTES;
  if (!isTooLong && !id.startsWith("\ufeff")) return id;
  return new Uint8Array(await crypto.subtle.digest("SHA-256", encoder.encode(id)));
}

/** A key as a text for error messages. */
function keyText(key: readonly unknown[]): string {
  const parts = key.map((part) => {
    if (part instanceof Uint8Array) return `<${part.length} bytes>`;
    const text = typeof part === "string" ? JSON.stringify(part) : String(part);
    return text.length > 100 ? text.slice(0, 99) + "…" : text;
  });
  return `[${parts.join(", ")}]`;
}

/** The bytes of a head. */
export function encodeHead(head: Head): Uint8Array {
  return encoder.encode(JSON.stringify(head));
}

/** Reads a head; undefined where there is none. */
export function decodeHead(entry: KvEntry): Head | undefined {
  if (entry.versionstamp === null) return undefined;
  let head: Partial<Head>;
  try {
    head = JSON.parse(decoder.decode(bytesOf(entry))) ?? {};
  } catch (cause) {
    if (cause instanceof Unreadable) throw cause;
    throw new Unreadable(`head ${keyText(entry.key)} is not JSON`, { cause });
  }
  if (head.format !== 1) {
    throw new Unreadable(`head ${keyText(entry.key)} has the unknown format ${head.format}`);
  }
  const numbers = [head.version, head.chunks, head.count, head.bytes, head.updatedAt];
  const dates = [head.expiresAt, head.chunksExpireAt].filter((date) => date !== undefined);
  const isWhole = [...numbers, ...dates].every((value) => Number.isSafeInteger(value)) &&
    [head.generation, head.writes, head.id ?? ""].every((value) => typeof value === "string");
  if (!isWhole) throw new Unreadable(`head ${keyText(entry.key)} is incomplete`);
  return head as Head;
}

/** Whether there is a conversation: an expired one is none, though its rows may still be there. */
export function isLive(head: Head | undefined): head is Head {
  return head !== undefined && (head.expiresAt === undefined || head.expiresAt > Date.now());
}

/** A new id of a write. */
export function newWriteId(): string {
  return randomText(WRITE_ID_LENGTH);
}

/** The ids of the last writes with one more. */
export function addWrite(writes: string | undefined, id: string): string {
  return (writes ? `${writes} ${id}` : id).slice(-(WRITE_ID_LENGTH + 1) * WRITES_KEPT + 1);
}

/** A new name of a generation: the time first, so that `sweep` can tell how old it is. */
export function newGeneration(): string {
  return Date.now().toString(36).padStart(9, "0") + randomText(WRITE_ID_LENGTH);
}

/** When a generation was begun, in milliseconds since 1970; NaN if that is no generation's name. */
export function generationTime(generation: unknown): number {
  const isName = typeof generation === "string" && /^[0-9a-z]{17}$/.test(generation);
  return isName ? parseInt(generation.slice(0, 9), 36) : NaN;
}

/** Messages as chunks: their JSON texts, a line each, cut without regard to where a message ends. */
export function encodeChunks(lines: readonly string[]): Uint8Array[] {
  const bytes = encoder.encode(lines.map((line) => line + "\n").join(""));
  const chunks: Uint8Array[] = [];
  for (let start = 0; start < bytes.length; start += CHUNK_BYTES) {
    chunks.push(bytes.slice(start, start + CHUNK_BYTES));
  }
  return chunks;
}

/**
 * Reads the messages of a conversation from its chunks.
 *
 * @throws {Unreadable} if a chunk is missing or holds something else; the error names its key
 */
export function decodeChunks(
  head: Head,
  rows: readonly KvEntry[],
  keyOf: (index: number) => KvKey,
): { messages: Message[]; print: Fingerprint } {
  const chunks: Uint8Array[] = [];
  for (let index = 0; index < head.chunks; index++) {
    const row = rows[index];
    if (row?.key.at(-1) !== index) {
      throw new Unreadable(`chunk ${keyText(keyOf(index))} is missing`);
    }
    chunks.push(bytesOf(row));
  }
  const all = join(chunks);
  const place = (offset: number): string => {
    let index = 0;
    for (let end = 0; index < chunks.length - 1; index++) {
      end += chunks[index]?.length ?? 0;
      if (end > offset) break;
    }
    return `chunk ${keyText(keyOf(index))}`;
  };
  if (all.length !== head.bytes) {
    const what = `${head.chunks} chunks hold ${all.length} bytes in place of ${head.bytes}`;
    throw new Unreadable(`${what}, up to ${place(all.length)}`);
  }
  const messages: Message[] = [];
  let print = NO_LINES;
  for (let start = 0; start < all.length;) {
    const end = all.indexOf(NEWLINE, start);
    if (end < 0) throw new Unreadable(`${place(start)} ends inside a message`);
    try {
      const line = decoder.decode(all.subarray(start, end));
      messages.push(decodeMessage(line));
      print = fingerprint([line], 0, 1, print);
    } catch (cause) {
      throw new Unreadable(`no message at byte ${start}, in ${place(start)}`, { cause });
    }
    start = end + 1;
  }
  if (messages.length !== head.count) {
    const what = `${messages.length} messages in place of ${head.count}`;
    throw new Unreadable(`${what} up to ${place(all.length)}`);
  }
  return { messages, print };
}

const NEWLINE = 10;

/**
 * A hash of messages, of two times 32 bits. It tells whether the messages that a save is given still
 * begin with the very texts that were read or saved before, without keeping those.
 */
export type Fingerprint = readonly [number, number];

/** The fingerprint of nothing. */
export const NO_LINES: Fingerprint = [0x811c9dc5, 0x9747b28c];

/** The fingerprint of some lines, or of those after the ones that `seed` stands for. */
export function fingerprint(
  lines: readonly string[],
  start: number,
  end: number,
  seed: Fingerprint = NO_LINES,
): Fingerprint {
  let [a, b] = seed;
  for (let index = start; index < end; index++) {
    const line = lines[index] ?? "";
    for (let at = 0; at < line.length; at++) {
      const unit = line.charCodeAt(at);
      a = Math.imul(a ^ unit, 0x01000193);
      b = Math.imul((b << 5 | b >>> 27) ^ unit, 0x2c1b3c6d);
    }
    a = Math.imul(a ^ NEWLINE, 0x01000193);
    b = Math.imul((b << 5 | b >>> 27) ^ NEWLINE, 0x2c1b3c6d);
  }
  return [a, b];
}

function bytesOf(entry: KvEntry): Uint8Array {
  if (entry.value instanceof Uint8Array) return entry.value;
  throw new Unreadable(`row ${keyText(entry.key)} holds ${typeof entry.value}, not bytes`);
}

function join(chunks: readonly Uint8Array[]): Uint8Array {
  const all = new Uint8Array(chunks.reduce((sum, chunk) => sum + chunk.length, 0));
  let offset = 0;
  for (const chunk of chunks) {
    all.set(chunk, offset);
    offset += chunk.length;
  }
  return all;
}

/** The size of a key part as KV writes it: type, content with each NUL doubled, end. */
function partBytes(part: unknown): number {
  const bytes = typeof part === "string" ? encoder.encode(part) : part;
  if (bytes instanceof Uint8Array) {
    return 2 + bytes.length + bytes.reduce((sum, byte) => byte === 0 ? sum + 1 : sum, 0);
  }
  switch (typeof part) {
    case "number":
      return 9;
    case "boolean":
      return 1;
    case "bigint":
      return 3 + part.toString(16).length;
    default:
      throw new TypeError(`prefix holds ${part === null ? "null" : typeof part}`);
  }
}

function randomText(length: number): string {
  const bytes = crypto.getRandomValues(new Uint8Array(length));
  return Array.from(bytes, (byte) => (byte & 31).toString(32)).join("");
}
