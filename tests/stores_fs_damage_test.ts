/** The file store on files that are damaged, and on what is no file at all: errors, never "empty". */
import { assert, assertEquals, assertRejects, assertStringIncludes } from "@std/assert";
import { join } from "@std/path";
import { type ConversationInfo, type Message, StoreError } from "../mod.ts";
import { FsConversationStore } from "../stores/fs.ts";
import { TemporaryFolder } from "./fixtures/fs_folder.ts";

const hello: Message[] = [{ role: "user", content: "hello" }];
const answered: Message[] = [...hello, { role: "assistant", content: "hi" }];

/** SHA-256 of `a/b`. */
const hash = "c14cddc033f64b9dea80ea675cf280a015e672516090a5626781153dc68fea11";

const whole = `[\n{"role":"user","content":"${"long ".repeat(50)}"}\n]\n`;
const envelope = (id: string, rest = "") => `{"id":"${id}","messages":[]${rest}}`;
const damages: Record<string, string | Uint8Array> = {
  "empty": "",
  "blank": " \n",
  "NULs alone": new Uint8Array(500),
  "NULs inside": whole.replace("long long", "long\0\0\0\0\0long"),
  "cut short": whole.slice(0, -10),
  "cut short after a message": whole.slice(0, -3),
  "two versions glued together": whole + whole,
  "a torn tail behind a version": whole + whole.slice(20),
  "no UTF-8": Uint8Array.from(whole, (char) => char === "g" ? 0xff : char.charCodeAt(0)),
  "no JSON": "hello",
  "null": "null",
  "an object": `{"role":"user"}`,
  "messages that are no objects": `[1]`,
  "a message that is an array": `[{"role":"user"},[]]`,
  "a message without a role": `[{"content":"hello"}]`,
};
const damagesOfEnvelopes: Record<string, string> = {
  "an array": "[]",
  "another conversation's": envelope("a_b"),
  "without an id": `{"messages":[]}`,
  "with an id that is no string": `{"id":7,"messages":[]}`,
  "without messages": `{"id":"a/b"}`,
  "with messages that are none": `{"id":"a/b","messages":{}}`,
  "of a format to come": envelope("a/b", `,"version":2`),
  "torn": envelope("a/b").slice(0, -1),
};

for (
  const [id, name, contents] of [
    ["chat", "chat.json", damages],
    ["a/b", `_a_b.${hash}.json`, damagesOfEnvelopes],
  ] as const
) {
  for (const [how, content] of Object.entries(contents)) {
    Deno.test(`a damaged file of ${id} (${how}) is an error that names it`, async () => {
      await using folder = await TemporaryFolder.create();
      const store = new FsConversationStore(folder.path);
      const path = await folder.write(name, content);
      await store.save("sound", hello);
      const before = await Deno.readFile(path);

      const error = await assertRejects(() => store.get(id), StoreError, path);
      assertStringIncludes(error.message, "is damaged");
      for (const base of [[], hello]) {
        await assertRejects(() => store.save(id, answered, base), StoreError, path);
      }
      assertEquals(await Deno.readFile(path), before);

      const listed: ConversationInfo[] = [];
      const failure = await assertRejects(
        async () => {
          for await (const info of store.list()) listed.push(info);
        },
        StoreError,
        path,
      );
      assertEquals([failure.code, failure.operation, failure.id], ["store_failed", "list", ""]);
      assertEquals(listed.map((info) => info.id), ["sound"]);

      await store.save(id, answered);
      assertEquals(await store.get(id), answered);
      assertEquals((await Array.fromAsync(store.list())).length, 2);
    });
  }
}

Deno.test("a damaged file can be deleted", async () => {
  await using folder = await TemporaryFolder.create();
  const store = new FsConversationStore(folder.path);
  await folder.write("chat.json", "[{");
  await store.delete("chat");
  assertEquals(await store.get("chat"), null);
});

Deno.test({
  name: "a link is neither read nor written through; a save puts a file in its place",
  ignore: Deno.build.os === "windows", // links need a privilege there
  fn: async () => {
    await using folder = await TemporaryFolder.create();
    const store = new FsConversationStore(folder.path);
    const outside = join(folder.outer, "outside.json");
    await Deno.writeTextFile(outside, JSON.stringify(hello));
    await Deno.mkdir(folder.path);
    for (const target of [outside, join(folder.outer, "nowhere.json")]) {
      const path = join(folder.path, "chat.json");
      await Deno.symlink(target, path);
      await assertRejects(() => store.get("chat"), StoreError, `${path} is not a regular file`);
      await assertRejects(() => store.save("chat", answered, hello), StoreError, path);
      await assertRejects(() => Array.fromAsync(store.list()), StoreError, path);
      await store.save("chat", answered);
      assert((await Deno.lstat(path)).isFile);
      assertEquals(await store.get("chat"), answered);
      await store.delete("chat");
    }
    assertEquals(await Deno.readTextFile(outside), JSON.stringify(hello));
    await assertRejects(() => Deno.lstat(join(folder.outer, "nowhere.json")), Deno.errors.NotFound);

    // A lock file is opened for writing: the link must not be followed there either.
    const [lock = ""] = await folder.lockFiles();
    await Deno.remove(lock);
    await Deno.symlink(outside, lock);
    await assertRejects(() => store.save("chat", answered), StoreError, lock);
    assertEquals(await Deno.readTextFile(outside), JSON.stringify(hello));
  },
});

Deno.test({
  name: "what is no file is an error, and reading it does not wait for ever",
  ignore: Deno.build.os === "windows",
  fn: async () => {
    await using folder = await TemporaryFolder.create();
    const store = new FsConversationStore(folder.path);
    await Deno.mkdir(join(folder.path, "folder.json"), { recursive: true });
    const pipe = join(folder.path, "pipe.json");
    assert((await new Deno.Command("mkfifo", { args: [pipe] }).output()).success);
    for (const id of ["folder", "pipe"]) {
      await assertRejects(() => store.get(id), StoreError, "not a regular file");
    }
    await assertRejects(() => store.save("folder", hello), StoreError, "folder.json");
    assertEquals(await folder.names(), ["folder.json", "pipe.json"]);
  },
});
