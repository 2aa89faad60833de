/** One store can take another's place: what their operations give, refuse and put in order is the same. */
import { assertEquals } from "@std/assert";
import { type ConversationInfo, InMemoryConversationStore, type Message } from "../mod.ts";
import { FsConversationStore } from "../stores/fs.ts";
import { KvConversationStore } from "../stores/kv.ts";
import { TemporaryFolder } from "./fixtures/fs_folder.ts";

const hello: Message[] = [{ role: "user", content: "hello" }];
const answered: Message[] = [...hello, { role: "assistant", content: "hi" }];

type Store = InMemoryConversationStore | FsConversationStore | KvConversationStore;

/** Does the same with each store; gives what came of it in the first, once it came in all. */
async function alike<T>(work: (store: Store) => Promise<T>): Promise<T> {
  await using folder = await TemporaryFolder.create();
  using kv = await Deno.openKv(":memory:");
  const expected = await work(new InMemoryConversationStore());
  assertEquals(await work(new FsConversationStore(folder.path)), expected);
  assertEquals(await work(new KvConversationStore(kv)), expected);
  return expected;
}

Deno.test("every store gives null for nothing, and nothing for a save or a delete", async () => {
  const given = await alike(async (store) => [
    await store.get("a"),
    await store.delete("a"),
    await store.save("a", hello, []),
    await store.get("a"),
    await store.delete("a"),
    await store.get("a"),
  ]);
  assertEquals(given, [null, undefined, undefined, hello, undefined, null]);
});

Deno.test("every store refuses wrong arguments with the same words", async () => {
  const said = await alike(async (store) => {
    const reasons: string[] = [];
    const attempt = async (work: () => unknown) => {
      try {
        await work();
        reasons.push("accepted");
      } catch (error) {
        reasons.push(String(error));
      }
    };
    for (const base of [null, {}, "x", 7] as unknown as Message[][]) {
      await attempt(() => store.save("a", hello, base));
    }
    for (const limit of [-1, 1.5, NaN, Infinity, null, "3"] as number[]) {
      await attempt(() => store.list({ limit }));
    }
    for (const prefix of [null, 7, "\ud800"] as string[]) {
      await attempt(() => store.list({ prefix }));
    }
    assertEquals(await store.get("a"), null);
    return reasons;
  });
  assertEquals(said, [
    "TypeError: base must be an array: null",
    "TypeError: base must be an array: {}",
    'TypeError: base must be an array: "x"',
    "TypeError: base must be an array: 7",
    "RangeError: limit must be a whole number from 0: -1",
    "RangeError: limit must be a whole number from 0: 1.5",
    "RangeError: limit must be a whole number from 0: NaN",
    "RangeError: limit must be a whole number from 0: Infinity",
    "TypeError: limit must be a number: null",
    'TypeError: limit must be a number: "3"',
    "TypeError: prefix must be a well-formed string: null",
    "TypeError: prefix must be a well-formed string: 7",
    'TypeError: prefix must be a well-formed string: "\\ud800"',
  ]);
});

Deno.test("in every store calls on one conversation take effect in their order", async () => {
  const kept = await alike(async (store) => {
    await Promise.all([store.save("saved, deleted", hello), store.delete("saved, deleted")]);
    await store.save("deleted, saved", hello);
    await Promise.all([store.delete("deleted, saved"), store.save("deleted, saved", answered, [])]);
    await Promise.all([store.save("twice", hello, []), store.save("twice", answered, hello)]);
    const infos = await Array.fromAsync<ConversationInfo>(store.list());
    return infos.map(({ id, messageCount }) => `${id}: ${messageCount}`).sort();
  });
  assertEquals(kept, ["deleted, saved: 2", "twice: 2"]);
});
