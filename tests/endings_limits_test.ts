/** Time limits and stores that end a run: what was completed is saved or handed back. */
import { assert, assertEquals, assertRejects, assertStrictEquals } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import {
  type Client,
  type ConversationStore,
  type Hooks,
  InMemoryConversationStore,
  ProviderError,
  RunAbortedError,
  StoreError,
  StreamError,
  type ToolnexusError,
} from "../mod.ts";
import { flakyStore, stubLlm } from "../src/testing/mod.ts";
import {
  answerOf,
  calling,
  clientOf,
  clientOfFetch,
  countedSignal,
  deltas,
  eventsOf,
  lines,
  plainStore,
  readUntil,
  silentServer,
  toolOf,
} from "./client_kit.ts";

/** What is stored. */
async function stored(client: Client): Promise<string[]> {
  return lines(await client.conversationStore().get("a"));
}

/** Never settles. */
const forever = () => new Promise<never>(() => {});

/** An answer that calls the tool `pay`. */
function callOfPay(): Response {
  const call = { id: "c1", type: "function", function: { name: "pay", arguments: "{}" } };
  return Response.json({ choices: [{ message: { role: "assistant", tool_calls: [call] } }] });
}

// ---- time ----

Deno.test("timeoutMs ends a run in a request, and the round before it is saved", async () => {
  using time = new FakeTime();
  const client = clientOfFetch(
    (_, number) => number === 1 ? callOfPay() : forever(),
    { timeoutMs: 1000, toolkit: [toolOf("pay")], retries: 5 },
  );
  const asking = assertRejects(() => client.ask("go", { id: "a" }), RunAbortedError, "1000 ms");
  await time.tickAsync(999);
  await time.tickAsync(1);
  const error = await asking;
  assertEquals([error.code, error.name], ["timeout", "TimeoutError"]);
  assertEquals(await stored(client), ["user: go", "assistant: [pay]", "tool: pay ran"]);
  assertEquals(lines(error.result?.messages), await stored(client));
});

Deno.test("timeoutMs in the middle of an answer keeps what was said", async () => {
  using server = silentServer(
    `HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n${deltas("Hello")}`,
  );
  const client = clientOf(server, { timeoutMs: 200 });
  const stream = client.stream("go", { id: "a" });
  const error = await assertRejects(() => eventsOf(stream), RunAbortedError);
  assertEquals([error.code, error.partialText], ["timeout", "Hello"]);
  assertEquals(await stored(client), ["user: go", "assistant: Hello"]);
  await server.gone;
});

Deno.test("timeoutMs counts the wait for the conversation's turn", async () => {
  using time = new FakeTime();
  const gate = Promise.withResolvers<Response>();
  const store = new InMemoryConversationStore();
  const slow = clientOfFetch(() => gate.promise, { store });
  const hasty = clientOfFetch(() => answerOf("ok"), { store, timeoutMs: 100 });
  const first = slow.ask("1", { id: "a" });
  const second = assertRejects(() => hasty.ask("2", { id: "a" }), RunAbortedError);
  await time.tickAsync(100);
  assertEquals((await second).code, "timeout");
  gate.resolve(answerOf("ok"));
  await first;
  assertEquals(lines(await store.get("a")), ["user: 1", "assistant: ok"]);
});

Deno.test("timeoutMs ends a run whose tool hears nothing", async () => {
  await using server = stubLlm([calling("hang", "pay")]);
  const client = clientOf(server, {
    timeoutMs: 50,
    toolkit: [toolOf("hang", forever), toolOf("pay")],
  });
  const error = await assertRejects(() => client.ask("go", { id: "a" }), RunAbortedError);
  assertEquals(error.code, "timeout");
  assertEquals((await stored(client)).slice(2), [
    "tool: interrupted: may or may not have run",
    "tool: pay ran",
  ]);
});

for (const hook of ["beforeLLM", "afterLLM", "beforeTool", "afterTool"] as const) {
  Deno.test(`timeoutMs and abort end a run whose ${hook} hangs`, async () => {
    using time = new FakeTime();
    const hooks: Hooks = { [hook]: forever };
    const options = { hooks, toolkit: [toolOf("pay")] };
    const controller = new AbortController();
    const ended: string[] = [];
    const end = (error: ToolnexusError) => void ended.push(error.code);
    clientOfFetch(callOfPay, { ...options, timeoutMs: 100 }).ask("go").catch(end);
    clientOfFetch(callOfPay, options).ask("go", { signal: controller.signal }).catch(end);
    await time.tickAsync(100);
    await time.tickAsync();
    controller.abort();
    await time.tickAsync();
    assertEquals(ended, ["timeout", "aborted"]);
  });
}

Deno.test("a caller's AbortSignal.timeout is told as a time limit", async () => {
  using server = silentServer();
  const signal = AbortSignal.timeout(20);
  const error = await assertRejects(
    () => clientOf(server).ask("go", { id: "a", signal }),
    RunAbortedError,
  );
  assertEquals([error.code, error.name], ["timeout", "TimeoutError"]);
  assertStrictEquals(error.cause, signal.reason);
});

Deno.test("requestTimeoutMs is tried again, then told as a time limit", async () => {
  using time = new FakeTime();
  let calls = 0;
  const client = clientOfFetch(() => (calls++, forever()), { requestTimeoutMs: 100, retries: 2 });
  const asking = assertRejects(() => client.ask("go", { id: "a" }), RunAbortedError, "100 ms");
  for (let tries = 0; tries < 3; tries++) {
    await time.tickAsync(100);
    await time.tickAsync(0);
  }
  assertEquals([(await asking).code, calls], ["timeout", 3]);
  assertEquals(await client.conversationStore().get("a"), null);
});

Deno.test("requestTimeoutMs counts for each request, not for the run", async () => {
  using time = new FakeTime();
  const wait = (response: Response) =>
    new Promise<Response>((resolve) => setTimeout(() => resolve(response), 80));
  const client = clientOfFetch(
    (_, number) => wait(number < 3 ? callOfPay() : answerOf("ok")),
    { requestTimeoutMs: 100, toolkit: [toolOf("pay")] },
  );
  const asking = client.ask("go");
  for (let request = 0; request < 3; request++) await time.tickAsync(80);
  assertEquals((await asking).text, "ok");
});

Deno.test("a stream that falls silent is an error, with what was said", async () => {
  using server = silentServer(
    `HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n${deltas("Hello")}`,
  );
  const client = clientOf(server, { idleTimeoutMs: 50 });
  const stream = client.stream("go", { id: "a" });
  const error = await assertRejects(() => eventsOf(stream), StreamError, "50 ms");
  assertEquals([error.code, error.partialText], ["stream_idle", "Hello"]);
  await server.gone;
});

Deno.test("an answer that comes after the run has ended is let go", async () => {
  const asked = Promise.withResolvers<void>(), gate = Promise.withResolvers<Response>();
  const cancelled = Promise.withResolvers<void>();
  // A fetch of one's own may know nothing of signals.
  const client = clientOfFetch(() => (asked.resolve(), gate.promise));
  const controller = new AbortController();
  const asking = client.run("go", { signal: controller.signal });
  await asked.promise;
  controller.abort();
  await assertRejects(() => asking, RunAbortedError);
  gate.resolve(new Response(new ReadableStream({ cancel: () => cancelled.resolve() })));
  const late = setTimeout(() => cancelled.reject(new Error("the body was left open")), 500);
  await cancelled.promise;
  clearTimeout(late);
});

// ---- stores ----

Deno.test("a store that cannot be read costs no request", async () => {
  await using server = stubLlm([]);
  const cause = new Error("connection refused");
  for (
    const failing of [
      flakyStore(plainStore(), { get: [cause] }),
      {
        save: () => {},
        get: () => {
          throw cause;
        },
      } as ConversationStore, // deno-fmt-ignore
    ]
  ) {
    const client = clientOf(server, { store: failing });
    const error = await assertRejects(() => client.ask("go", { id: "a" }), StoreError, "refused");
    assertEquals([error.code, error.operation, error.id], ["store_failed", "get", "a"]);
    assertStrictEquals(error.cause, cause);
  }
});

Deno.test("a store that cannot be written: the answer is on the error", async () => {
  await using server = stubLlm([calling("pay"), "Paid", calling("pay"), "Paid"]);
  for (
    const go of [
      (client: Client) => client.ask("go", { id: "a" }),
      (client: Client) => eventsOf(client.stream("go", { id: "a" })),
    ]
  ) {
    const cause = new Error("disk full");
    const store = flakyStore(plainStore(), { save: [cause] });
    const client = clientOf(server, { store, toolkit: [toolOf("pay")] });
    const error = await assertRejects(() => go(client), StoreError, "disk full");
    assertEquals([error.operation, error.id], ["save", "a"]);
    assertStrictEquals(error.cause, cause);
    const { result } = error;
    assertEquals([result?.text, result?.status, result?.toolCallCount], ["Paid", "done", 1]);
    // What is on the error is enough to save it later.
    await store.save("a", result!.messages);
    assertEquals((await stored(client)).at(-1), "assistant: Paid");
  }
});

Deno.test("when the run fails and the save too, the run's error is the one", async () => {
  await using server = stubLlm([calling("pay"), { status: 400 }]);
  const store = flakyStore(plainStore(), { save: [new Error("disk full")] });
  const client = clientOf(server, { store, toolkit: [toolOf("pay")] });
  const error = await assertRejects(() => client.ask("go", { id: "a" }), ProviderError, "LLM 400");
  assertEquals(error.suppressed?.code, "store_failed");
  assertEquals(error.result?.toolCallCount, 1);
});

Deno.test("leaving a stream whose save fails says so", async () => {
  await using server = stubLlm(["Hello there"]);
  const store = flakyStore(plainStore(), { save: [new Error("disk full")] });
  const stream = clientOf(server, { store }).stream("go", { id: "a" });
  await assertRejects(
    () => readUntil(stream, ({ type }) => type === "text"),
    StoreError,
    "disk full",
  );
  const error = await assertRejects(() => stream.result, RunAbortedError);
  assertEquals([error.suppressed?.code, error.partialText], ["store_failed", "Hell"]);
});

Deno.test("done is told only after the save", async () => {
  await using server = stubLlm(["Hello", "Hello"]);
  const gate = Promise.withResolvers<"ok">();
  const saving = Promise.withResolvers<void>();
  const store = flakyStore(plainStore(), (operation) => {
    if (operation === "get") return "ok";
    saving.resolve();
    return gate.promise;
  });
  const client = clientOf(server, { store });
  const seen: string[] = [];
  const reading = (async () => {
    for await (const event of client.stream("go", { id: "a" })) seen.push(event.type);
  })();
  const asking = client.ask("go", { id: "b" }).then(() => seen.push("asked"));
  await saving.promise;
  for (let turns = 0; turns < 5; turns++) await new Promise((resolve) => setTimeout(resolve, 0));
  assert(!seen.includes("done") && !seen.includes("asked"));
  gate.resolve("ok");
  await Promise.all([reading, asking]);
  assertEquals(seen.filter((type) => type === "done" || type === "asked").sort(), [
    "asked",
    "done",
  ]);
});

Deno.test("an abort does not cut off the save", async () => {
  await using server = stubLlm(["Hello"]);
  const { controller, listeners } = countedSignal();
  const kept = plainStore();
  const store = flakyStore(kept, (operation) => {
    if (operation === "save") controller.abort();
    return operation === "save" ? { delay: 20 } : "ok";
  });
  const client = clientOf(server, { store });
  const result = await client.ask("go", { id: "a", signal: controller.signal });
  assertEquals([result.status, await stored(client)], ["done", ["user: go", "assistant: Hello"]]);
  assertEquals(listeners(), 0);
});

Deno.test("an abort ends the wait for a slow store's get", async () => {
  await using server = stubLlm([]);
  const controller = new AbortController();
  const store: ConversationStore = { get: forever, save: () => {} };
  const asking = clientOf(server, { store }).ask("go", { id: "a", signal: controller.signal });
  controller.abort();
  await assertRejects(() => asking, RunAbortedError);
});

Deno.test("a save that was made and not confirmed is not made twice", async () => {
  await using server = stubLlm(["Hello", "ok"]);
  const kept = new InMemoryConversationStore();
  const store = flakyStore(kept, { save: [{ error: new Error("reset"), after: true }] });
  const client = clientOf(server, { store });
  await assertRejects(() => client.ask("go", { id: "a" }), StoreError);
  await client.ask("more", { id: "a" });
  assertEquals(lines(await kept.get("a")), [
    "user: go",
    "assistant: Hello",
    "user: more",
    "assistant: ok",
  ]);
});
