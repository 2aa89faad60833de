/** A conversation of any length stays within a budget, and nothing that is open is lost by it. */
import {
  assert,
  assertEquals,
  assertRejects,
  assertStrictEquals,
  assertThrows,
  fail,
} from "@std/assert";
import {
  type Client,
  compactor,
  type CompactorOptions,
  ConversationConflictError,
  HookError,
  InMemoryConversationStore,
  type Message,
  pending,
  StoreError,
} from "../mod.ts";
import { flakyStore, stubLlm } from "../src/testing/mod.ts";
import { calling, clientOf, LedgerStore, lines, toolOf } from "./client_kit.ts";
import { assertSame, freeze } from "./transcripts.ts";

const STYLES = ["openai", "anthropic"] as const;
const SUMMARY = "[Summary of earlier conversation]";

/** Counts each message as one token. */
const countTokens = (messages: readonly Message[]) => messages.length;

/** A summary of what was said, in one line; a summary in it goes on. */
function summarize(messages: readonly Message[]): string {
  return lines(messages).map((line) => line.replace(`user: ${SUMMARY}\n`, "")).join("; ");
}

/** A compactor of five messages, of which it keeps two or more. */
function compactorOf(options: Partial<CompactorOptions> = {}) {
  return compactor({ maxTokens: 5, keepTail: 2, summarize, countTokens, ...options });
}

function turns(...texts: string[]): Message[] {
  return texts.flatMap((text) => [
    { role: "user", content: text },
    { role: "assistant", content: text.toUpperCase() },
  ]);
}

async function stored(client: Client): Promise<string[]> {
  return lines(await client.conversationStore().get("a"));
}

Deno.test("compactor() leaves a transcript of the budget alone, and makes a longer one shorter", async () => {
  const beforeLLM = compactorOf();
  const five = freeze([...turns("a", "b"), { role: "user", content: "c" }]);
  assertEquals(await beforeLLM({ messages: five }), undefined);
  const seven = freeze([...turns("a", "b", "c"), { role: "user", content: "d" }]);
  const { messages } = await beforeLLM({ messages: seven }) ?? {};
  assertEquals(messages?.[0], {
    role: "user",
    content: `${SUMMARY}\nuser: a; assistant: A; user: b; assistant: B; user: c; assistant: C`,
  });
  assertSame(messages!.slice(1), seven.slice(6));
});

Deno.test("compactor() keeps as many whole turns as keepTail allows, and the last one always", async () => {
  const transcript = [...turns("a", "b", "c"), { role: "user", content: "d" }];
  const kept = async (keepTail: number | undefined) => {
    const { messages } = await compactorOf({ keepTail })({ messages: transcript }) ?? {};
    return messages!.length - 1;
  };
  assertEquals([await kept(0), await kept(1), await kept(2)], [1, 1, 1]);
  assertEquals([await kept(3), await kept(4), await kept(5)], [3, 3, 5]);
  assertEquals(await kept(undefined), 1); // a half of five
});

Deno.test("compactor() keeps the system messages at the start first", async () => {
  const head = [{ role: "system", content: "Be brief" }, { role: "developer", content: "Be kind" }];
  const transcript = freeze([...head, ...turns("a", "b"), { role: "user", content: "c" }]);
  const { messages } = await compactorOf()({ messages: transcript }) ?? {};
  assertSame(messages!.slice(0, 2), head);
  assertEquals(lines(messages).slice(2), [
    `user: ${SUMMARY}\nuser: a; assistant: A; user: b; assistant: B`,
    "user: c",
  ]);
});

Deno.test("compactor() folds an earlier summary into the next one", async () => {
  const beforeLLM = compactorOf();
  let messages = turns("a", "b", "c");
  for (const text of ["d", "e"]) {
    messages = [...messages, { role: "user", content: text }];
    messages = (await beforeLLM({ messages }))?.messages ?? messages;
    messages = [...messages, ...turns(text).slice(1), ...turns(`${text}2`)];
  }
  assertEquals(lines(messages), [
    `user: ${SUMMARY}\nuser: a; assistant: A; user: b; assistant: B; user: c; assistant: C; ` +
    "user: d; assistant: D; user: d2; assistant: D2",
    "user: e",
    "assistant: E",
    "user: e2",
    "assistant: E2",
  ]);
});

Deno.test("compactor() leaves a single turn over the budget, and a summary in front of it", async () => {
  const never = compactorOf({ summarize: () => fail("it is summarized") });
  const call = { type: "tool_use", name: "ping", input: {} };
  const rounds = ["1", "2", "3"].flatMap((id) => [
    { role: "assistant", content: [{ ...call, id }] },
    { role: "user", content: [{ type: "tool_result", tool_use_id: id, content: "pong" }] },
  ]);
  const single = [{ role: "user", content: "go" }, ...rounds];
  assertEquals(await never({ messages: single }), undefined);
  const summary = { role: "user", content: `${SUMMARY}\nnothing yet` };
  assertEquals(await never({ messages: [summary, ...single] }), undefined);
  assertEquals(await never({ messages: rounds }), undefined);
  assertEquals(
    await never({ messages: turns("a", "b", "c").filter((m) => m.role !== "user") }),
    undefined,
  );
});

Deno.test("compactor() changes nothing when the summary is empty", async () => {
  const transcript = [...turns("a", "b", "c"), { role: "user", content: "d" }];
  for (const summary of ["", " \n"]) {
    const beforeLLM = compactorOf({ summarize: () => summary });
    assertEquals(await beforeLLM({ messages: transcript }), undefined);
  }
});

Deno.test("compactor() counts text by its length, and pictures not", async () => {
  const texts: string[] = [];
  const beforeLLM = compactor({
    maxTokens: 4000,
    summarize: (messages) => (texts.push(...lines(messages)), "pictures"),
  });
  const data = "A".repeat(1_000_000);
  const image = { type: "image", source: { type: "base64", media_type: "image/png", data } };
  const url = { type: "image_url", image_url: { url: `data:image/png;base64,${data}` } };
  const file = { type: "file", file: { filename: "a.pdf", file_data: data } };
  const picture = (part: unknown): Message => ({ role: "user", content: [part] });
  assertEquals(await beforeLLM({ messages: [picture(image), picture(url)] }), undefined);
  assertEquals(await beforeLLM({ messages: [picture(file), ...turns("a")] }), undefined);
  assert(await beforeLLM({ messages: [picture(image), picture(url), picture(file)] }));
  // 4,000 tokens are 16,000 characters of JSON.
  const text = (length: number) => [...turns("a"), { role: "user", content: "x".repeat(length) }];
  assertEquals(await beforeLLM({ messages: text(15_800) }), undefined);
  assert(await beforeLLM({ messages: text(16_000) }));
});

Deno.test("compactor() takes a count that is waited for", async () => {
  const beforeLLM = compactorOf({ countTokens: (messages) => Promise.resolve(messages.length) });
  assertEquals(await beforeLLM({ messages: turns("a", "b") }), undefined);
  assert(await beforeLLM({ messages: turns("a", "b", "c") }));
});

Deno.test("compactor() refuses wrong options at once, and wrong answers when they come", async () => {
  const create = compactor as (options: unknown) => ReturnType<typeof compactor>;
  for (
    const [options, error, message] of [
      [undefined, TypeError, "options must be an object"],
      [{ maxTokens: 5 }, TypeError, "summarize must be a function: undefined"],
      [{ summarize }, TypeError, "maxTokens must be a number: undefined"],
      [{ summarize, maxTokens: "5" }, TypeError, `maxTokens must be a number: "5"`],
      [{ summarize, maxTokens: 0 }, RangeError, "maxTokens must be above 0: 0"],
      [{ summarize, maxTokens: NaN }, RangeError, "maxTokens must be above 0: NaN"],
      [{ summarize, maxTokens: 5, keepTail: 6 }, RangeError, "keepTail must be from 0 to"],
      [{ summarize, maxTokens: 5, keepTail: -1 }, RangeError, "keepTail must be from 0 to"],
      [{ summarize, maxTokens: 5, keepTail: "2" }, TypeError, "keepTail must be a number"],
      [{ summarize, maxTokens: 5, countTokens: 4 }, TypeError, "countTokens must be a function"],
    ] as const
  ) {
    assertThrows(() => create(options), error, message);
  }
  const messages = turns("a", "b", "c");
  const noText = create({ summarize: () => ({ text: "" }), maxTokens: 5, countTokens });
  await assertRejects(() => noText({ messages }), TypeError, "summarize must give a string");
  const noCount = create({ summarize, maxTokens: 5, countTokens: () => NaN });
  await assertRejects(() => noCount({ messages }), TypeError, "countTokens must give a number");
});

for (const style of STYLES) {
  Deno.test(`ask() sends and saves the compacted transcript (${style})`, async () => {
    await using server = stubLlm(() => "ok");
    const beforeLLM = compactorOf({ keepTail: 3 });
    const client = clientOf(server, { style, hooks: { beforeLLM } });
    for (const prompt of ["a", "b", "c", "d"]) await client.ask(prompt, { id: "a" });
    const { messages } = await client.ask("e", { id: "a" });
    assertEquals(lines(messages), [
      `user: ${SUMMARY}\nuser: a; assistant: ok; user: b; assistant: ok; user: c; assistant: ok`,
      ...["user: d", "assistant: ok", "user: e", "assistant: ok"],
    ]);
    assertEquals(await client.conversationStore().get("a"), messages);
    const sent = server.requests.map(({ body }) => body.messages.length);
    // In the Anthropic style the summary and the prompt behind it are sent as one message.
    assertEquals(sent, style === "openai" ? [1, 3, 5, 4, 4] : [1, 3, 5, 3, 3]);
    assert(JSON.stringify(server.requests.at(-1)!.body.messages[0]).includes(SUMMARY));
  });

  Deno.test(`the model may summarize through the client that is compacted (${style})`, async () => {
    await using server = stubLlm(({ body }) => {
      const [message] = body.messages.slice(-1);
      const text = JSON.stringify(message?.content);
      return text.includes("Summarize") ? "They said a and b" : "ok";
    });
    const client: Client = clientOf(server, {
      style,
      hooks: {
        beforeLLM: compactorOf({
          maxTokens: 4,
          summarize: async (older) =>
            (await client.run(`Summarize: ${JSON.stringify(older)}`)).text,
        }),
      },
    });
    for (const prompt of ["a", "b", "c"]) await client.ask(prompt, { id: "a" });
    assertEquals(await stored(client), [
      `user: ${SUMMARY}\nThey said a and b`,
      "user: c",
      "assistant: ok",
    ]);
  });

  Deno.test(`a long run of tools is compacted before it, and its own rounds are kept (${style})`, async () => {
    await using server = stubLlm(["A", "B", calling("ping"), calling("ping"), "C"]);
    const toolkit = [toolOf("ping")];
    const client = clientOf(server, { style, toolkit, hooks: { beforeLLM: compactorOf() } });
    for (const prompt of ["a", "b", "c"]) await client.ask(prompt, { id: "a" });
    const result = style === "openai" ? "tool: ping ran" : "user: ping ran";
    assertEquals(await stored(client), [
      `user: ${SUMMARY}\nuser: a; assistant: A; user: b; assistant: B`,
      "user: c",
      "assistant: [ping]",
      result,
      "assistant: [ping]",
      result,
      "assistant: C",
    ]);
  });

  Deno.test(`a suspended turn is not compacted away, and is resumed after a compaction (${style})`, async () => {
    await using server = stubLlm(["A", "B", calling("ping"), calling("pay"), "Paid", "Bye"]);
    let paid = 0;
    const toolkit = [
      toolOf("ping"),
      {
        ...toolOf("pay"),
        execute: (_: unknown, { answer }: { answer?: unknown }) =>
          answer
            ? { output: `paid ${++paid}`, isError: false }
            : pending({ kind: "approval", prompt: "Pay?" }),
      },
    ];
    const hooks = { beforeLLM: compactorOf() };
    const store = new LedgerStore();
    const client = clientOf(server, { style, toolkit, hooks, store });
    await client.ask("a", { id: "a" });
    await client.ask("b", { id: "a" });
    const { status, pending: request } = await client.ask("c", { id: "a" });
    assertEquals(status, "pending");
    const summary = `user: ${SUMMARY}\nuser: a; assistant: A; user: b; assistant: B`;
    assertEquals(lines(store.get("a"))[0], summary);

    const elsewhere = clientOf(server, { style, toolkit, hooks, store });
    const { text } = await elsewhere.resume({ id: "a", answer: { id: request!.id, ok: true } });
    assertEquals([text, paid], ["Paid", 1]);
    assertEquals(
      lines(store.get("a")).at(-2),
      style === "openai" ? "tool: paid 1" : "user: paid 1",
    );
    // The turn was over the budget alone; now it is over, it makes room.
    await client.ask("d", { id: "a" });
    assertEquals(lines(store.get("a")).length, 3);
    assert(lines(store.get("a"))[0]!.includes("paid 1"));
  });

  Deno.test(`checkpoints of a compacted run are whole transcripts (${style})`, async () => {
    await using server = stubLlm(["A", "B", calling("ping"), calling("ping"), "C"]);
    const store = new LedgerStore();
    const toolkit = [toolOf("ping")];
    const hooks = { beforeLLM: compactorOf() };
    const client = clientOf(server, { style, store, toolkit, hooks, checkpoint: "round" });
    for (const prompt of ["a", "b"]) await client.ask(prompt, { id: "a" });
    store.saves.length = 0;
    await client.ask("c", { id: "a" });
    const summary = `user: ${SUMMARY}\nuser: a; assistant: A; user: b; assistant: B`;
    const result = style === "openai" ? "tool: ping ran" : "user: ping ran";
    const all = [
      summary,
      "user: c",
      ...["assistant: [ping]", result, "assistant: [ping]", result],
      "assistant: C",
    ];
    // Before the tools run, after them, and so on. The first request was within the budget.
    const lengths = store.saves.map(({ messages }) => messages.length);
    assertEquals(lengths, [6, 7, 5, 6, 7]);
    for (const { messages } of store.saves.slice(2)) {
      assertEquals(messages, all.slice(0, messages.length));
    }
    assertEquals(await stored(client), all);
  });
}

Deno.test("a summary that fails ends the run with the hook's error, and loses nothing", async () => {
  await using server = stubLlm(["A", "B", "C"]);
  const failure = new Error("the summarizer is on holiday");
  let fails = true;
  const beforeLLM = compactorOf({
    maxTokens: 4,
    summarize: (older) => {
      if (fails) throw failure;
      return summarize(older);
    },
  });
  const client = clientOf(server, { hooks: { beforeLLM } });
  await client.ask("a", { id: "a" });
  await client.ask("b", { id: "a" });
  const error = await assertRejects(() => client.ask("c", { id: "a" }), HookError);
  assertStrictEquals(error.cause, failure);
  assertEquals(await stored(client), ["user: a", "assistant: A", "user: b", "assistant: B"]);
  fails = false;
  await client.ask("c", { id: "a" });
  assertEquals((await stored(client)).length, 3);
});

Deno.test("a compaction that cannot be saved leaves the old transcript whole", async () => {
  await using server = stubLlm(["A", "B", "C"]);
  const store = new InMemoryConversationStore();
  const hooks = { beforeLLM: compactorOf({ maxTokens: 4 }) };
  const client = clientOf(server, { hooks, store });
  await client.ask("a", { id: "a" });
  await client.ask("b", { id: "a" });
  const failing = clientOf(server, {
    hooks,
    store: flakyStore(store, { save: [new Error("disk full")] }),
  });
  const error = await assertRejects(() => failing.ask("c", { id: "a" }), StoreError);
  assertEquals(lines(await store.get("a")), ["user: a", "assistant: A", "user: b", "assistant: B"]);
  assertEquals([error.result?.text, error.result?.messages.length], ["C", 3]);
});

Deno.test("a conflict over a compacted conversation is told, with the result; nothing is overwritten", async () => {
  await using server = stubLlm(["A", "B", "C"]);
  const store = new LedgerStore();
  const client = clientOf(server, { store, hooks: { beforeLLM: compactorOf({ maxTokens: 4 }) } });
  await client.ask("a", { id: "a" });
  await client.ask("b", { id: "a" });
  store.beforeSave[3] = () => store.append("a", ...turns("elsewhere"));
  const error = await assertRejects(() => client.ask("c", { id: "a" }), ConversationConflictError);
  assertEquals(error.result?.text, "C");
  assertEquals(server.requests.length, 3);
  assertEquals(lines(store.get("a")).slice(-2), ["user: elsewhere", "assistant: ELSEWHERE"]);
  assertEquals(store.get("a")!.length, 6);
});

Deno.test("one compactor serves many conversations at once", async () => {
  await using server = stubLlm(({ body }) => String(body.messages.at(-1)?.content).toUpperCase());
  const beforeLLM = compactorOf({
    summarize: async (older) => (await Promise.resolve(), summarize(older)),
  });
  const client = clientOf(server, { hooks: { beforeLLM } });
  const ids = Array.from({ length: 20 }, (_, index) => `id${index}`);
  await Promise.all(ids.map(async (id) => {
    for (const turn of ["one", "two", "three", "four"]) await client.ask(`${id} ${turn}`, { id });
  }));
  for (const id of ids) {
    const told = lines(await client.conversationStore().get(id));
    assertEquals(told.length, 3);
    for (const turn of ["one", "two", "three", "four"]) {
      assert(told.join().includes(`${id} ${turn}`));
    }
    assertEquals([...new Set(told.join().match(/id\d+/g))], [id]);
  }
});
