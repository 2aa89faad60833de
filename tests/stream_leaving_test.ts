/** What becomes of a run whose reader leaves it, forgets it, or is slow. */
import { assert, assertEquals, assertInstanceOf, assertRejects } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import {
  type Client,
  type ClientOptions,
  ConversationConflictError,
  HookError,
  RunAbortedError,
  type RunStream,
  StoreError,
  StreamError,
  type StreamEvent,
} from "../mod.ts";
import { stubLlm } from "../src/testing/mod.ts";
import {
  answerOf,
  calling,
  clientOf,
  clientOfFetch,
  deltas,
  END_OF_STREAM,
  eventsOf,
  lines,
  textOf,
  toolOf,
} from "./client_kit.ts";

/** A client whose first answer comes in these chunks, and then stays open. */
function openEnded(chunks: string[], options: Partial<ClientOptions> = {}): Client {
  return clientOfFetch((_, number) => {
    if (number > 1) return answerOf("again");
    const body = new ReadableStream<string>({
      start(controller) {
        for (const chunk of chunks) controller.enqueue(chunk);
      },
    });
    return new Response(body.pipeThrough(new TextEncoderStream()), {
      headers: { "content-type": "text/event-stream" },
    });
  }, options);
}

const fullDisk = {
  get: () => undefined,
  save() {
    throw new Error("disk full");
  },
};

/** Reads until `isLast`, does something then, and leaves. */
async function leave(
  stream: RunStream,
  isLast: (event: StreamEvent) => boolean,
  before = () => {},
): Promise<string> {
  const events: StreamEvent[] = [];
  for await (const event of stream) {
    events.push(event);
    if (!isLast(event)) continue;
    before();
    break;
  }
  return textOf(events);
}

const stored = async (client: Client) => lines(await client.conversationStore().get("a"));

for (const how of ["signal", "timeoutMs"] as const) {
  Deno.test(`leaving after the end by ${how}: the reader learns that nothing was saved`, async () => {
    using time = new FakeTime();
    const controller = new AbortController();
    const client = openEnded([deltas("one ")], { store: fullDisk, timeoutMs: 1_000 });
    const stream = client.stream("hi", { id: "a", signal: controller.signal });
    const end = () => how === "signal" ? controller.abort() : time.tick(1_000);
    const unsaved = await assertRejects(() => leave(stream, () => true, end), StoreError);
    assertEquals([unsaved.partialText, unsaved.result?.text], ["one ", "one "]);
    const error = await assertRejects(() => stream.result, RunAbortedError);
    assertEquals(error.code, how === "signal" ? "aborted" : "timeout");
    assertEquals([error.partialText, error.suppressed], ["one ", unsaved]);
    assertEquals(lines(error.result?.messages), ["user: hi", "assistant: one "]);
  });
}

Deno.test("leaving after a hook of a sibling's has failed: that failure is the one", async () => {
  await using server = stubLlm([calling("first", "second")]);
  const first = Promise.withResolvers<void>();
  const client = clientOf(server, {
    store: fullDisk,
    toolkit: [toolOf("first"), toolOf("second", () => first.promise.then(() => "done"))],
    hooks: {
      afterTool({ name }) {
        if (name !== "first") return;
        queueMicrotask(first.resolve);
        throw new Error("no more");
      },
    },
  });
  const stream = client.stream("hi", { id: "a" });
  await assertRejects(() => leave(stream, ({ type }) => type === "tool_result"), StoreError);
  const error = await assertRejects(() => stream.result, HookError);
  assertInstanceOf(error.suppressed, StoreError);
  assert(error.result?.toolCalls.some(({ output }) => output === "done"));
});

for (const fails of [false, true]) {
  const what = fails ? "fails: the reader is told" : "is done: the result is there";
  Deno.test(`leaving while the save goes on, and it ${what}`, async () => {
    const saving = Promise.withResolvers<void>(), gate = Promise.withResolvers<void>();
    const store = {
      get: () => undefined,
      async save() {
        saving.resolve();
        await gate.promise;
        if (fails) throw new Error("disk full");
      },
    };
    const client = openEnded([deltas("one") + END_OF_STREAM], { store });
    const stream = client.stream("hi", { id: "a" });
    const iterator = stream[Symbol.asyncIterator]();
    while ((await iterator.next()).value?.type !== "usage");
    const next = iterator.next();
    await saving.promise;
    const leaving = [iterator.return!(), iterator.return!()];
    gate.resolve();
    const left = await Promise.allSettled(leaving);
    assertEquals(left.map(({ status }) => status), Array(2).fill(fails ? "rejected" : "fulfilled"));
    assertEquals(await next, { done: true, value: undefined });
    if (fails) await assertRejects(() => stream.result, StoreError);
    else assertEquals((await stream.result).text, "one");
  });
}

Deno.test("leaving while another process has saved: the conflict is told", async () => {
  const store = {
    get: () => [],
    save(id: string) {
      throw new ConversationConflictError(id);
    },
  };
  using time = new FakeTime();
  const client = openEnded([deltas("one ")], { store });
  const stream = client.stream("hi", { id: "a" });
  const leaving = assertRejects(() => leave(stream, () => true), ConversationConflictError);
  let isOver = false;
  leaving.finally(() => isOver = true);
  while (!isOver) await time.tickAsync(250);
  await leaving;
});

for (const way of ["break", "onText"] as const) {
  Deno.test(`a plain answer to a streaming request is kept when it was shown (${way})`, async () => {
    const client = clientOfFetch(() => answerOf("Hello"));
    if (way === "break") {
      assertEquals(await leave(client.stream("hi", { id: "a" }), () => true), "Hello");
    } else {
      const onText = () => {
        throw new Error("enough");
      };
      const error = await assertRejects(() => client.ask("hi", { id: "a", onText }), HookError);
      assertEquals(error.partialText, "Hello");
    }
    assertEquals(await stored(client), ["user: hi", "assistant: Hello"]);
  });
}

Deno.test("deltas of one chunk that onText has not seen when the run is aborted are not kept", async () => {
  const client = openEnded([deltas("one ", "two ", "three")]);
  const controller = new AbortController();
  let seen = "";
  const onText = (delta: string) => {
    seen += delta;
    controller.abort();
  };
  const options = { id: "a", signal: controller.signal, onText };
  const error = await assertRejects(() => client.ask("hi", options), RunAbortedError);
  assertEquals([seen, error.partialText], ["one ", "one "]);
  assertEquals(await stored(client), ["user: hi", "assistant: one "]);
});

Deno.test("text that arrives while the reader leaves is not kept", async () => {
  let leaving: Promise<unknown> | undefined;
  const client = clientOfFetch(() => {
    const pieces = ["one ", "two"].map((text) => new TextEncoder().encode(deltas(text)));
    const body = new ReadableStream<Uint8Array>({
      async pull(controller) {
        await Promise.resolve();
        controller.enqueue(pieces.shift());
        if (pieces.length === 0) leaving = iterator.return?.();
      },
    }, { highWaterMark: 0 });
    return new Response(body, { headers: { "content-type": "text/event-stream" } });
  });
  const stream = client.stream("hi", { id: "a" });
  const iterator = stream[Symbol.asyncIterator]();
  let seen = "";
  for (let step; !(step = await iterator.next()).done;) seen += textOf([step.value]);
  await leaving;
  const error = await assertRejects(() => stream.result, RunAbortedError);
  assertEquals([seen, error.partialText], ["one ", "one "]);
  assertEquals(await stored(client), ["user: hi", "assistant: one "]);
});

for (const how of ["signal", "timeoutMs"] as const) {
  Deno.test(`a stream that its reader forgot ends by ${how}, and the next ask has its turn`, async () => {
    using time = new FakeTime();
    const controller = new AbortController();
    const client = openEnded([deltas("one ")], { timeoutMs: 1_000 });
    const stream = client.stream("hi", { id: "a", signal: controller.signal });
    await stream[Symbol.asyncIterator]().next();
    if (how === "signal") controller.abort();
    else await time.tickAsync(1_000);
    await client.ask("and now?", { id: "a" });
    assertEquals(await stored(client), [
      "user: hi",
      "assistant: one ",
      "user: and now?",
      "assistant: again",
    ]);
  });
}

for (const way of ["stream", "onText"] as const) {
  Deno.test(`a slow reader is not taken for a silent provider (${way})`, async () => {
    using time = new FakeTime();
    const client = openEnded([deltas("one ", "two ") + deltas("three") + END_OF_STREAM], {
      idleTimeoutMs: 100,
    });
    const work = () => time.tickAsync(500);
    if (way === "onText") {
      const { text } = await client.ask("hi", { onText: work });
      return assertEquals(text, "one two three");
    }
    const stream = client.stream("hi");
    for await (const _ of stream) await work();
    assertEquals((await stream.result).text, "one two three");
  });
}

Deno.test("streams of different limits fall silent each in its own time", async () => {
  using time = new FakeTime();
  const silent = () => new Response(new ReadableStream<Uint8Array>());
  const failed: number[] = [];
  const streams = [300, 100, 200, Infinity].map((idleTimeoutMs) => {
    const controller = new AbortController();
    const stream = clientOfFetch(silent, { idleTimeoutMs }).stream("go", {
      signal: controller.signal,
    });
    const ended = eventsOf(stream).then(() => {}, ({ code }) => {
      if (code === "stream_idle") failed.push(idleTimeoutMs);
    });
    return { controller, ended };
  });
  for (const expected of [[], [100], [100, 200], [100, 200, 300]]) {
    await time.tickAsync(0);
    assertEquals(failed, expected);
    await time.tickAsync(100);
  }
  streams.at(-1)!.controller.abort();
  await Promise.all(streams.map(({ ended }) => ended));
});

Deno.test("a clock that is set back makes no silence endless", async () => {
  using time = new FakeTime();
  const client = openEnded([deltas("one ")], { idleTimeoutMs: 100 });
  let error: unknown;
  const reading = eventsOf(client.stream("hi")).catch((thrown) => error = thrown);
  await time.tickAsync(0);
  const { now } = Date;
  try {
    Date.now = () => now() - 3_600_000;
    for (let tick = 0; tick < 4; tick++) await time.tickAsync(60);
  } finally {
    Date.now = now;
  }
  await reading;
  assertInstanceOf(error, StreamError);
  assertEquals(error.code, "stream_idle");
});

Deno.test("whoever leaves after the signal has ended the run is told what could not be saved", async () => {
  const client = openEnded([deltas("Once")], { store: fullDisk });
  const stop = new AbortController();
  const stream = client.stream("go", { id: "a", signal: stop.signal });
  const error = await assertRejects(async () => {
    for await (const _ of stream) {
      stop.abort();
      await assertRejects(() => stream.result, RunAbortedError); // the run is over by now
      break;
    }
  }, StoreError);
  assertEquals(error.code, "store_failed");
});
