/** The files of the file store: their names and their text, ours and those of others. */
import { assert, assertEquals, assertLessOrEqual, assertMatch, assertRejects } from "@std/assert";
import { basename, dirname, join } from "@std/path";
import { ConversationConflictError, type Message } from "../mod.ts";
import { FsConversationStore } from "../stores/fs.ts";
import { TemporaryFolder } from "./fixtures/fs_folder.ts";

const hello: Message[] = [{ role: "user", content: "hello" }];
const answered: Message[] = [...hello, { role: "assistant", content: "hi" }];

/** SHA-256 of `a/b`. */
const hash = "c14cddc033f64b9dea80ea675cf280a015e672516090a5626781153dc68fea11";

const hostileIds = [
  ...[
    "../evil",
    "/",
    "\\",
    ".",
    "..",
    "...",
    "a/b",
    "a\\b",
    "a:b",
    "a.b",
    "a_b",
    "a b",
    "a\n",
    " ",
  ],
  ...["a", "A", "chat", "Chat", "CHAT", "con", "CON", "Nul", "aux", "com1", "lpt9", "con.json"],
  ...["trailing.", "trailing ", "_", "_a", "-", "--help", "~", "$HOME", "%41", "a%2fb", '*?<>|"'],
  ...["x".repeat(100), "x".repeat(101), "X".repeat(100), "x".repeat(1024), "é".repeat(512)],
  ...[
    "caf\u00e9",
    "cafe\u0301",
    "日本",
    "🦄".repeat(256),
    "a\u0000b",
    "\ufeff",
    "\u202e",
    "ﬁ",
    "fi",
  ],
  ...["__proto__", "constructor", "hasOwnProperty", ".lock-0", ".temp-0-0", "chat.json"],
  ...[`_a_b.${hash}`, `_a_b.${hash}.json`, "package", "İ", "i", "K", "k"],
];

Deno.test("a plain id is the name of its file: a JSON array, one message a line", async () => {
  await using folder = await TemporaryFolder.create();
  const store = new FsConversationStore(folder.path);
  const messages = [
    { role: "user", content: "two\nlines \u2028 é 🦄 \ud83d" },
    { role: "assistant", content: null, tool_calls: [{ id: "c1", arguments: '{"a":1}' }] },
  ];
  await store.save("thread-42", messages);
  assertEquals(
    await folder.read("thread-42.json"),
    `[
{"role":"user","content":"two\\nlines \u2028 é 🦄 \\ud83d"},
{"role":"assistant","content":null,"tool_calls":[{"id":"c1","arguments":"{\\"a\\":1}"}]}
]
`,
  );
  assertEquals(await store.get("thread-42"), messages);
  await store.save("empty", []);
  assertEquals(await folder.read("empty.json"), "[]\n");
  assertEquals(await store.get("empty"), []);
  assertEquals(await folder.names(), ["empty.json", "thread-42.json"]);
});

Deno.test("any other id gets a name with a hash, and stands first in its file", async () => {
  await using folder = await TemporaryFolder.create();
  const store = new FsConversationStore(folder.path);
  await store.save("a/b", answered);
  assertEquals(await folder.names(), [`_a_b.${hash}.json`]);
  assertEquals(
    await folder.read(`_a_b.${hash}.json`),
    `{"id":"a/b","messages":[
{"role":"user","content":"hello"},
{"role":"assistant","content":"hi"}
]}
`,
  );
  assertEquals(await store.get("a/b"), answered);
});

Deno.test("no id chooses a path, and no two share a file, whatever the file system", async () => {
  await using folder = await TemporaryFolder.create();
  const store = new FsConversationStore(folder.path);
  await Promise.all(hostileIds.map((id) => store.save(id, [{ role: "user", content: id }], [])));
  for (const id of hostileIds) assertEquals(await store.get(id), [{ role: "user", content: id }]);

  const names = await folder.names();
  assertEquals(names.length, hostileIds.length);
  assertEquals(new Set(names.map((name) => name.toLowerCase())).size, hostileIds.length);
  for (const name of names) {
    assertMatch(name, /^[A-Za-z0-9_-]+(?:\.[0-9a-f]{64})?\.json$/);
    assert(!/^(?:con|prn|aux|nul|com\d|lpt\d)\./i.test(name), name);
    assertLessOrEqual(name.length, 143);
  }
  assertEquals((await Array.fromAsync(Deno.readDir(folder.outer))).map((entry) => entry.name), [
    basename(folder.path),
  ]);
  assertEquals(
    (await Array.fromAsync(store.list())).map(({ id }) => id).sort(),
    [...hostileIds].sort(),
  );

  for (const id of hostileIds) await store.delete(id);
  assertEquals(await folder.names(), []);
});

Deno.test("a file written by hand is read, and is a base like any other", async () => {
  await using folder = await TemporaryFolder.create();
  const store = new FsConversationStore(folder.path);
  const text = `\ufeff${JSON.stringify(answered, null, 2).replaceAll("\n", "\r\n")}`;
  await folder.write("by-hand.json", text);
  const read = await store.get("by-hand");
  assertEquals(read, answered);
  await store.save("by-hand", [...read!, ...hello], read!);
  assertEquals((await folder.read("by-hand.json")).split("\n").length, 3 + 2 + 1);
});

Deno.test("a file from another port is read under its exact name, and the next save moves it", async () => {
  await using folder = await TemporaryFolder.create();
  const store = new FsConversationStore(folder.path);
  for (const id of ["Chat", "con", "_private", "x".repeat(150)]) {
    await folder.write(`${id}.json`, JSON.stringify([{ role: "user", content: id }]));
    const read = await store.get(id);
    assertEquals(read, [{ role: "user", content: id }]);
    await assertRejects(() => store.save(id, answered, []), ConversationConflictError);
    assert((await folder.names()).includes(`${id}.json`));
    await store.save(id, [...read!, ...hello], read!);
    assert(!(await folder.names()).includes(`${id}.json`));
    assertEquals((await store.get(id))?.length, 2);
  }
  assertEquals(await store.get("chat"), null);
  assertEquals((await Array.fromAsync(store.list())).map(({ messageCount }) => messageCount), [
    2,
    2,
    2,
    2,
  ]);
});

Deno.test("where case is ignored, Chat.json is not taken for the chat.json of another", async () => {
  await using folder = await TemporaryFolder.create();
  const store = new FsConversationStore(folder.path);
  await store.save("chat", hello);
  using _ = ignoringCase();
  assert((await Deno.lstat(join(folder.path, "Chat.json"))).isFile);
  assertEquals(await store.get("Chat"), null);
  await store.save("Chat", answered, []);
  assertEquals(await store.get("chat"), hello);
  assertEquals(await store.get("Chat"), answered);
  await store.delete("Chat");
  assertEquals(await store.get("chat"), hello);
});

Deno.test("another port's file that a save could not remove any more does not come back", async () => {
  await using folder = await TemporaryFolder.create();
  const store = new FsConversationStore(folder.path);
  await store.save("Chat", answered);
  await folder.write("Chat.json", JSON.stringify(hello));
  assertEquals(await store.get("Chat"), answered);
  assertEquals(
    (await Array.fromAsync(store.list())).map(({ id, messageCount }) => [id, messageCount]),
    [[
      "Chat",
      2,
    ]],
  );
  await store.delete("Chat");
  assertEquals(await folder.names(), []);

  await store.save("Chat", answered);
  await folder.write("Chat.json", JSON.stringify(hello));
  await store.save("Chat", [...answered, ...hello], answered);
  assertEquals((await folder.names()).includes("Chat.json"), false);
});

Deno.test("list shows a conversation that is moved meanwhile, once", async () => {
  for (const isUnfinished of [false, true]) {
    await using folder = await TemporaryFolder.create();
    await folder.write("a.json", "[]");
    await folder.write("Chat.json", JSON.stringify(hello));
    const store = new FsConversationStore(folder.path);
    const listing = store.list();
    // The names are read by now.
    const ids = [(await listing.next()).value?.id];
    await store.save("Chat", answered, hello);
    if (isUnfinished) await folder.write("Chat.json", JSON.stringify(hello));
    for await (const { id } of listing) ids.push(id);
    assertEquals(ids.sort(), ["Chat", "a"]);
  }
});

/** Until it is disposed, `lstat`, `readFile` and `remove` find files as they do on such a system. */
function ignoringCase(): Disposable {
  const { lstat, readFile, remove } = Deno;
  const actual = (path: string | URL): string => {
    const dir = dirname(path), name = basename(path);
    const names = [...Deno.readDirSync(dir)].map((entry) => entry.name);
    return join(dir, names.find((other) => other.toLowerCase() === name.toLowerCase()) ?? name);
  };
  Deno.lstat = (path) => lstat(actual(path));
  Deno.readFile = (path, options) => readFile(actual(path), options);
  Deno.remove = (path, options) => remove(actual(path), options);
  return {
    [Symbol.dispose]() {
      Object.assign(Deno, { lstat, readFile, remove });
    },
  };
}

Deno.test("a delete removes the file of another port, too", async () => {
  await using folder = await TemporaryFolder.create();
  await folder.write("Chat.json", JSON.stringify(hello));
  const store = new FsConversationStore(folder.path);
  await store.delete("Chat");
  assertEquals(await store.get("Chat"), null);
});
