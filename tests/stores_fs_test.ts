/** The file store: what it keeps, what it refuses, and what it needs. */
import { assert, assertEquals, assertMatch, assertRejects, assertThrows } from "@std/assert";
import { join, toFileUrl } from "@std/path";
import {
  ConversationConflictError,
  type ConversationInfo,
  type Message,
  StoreError,
} from "../mod.ts";
import { FsConversationStore } from "../stores/fs.ts";
import { TemporaryFolder } from "./fixtures/fs_folder.ts";
import { run } from "./fixtures/processes.ts";

const hello: Message[] = [{ role: "user", content: "hello" }];
const answered: Message[] = [...hello, { role: "assistant", content: "hi" }];

Deno.test("what is no conversation id is a TypeError before any work", async () => {
  await using folder = await TemporaryFolder.create();
  const store = new FsConversationStore(folder.path);
  for (const id of ["", "\ud83d", "x".repeat(1025), "é".repeat(513), 7, null] as string[]) {
    await assertRejects(() => store.get(id), TypeError, "conversation id");
    await assertRejects(() => store.save(id, hello), TypeError, "conversation id");
    await assertRejects(() => store.delete(id), TypeError, "conversation id");
  }
  assert(!await exists(folder.path));
});

Deno.test("what JSON cannot hold is a TypeError, and the old transcript stays", async () => {
  await using folder = await TemporaryFolder.create();
  const store = new FsConversationStore(folder.path);
  await store.save("chat", hello);
  const before = await folder.read("chat.json");
  const cycle: Message = { role: "user" };
  cycle.content = cycle;
  for (const bad of [{ role: "user", content: 1n }, cycle, "text", null, [1]] as Message[]) {
    await assertRejects(() => store.save("chat", [...hello, bad], hello), TypeError, "messages[");
    await assertRejects(() => store.save("chat", hello, [bad]), TypeError, "messages[");
  }
  await assertRejects(() => store.save("chat", null as never), TypeError, "messages");
  await assertRejects(() => store.save("chat", answered, null as never), TypeError, "base");
  assertEquals(await folder.read("chat.json"), before);
});

Deno.test("no caller reaches stored data by reference, not even while it is saved", async () => {
  await using folder = await TemporaryFolder.create();
  const store = new FsConversationStore(folder.path);
  const messages: Message[] = [{ role: "user", content: [{ type: "text", text: "kept" }] }];
  const base: Message[] = [];
  const saving = store.save("chat", messages, base);
  (messages[0]!.content as { text: string }[])[0]!.text = "changed";
  messages.push({ role: "user", content: "added" });
  base.push({ role: "user", content: "added" });
  await saving;
  const read = await store.get("chat");
  assertEquals(read, [{ role: "user", content: [{ type: "text", text: "kept" }] }]);
  read?.pop();
  assertEquals((await store.get("chat"))?.length, 1);
});

Deno.test("base: a save is refused unless the conversation is what it was built on", async () => {
  await using folder = await TemporaryFolder.create();
  const store = new FsConversationStore(folder.path);
  for (const id of ["chat", "a/b"]) {
    const conflicts = async (messages: Message[], base: Message[]) => {
      const before = await store.get(id);
      const save = () => store.save(id, messages, base);
      assertEquals((await assertRejects(save, ConversationConflictError)).id, id);
      assertEquals(await store.get(id), before);
    };
    await conflicts(answered, hello); // nothing is there
    await store.save(id, hello, []);
    await conflicts(answered, []);
    await conflicts(answered, [{ role: "user", content: "hello!" }]);
    await store.save(id, answered, hello); // the array last saved
    await conflicts([...hello, ...hello], hello);
    await store.save(id, [...answered, ...hello], structuredClone(answered)); // an equal copy
    const read = await store.get(id);
    await store.save(id, answered, read!.map(({ content, role }) => ({ content, role })));
    await store.save(id, hello); // no base: whatever is there
    await store.save(id, hello, hello);
    await store.delete(id);
    await conflicts(answered, hello);
    await store.save(id, [], []);
    await store.save(id, hello, []); // an empty transcript is what `get` returned
    assertEquals(await store.get(id), hello);
  }
});

Deno.test("of many first saves at once one wins, whatever the object", async () => {
  await using folder = await TemporaryFolder.create();
  const stores = [new FsConversationStore(folder.path), new FsConversationStore(folder.path)];
  const saves = Array.from({ length: 16 }, (_, index) => {
    return stores[index % 2]!.save("Brand new", [{ role: "user", content: `${index}` }], []);
  });
  const outcomes = await Promise.allSettled(saves);
  const refused = outcomes.filter((outcome) => outcome.status === "rejected");
  assertEquals(refused.length, 15);
  for (const { reason } of refused) assert(reason instanceof ConversationConflictError, reason);
  const winner = outcomes.findIndex((outcome) => outcome.status === "fulfilled");
  assertEquals(await stores[0]!.get("Brand new"), [{ role: "user", content: `${winner}` }]);
});

Deno.test("parallel turns on one id in two objects are all kept", async () => {
  await using folder = await TemporaryFolder.create();
  const append = async (store: FsConversationStore, content: string) => {
    for (;;) {
      const base = await store.get("chat") ?? [];
      try {
        return await store.save("chat", [...base, { role: "user", content }], base);
      } catch (error) {
        if (!(error instanceof ConversationConflictError)) throw error;
      }
    }
  };
  const stores = [new FsConversationStore(folder.path), new FsConversationStore(folder.path)];
  const turns = Array.from({ length: 24 }, (_, index) => `turn ${index}`);
  await Promise.all(turns.map((turn, index) => append(stores[index % 2]!, turn)));
  const kept = await stores[0]!.get("chat");
  assertEquals(kept?.map((message) => message.content).sort(), turns.sort());
});

Deno.test("saves without base take effect in the order of the calls", async () => {
  await using folder = await TemporaryFolder.create();
  const store = new FsConversationStore(folder.path);
  for (const id of ["chat", "Chat/1"]) {
    const contents = Array.from({ length: 10 }, (_, index) => `${index}`);
    await Promise.all(contents.map((content) => store.save(id, [{ role: "user", content }])));
    assertEquals(await store.get(id), [{ role: "user", content: "9" }]);
  }
});

Deno.test("saves and deletes of one conversation take effect in the order of the calls", async () => {
  await using folder = await TemporaryFolder.create();
  const store = new FsConversationStore(folder.path);
  for (const id of ["chat", "Chat/1"]) {
    await Promise.all([store.save(id, hello, []), store.delete(id)]);
    assertEquals(await store.get(id), null);
    await store.save(id, hello);
    for (let round = 0; round < 10; round++) {
      await Promise.all([store.delete(id), store.save(id, answered, [])]);
      assertEquals(await store.get(id), answered);
    }
  }
});

Deno.test("list tells id, time and number of messages, by prefix and limit", async () => {
  await using folder = await TemporaryFolder.create();
  const store = new FsConversationStore(folder.path);
  assertEquals(await list(store), []); // no folder yet
  const before = Date.now();
  for (const id of ["user:1/a", "user:1/b", "user:2/a", "user_1_a", "plain-1", "Plain-2"]) {
    await store.save(id, id.endsWith("a") ? answered : hello);
  }
  await folder.write("notes.txt", "not a conversation");
  await folder.write("notes.backup.json", "not a conversation");

  for (const { id, updatedAt, messageCount } of await list(store)) {
    assertEquals(messageCount, id.endsWith("a") ? 2 : 1);
    assert(updatedAt.getTime() >= before - 1_000 && updatedAt.getTime() <= Date.now() + 1_000);
  }
  const ids = async (prefix?: string, limit?: number) =>
    (await list(store, { prefix, limit })).map(({ id }) => id).sort();
  assertEquals((await ids()).length, 6);
  assertEquals(await ids("user:1/"), ["user:1/a", "user:1/b"]);
  assertEquals(await ids("user"), ["user:1/a", "user:1/b", "user:2/a", "user_1_a"]);
  assertEquals(await ids("user_"), ["user_1_a"]);
  assertEquals(await ids("plain"), ["plain-1"]);
  assertEquals(await ids("Plain"), ["Plain-2"]);
  assertEquals(await ids("nobody"), []);
  assertEquals((await ids(undefined, 4)).length, 4);
  assertEquals((await ids("user:1/", 1)).length, 1);
  assertEquals(await ids("", 0), []);

  const long = "é".repeat(200);
  await store.save(long + "/1", hello);
  await store.save(long + "/2", hello);
  assertEquals(await ids(long + "/2"), [long + "/2"]);

  assertThrows(() => store.list({ limit: -1 }), RangeError, "limit");
  assertThrows(() => store.list({ limit: 1.5 }), RangeError, "limit");
  assertThrows(() => store.list({ limit: "1" as never }), TypeError, "limit");
  for (const prefix of [1 as never, "\ud800"]) {
    assertThrows(() => store.list({ prefix }), TypeError, "prefix");
  }
});

Deno.test("delete removes one conversation; what is not there is no error", async () => {
  await using folder = await TemporaryFolder.create();
  const store = new FsConversationStore(folder.path);
  await store.delete("nobody");
  assert(!await exists(folder.path));
  await store.save("a", hello);
  await store.save("A", hello);
  await store.delete("A");
  await store.delete("A");
  assertEquals(await store.get("A"), null);
  assertEquals(await store.get("a"), hello);
  assertEquals(await folder.names(), ["a.json"]);
});

Deno.test("the first save creates the folder, for its owner alone; so does one after its removal", async () => {
  await using folder = await TemporaryFolder.create();
  const path = join(folder.path, "deep", "down");
  const store = new FsConversationStore(toFileUrl(path));
  assertEquals(await store.get("chat"), null);
  await store.save("chat", hello, []);
  if (Deno.build.os !== "windows") assertEquals((await Deno.stat(path)).mode! & 0o777, 0o700);
  assertEquals(await store.get("chat"), hello);
  assertEquals(await new FsConversationStore(toFileUrl(path).href).get("chat"), hello);

  await Deno.remove(folder.path, { recursive: true });
  assertEquals(await store.get("chat"), null);
  await assertRejects(() => store.save("chat", answered, hello), ConversationConflictError);
  await Deno.remove(folder.path, { recursive: true });
  await store.save("chat", answered, []);
  assertEquals(await store.get("chat"), answered);
});

Deno.test("a folder that is a file is an error in every operation", async () => {
  await using folder = await TemporaryFolder.create();
  await Deno.writeTextFile(folder.path, "a file");
  const store = new FsConversationStore(folder.path);
  const operations = {
    get: () => store.get("chat"),
    save: () => store.save("chat", hello),
    delete: () => store.delete("chat"),
    list: () => list(store, { prefix: "chat" }),
  };
  for (const [operation, work] of Object.entries(operations)) {
    const error = await assertRejects<StoreError>(work, StoreError, `store ${operation} of "chat"`);
    assertEquals([error.operation, error.id, error.code], [operation, "chat", "store_failed"]);
    assert(error.cause instanceof Error);
  }
  assertEquals(await Deno.readTextFile(folder.path), "a file");
});

Deno.test("wrong constructor arguments are named", () => {
  assertThrows(() => new FsConversationStore(""), TypeError, "dir");
  assertThrows(() => new FsConversationStore(7 as never), TypeError, "dir");
  assertThrows(() => new FsConversationStore(new URL("https://example.com/")), TypeError);
  assertThrows(() => new FsConversationStore("file://%"), TypeError);
  for (const lockTimeoutMs of [-1, 0.5, NaN, Infinity]) {
    assertThrows(
      () => new FsConversationStore("x", { lockTimeoutMs }),
      RangeError,
      "lockTimeoutMs",
    );
  }
  const options = { lockTimeoutMs: "1" as never };
  assertThrows(() => new FsConversationStore("x", options), TypeError, "lockTimeoutMs");
});

Deno.test("a conversation of 20 MB comes back, and takes another turn", async () => {
  await using folder = await TemporaryFolder.create();
  const store = new FsConversationStore(folder.path);
  const messages = Array.from({ length: 2_000 }, (_, index) => {
    return { role: index % 2 ? "assistant" : "user", content: `${index} ${"é".repeat(5_000)}` };
  });
  await store.save("large", messages, []);
  const read = await store.get("large");
  assertEquals(read?.length, 2_000);
  await store.save("large", [...read!, ...hello], read!);
  assertEquals((await Deno.stat(join(folder.path, "large.json"))).size > 20_000_000, true);
  assertEquals(JSON.stringify(await store.get("large")), JSON.stringify([...messages, ...hello]));
});

Deno.test("reading and writing in its folder is all the permission it needs", async () => {
  await using folder = await TemporaryFolder.create();
  const printed = JSON.parse(await run("fs_every_operation", [folder.path]));
  assertEquals(printed.listed, ["../../Hostile", "plain"]);
  assertEquals(printed.deleted, true);
  assertEquals(printed.read, [
    [{ role: "user", content: "plain" }],
    [{ role: "user", content: "../../Hostile" }],
  ]);

  const permissions = [`--allow-read=${folder.path}`];
  const args = [folder.path, "plain", "10", "1"];
  const { saved, error } = JSON.parse(await run("fs_fill", args, { permissions }));
  assertEquals([saved, error.name], [0, "StoreError"]);
  assertMatch(error.message, /store save of "plain" failed: Requires write access/);
});

Deno.test({
  name: "a conversation is for the owner of the folder alone, whoever may read the folder",
  ignore: Deno.build.os === "windows",
  fn: async () => {
    await using folder = await TemporaryFolder.create();
    await Deno.mkdir(folder.path, { mode: 0o755 });
    const store = new FsConversationStore(folder.path);
    for (const messages of [hello, answered]) {
      await store.save("chat", messages);
      assertEquals((await Deno.stat(join(folder.path, "chat.json"))).mode! & 0o777, 0o600);
    }
  },
});

async function list(
  store: FsConversationStore,
  options?: Parameters<FsConversationStore["list"]>[0],
): Promise<ConversationInfo[]> {
  return await Array.fromAsync(store.list(options));
}

async function exists(path: string): Promise<boolean> {
  return await Deno.lstat(path).then(() => true, () => false);
}
