/** Asks of one conversation wait for each other; those of different ones do not. */
import { assert, assertEquals, assertRejects, assertStringIncludes } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import {
  type Client,
  ConversationBusyError,
  defineTool,
  HookError,
  InMemoryConversationStore,
  RunAbortedError,
} from "../mod.ts";
import { busyConversations, placeOf, takeTurn, within } from "../src/queue.ts";
import { flakyStore, stubLlm } from "../src/testing/mod.ts";
import {
  answerOf,
  calling,
  clientOf,
  clientOfFetch,
  countedSignal,
  eventsOf,
  lines,
  plainStore,
  toolOf,
} from "./client_kit.ts";

/** Fails unless a transcript is made of whole turns, each of one prompt; gives the prompts. */
function turnsOf(told: readonly string[]): string[] {
  assertEquals(told.length % 2, 0);
  return told.flatMap((line, index) => {
    if (index % 2 === 1) return [];
    assertEquals(told[index + 1], line.replace("user: ", "assistant: re "));
    return [line.slice("user: ".length)];
  });
}

/** An answer that calls a tool. */
function callOf(name: string): Response {
  const call = { id: `c-${name}`, type: "function", function: { name, arguments: "{}" } };
  return Response.json({ choices: [{ message: { role: "assistant", tool_calls: [call] } }] });
}

Deno.test("1,000 asks at once on 1,000 ids: each is kept, and nothing is left behind", async () => {
  await using server = stubLlm(({ body }) => `re ${body.messages.at(-1)?.content}`);
  const store = new InMemoryConversationStore();
  const client = clientOf(server, { store });
  const { controller, listeners } = countedSignal();
  const { signal } = controller;
  const asks = Array.from(
    { length: 1000 },
    (_, n) => client.ask(`p${n}`, { id: `id${n}`, signal }),
  );
  assertEquals(busyConversations(store), 1000);
  assertEquals(listeners(), 1000);
  await Promise.all(asks);
  for (let n = 0; n < 1000; n++) assertEquals(turnsOf(lines(await store.get(`id${n}`))), [`p${n}`]);
  assertEquals([busyConversations(store), listeners()], [0, 0]);
});

Deno.test("200 asks at once on one id: every turn is kept whole, in the order of the asks", async () => {
  await using server = stubLlm(({ body }) => `re ${body.messages.at(-1)?.content}`);
  const store = plainStore();
  const client = clientOf(server, { store });
  const { controller, listeners } = countedSignal();
  const { signal } = controller;
  const prompts = Array.from({ length: 200 }, (_, index) => `p${index}`);
  await Promise.all(prompts.map((prompt) => client.ask(prompt, { id: "a", signal })));
  assertEquals(turnsOf(lines(await store.get("a"))), prompts);
  assertEquals([busyConversations(store), listeners()], [0, 0]);
});

Deno.test("an onText that asks its own conversation is told that it is busy", async () => {
  await using server = stubLlm(["hello"]);
  const client = clientOf(server);
  const onText = async () => {
    await client.ask("and you?", { id: "a" });
  };
  const error = await assertRejects(() => client.ask("hi", { id: "a", onText }), HookError);
  assert(error.cause instanceof ConversationBusyError);
});

Deno.test("two clients of one store wait for each other; asks and streams do too", async () => {
  await using server = stubLlm(({ body }) => `re ${body.messages.at(-1)?.content}`);
  const store = flakyStore(plainStore(), () => ({ delay: 1 }));
  const clients = [clientOf(server, { store }), clientOf(server, { store })];
  const prompts = Array.from({ length: 20 }, (_, index) => `p${index}`);
  await Promise.all(prompts.map((prompt, index) => {
    const client = clients[index % 2]!;
    const options = { id: "a" };
    return index % 4 < 2 ? client.ask(prompt, options) : eventsOf(client.stream(prompt, options));
  }));
  assertEquals(turnsOf(lines(await store.get("a"))).sort(), prompts.sort());
  assertEquals(busyConversations(store), 0);
});

Deno.test("a failed ask makes way for the next", async () => {
  await using server = stubLlm([{ status: 400 }, "re b"]);
  const client = clientOf(server);
  const [failed, asked] = await Promise.allSettled([
    client.ask("a", { id: "a" }),
    client.ask("b", { id: "a" }),
  ]);
  assertEquals([failed.status, asked.status], ["rejected", "fulfilled"]);
  assertEquals(turnsOf(lines(await client.conversationStore().get("a"))), ["b"]);
  assertEquals(busyConversations(client.conversationStore()), 0);
});

Deno.test("an abort while waiting: that ask goes, the others keep their order", async () => {
  using _time = new FakeTime();
  const store = new InMemoryConversationStore();
  const gate = Promise.withResolvers<void>();
  let running = 0, most = 0;
  const client = clientOfFetch(async (request) => {
    most = Math.max(most, ++running);
    const { messages } = await request.json();
    await gate.promise;
    running--;
    return answerOf(`re ${messages.at(-1).content}`);
  }, { store });
  const { controller, listeners } = countedSignal();
  const first = client.ask("1", { id: "a" });
  const second = client.ask("2", { id: "a", signal: controller.signal });
  const third = client.ask("3", { id: "a" });
  controller.abort("enough");
  const error = await assertRejects(() => second, RunAbortedError);
  assertEquals([error.cause, error.result, listeners()], ["enough", undefined, 0]);
  // The first is still at it, so the third must wait, also behind one that has gone.
  const fourth = client.ask("4", { id: "a" });
  gate.resolve();
  await Promise.all([first, third, fourth]);
  assertEquals(turnsOf(lines(await store.get("a"))), ["1", "3", "4"]);
  assertEquals([most, busyConversations(store)], [1, 0]);
});

Deno.test("a stream takes its place when it is first read, not when it is made", async () => {
  await using server = stubLlm(({ body }) => `re ${body.messages.at(-1)?.content}`);
  const client = clientOf(server);
  const stream = client.stream("stream", { id: "a" });
  client.stream("never read", { id: "a" });
  assertEquals(busyConversations(client.conversationStore()), 0);
  await client.ask("ask", { id: "a" });
  assertEquals(server.requests.length, 1);
  await eventsOf(stream);
  assertEquals(turnsOf(lines(await client.conversationStore().get("a"))), ["ask", "stream"]);
});

Deno.test("leaving a stream makes way for the next ask", async () => {
  await using server = stubLlm(({ body }) => `re ${body.messages.at(-1)?.content}`);
  const client = clientOf(server);
  for await (const _ of client.stream("1", { id: "a" })) break;
  await client.ask("2", { id: "a" });
  assertEquals(busyConversations(client.conversationStore()), 0);
});

// ---- asking oneself ----

Deno.test("a tool that asks its own conversation is told that it is busy", async () => {
  await using server = stubLlm([calling("self"), "so be it"]);
  const client: Client = clientOf(server, {
    toolkit: [toolOf("self", () => client.ask("me?", { id: "a" }))],
  });
  const { toolCalls, status } = await client.ask("go", { id: "a" });
  assertEquals([toolCalls[0]?.isError, status], [true, "done"]);
  assertStringIncludes(toolCalls[0]!.output, `conversation "a" is waiting`);
});

Deno.test("so is one that asks by a stream, by its result, or after a while", async () => {
  await using server = stubLlm([calling("read", "result", "later"), "so be it"]);
  const codes: Record<string, string> = {};
  const told = (name: string, ask: () => Promise<unknown>) =>
    toolOf(name, async () => {
      const error = await assertRejects(ask, ConversationBusyError);
      codes[name] = error.code;
    });
  const client: Client = clientOf(server, {
    toolkit: [
      told("read", () => eventsOf(client.stream("me?", { id: "a" }))),
      told("result", () => client.stream("me?", { id: "a" }).result),
      told("later", async () => {
        await new Promise((resolve) => setTimeout(resolve, 1));
        await Promise.resolve().then(() => client.ask("me?", { id: "a" }));
      }),
    ],
  });
  await eventsOf(client.stream("go", { id: "a" }));
  assertEquals(codes, {
    read: "conversation_busy",
    result: "conversation_busy",
    later: "conversation_busy",
  });
});

Deno.test("so is one that asks it through another conversation", async () => {
  await using server = stubLlm([calling("b"), calling("a"), "told b", "told a"]);
  const client: Client = clientOf(server, {
    toolkit: [
      toolOf("b", async () => (await client.ask("to b", { id: "b" })).text),
      toolOf("a", async () => (await client.ask("to a", { id: "a" })).text),
    ],
  });
  const { text, toolCalls } = await client.ask("go", { id: "a" });
  assertEquals([text, toolCalls[0]?.output], ["told a", "told b"]);
  const [, , inner] = lines(await client.conversationStore().get("b"));
  assertStringIncludes(inner!, `conversation "a" is waiting`);
});

Deno.test("so is one that asks it through a run without an id, or a second client", async () => {
  await using server = stubLlm([calling("run"), calling("other"), "inner", "outer"]);
  const store = new InMemoryConversationStore();
  const second = clientOf(server, { store });
  const client: Client = clientOf(server, {
    store,
    toolkit: [
      toolOf("run", async () => (await client.run("go on")).text),
      toolOf("other", () => second.ask("me?", { id: "a" })),
    ],
  });
  const { text } = await client.ask("go", { id: "a" });
  assertEquals([text, busyConversations(store)], ["outer", 0]);
  const told = server.requests[2]!.body.messages.at(-1)!.content as string;
  assertStringIncludes(told, `conversation "a" is waiting`);
});

for (const hook of ["beforeLLM", "afterLLM", "beforeTool", "afterTool"] as const) {
  Deno.test(`so is a ${hook} hook that asks it`, async () => {
    await using server = stubLlm(() => calling("tool"));
    const client: Client = clientOf(server, {
      toolkit: [toolOf("tool")],
      hooks: { [hook]: () => client.ask("me?", { id: "a" }) },
    });
    const error = await assertRejects(() => client.ask("go", { id: "a" }), HookError);
    assert(error.cause instanceof ConversationBusyError);
    assertEquals(busyConversations(client.conversationStore()), 0);
  });
}

Deno.test("a tool may ask other conversations, and its own when the run is over", async () => {
  await using server = stubLlm([calling("ask"), "inner", "outer", "later"]);
  const over = Promise.withResolvers<void>();
  let later: Promise<unknown> | undefined;
  const client: Client = clientOf(server, {
    toolkit: [toolOf("ask", async () => {
      later = over.promise.then(() => client.ask("later", { id: "a" }));
      return (await client.ask("to b", { id: "b" })).text;
    })],
  });
  await client.ask("go", { id: "a" });
  over.resolve();
  await later;
  const told = lines(await client.conversationStore().get("a"));
  assertEquals(told.slice(-2), ["user: later", "assistant: later"]);
});

Deno.test("the same id in another store is another conversation", async () => {
  await using server = stubLlm([calling("ask"), "inner", "outer"]);
  const other = clientOf(server);
  const client = clientOf(server, {
    toolkit: [toolOf("ask", async () => (await other.ask("hi", { id: "a" })).text)],
  });
  assertEquals((await client.ask("go", { id: "a" })).text, "outer");
});

// ---- asking each other ----

for (const ids of [["a", "b"], ["a", "b", "c"], ["a", "b", "c", "d", "e"]]) {
  Deno.test(`asks that would wait for each other in a ring, one is told: ${ids}`, async () => {
    const store = new InMemoryConversationStore();
    const nextOf = (id: string) => ids[(ids.indexOf(id) + 1) % ids.length]!;
    const all = Promise.withResolvers<void>();
    let running = 0;
    const next = defineTool({
      name: "next",
      description: "asks the next conversation",
      run: async (_args, { conversationId }) => {
        if (++running === ids.length) all.resolve();
        await all.promise;
        return (await client.ask("hello", { id: nextOf(conversationId!) })).text;
      },
    });
    const client: Client = clientOfFetch(async (request) => {
      const { messages } = await request.json();
      return messages.at(-1).content === "go" ? callOf("next") : answerOf("hi");
    }, { store, toolkit: [next] });
    const results = await Promise.all(ids.map((id) => client.ask("go", { id })));
    const failed = results.filter(({ toolCalls }) => toolCalls[0]!.isError);
    assertEquals(failed.length, 1);
    assertStringIncludes(failed[0]!.toolCalls[0]!.output, "is waiting for the caller of this ask");
    assertEquals(busyConversations(store), 0);
  });
}

Deno.test("so it is where the ring closes through an ask that waits in a line", async () => {
  const held = Promise.withResolvers<void>(), queued = Promise.withResolvers<void>();
  const store = new InMemoryConversationStore();
  const client: Client = clientOfFetch(async (request) => {
    const { messages } = await request.json();
    const { content } = messages.at(-1);
    return content.startsWith("call ") ? callOf(content.slice(5)) : answerOf(`re ${content}`);
  }, {
    store,
    toolkit: [
      toolOf("b", async () => {
        await held.promise;
        const asked = client.ask("from a", { id: "b" });
        queued.resolve();
        return (await asked).text;
      }),
      toolOf("a", async () => {
        held.resolve();
        await queued.promise;
        return (await client.ask("from b", { id: "a" })).text;
      }),
    ],
  });
  // In b's line stand: the run whose tool asks a, a bystander, and the ask of a's tool.
  const [ofA, ofB, bystander] = await Promise.all([
    client.ask("call b", { id: "a" }),
    client.ask("call a", { id: "b" }),
    client.ask("me too", { id: "b" }),
  ]);
  assertEquals([ofA.toolCalls[0]!.output, bystander.text], ["re from a", "re me too"]);
  assertStringIncludes(ofB.toolCalls[0]!.output, `conversation "a" is waiting`);
  assertEquals(busyConversations(store), 0);
});

Deno.test("a line of 20,000 asks moves on, one after the other", async () => {
  const client: Client = clientOfFetch(() => answerOf("ok"), {
    store: { get: () => null, save: () => {} },
  });
  const asks = Array.from({ length: 20_000 }, () => client.ask("go", { id: "a" }));
  assertEquals(new Set((await Promise.all(asks)).map(({ text }) => text)), new Set(["ok"]));
});

Deno.test("a conversation that was asked from inside another is not kept by it for ever", async () => {
  const store = new InMemoryConversationStore();
  const { signal } = new AbortController();
  const outer = placeOf(store, "outer");
  const leaveOuter = await takeTurn(outer, signal);
  const inner = within(outer, () => placeOf(store, "inner"));
  const leaveInner = await takeTurn(inner, signal);
  assertEquals(inner.outer, outer);
  leaveOuter();
  assertEquals(inner.outer, undefined);
  // A job that is planned inside of a run, and begins after it.
  const later = within(inner, () => placeOf(store, "later"));
  leaveInner();
  (await takeTurn(later, signal))();
  assertEquals(later.outer, undefined);
});
