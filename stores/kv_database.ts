/**
 * The part of a Deno KV database that the store uses, as a structural type: a `Deno.Kv` is one, and
 * so is what `openKv` of the npm package `@deno/kv` returns on Node.
 *
 * @module
 */

/** A part of a key, as `Deno.KvKeyPart` has it; the symbol is of no use here and refused. */
export type KvKeyPart = Uint8Array | string | number | bigint | boolean | symbol;

/** A key: a list of parts. */
export type KvKey = readonly KvKeyPart[];

/** A row as it was read; `versionstamp` is null where there is none. */
export interface KvEntry {
  /** The key. */
  readonly key: readonly unknown[];
  /** The value. */
  readonly value: unknown;
  /** The version of the row. */
  readonly versionstamp: string | null;
}

/** What a commit has to find unchanged. */
export interface KvCheck {
  /** The key. */
  readonly key: KvKey;
  /** The version that the row must have; null: there must be no row. */
  readonly versionstamp: string | null;
}

/** What a commit says: done, or refused by a check. */
export type KvOutcome = { ok: true; versionstamp: string } | { ok: false };

/** A write of several rows at once. */
export interface KvAtomicOperation {
  /** Adds checks: at most 10 a commit. */
  check(...checks: KvCheck[]): KvAtomicOperation;
  /** Adds a row; `expireIn` is in milliseconds. */
  set(key: KvKey, value: Uint8Array, options?: { expireIn?: number }): KvAtomicOperation;
  /** Adds a removal. */
  delete(key: KvKey): KvAtomicOperation;
  /** Does all of it, or nothing when a check fails. */
  commit(): Promise<KvOutcome>;
}

/** The rows that a list reads. */
export type KvSelector =
  | { prefix: KvKey }
  | { prefix: KvKey; start: KvKey }
  | { prefix: KvKey; end: KvKey }
  | { start: KvKey; end: KvKey };

/** How a list reads. */
export interface KvListOptions {
  /** The largest number of rows. */
  limit?: number;
  /** Whether to start at the end. */
  reverse?: boolean;
  /** The number of rows read at once. */
  batchSize?: number;
}

/** An open database. */
export interface KvDatabase {
  /** Reads one row. */
  get(key: KvKey): Promise<KvEntry>;
  /** Reads rows in the order of their keys. */
  list(selector: KvSelector, options?: KvListOptions): AsyncIterable<KvEntry>;
  /** Begins a write. */
  atomic(): KvAtomicOperation;
}

/** How long a save fights for its place before it gives up, in milliseconds. */
export const PATIENCE_MS = 30_000;

/**
 * Commits, and waits for its turn where another handle is writing to the same local file: SQLite
 * refuses at once, with `database is locked`, to let a reader become a writer while someone else is
 * one. A commit that met the lock has done nothing.
 */
export async function commit(build: () => KvAtomicOperation): Promise<KvOutcome> {
  const deadline = Date.now() + PATIENCE_MS;
  for (let attempt = 0;; attempt++) {
    try {
      return await build().commit();
    } catch (error) {
      const isLocked = error instanceof Error && error.message.includes("database is locked");
      if (!isLocked || Date.now() > deadline) throw error;
    }
    await pause(attempt);
  }
}

/** Waits a random while that grows with the number of attempts, up to a tenth of a second. */
function pause(attempt: number): Promise<void> {
  const longest = Math.min(100, 4 * 2 ** attempt);
  return new Promise((resolve) => setTimeout(resolve, Math.random() * longest));
}
