/** A run as a stream: events, the result, and the ways to read or leave it. */
import { assert, assertEquals, assertRejects, assertStrictEquals } from "@std/assert";
import {
  type Client,
  defineTool,
  ProviderError,
  RunAbortedError,
  type RunStream,
  type StreamEvent,
} from "../mod.ts";
import { flakyStore, stubLlm } from "../src/testing/mod.ts";
import {
  calling,
  clientOf,
  countedSignal,
  deltas,
  END_OF_STREAM,
  eventsOf,
  lines,
  plainStore,
  readUntil,
  silentServer,
  textOf,
  toolOf,
} from "./client_kit.ts";

/** What events say, in short; deltas that follow each other as one. */
function told(events: readonly StreamEvent[]): string[] {
  const short: string[] = [];
  for (const event of events) {
    const last = short.at(-1);
    if (event.type === "text" && last?.startsWith("text ")) {
      short[short.length - 1] = last + event.delta;
    } else {
      short.push(
        event.type === "text"
          ? `text ${event.delta}`
          : event.type === "tool_call" || event.type === "tool_result"
          ? `${event.type} ${event.name}`
          : event.type,
      );
    }
  }
  return short;
}

for (const style of ["openai", "anthropic"] as const) {
  Deno.test(`the events of a run, in order (${style})`, async () => {
    await using server = stubLlm([
      { text: "Let me see", reasoning: "hm", ...calling("clock", "dice") },
      "noon, six",
    ]);
    const slow = toolOf("clock", () => new Promise((resolve) => setTimeout(resolve, 5, "noon")));
    const client = clientOf(server, { style, toolkit: [slow, toolOf("dice", () => "six")] });
    const events = await eventsOf(client.stream("go", { id: "a" }));
    assertEquals(told(events.filter(({ type }) => type !== "reasoning")), [
      "text Let me see",
      "usage",
      "tool_call clock",
      "tool_call dice",
      "tool_result dice",
      "tool_result clock",
      "text noon, six",
      "usage",
      "done",
    ]);
    assertEquals(events.find(({ type }) => type === "reasoning"), {
      type: "reasoning",
      delta: "hm",
    });
    const done = events.at(-1)!;
    assert(done.type === "done");
    assertEquals(done.result.messages, await client.conversationStore().get("a"));
    assertEquals(done.result.toolCalls.map(({ name }) => name), ["clock", "dice"]);
  });

  Deno.test(`a streamed and a plain answer come to the same (${style})`, async () => {
    const answers = [
      { text: "Let me see ✓", ...calling("clock"), usage: { promptTokens: 7 } },
      "ünïcode 😀 done",
    ];
    await using server = stubLlm([...answers, ...answers], { chunkBytes: 1 });
    const client = clientOf(server, { style, toolkit: [toolOf("clock")] });
    const plain = await client.run("go");
    const streamed = await client.stream("go").result;
    assertEquals(streamed, plain);
  });
}

Deno.test("deltas add up to the text, also of 2,000 in one-byte pieces", async () => {
  const words = Array.from({ length: 2000 }, (_, n) => `wörd${n} `);
  const text = deltas(...words) + END_OF_STREAM;
  const bytes = new TextEncoder().encode(text);
  const body = () =>
    new ReadableStream({
      type: "bytes",
      start(controller) {
        for (let index = 0; index < bytes.length; index++) {
          controller.enqueue(bytes.slice(index, index + 1));
        }
        controller.close();
      },
    });
  const client = clientOf({ baseUrl: "http://model.test" }, {
    fetch: () =>
      Promise.resolve(new Response(body(), { headers: { "content-type": "text/event-stream" } })),
  });
  const events = await eventsOf(client.stream("go"));
  assertEquals(events.filter(({ type }) => type === "text").length, 2000);
  assertEquals(textOf(events), words.join(""));
});

Deno.test("a delta is there when it was sent, not when the answer ends", async () => {
  const gate = Promise.withResolvers<void>();
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: () => {} }, () => {
    const chunks = [deltas("first"), deltas("second") + END_OF_STREAM];
    const body = new ReadableStream<string>({
      async pull(controller) {
        if (chunks.length === 1) await gate.promise;
        controller.enqueue(chunks.shift());
        if (chunks.length === 0) controller.close();
      },
    }, { highWaterMark: 0 });
    const headers = { "content-type": "text/event-stream" };
    return new Response(body.pipeThrough(new TextEncoderStream()), { headers });
  });
  const client = clientOf({ baseUrl: `http://127.0.0.1:${server.addr.port}` });
  const seen: string[] = [];
  for await (const event of client.stream("go")) {
    if (event.type === "text") seen.push(event.delta);
    gate.resolve();
  }
  assertEquals(seen, ["first", "second"]);
  await server.shutdown();
});

Deno.test("nothing happens before a stream is read", async () => {
  await using server = stubLlm([]);
  const asked: string[] = [];
  const store = flakyStore(plainStore(), (operation) => (asked.push(operation), "ok"));
  clientOf(server, { store }).stream("go", { id: "a" });
  await new Promise((resolve) => setTimeout(resolve, 0));
  assertEquals([server.requests.length, asked], [0, []]);
});

for (
  const [when, read] of [
    ["without reading", (stream: RunStream) => stream.result],
    ["after reading", async (stream: RunStream) => (await eventsOf(stream), await stream.result)],
    ["before reading", async (stream: RunStream) => {
      const { result } = stream;
      assertEquals(told(await eventsOf(stream)), ["text Hello there", "usage", "done"]);
      return await result;
    }],
    ["in the middle of reading", async (stream: RunStream) => {
      let result: Promise<unknown> | undefined;
      for await (const _ of stream) result ??= stream.result;
      return await result;
    }],
    ["more than once", async (stream: RunStream) => {
      const [one, two] = await Promise.all([stream.result, stream.result]);
      assertStrictEquals(one, two);
      return await stream.result;
    }],
  ] as const
) {
  Deno.test(`the result can be had ${when}`, async () => {
    await using server = stubLlm(["Hello there"]);
    const client = clientOf(server);
    const result = await read(client.stream("go", { id: "a" }));
    assertEquals((result as { text: string }).text, "Hello there");
    assertEquals(lines(await client.conversationStore().get("a")).length, 2);
  });
}

Deno.test("events that came while only the result was asked for can still be read", async () => {
  await using server = stubLlm(["Hello there"]);
  const stream = clientOf(server).stream("go");
  await stream.result;
  assertEquals(told(await eventsOf(stream)), ["text Hello there", "usage", "done"]);
  assertEquals(await eventsOf(stream), []);
});

Deno.test("a second loop goes on where the first one is, an event is given once", async () => {
  await using server = stubLlm(["Hello there"]);
  const stream = clientOf(server).stream("go");
  const [one, two] = [stream[Symbol.asyncIterator](), stream[Symbol.asyncIterator]()];
  const events: StreamEvent[] = [];
  for (;;) {
    const steps = await Promise.all([one.next(), two.next()]);
    for (const step of steps) if (!step.done) events.push(step.value);
    if (steps.every(({ done }) => done)) break;
  }
  assertEquals(textOf(events), "Hello there");
  assertEquals(events.filter(({ type }) => type === "done").length, 1);
});

Deno.test("after a break the result rejects as aborted, and nobody has to look", async () => {
  await using server = stubLlm(["Hello there", "Hello there"]);
  const client = clientOf(server);
  // The runner fails a test that leaves an unhandled rejection.
  await readUntil(client.stream("go"), () => true);
  const stream = client.stream("go");
  await readUntil(stream, () => true);
  const error = await assertRejects(() => stream.result, RunAbortedError);
  assertEquals([error.code, error.name], ["aborted", "AbortError"]);
  assertEquals(await eventsOf(stream), []);
});

Deno.test("a stream that is left before it was read never runs", async () => {
  await using server = stubLlm([]);
  const client = clientOf(server);
  const stream = client.stream("go", { id: "a" });
  assertEquals(await stream[Symbol.asyncIterator]().return?.(), { done: true, value: undefined });
  await assertRejects(() => stream.result, RunAbortedError);
  assertEquals(await client.conversationStore().get("a"), null);
});

Deno.test("leaving a stream after its end changes nothing", async () => {
  await using server = stubLlm(["Hello"]);
  const client = clientOf(server);
  const stream = client.stream("go", { id: "a" });
  const events = await readUntil(stream, ({ type }) => type === "done");
  assertEquals(told(events), ["text Hello", "usage", "done"]);
  assertEquals((await stream.result).status, "done");
  assertEquals(lines(await client.conversationStore().get("a")), ["user: go", "assistant: Hello"]);
});

Deno.test("an error is in the loop and in the result, and nobody has to look at both", async () => {
  await using server = stubLlm([{ status: 400 }, { status: 400 }, { status: 400 }]);
  const client = clientOf(server);
  const stream = client.stream("go");
  const inLoop = await assertRejects(() => eventsOf(stream), ProviderError);
  assertStrictEquals(await assertRejects(() => stream.result), inLoop);
  // An error is thrown once; then the stream is over.
  assertEquals(await eventsOf(stream), []);
  await assertRejects(() => eventsOf(client.stream("go")), ProviderError);
  await assertRejects(() => client.stream("go").result, ProviderError);
});

Deno.test("leaving a stream hangs up, and takes every listener and timer away", async () => {
  using server = silentServer(
    `HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n${deltas("Hello")}`,
  );
  const { controller, listeners } = countedSignal();
  const client = clientOf(server, { timeoutMs: 60_000, requestTimeoutMs: 60_000 });
  await readUntil(client.stream("go", { signal: controller.signal }), () => true);
  await server.gone;
  assertEquals(listeners(), 0);
});

Deno.test("a stream that is left in a round of tools keeps the results that are there", async () => {
  await using server = stubLlm([calling("quick", "slow")]);
  const slow = defineTool({
    name: "slow",
    description: "Never ends by itself",
    run: (_, { signal }) =>
      new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason))),
  });
  const client = clientOf(server, { toolkit: [toolOf("quick"), slow] });
  for await (const event of client.stream("go", { id: "a" })) {
    if (event.type === "tool_result") break;
  }
  assertEquals(lines(await client.conversationStore().get("a")), [
    "user: go",
    "assistant: [quick] [slow]",
    "tool: quick ran",
    "tool: interrupted: may or may not have run",
  ]);
});

Deno.test("results of tools that end while nobody reads wait for the reader", async () => {
  const names = ["t1", "t2", "t3"];
  await using server = stubLlm([calling(...names), "ok"]);
  const client = clientOf(server, { toolkit: names.map((name) => toolOf(name)) });
  const types: string[] = [];
  for await (const event of client.stream("go")) {
    types.push(event.type);
    await new Promise((resolve) => setTimeout(resolve));
  }
  assertEquals(types.filter((type) => type === "tool_result").length, 3);
  assertEquals(types.at(-1), "done");
});

Deno.test("50 streams that are left leave no connection open", async () => {
  const start = `HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n${deltas("Hello")}`;
  for (let round = 0; round < 50; round++) {
    using server = silentServer(start);
    await readUntil(clientOf(server).stream("go"), () => true);
    await server.gone;
  }
});

Deno.test("onText gets each delta, and ask() and run() still give the result", async () => {
  const first = { text: "One", ...calling("clock") };
  await using server = stubLlm([first, "Two", first, "Two"]);
  const client = clientOf(server, { toolkit: [toolOf("clock")] });
  for (const way of ["ask", "run"] as const) {
    const pieces: string[] = [];
    const { text, turns } = await client[way]("go", { onText: (delta) => void pieces.push(delta) });
    assertEquals([pieces.join(""), text, turns], ["OneTwo", "Two", 2]);
  }
  assert(server.requests.every(({ body }) => body.stream === true));
});

Deno.test("a plain answer to a streaming request is one piece", async () => {
  const client = clientOf({ baseUrl: "http://model.test" }, {
    fetch: () =>
      Promise.resolve(Response.json({ choices: [{ message: { content: "Hello there" } }] })),
  });
  assertEquals(told(await eventsOf(client.stream("go"))), ["text Hello there", "usage", "done"]);
});

Deno.test("a run that stops at maxTurns is told by done", async () => {
  await using server = stubLlm([calling("clock")]);
  const client = clientOf(server, { toolkit: [toolOf("clock")], maxTurns: 1 });
  const done = (await eventsOf(client.stream("go"))).at(-1)!;
  assert(done.type === "done");
  assertEquals([done.result.status, done.result.limit], ["incomplete", "maxTurns"]);
});

// ---- long answers take time in proportion to their length ----

/** A client of one answer, given in pieces. */
function clientOfPieces(type: string, pieces: readonly string[]): Client {
  const encoder = new TextEncoder();
  let given = 0;
  const body = new ReadableStream<Uint8Array<ArrayBuffer>>({
    pull(controller) {
      if (given === pieces.length) controller.close();
      else controller.enqueue(encoder.encode(pieces[given++]));
    },
  });
  const response = new Response(body, { headers: { "content-type": type } });
  return clientOf({ baseUrl: "http://model.test" }, { fetch: () => Promise.resolve(response) });
}

async function elapsed(work: () => Promise<unknown>): Promise<number> {
  const started = performance.now();
  await work();
  return performance.now() - started;
}

/** Fails if work takes far longer than another that is as large: what is quadratic takes 30 times. */
async function assertAbout(
  same: () => Promise<unknown>,
  work: () => Promise<unknown>,
): Promise<void> {
  const expected = await elapsed(same);
  const actual = await elapsed(work);
  assert(actual < 10 * expected + 200, `${actual} ms, where ${expected} ms are due`);
}

const events = (delta: unknown, count: number) => [
  ...Array.from({ length: count }, () => `data: ${JSON.stringify({ choices: [{ delta }] })}\n\n`),
  END_OF_STREAM,
];

Deno.test("the result without a reader takes no longer than reading", async () => {
  const client = () => clientOfPieces("text/event-stream", events({ content: "a" }, 40_000));
  await assertAbout(
    () => eventsOf(client().stream("go")),
    () => client().stream("go").result,
  );
});

Deno.test("a long list of reasoning details takes no longer than a long text", async () => {
  const read = (delta: unknown) => async () => {
    const client = clientOfPieces("text/event-stream", [events(delta, 40_000).join("")]);
    const { messages } = await client.stream("go").result;
    return messages.at(-1)!;
  };
  const reasoning_details = [{ type: "reasoning.text", text: "a" }];
  await assertAbout(read({ content: "a" }), read({ reasoning_details }));
  const message = await read({ reasoning_details })();
  assertEquals((message.reasoning_details as { text: string }[])[0]?.text.length, 40_000);
});

Deno.test("an answer kept alive by blanks takes no longer than one that is as long", async () => {
  const pieces = Array.from({ length: 2048 }, () => " ".repeat(1024));
  const run = (...pieces: string[]) => async () => {
    const { text } = await clientOfPieces("application/json", pieces).run("go");
    assertEquals(text.trim(), "ok");
  };
  const [start, end] = ['{"choices":[{"message":{"content":"ok', '"}}]}'];
  await assertAbout(run(start, ...pieces, end), run(...pieces, start, end));
});
