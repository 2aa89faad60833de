/** What a compactor counts, and how near it keeps to its budget. */
import { assert, assertEquals, assertThrows } from "@std/assert";
import { compactor, type Message } from "../mod.ts";
import { stubLlm, type StubReply, type StubRequest } from "../src/testing/mod.ts";
import { calling, clientOf, toolOf } from "./client_kit.ts";

const BUDGET = 8_000;

/** A stub that tells how long its longest request was, in tokens. */
function measured(reply: (request: StubRequest) => StubReply = () => "ok") {
  const requests = { largest: 0 };
  const server = stubLlm((request) => {
    requests.largest = Math.max(requests.largest, request.text.length / 4);
    return reply(request);
  });
  return { server, requests };
}

for (const style of ["openai", "anthropic"] as const) {
  Deno.test(`a tool's text is counted by its length, though it begins like data (${style})`, async () => {
    const log = "data: one event of a stream\n".repeat(700);
    const { server, requests } = measured(({ body }) =>
      JSON.stringify(body.messages.at(-1)).includes("go on") ? calling("read_log") : "ok"
    );
    await using _server = server;
    const client = clientOf(server, {
      style,
      toolkit: [toolOf("read_log", () => log)],
      hooks: { beforeLLM: compactor({ maxTokens: BUDGET, summarize: () => "logs" }) },
    });
    for (let turn = 0; turn < 6; turn++) await client.ask(`go on ${turn}`, { id: "a" });
    assert(requests.largest < BUDGET + log.length / 4, `${requests.largest} tokens`);
  });
}

Deno.test("a document that is text is counted by its length", async () => {
  const { server, requests } = measured();
  await using _server = server;
  const client = clientOf(server, {
    style: "anthropic",
    hooks: { beforeLLM: compactor({ maxTokens: BUDGET, summarize: () => "documents" }) },
  });
  const source = { type: "text", media_type: "text/plain", data: "words ".repeat(4_000) };
  for (let turn = 0; turn < 5; turn++) {
    const document = { type: "document", source };
    await client.ask([document, { type: "text", text: "Read it" }], { id: "a" });
  }
  assert(requests.largest < BUDGET + 6_000, `${requests.largest} tokens`);
});

Deno.test("an argument that is named data is counted by its length", async () => {
  const summaries: number[] = [];
  const beforeLLM = compactor({
    maxTokens: 1_000,
    summarize: ({ length }) => `${summaries.push(length)}`,
  });
  const call = { type: "tool_use", name: "put", input: { data: "x" } };
  const messages = Array.from({ length: 5 }, (_, turn): Message[] => [
    { role: "user", content: "put it" },
    { role: "assistant", content: [{ ...call, id: `c${turn}` }] },
    { role: "user", content: [{ type: "tool_result", tool_use_id: `c${turn}`, content: "done" }] },
  ]).flat();
  assertEquals(await beforeLLM({ messages }), undefined);
  assertEquals(summaries, []);
});

for (
  const [keepTail, summaryTokens] of [[undefined, 4_800], [8_000, 2_000], [6_400, 4_000]] as const
) {
  Deno.test(`a summary of ${summaryTokens} tokens beside a tail of ${keepTail} keeps the budget`, async () => {
    const { server, requests } = measured();
    await using _server = server;
    let summaries = 0;
    const summarize = () => {
      summaries++;
      return "s".repeat(summaryTokens * 4);
    };
    const beforeLLM = compactor({ maxTokens: BUDGET, keepTail, summarize });
    const client = clientOf(server, { hooks: { beforeLLM } });
    // A turn is 200 tokens.
    for (let turn = 0; turn < 100; turn++) await client.ask("word ".repeat(150), { id: "a" });
    assert(requests.largest <= BUDGET + 200, `${requests.largest} tokens`);
    assert(summaries > 0 && summaries < 25, `${summaries} summaries`);
  });
}

for (const way of ["run", "translate"] as const) {
  Deno.test(`a summary that ${way}() of the same client makes of the messages themselves is made once`, async () => {
    await using server = stubLlm(({ text }) => text.includes("Summarize") ? "summary" : "ok");
    let summaries = 0;
    const client = clientOf(server, {
      hooks: {
        beforeLLM: compactor({
          maxTokens: 100,
          keepTail: 0,
          async summarize(messages) {
            summaries++;
            const prompt = { role: "user", content: "Summarize" };
            return way === "run"
              ? (await client.run("Summarize", { history: messages })).text
              : (await client.translate({ messages: [...messages, prompt] })).text;
          },
        }),
      },
    });
    await client.ask("long ".repeat(100), { id: "a" });
    assertEquals((await client.ask("short", { id: "a" })).text, "ok");
    assertEquals(summaries, 1);
    const [first] = await client.conversationStore().get("a") ?? [];
    assertEquals(first?.content, "[Summary of earlier conversation]\nsummary");
  });
}

Deno.test("a budget that is no number is refused by its name", () => {
  const create = compactor as (options: unknown) => unknown;
  for (const [value, shown] of [[10n, "10n"], [Symbol("x"), "Symbol(x)"]] as const) {
    const options = { maxTokens: value, summarize: () => "" };
    assertThrows(() => create(options), TypeError, `maxTokens must be a number: ${shown}`);
  }
});
