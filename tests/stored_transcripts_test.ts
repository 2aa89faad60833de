/** A stored transcript is always sendable: mended when it is read, whatever was left in the store. */
import { assertEquals, assertRejects, assertStringIncludes } from "@std/assert";
import {
  type ConversationStore,
  InMemoryConversationStore,
  type Message,
  type StoreError,
} from "../mod.ts";
import { stubLlm } from "../src/testing/mod.ts";
import { calling, clientOf, lines, toolOf } from "./client_kit.ts";

const INTERRUPTED = "interrupted: may or may not have run";

Deno.test("a conversation moves to the other provider and back, tools included", async () => {
  await using server = stubLlm([calling("clock"), "noon", calling("dice"), "six", "bye"]);
  const store = new InMemoryConversationStore();
  const options = { store, toolkit: [toolOf("clock"), toolOf("dice")], systemPrompt: "Be brief" };
  const openai = clientOf(server, options);
  const anthropic = clientOf(server, { ...options, style: "anthropic" });
  await openai.ask("time?", { id: "a" });
  await anthropic.ask("roll", { id: "a" });
  // The stub refuses what the real providers would.
  const { messages } = await openai.ask("bye", { id: "a" });
  assertEquals(lines(messages), [
    "user: time?",
    "assistant: [clock]",
    "tool: clock ran",
    "assistant: noon",
    "user: roll",
    "assistant: [dice]",
    "user: dice ran",
    "assistant: six",
    "user: bye",
    "assistant: bye",
  ]);
});

for (const style of ["openai", "anthropic"] as const) {
  Deno.test(`a call that nobody answered is closed, told, and stays closed (${style})`, async () => {
    await using server = stubLlm(() => "ok");
    const store = new InMemoryConversationStore();
    const call: Message = style === "openai"
      ? {
        role: "assistant",
        content: null,
        tool_calls: [{ id: "c1", type: "function", function: { name: "pay", arguments: "{}" } }],
      }
      : { role: "assistant", content: [{ type: "tool_use", id: "c1", name: "pay", input: {} }] };
    await store.save("a", [{ role: "user", content: "pay" }, call]);
    const client = clientOf(server, { style, store });
    const first = await client.ask("well?", { id: "a" });
    assertEquals(first.repaired, { closedCalls: ["c1"], droppedResults: [] });
    assertStringIncludes(lines(first.messages).join("\n"), INTERRUPTED);
    assertEquals(await store.get("a"), first.messages);
    assertEquals((await client.ask("and?", { id: "a" })).repaired, undefined);
  });

  Deno.test(`a result that belongs to no call is dropped and told (${style})`, async () => {
    await using server = stubLlm(() => "ok");
    const store = new InMemoryConversationStore();
    const transcript: Message[] = style === "openai"
      ? [
        { role: "tool", tool_call_id: "B", content: "stray" },
        { role: "user", content: "hi" },
        {
          role: "assistant",
          content: null,
          tool_calls: [{ id: "A", type: "function", function: { name: "f", arguments: "{}" } }],
        },
        { role: "tool", tool_call_id: "B", content: "stray" },
      ]
      : [
        { role: "user", content: "hi" },
        { role: "assistant", content: [{ type: "tool_use", id: "A", name: "f", input: {} }] },
        { role: "user", content: [{ type: "tool_result", tool_use_id: "B", content: "stray" }] },
      ];
    await store.save("a", transcript);
    const { messages, repaired } = await clientOf(server, { style, store }).ask("go", { id: "a" });
    assertEquals(repaired?.closedCalls, ["A"]);
    assertEquals(new Set(repaired?.droppedResults), new Set(["B"]));
    assertEquals(lines(messages).join().includes("stray"), false);
  });
}

Deno.test("a given history is mended too, on a copy", async () => {
  await using server = stubLlm(["ok"]);
  const history: Message[] = [
    { role: "user", content: "hi" },
    {
      role: "assistant",
      content: "",
      tool_calls: [{ id: "c1", type: "function", function: { name: "f", arguments: '{"a":' } }],
    },
  ];
  const { messages, repaired } = await clientOf(server).run("go", { history });
  assertEquals(repaired?.closedCalls, ["c1"]);
  assertEquals(lines(messages)[2], "tool: not executed");
  assertEquals(history.length, 2);
});

Deno.test("a transcript that needs no mending is sent as it is and not reported", async () => {
  await using server = stubLlm([calling("clock"), "noon", "ok"]);
  const client = clientOf(server, { toolkit: [toolOf("clock")] });
  const first = await client.ask("time?", { id: "a" });
  const second = await client.ask("thanks", { id: "a" });
  assertEquals(second.repaired, undefined);
  assertEquals(second.messages.slice(0, 4), first.messages);
  assertEquals(server.requests[2]!.body.messages.slice(0, 4), first.messages);
});

Deno.test("half a character and NUL in a tool's output reach the model as whole Unicode", async () => {
  await using server = stubLlm([calling("cut"), "ok", "ok"]);
  const client = clientOf(server, { toolkit: [toolOf("cut", () => "a\u0000b\ud83d \\ud83d")] });
  // The stub refuses ill-formed Unicode.
  await client.ask("go \udc00", { id: "a" });
  const { body } = server.requests[1]!;
  assertEquals(body.messages.at(-1)?.content, "a\u0000b\ufffd \\ud83d");
  assertEquals(body.messages[0]?.content, "go \ufffd");
  await client.ask("more", { id: "a" });
});

Deno.test("what a store gives is data: a transcript that is none is a typed error", async () => {
  await using server = stubLlm([]);
  for (const kept of ["hi", 7, {}, [null], ["hi"], [["user", "hi"]]]) {
    const store: ConversationStore = { get: () => kept as Message[], save: () => {} };
    const error = await assertRejects(() => clientOf(server, { store }).ask("hi", { id: "a" }));
    assertEquals((error as StoreError).code, "store_failed", `${JSON.stringify(kept)}: ${error}`);
    assertEquals((error as StoreError).operation, "get");
  }
});

Deno.test("a message that looks like a class or a prototype stays data", async () => {
  await using server = stubLlm(() => "ok");
  const client = clientOf(server);
  const prompt = [
    { type: "text", text: "hi", lc: 2, constructor: "x" },
    JSON.parse(
      '{"type":"text","text":"x","__proto__":{"polluted":1}}',
    ),
  ];
  const { messages } = await client.ask(prompt, { id: "a" });
  const again = (await client.conversationStore().get("a"))!;
  assertEquals(JSON.stringify(again[0]!.content), JSON.stringify(prompt));
  assertEquals(JSON.stringify(again), JSON.stringify(messages));
  assertEquals(({} as Record<string, unknown>).polluted, undefined);
});
