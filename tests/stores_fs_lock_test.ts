/** The locks of the file store: given back or not, waited for or gone. */
import { assertEquals, assertLess, assertRejects } from "@std/assert";
import { ConversationConflictError, type Message, StoreError } from "../mod.ts";
import { FsConversationStore } from "../stores/fs.ts";
import { TemporaryFolder } from "./fixtures/fs_folder.ts";

const hello: Message[] = [{ role: "user", content: "hello" }];
const answered: Message[] = [...hello, { role: "assistant", content: "hi" }];

Deno.test("a lock that is not given back is an error that names it, and nothing is lost", async () => {
  await using folder = await TemporaryFolder.create();
  const store = new FsConversationStore(folder.path, { lockTimeoutMs: 30 });
  await store.save("chat", hello);
  const [path = ""] = await folder.lockFiles();
  using other = await Deno.open(path, { write: true });
  await other.lock(true);
  await assertRejects(() => store.save("chat", answered, hello), StoreError, path);
  const failure = await assertRejects(() => store.delete("chat"), StoreError, path);
  assertEquals(failure.code, "store_failed");
  assertEquals(await store.get("chat"), hello);
  await other.unlock();
  await store.save("chat", answered, hello);
  assertEquals(await store.get("chat"), answered);
});

Deno.test("all who wait in line for one lock give up in the time of one", async () => {
  await using folder = await TemporaryFolder.create();
  const store = new FsConversationStore(folder.path, { lockTimeoutMs: 100 });
  await store.save("chat", hello);
  const [path = ""] = await folder.lockFiles();
  using other = await Deno.open(path, { write: true });
  await other.lock(true);
  const start = performance.now();
  const saves = await Promise.allSettled(
    Array.from({ length: 50 }, () => store.save("chat", answered)),
  );
  assertEquals(saves.filter(({ status }) => status === "fulfilled"), []);
  // One after another it would be five seconds.
  assertLess(performance.now() - start, 2_500);
});

Deno.test("whoever waits for a lock that is removed waits for the one in its place", async () => {
  await using folder = await TemporaryFolder.create();
  const store = new FsConversationStore(folder.path);
  await store.save("chat", hello);
  const [path = ""] = await folder.lockFiles();
  const old = await Deno.open(path, { write: true });
  await old.lock(true);
  using opens = new Opens(path);
  const waiting = store.save("chat", answered, hello);
  await opens.next();
  await Deno.remove(path);
  using other = await Deno.open(path, { write: true, create: true });
  await other.lock(true);
  old.close();
  // It looks for the lock again and again, but does not get it.
  const saved = waiting.then(() => "saved", () => "refused");
  for (let attempt = 0; attempt < 3; attempt++) {
    assertEquals(await Promise.race([saved, opens.next()]), "opened");
  }
  await folder.write("chat.json", JSON.stringify([...hello, ...hello]));
  await other.unlock();
  await assertRejects(() => waiting, ConversationConflictError);
  assertEquals(await store.get("chat"), [...hello, ...hello]);
});

Deno.test("whoever waits while the whole folder is removed begins a new one", async () => {
  await using folder = await TemporaryFolder.create();
  const store = new FsConversationStore(folder.path);
  await store.save("chat", hello);
  const [path = ""] = await folder.lockFiles();
  using other = await Deno.open(path, { write: true });
  await other.lock(true);
  using opens = new Opens(path);
  const waiting = store.save("chat", answered, []);
  await opens.next();
  await Deno.remove(folder.path, { recursive: true });
  await waiting;
  assertEquals(await store.get("chat"), answered);
});

Deno.test("a save whose lock is removed while it writes is an error, and nothing is lost", async () => {
  await using folder = await TemporaryFolder.create();
  const store = new FsConversationStore(folder.path);
  await store.save("chat", hello);
  const [path = ""] = await folder.lockFiles();
  const { open } = Deno;
  try {
    Deno.open = async (...args) => {
      if (String(args[0]).includes(".temp-")) await Deno.remove(path);
      return await open(...args);
    };
    await assertRejects(() => store.save("chat", answered, hello), StoreError, path);
  } finally {
    Deno.open = open;
  }
  assertEquals(await store.get("chat"), hello);
  assertEquals(await folder.names(), ["chat.json"]);
  await store.save("chat", answered, hello);
});

/** Tells, until it is disposed, when a path is opened. */
class Opens implements Disposable {
  readonly #open = Deno.open;
  #next = Promise.withResolvers<"opened">();

  constructor(path: string) {
    Deno.open = async (...args) => {
      const file = await this.#open(...args);
      if (args[0] === path) {
        this.#next.resolve("opened");
        this.#next = Promise.withResolvers();
      }
      return file;
    };
  }

  /** Resolves at the next one. */
  next(): Promise<"opened"> {
    return this.#next.promise;
  }

  [Symbol.dispose](): void {
    Deno.open = this.#open;
  }
}
