/** Runs each example as its header says, with the permissions that it names and no others. */
import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { fromFileUrl, join } from "@std/path";
import { conversationStoreContract } from "@toolnexus/client/testing";
import { cappedStore } from "../examples/capped_store.ts";
import { fileStore } from "../examples/file_store.ts";
import { Session } from "./session.ts";

const root = fromFileUrl(new URL("..", import.meta.url));
const isLinux = Deno.build.os === "linux";

/** Nothing of the machine's settings reaches an example. */
const env = {
  NO_COLOR: "1",
  TERM: "xterm",
  LLM_BASE_URL: "",
  LLM_STYLE: "",
  LLM_MODEL: "",
  LLM_API_KEY: "",
};

Deno.test("default_store.ts remembers by id, and nothing without one", async () => {
  assertEquals(await outputOf("default_store.ts"), [
    "I was sent 1 message(s).",
    "I was sent 3 message(s).",
    "I was sent 1 message(s).",
    "I was sent 1 message(s).",
    "Kept as thread-1:",
    "  user: I am Ann.",
    "  assistant: I was sent 1 message(s).",
    "  user: Who am I?",
    "  assistant: I was sent 3 message(s).",
  ]);
});

Deno.test("shared_store.ts lets a strong model of another style continue", async () => {
  assertEquals(await outputOf("shared_store.ts"), [
    "cheap-model (openai style) was sent 1 message(s).",
    "strong-model (anthropic style) was sent 3 message(s).",
    "ticket-9 has 8 messages.",
  ]);
});

Deno.test("file_store.ts goes on where its last run ended, in its folder alone", async () => {
  await using folder = await temporaryFolder();
  assertEquals(await outputOf("file_store.ts", { cwd: folder.path }), [
    "I was sent 1 message(s).",
    "conversations/ keeps 2 messages: run me again.",
  ]);
  assertEquals(await outputOf("file_store.ts", { cwd: folder.path }), [
    "I was sent 3 message(s).",
    "conversations/ keeps 4 messages: run me again.",
  ]);
  assertEquals(await namesIn(folder.path), ["conversations"]);
  const files = await namesIn(join(folder.path, "conversations"));
  assertEquals(files.length, 1);
  assertMatch(files[0]!, /^___me\.[0-9a-f]{64}\.json$/);
});

const openFileStore = async () => {
  const folder = await temporaryFolder();
  const close = () => folder[Symbol.asyncDispose]();
  return { store: fileStore(folder.path), reopen: () => fileStore(folder.path), close };
};
const fileContract = conversationStoreContract(openFileStore, {
  abilities: ["reopen"],
});
for (const { name, run } of fileContract) Deno.test(`file_store.ts: ${name}`, run);

Deno.test("capped_store.ts keeps whole turns", async () => {
  assertEquals(await outputOf("capped_store.ts"), [
    `[ "audit-1: 8" ]`,
    "user, assistant, tool, assistant, user, assistant, tool, assistant",
  ]);
});

Deno.test("compaction.ts stays within its budget and remembers what was summarized", async () => {
  assertEquals(await outputOf("compaction.ts"), [
    "apples: Noted. I was sent 1 messages.",
    "bread: Noted. I was sent 3 messages.",
    "cheese: Noted. I was sent 5 messages.",
    "dates: Noted. I was sent 7 messages.",
    "(6 messages are now: The user likes apples, bread, cheese.)",
    "eggs: Noted. I was sent 4 messages.",
    "figs: Noted. I was sent 6 messages.",
    "(5 messages are now: The user likes apples, bread, cheese, dates, eggs.)",
    "grapes: Noted. I was sent 4 messages.",
    `user: "[Summary of earlier conversation]\\nThe user likes apples, bread, cheese, dates, eggs."`,
    `user: "I like figs, by the way."`,
    `assistant: "Noted. I was sent 6 messages."`,
    `user: "I like grapes, by the way."`,
    `assistant: "Noted. I was sent 4 messages."`,
  ]);
});

const cappedContract = conversationStoreContract(() => cappedStore(Infinity), {
  abilities: [],
  validates: true,
});
for (const { name, run } of cappedContract) Deno.test(`capped_store.ts: ${name}`, run);

Deno.test("capped_store.ts parts no call from its result in either style", async () => {
  const store = cappedStore(1);
  const seeded = { role: "system", content: "Be brief." };
  const prompt = { role: "user", content: "time?" };
  const use = { type: "tool_use", id: "toolu_1", name: "clock", input: {} };
  const result = { type: "tool_result", tool_use_id: "toolu_1", content: "noon" };
  const turn = [
    prompt,
    { role: "assistant", content: [use] },
    { role: "user", content: [result] },
    { role: "assistant", content: "noon" },
  ];
  await store.save("a", [seeded, ...turn, ...turn]);
  assertEquals(await store.get("a"), [seeded, ...turn]);
  const short = [prompt, { role: "assistant", content: "noon" }];
  await store.save("a", [seeded, ...turn, ...short]);
  assertEquals(await store.get("a"), [seeded, ...short]);
});

Deno.test("seed_and_read.ts seeds, reads copies, and moves a conversation", async () => {
  assertEquals(await outputOf("seed_and_read.ts"), [
    "I was sent: system, user, assistant, user.",
    "The client uses that very store: true",
    "6 messages in the copy, 5 in the store",
    "moved seeded with 5 messages",
  ]);
});

Deno.test("streaming.ts shows the answer as it comes", async () => {
  assertEquals(await outputOf("streaming.ts"), [
    "[clock is called]",
    "[clock gave 12:00 UTC]",
    "It is noon in Greenwich.",
    "[30 tokens]",
    "You are welcome.",
    "[6 messages in the conversation]",
  ]);
});

Deno.test("tools.ts runs three calls, and the model is told of the failed one", async () => {
  assertEquals(await outputOf("tools.ts"), [
    `weather({"city":"Paris"}) gave: {"city":"Paris","sky":"sunny"}`,
    `weather({"city":"Atlantis"}) failed: no such city: Atlantis`,
    `add({"a":2,"b":3}) gave: 5`,
    "Paris is sunny, I do not know about Atlantis, and 2 + 3 is 5. (2 answers)",
  ]);
});

Deno.test("hooks.ts vetoes, redacts and audits", async () => {
  const lines = await outputOf("hooks.ts");
  assertEquals(lines.slice(0, 4).sort(), [
    "audit: answer 1 of test",
    "audit: answer 2 of test",
    `audit: delete_customer({"id":7}) failed`,
    `audit: read_customer({"id":7}) ran`,
  ]);
  assertEquals(lines.slice(4), [
    "user: Delete customer 7 with card [card]",
    "assistant: (tool calls)",
    "tool: Ann, card [card]",
    "tool: denied by policy",
    `assistant: I read: "Ann, card [card]"`,
  ]);
});

Deno.test("errors.ts shows what a failed run leaves, and asks again", async () => {
  assertEquals(await outputOf("errors.ts"), [
    "provider_error: LLM 400: the model is on holiday",
    "status 400, on_holiday, retryable: false, 1 attempt(s)",
    "completed: booking number 1",
    "I know from 4 messages that the flight is booked.",
    "After one retry: bon voyage.",
    "flights booked: 1",
    "TypeError: conversation id must not be empty",
  ]);
});

Deno.test("abort.ts keeps what was said", async () => {
  const [told, kept, goneOn, left, ...rest] = await outputOf("abort.ts");
  const [, said] = /^AbortError \(aborted\) after ("one two three.*")$/.exec(told!) ?? [];
  assert(said !== undefined && said !== `"one two three four five six seven"`, told);
  assertEquals([kept, goneOn], [`kept: ${said}`, "Where was I?"]);
  assertMatch(left!, /^kept: "one two.*"$/);
  assertEquals(rest, []);
});

Deno.test("demo.ts shows the main job, piece by piece, in under ten seconds", async () => {
  const started = performance.now();
  const chunks: string[] = [];
  const output = await outputOf("demo.ts", { onChunk: (chunk) => chunks.push(chunk) });
  assert(performance.now() - started < 10_000);
  // Forty-odd deltas with a pause before each: they cannot have come in a few large pieces.
  assert(chunks.length > 10, `the output came in ${chunks.length} pieces`);
  const text = output.join("\n");
  assert(!text.includes("\x1b"), "colour where NO_COLOR forbids it");
  for (
    const part of [
      `call       weather {"city":"Lisbon"}\n  call       weather {"city":"Oslo"}`,
      // Oslo is asked second and answers first: the two ran side by side.
      /result {5}Oslo: rain, 9 °C {2}after 0\.\d s\n {2}result {5}Lisbon: sunny, 24 °C/,
      "Go to Lisbon, and leave the umbrella at home.",
      "(I was sent 5 messages: yours, and all that was said before it.)",
      "The transcript that was kept",
      "tool       Lisbon: sunny, 24 °C\n  tool       Oslo: rain, 9 °C",
    ]
  ) {
    if (typeof part === "string") assertStringIncludes(text, part);
    else assertMatch(text, part);
  }
  assertEquals(text.match(/^ {2}(user|assistant|tool) /gm)?.length, 7);
});

Deno.test({
  name: "demo.ts is in colour in a terminal, and not where NO_COLOR is set",
  ignore: !isLinux, // a pseudo-terminal by util-linux's script(1)
  async fn() {
    const command = await commandOf("demo.ts");
    await using colored = new Session(inTerminal(command), { env: { ...env, NO_COLOR: "" } });
    await using plain = new Session(inTerminal(command), { env });
    assertEquals([await colored.ended(), await plain.ended()], [0, 0]);
    assertStringIncludes(colored.output, "\x1b[32myou");
    assert(!plain.output.includes("\x1b[32m"), plain.output);
  },
});

Deno.test("chat.ts tells its options", async () => {
  const output = (await outputOf("chat.ts")).join("\n");
  for (const option of ["--base-url", "--style", "--model", "--store", "--id", "--help"]) {
    assertStringIncludes(output, option);
  }
});

Deno.test("chat.ts refuses what it does not know, in one line", async () => {
  for (
    const [args, message] of [
      [["--style", "morse"], "--style must be openai or anthropic: morse"],
      [["--store", "tape:x"], "--store must be memory, fs:DIR or kv:FILE: tape:x"],
      [["--base-url", "http://127.0.0.1:9"], "--model is needed with --base-url"],
      [["--base-url", "nowhere", "--model", "m"], "baseUrl must be an http or https URL"],
      [["--colour"], "Unknown option '--colour'"],
    ] as const
  ) {
    await using chat = new Session(await chatCommand(...args), { env });
    assertEquals(await chat.ended(), 1);
    const lines = chat.errors.trimEnd().split("\n").filter((line) => !line.startsWith("Warning"));
    assertEquals(lines.length, 1, chat.errors);
    assertStringIncludes(lines[0]!, message);
  }
});

for (const store of ["memory", "fs:conversations", "kv:conversations.db"]) {
  Deno.test(`chat.ts remembers with --store ${store}`, async () => {
    await using folder = await temporaryFolder();
    const command = await chatCommand("--store", store, "--id", "me");
    const say = async (text: string) => {
      await using chat = new Session(command, { env, cwd: folder.path });
      await chat.type(text);
      await chat.endOfInput();
      assertEquals(await chat.ended(), 0, chat.errors);
      return chat.output;
    };
    const first = await say("hello\nhello again\n");
    assertStringIncludes(first, `You said "hello". This conversation has 1 message(s)`);
    assertStringIncludes(first, `You said "hello again". This conversation has 3 message(s)`);
    const second = await say("and now?"); // a last line without an end is one, too
    const count = store === "memory" ? 1 : 5;
    assertStringIncludes(second, `You said "and now?". This conversation has ${count} message(s)`);
  });
}

Deno.test("chat.ts keeps what was said when a signal stops the answer, and goes on", async () => {
  await using folder = await temporaryFolder();
  const command = await chatCommand("--store", "fs:conversations");
  await using chat = new Session(command, { env, cwd: folder.path });
  await chat.type("count to 1000\n");
  await chat.shows("1 2 3 4 5 6 7 8 9");
  chat.process.kill("SIGINT");
  await chat.shows("[stopped: what was said is kept]");
  const messages = await keptIn(folder.path);
  assertEquals(messages.map(({ role }) => role), ["user", "assistant"]);
  assertMatch(messages[1]!.content, /^1 2 3 4 5 6 7 8 9/);
  assert(messages[1]!.content.length < 1_000, "the answer was not stopped");
  assertStringIncludes(chat.output, messages[1]!.content);

  await chat.type("thanks\n");
  await chat.shows("This conversation has 3 message(s)");
  await chat.endOfInput();
  assertEquals(await chat.ended(), 0);
  assertEquals((await keptIn(folder.path)).length, 4);
});

Deno.test("chat.ts leaves when a signal comes while it waits", async () => {
  await using chat = new Session(await chatCommand(), { env });
  await chat.type("hello\n");
  await chat.shows("stop me with Ctrl-C.\n");
  chat.process.kill("SIGINT");
  assertEquals(await chat.ended(), 0);
});

Deno.test({
  name: "chat.ts in a terminal: Ctrl-C stops the answer, the next one leaves",
  ignore: !isLinux, // a pseudo-terminal by util-linux's script(1)
  async fn() {
    await using folder = await temporaryFolder();
    const command = inTerminal(await chatCommand("--store", "fs:conversations"));
    await using chat = new Session(command, { env, cwd: folder.path });
    await chat.shows("> ");
    await chat.type("count to 1000\r");
    await chat.shows("1 2 3 4 5 6 7 8 9");
    await chat.type("\x03");
    await chat.shows(/\[stopped: what was said is kept\][^]*> /);
    const messages = await keptIn(folder.path);
    assertMatch(messages[1]!.content, /^1 2 3 4 5 6 7 8 9/);
    await chat.type("\x03");
    assertEquals(await chat.ended(), 0);
  },
});

Deno.test("every example is run by a test and names its command", async () => {
  const tests: string[] = [];
  for (const folder of [join(root, "tests"), join(root, "tests", "servers")]) {
    for (const name of await namesIn(folder)) {
      if (name.endsWith("_test.ts")) tests.push(await Deno.readTextFile(join(folder, name)));
    }
  }
  for (const name of await namesIn(join(root, "examples"))) {
    assert(tests.some((test) => test.includes(name)), `no test names ${name}`);
    await commandOf(name);
  }
});

/** The command in an example's header, with the example's whole path. */
async function commandOf(name: string): Promise<string[]> {
  const path = join(root, "examples", name);
  const [header = ""] = (await Deno.readTextFile(path)).split("\n\n");
  const text = header.replaceAll(/^\/\/ ?/gm, "").replaceAll("\\\n", " ");
  const [command] = /^ *deno (run|serve|test) .*$/m.exec(text) ?? [];
  assert(command !== undefined, `${name} names no command in its header`);
  const words = command.trim().split(/\s+/);
  const script = words.indexOf(`examples/${name}`);
  assert(script >= 0, `the command of ${name} does not run it: ${command}`);
  words[script] = path;
  words.splice(2, 0, "--no-prompt");
  return [Deno.execPath(), ...words.slice(1)];
}

/** The chat's own command, with other arguments than its header shows. */
async function chatCommand(...args: string[]): Promise<string[]> {
  const command = await commandOf("chat.ts");
  return [...command.filter((word) => word !== "--help"), ...args];
}

/** By `exec`, for a shell that waited would die of the Ctrl-C that its program has handled. */
function inTerminal(command: string[]): string[] {
  const line = ["exec", ...command.map((word) => `'${word}'`)].join(" ");
  return ["script", "--quiet", "--return", "--command", line, "/dev/null"];
}

/** Runs an example to its end and gives the lines that it printed. */
async function outputOf(
  name: string,
  options: { cwd?: string; onChunk?: (chunk: string) => void } = {},
): Promise<string[]> {
  const { onChunk, ...spawning } = options;
  await using session = new Session(await commandOf(name), { ...spawning, env }, onChunk);
  assertEquals(await session.ended(), 0, session.errors);
  return session.output.trimEnd().split("\n");
}

async function temporaryFolder(): Promise<{ path: string } & AsyncDisposable> {
  const path = await Deno.makeTempDir({ prefix: "toolnexus-example-" });
  return { path, [Symbol.asyncDispose]: () => Deno.remove(path, { recursive: true }) };
}

async function namesIn(folder: string): Promise<string[]> {
  return (await Array.fromAsync(Deno.readDir(folder), ({ name }) => name)).sort();
}

/** The conversation that the chat has kept in a folder. */
async function keptIn(folder: string): Promise<{ role: string; content: string }[]> {
  return JSON.parse(await Deno.readTextFile(join(folder, "conversations", "chat.json")));
}
