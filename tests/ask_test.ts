/** What a conversation is to its user: asked by id, remembered, with the prompt of today. */
import { assert, assertEquals, assertRejects, assertStrictEquals } from "@std/assert";
import {
  type AskOptions,
  createToolkit,
  InMemoryConversationStore,
  type Message,
  type RunOptions,
} from "../mod.ts";
import { flakyStore, stubLlm } from "../src/testing/mod.ts";
import { calling, clientOf, lines, plainStore, toolOf } from "./client_kit.ts";

const STYLES = ["openai", "anthropic"] as const;

for (const style of STYLES) {
  Deno.test(`ask() with an id goes on from where it was (${style})`, async () => {
    await using server = stubLlm(["Hello Ann", "You are Ann"]);
    const client = clientOf(server, { style });
    await client.ask("I am Ann", { id: "a" });
    const { text, messages } = await client.ask("Who am I?", { id: "a" });
    assertEquals(text, "You are Ann");
    const told = ["user: I am Ann", "assistant: Hello Ann", "user: Who am I?"];
    assertEquals(lines(server.requests[1]!.body.messages), told);
    assertEquals(lines(messages), [...told, "assistant: You are Ann"]);
    assertEquals(await client.conversationStore().get("a"), messages);
  });

  Deno.test(`a new system prompt counts at once, and none is stored (${style})`, async () => {
    await using server = stubLlm(() => "ok");
    const store = new InMemoryConversationStore();
    for (const systemPrompt of ["Be brief", "Be kind", undefined]) {
      await clientOf(server, { style, store, systemPrompt }).ask("hi", { id: "a" });
    }
    const sent = server.requests.map(({ body }) =>
      style === "anthropic"
        ? body.system
        : body.messages.filter(({ role }) => role === "system").map(({ content }) => content)
    );
    assertEquals(
      sent,
      style === "anthropic" ? ["Be brief", "Be kind", undefined] : [["Be brief"], ["Be kind"], []],
    );
    assertEquals(
      (await store.get("a"))!.map(({ role }) => role),
      Array(3).fill(["user", "assistant"]).flat(),
    );
  });

  Deno.test(`a seeded system message stays and is sent while the client has none (${style})`, async () => {
    await using server = stubLlm(() => "ok");
    const store = new InMemoryConversationStore();
    await store.save("a", [{ role: "system", content: "You are a pirate" }]);
    await clientOf(server, { style, store }).ask("hi", { id: "a" });
    await clientOf(server, { style, store, systemPrompt: "You are a poet" }).ask("hi", { id: "a" });
    const system = server.requests.map(({ body }) =>
      style === "anthropic"
        ? [body.system]
        : body.messages.filter(({ role }) => role === "system").map(({ content }) => content)
    );
    assertEquals(system, [["You are a pirate"], ["You are a poet"]]);
    assertEquals(lines(await store.get("a"))[0], "system: You are a pirate");
    assertEquals((await store.get("a"))!.length, 5);
  });

  Deno.test(`maxTurns stops the run as incomplete, on a whole round (${style})`, async () => {
    await using server = stubLlm([calling("clock"), calling("clock"), "It is noon"]);
    const client = clientOf(server, { style, toolkit: [toolOf("clock")], maxTurns: 2 });
    const stopped = await client.ask("time?", { id: "a" });
    assertEquals([stopped.status, stopped.limit, stopped.turns], ["incomplete", "maxTurns", 2]);
    assertEquals(stopped.toolCallCount, 2);
    assertEquals(await client.conversationStore().get("a"), stopped.messages);
    // The stub refuses a transcript with an open call.
    const went = await client.ask("well?", { id: "a" });
    assertEquals([went.status, went.text, went.limit], ["done", "It is noon", undefined]);
  });
}

Deno.test("a run has ten turns unless it is told otherwise", async () => {
  await using server = stubLlm(() => calling("clock"));
  const { turns, limit } = await clientOf(server, { toolkit: [toolOf("clock")] }).run("go");
  assertEquals([turns, limit, server.requests.length], [10, "maxTurns", 10]);
});

Deno.test("ask() without an id, and run(), remember nothing", async () => {
  await using server = stubLlm(() => "ok");
  const saved: string[] = [];
  const store = flakyStore(plainStore(), (operation) => (saved.push(operation), "ok"));
  const client = clientOf(server, { store });
  await client.ask("one");
  await client.run("two");
  await client.stream("three").result;
  assertEquals(server.requests.map(({ body }) => body.messages.length), [1, 1, 1]);
  assertEquals(saved, []);
});

Deno.test("ids are kept apart, also those that look alike", async () => {
  await using server = stubLlm(() => "ok");
  const client = clientOf(server);
  const ids = ["a", "A", " a", "a ", "a\n", "a/b", "a_b", "a.b", "a:b", "..", "/", "__proto__"];
  ids.push("constructor", "é", "e\u0301", "\u0000", "../x", "😀", "x".repeat(1024));
  for (const id of ids) await client.ask(`I am ${JSON.stringify(id)}`, { id });
  assertEquals(server.requests.map(({ body }) => body.messages.length), ids.map(() => 1));
  for (const id of ids) {
    const [first] = (await client.conversationStore().get(id))!;
    assertEquals(first?.content, `I am ${JSON.stringify(id)}`);
  }
});

Deno.test("an id that is none is a TypeError before any work", async () => {
  await using server = stubLlm([]);
  const asked: string[] = [];
  const store = flakyStore(plainStore(), (operation) => (asked.push(operation), "ok"));
  const client = clientOf(server, { store });
  const wrong: unknown[] = ["", "\ud800", "x".repeat(1025), "é".repeat(513), 7, null, {}, ["a"]];
  for (const id of wrong) {
    const options = { id } as AskOptions;
    await assertRejects(() => client.ask("hi", options), TypeError, "id");
    await assertRejects(async () => await client.stream("hi", options).result, TypeError, "id");
  }
  assertEquals(asked, []);
});

Deno.test("a history and an id exclude each other: the store is what was said", async () => {
  await using server = stubLlm([]);
  const client = clientOf(server);
  const options = { id: "a", history: [{ role: "user", content: "old" }] };
  await assertRejects(async () => await client.stream("hi", options).result, TypeError, "history");
  await assertRejects(() => client.ask("hi", options as AskOptions), TypeError, "history");
  await assertRejects(() => client.run("hi", options as RunOptions), TypeError, "id");
});

Deno.test("run() goes on from a history and changes nothing of it", async () => {
  await using server = stubLlm([calling("clock"), "noon"]);
  const client = clientOf(server, { toolkit: [toolOf("clock")] });
  const history: Message[] = [
    { role: "user", content: [{ type: "text", text: "hi" }] },
    { role: "assistant", content: "hello" },
  ];
  const before = structuredClone(history);
  const { messages } = await client.run("time?", { history });
  assertEquals(history, before);
  assertEquals(lines(messages).slice(0, 3), ["user: hi", "assistant: hello", "user: time?"]);
  (messages[0]!.content as { text: string }[])[0]!.text = "EVIL";
  assertEquals(history, before);
});

Deno.test("nobody reaches a conversation by what ask() gave or took", async () => {
  await using server = stubLlm(() => "ok");
  const client = clientOf(server);
  const parts = [{ type: "text", text: "hi" }];
  const asking = client.ask(parts, { id: "a" });
  parts[0]!.text = "EVIL";
  const { messages } = await asking;
  const before = structuredClone(messages);
  assertEquals(before[0]?.content, [{ type: "text", text: "hi" }]);
  messages[1]!.content = "EVIL";
  messages.push({ role: "user", content: "EVIL" });
  assertEquals(await client.conversationStore().get("a"), before);
});

Deno.test("a store that keeps the very array is not changed by what a caller does to its own", async () => {
  await using server = stubLlm(() => "ok");
  const map = new Map<string, readonly Message[]>();
  const client = clientOf(server, {
    store: { get: (id) => map.get(id), save: (id, messages) => void map.set(id, messages) },
  });
  const { messages } = await client.ask("hi", { id: "a" });
  messages.push({ role: "user", content: "EVIL" });
  messages.reverse();
  assertEquals(lines(map.get("a")), ["user: hi", "assistant: ok"]);
});

Deno.test("a prompt of parts is sent and stored as it stands", async () => {
  await using server = stubLlm(["a cat"]);
  const client = clientOf(server);
  const image = { type: "image_url", image_url: { url: "data:image/png;base64,AA==" } };
  const prompt = [{ type: "text", text: "What is this?" }, image];
  const { messages } = await client.ask(prompt, { id: "a" });
  assertEquals(server.requests[0]!.body.messages, [{ role: "user", content: prompt }]);
  assertEquals(messages[0], { role: "user", content: prompt });
});

Deno.test("the next ask sees the last one's turn, however slow the store is", async () => {
  await using server = stubLlm(() => "ok");
  const store = flakyStore(
    plainStore(),
    (operation) => operation === "save" ? { delay: 20 } : "ok",
  );
  const client = clientOf(server, { store });
  for (const prompt of ["1", "2", "3"]) await client.ask(prompt, { id: "a" });
  const told = lines(await store.get("a"));
  assertEquals(told.filter((line) => line.startsWith("user")), ["user: 1", "user: 2", "user: 3"]);
  assertEquals(told.length, 6);
});

Deno.test("the model's name goes out as it is, and a call's tools replace the client's", async () => {
  await using server = stubLlm(() => "ok");
  const model = "org/Model:free@latest ü";
  const client = clientOf(server, { model, toolkit: [toolOf("clock")] });
  await client.run("hi");
  await client.run("hi", { toolkit: createToolkit({ tools: [toolOf("dice")] }) });
  await client.run("hi", { toolkit: [] });
  const bodies = server.requests.map(({ body }) => body);
  assertEquals(bodies.map((body) => body.model), [model, model, model]);
  const names = bodies.map(({ tools }) =>
    (tools as { function: { name: string } }[] | undefined)?.map((tool) => tool.function.name)
  );
  assertEquals(names, [["clock"], ["dice"], undefined]);
  assertEquals(Object.keys(bodies[2]!).sort(), ["messages", "model"]);
});

Deno.test("a result tells what the run did and what it cost", async () => {
  await using server = stubLlm([
    { ...calling("clock", "dice"), usage: { promptTokens: 10, completionTokens: 4 } },
    { text: "noon, six", usage: { promptTokens: 20, completionTokens: 3, cachedTokens: 8 } },
  ]);
  const toolkit = [toolOf("clock", () => "noon"), toolOf("dice", () => ({ eyes: 6 }))];
  const result = await clientOf(server, { toolkit }).run("go");
  const { messages, ...rest } = result;
  assertEquals(rest, {
    text: "noon, six",
    toolCalls: [
      { id: "c-clock", name: "clock", args: {}, output: "noon", isError: false },
      { id: "c-dice", name: "dice", args: {}, output: '{"eyes":6}', isError: false },
    ],
    toolCallCount: 2,
    turns: 2,
    usage: { promptTokens: 30, completionTokens: 7, totalTokens: 37, cachedTokens: 8 },
    model: "test",
    finishReason: "stop",
    status: "done",
  });
  assertEquals(messages.length, 5);
});

Deno.test("the system prompt is the client's, a blank line, the toolkit's", async () => {
  await using server = stubLlm(() => "ok");
  const skills = { tools: () => [], prompt: () => "Skills: none" };
  const toolkit = createToolkit({ sources: [skills] });
  await clientOf(server, { toolkit, systemPrompt: "Be brief" }).run("hi");
  await clientOf(server, { toolkit }).run("hi");
  const system = server.requests.map(({ body }) => body.messages[0]?.content);
  assertEquals(system, ["Be brief\n\nSkills: none", "Skills: none"]);
});

Deno.test("the client tells which store it uses, and keeps one of its own otherwise", async () => {
  await using server = stubLlm(() => "ok");
  const store = plainStore();
  assertStrictEquals(clientOf(server, { store }).conversationStore(), store);
  const own = clientOf(server).conversationStore();
  assert(own instanceof InMemoryConversationStore);
  const seeded = clientOf(server, { store: own });
  own.save("a", [{ role: "user", content: "hi" }, { role: "assistant", content: "hello" }]);
  assertEquals((await seeded.ask("more", { id: "a" })).messages.length, 4);
});

Deno.test("types: a history and a prompt may be of another library's types", async () => {
  interface ChatMessage {
    role: "user" | "assistant";
    content: string;
  }
  interface TextPart {
    type: "text";
    text: string;
  }
  const history: ChatMessage[] = [
    { role: "user", content: "Hi" },
    { role: "assistant", content: "Yes?" },
  ];
  const prompt: TextPart[] = [{ type: "text", text: "Well?" }];
  await using server = stubLlm(["ok"]);
  const { messages } = await clientOf(server).run(prompt, { history });
  assertEquals(lines(messages), ["user: Hi", "assistant: Yes?", "user: Well?", "assistant: ok"]);
});
