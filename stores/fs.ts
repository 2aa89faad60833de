/**
 * Conversations in a folder: one JSON file each, one message a line, safe against crashes and
 * against other processes.
 *
 * @module
 */

import { fromFileUrl } from "@std/path";
import { checkConversationId, ConversationConflictError, encodeMessages } from "../mod.ts";
import type { ConversationInfo, ConversationStore, ListOptions, Message } from "../mod.ts";
import { Folder, type StoredFile } from "./fs_folder.ts";
import {
  fileNameOf,
  foreignNameOf,
  holds,
  idIn,
  idOf,
  isFileName,
  mayStartWith,
  messagesIn,
  render,
} from "./fs_format.ts";
import { listed } from "./listing.ts";
import { checkBase, checkWhole, encodeBase, guarded } from "./operation.ts";

/** Options of {@linkcode FsConversationStore}. */
export interface FsConversationStoreOptions {
  /**
   * How long a save or delete waits for another process that is writing, in whole milliseconds,
   * counted from the call. A process that dies frees its lock; this is for one that is stopped.
   *
   * @default 30_000
   */
  lockTimeoutMs?: number | undefined;
}

/**
 * Keeps each conversation in a file of its own in one folder, for command-line tools and servers
 * with a disk. Give it a folder of its own. Nothing is cached: what another process saved is seen by
 * the next `get`.
 *
 * **Permissions**: `--allow-read=DIR --allow-write=DIR`, nothing else.
 *
 * **Files.** An id of 1 to 100 characters `a-z 0-9 _ -` that does not start with `_` and is no
 * device name of Windows is kept in `<id>.json`, a JSON array with one message a line, as the file
 * stores of the other toolnexus ports write it. Any other id is kept in
 * `_<sanitized id>.<SHA-256 of the id>.json`, a JSON object `{"id": …, "messages": […]}`; the id in
 * it is checked when it is read. So no id chooses a path, and no two ids share a file, on file
 * systems that ignore case and on Windows too. Where another port left a file `<id>.json` for such
 * an id (made of `A-Z a-z 0-9 _ -`), it is read, and the next save moves it. Files may be written by
 * hand; the layout of the JSON does not matter.
 *
 * Folder and files are created for their owner alone: mode 0700 and 0600.
 *
 * **Crashes.** A save writes a new file, flushes it to the disk, renames it over the old one and
 * flushes the folder: whatever happens, the old or the new transcript is there, whole. When `save`
 * has resolved, it is the new one. The file that a killed save had begun is removed by the next save
 * of that conversation.
 *
 * **Other processes.** Saves hold an advisory lock on one of sixteen files `.lock-0` … `.lock-f` in
 * the folder; they may stay there. With `base`, a save is refused with a
 * `ConversationConflictError` when the conversation is not what it was built on, so no process
 * overwrites another's turn. Network file systems keep this promise as far as their locks work and
 * their caches are fresh; for several machines use Deno KV.
 *
 * **Damage.** A file that is cut short, not UTF-8, not JSON, not a transcript, another
 * conversation's, or no regular file (a symbolic link, say) is an error that names it, never an
 * empty conversation; only a save without `base` replaces it.
 *
 * @example
 * ```ts
 * import { FsConversationStore } from "@toolnexus/client/stores/fs";
 * import { assertEquals } from "@std/assert";
 *
 * const dir = await Deno.makeTempDir();
 * const store = new FsConversationStore(dir);
 *
 * const first = [{ role: "user", content: "hello" }];
 * await store.save("thread-42", first, []); // only if nothing is there
 * await store.save("thread-42", [...first, { role: "assistant", content: "hi" }], first);
 *
 * assertEquals((await store.get("thread-42"))?.length, 2);
 * for await (const { id, messageCount } of store.list({ prefix: "thread-" })) {
 *   assertEquals([id, messageCount], ["thread-42", 2]);
 * }
 * await store.delete("thread-42");
 * await Deno.remove(dir, { recursive: true });
 * ```
 */
export class FsConversationStore implements ConversationStore {
  readonly #folder: Folder;

  /**
   * Creates a store over a folder, a path or a `file:` URL (as `URL` or as text). Nothing is read or
   * written yet; the first save creates the folder when it is not there. A relative path is read
   * against the working directory at each operation.
   *
   * @throws {TypeError} if `dir` is no path and no `file:` URL, or an option has the wrong type
   * @throws {RangeError} if `lockTimeoutMs` is no whole number from 0
   */
  constructor(dir: string | URL, options: FsConversationStoreOptions = {}) {
    if (typeof dir !== "string" && !(dir instanceof URL)) {
      throw new TypeError(`dir must be a path or a file: URL: ${String(dir)}`);
    }
    if (dir === "") throw new TypeError("dir must not be empty");
    const { lockTimeoutMs = 30_000 } = options;
    checkWhole("lockTimeoutMs", lockTimeoutMs, 0);
    const isUrl = dir instanceof URL || dir.startsWith("file://");
    this.#folder = new Folder(isUrl ? fromFileUrl(dir) : dir, lockTimeoutMs);
  }

  /**
   * The transcript kept under `id`, as a copy of the caller's own; null when there is none. Takes no
   * lock and needs no write permission.
   *
   * @throws {TypeError} if the id is no conversation id
   * @throws {StoreError} if the file is damaged or cannot be read; the message names it
   */
  async get(id: string): Promise<Message[] | null> {
    checkConversationId(id);
    return await guarded("get", id, async () => {
      const file = await this.#find(id);
      return file ? messagesIn(file, id) : null;
    });
  }

  /**
   * Keeps `messages` under `id`.
   *
   * @param base the transcript that `messages` were built on: what `get` returned, what was last
   * saved, or an equal copy; `[]` for "only if nothing is there". Absent: whatever is there is
   * overwritten.
   * @throws {TypeError} if the id is no conversation id, or a message holds what JSON cannot
   * @throws {ConversationConflictError} if the conversation is no longer what `base` says
   * @throws {StoreError} if it cannot be written: the disk is full, the folder is read-only, the lock
   * is not free in time, … The old transcript is untouched (the new one has taken its place if all
   * but the last flush was done). Also if `base` is given and the file there is damaged
   */
  async save(id: string, messages: readonly Message[], base?: readonly Message[]): Promise<void> {
    checkConversationId(id);
    checkBase(base);
    // Encoded, and in line, before the first await: the caller may go on with its arrays.
    const lines = encodeMessages(messages);
    const baseLines = base && encodeBase(base, messages, lines);
    await guarded("save", id, () =>
      this.#folder.exclusively(id, async (changes) => {
        if (baseLines && !holds(await this.#find(id), id, baseLines)) {
          throw new ConversationConflictError(id);
        }
        await changes.replace(await fileNameOf(id), render(id, lines));
        const foreignName = await this.#foreignName(id);
        if (foreignName) await changes.remove(foreignName);
      }));
  }

  /**
   * Removes the conversation, damaged or not; one that is not there is no error.
   *
   * @throws {TypeError} if the id is no conversation id
   * @throws {StoreError} if it could not be removed
   */
  async delete(id: string): Promise<void> {
    checkConversationId(id);
    const isThere = async () =>
      await this.#folder.has(await fileNameOf(id)) || await this.#foreignName(id) !== undefined;
    await guarded("delete", id, () =>
      this.#folder.exclusively(id, async (changes) => {
        // First what an unfinished move left: it must not come to light again.
        const foreignName = await this.#foreignName(id);
        if (foreignName) await changes.remove(foreignName);
        await changes.remove(await fileNameOf(id));
      }, isThere));
  }

  /**
   * The conversations, in no particular order. Each is read, to count its messages. One that is first
   * saved or deleted meanwhile may be listed or not.
   *
   * @param options `prefix`: only ids that begin with it; `limit`: at most so many
   * @throws {TypeError} if `prefix` is no well-formed string or `limit` no number
   * @throws {RangeError} if `limit` is no whole number from 0
   * @throws {StoreError} while it is read: if the folder cannot be read; and, after all others have
   * been listed, if a file is damaged. Its `id` is the prefix
   */
  list(options: ListOptions = {}): AsyncIterableIterator<ConversationInfo> {
    return listed(options, {
      rows: (prefix) => this.#fileNames(prefix),
      read: (name) => this.#entry(name),
    });
  }

  async *#fileNames(prefix: string): AsyncGenerator<string> {
    const names = new Set(await this.#folder.names());
    for (const name of names) {
      if (!isFileName(name) || !mayStartWith(name, prefix)) continue;
      const ownName = await ownNameOf(name);
      // Another port's file beside our own: what an unfinished move left.
      if (ownName === name || !names.has(ownName)) yield name;
    }
  }

  async #entry(name: string): Promise<ConversationInfo | undefined> {
    // Another port's file may have been moved since the names were read.
    const file = await this.#folder.read(name) ?? await this.#folder.read(await ownNameOf(name));
    if (!file) return undefined;
    const id = await idOf(file);
    return { id, updatedAt: file.updatedAt, messageCount: messagesIn(file, id).length };
  }

  async #find(id: string): Promise<StoredFile | undefined> {
    const name = await fileNameOf(id);
    const file = await this.#folder.read(name);
    if (file || !foreignNameOf(id)) return file;
    const foreignName = await this.#foreignName(id);
    const foreign = foreignName && await this.#folder.read(foreignName);
    // Between the two looks another process may have moved it.
    return foreign || await this.#folder.read(name);
  }

  /**
   * The file that another port left for this id, if there is one. Its name must be exactly that:
   * where case is ignored, `Chat.json` also opens the `chat.json` of another conversation.
   */
  async #foreignName(id: string): Promise<string | undefined> {
    const name = foreignNameOf(id);
    if (!name || !await this.#folder.has(name)) return undefined;
    return (await this.#folder.names()).includes(name) ? name : undefined;
  }
}

/** The name that the conversation in a file has with us. */
async function ownNameOf(name: string): Promise<string> {
  const id = idIn(name);
  return id === undefined ? name : await fileNameOf(id);
}
