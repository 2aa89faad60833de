/**
 * A folder whose files are replaced whole: by one writer at a time, over all processes, and at one
 * instant, whatever happens.
 *
 * @module
 */

import { join } from "@std/path";
import { Turns } from "./turns.ts";

/** A file as it was read. */
export interface StoredFile {
  /** Its name in the folder. */
  readonly name: string;
  /** Its path, for messages. */
  readonly path: string;
  /** What is in it. */
  readonly text: string;
  /** When it was written. */
  readonly updatedAt: Date;
}

/** What the holder of a lock may do. When it has resolved, it has reached the disk. */
export interface FolderChanges {
  /** Puts a file with this text in the place of what has that name, be it a link. */
  replace(name: string, text: string): Promise<void>;
  /** Removes the file if it is there. */
  remove(name: string): Promise<void>;
}

/** The folder. It may be missing: then it holds nothing, and the first lock creates it. */
export class Folder {
  readonly #dir: string;
  readonly #lockTimeoutMs: number;
  /** Whoever wants a lock in this object is in line for it. */
  readonly #turns = new Turns();

  /** Opens nothing yet. */
  constructor(dir: string, lockTimeoutMs: number) {
    this.#dir = dir;
    this.#lockTimeoutMs = lockTimeoutMs;
  }

  /** The names of all entries. */
  async names(): Promise<string[]> {
    try {
      const entries = await Array.fromAsync(Deno.readDir(this.#dir));
      return entries.map((entry) => entry.name);
    } catch (error) {
      if (error instanceof Deno.errors.NotFound) return [];
      throw error;
    }
  }

  /** Whether an entry of this name is found, be it in other letters where case is ignored. */
  async has(name: string): Promise<boolean> {
    return await entryAt(this.#path(name)) !== undefined;
  }

  /** Reads a file; `undefined` when there is none. */
  async read(name: string): Promise<StoredFile | undefined> {
    const path = this.#path(name);
    const entry = await entryAt(path);
    if (!entry) return undefined;
    checkRegular(path, entry);
    let bytes: Uint8Array<ArrayBuffer>;
    try {
      bytes = await Deno.readFile(path);
    } catch (error) {
      if (error instanceof Deno.errors.NotFound) return undefined;
      throw error;
    }
    try {
      const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
      return { name, path, text, updatedAt: entry.mtime ?? new Date(0) };
    } catch (cause) {
      throw new Error(`${path} is damaged: not UTF-8`, { cause });
    }
  }

  /**
   * Does `work` while nobody else does any for this key. In this object the callers take turns in the
   * order of their calls. When it is its turn, and before anything is created, `isNeeded` may say that
   * there is nothing to do.
   *
   * Many keys share a lock file, and the files stay: removing one that others may have opened needs
   * more care than a few empty files are worth. One of size 1 is marked: its holder may have a
   * temporary file.
   */
  async exclusively(
    key: string,
    work: (changes: FolderChanges) => Promise<void>,
    isNeeded?: () => Promise<boolean>,
  ): Promise<void> {
    const slot = slotOf(key);
    // Waiting in line counts: else the whole line would wait for one lock, one after another.
    const deadline = performance.now() + this.#lockTimeoutMs;
    await this.#turns.take(slot, async () => {
      if (await isNeeded?.() === false) return;
      using lock = await this.#lock(slot, deadline);
      // Who let go of the lock and left the mark has died.
      if ((await lock.stat()).size > 0) {
        await this.#removeAll(temporaryPrefix(slot));
        await lock.truncate(0);
      }
      await work({
        replace: (name, text) => this.#replace(name, text, slot, lock),
        remove: (name) => this.#removeForGood(name),
      });
    });
  }

  async #replace(name: string, text: string, slot: string, lock: Deno.FsFile): Promise<void> {
    const temporaryName = temporaryPrefix(slot) + crypto.randomUUID();
    const temporary = this.#path(temporaryName);
    // A size is metadata: a journaling file system keeps the order of mark and temporary file even
    // over a power cut.
    await lock.truncate(1);
    try {
      await writeNew(temporary, text);
      if (!await this.#isLock(slot, lock)) {
        throw new Error(`${this.#path(lockName(slot))} was removed by someone else meanwhile`);
      }
      await Deno.rename(temporary, this.#path(name));
    } catch (error) {
      try {
        await this.#remove(temporaryName);
        await lock.truncate(0);
      } catch { /* the mark stays, and the next holder tries again */ }
      throw error;
    }
    await this.#sync();
    await lock.truncate(0);
  }

  async #lock(slot: string, deadline: number): Promise<Deno.FsFile> {
    const path = this.#path(lockName(slot));
    for (;;) {
      const entry = await entryAt(path);
      if (entry) checkRegular(path, entry);
      else await Deno.mkdir(this.#dir, { recursive: true, mode: 0o700 });
      const file = await Deno.open(path, { write: true, create: true });
      let isOurs = false;
      try {
        // Not `lock()`: waiting for it cannot be given up.
        isOurs = await file.tryLock(true) && await this.#isLock(slot, file);
      } finally {
        if (!isOurs) file.close();
      }
      if (isOurs) return file;
      if (performance.now() >= deadline) {
        throw new Error(
          `${path} was not free within ${this.#lockTimeoutMs} ms: others are writing`,
        );
      }
      await new Promise((resolve) => setTimeout(resolve, 1 + 9 * Math.random()));
    }
  }

  /** Whether the file of a lock is still there: one that was removed keeps nobody out. */
  async #isLock(slot: string, file: Deno.FsFile): Promise<boolean> {
    return (await entryAt(this.#path(lockName(slot))))?.ino === (await file.stat()).ino;
  }

  async #removeAll(prefix: string): Promise<void> {
    for (const name of await this.names()) {
      if (name.startsWith(prefix)) await this.#remove(name);
    }
  }

  async #removeForGood(name: string): Promise<void> {
    if (await this.#remove(name)) await this.#sync();
  }

  async #remove(name: string): Promise<boolean> {
    try {
      await Deno.remove(this.#path(name));
      return true;
    } catch (error) {
      if (error instanceof Deno.errors.NotFound) return false;
      throw error;
    }
  }

  /** Makes the names last: a rename is in the folder, not in the file. */
  async #sync(): Promise<void> {
    if (Deno.build.os === "windows") return; // a folder cannot be opened there
    using folder = await Deno.open(this.#dir);
    await folder.sync();
  }

  #path(name: string): string {
    return join(this.#dir, name);
  }
}

function lockName(slot: string): string {
  return `.lock-${slot}`;
}

function temporaryPrefix(slot: string): string {
  return `.temp-${slot}-`;
}

/** One of sixteen: more writers at once than a disk has use for. Every process must come to the same. */
function slotOf(key: string): string {
  let sum = 0;
  for (let index = 0; index < key.length; index++) sum = (sum * 31 + key.charCodeAt(index)) | 0;
  return (sum & 15).toString(16);
}

/** For its owner alone, as the folder is: a conversation is nobody else's. */
async function writeNew(path: string, text: string): Promise<void> {
  using file = await Deno.open(path, { write: true, createNew: true, mode: 0o600 });
  const bytes = new TextEncoder().encode(text);
  for (let at = 0; at < bytes.length;) at += await file.write(bytes.subarray(at));
  await file.sync();
}

async function entryAt(path: string): Promise<Deno.FileInfo | undefined> {
  try {
    return await Deno.lstat(path);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return undefined;
    throw error;
  }
}

/** A link would lead out of the folder, and opening a pipe would wait for ever. */
function checkRegular(path: string, entry: Deno.FileInfo): void {
  if (!entry.isFile) throw new Error(`${path} is not a regular file`);
}
