/** However a run ends, what was completed is saved or handed back, and nothing else is. */
import { assertEquals, assertInstanceOf, assertRejects, assertStringIncludes } from "@std/assert";
import {
  type Client,
  HookError,
  ProviderError,
  RunAbortedError,
  type RunResult,
  StreamError,
  type ToolnexusError,
} from "../mod.ts";
import { type StubLlm, stubLlm, type StubReply } from "../src/testing/mod.ts";
import {
  calling,
  clientOf,
  clientOfFetch,
  deltas,
  END_OF_STREAM,
  eventsOf,
  lines,
  readUntil,
  silentServer,
  toolOf,
} from "./client_kit.ts";

const INTERRUPTED = "interrupted: may or may not have run";
const STYLES = ["openai", "anthropic"] as const;

/** The two ways to ask. */
const WAYS: Record<string, (client: Client, signal?: AbortSignal) => Promise<RunResult>> = {
  ask: (client, signal) => client.ask("go", { id: "a", signal }),
  stream: async (client, signal) => {
    const stream = client.stream("go", { id: "a", signal });
    await eventsOf(stream);
    return await stream.result;
  },
};

/** What is stored. */
async function stored(client: Client): Promise<string[]> {
  return lines(await client.conversationStore().get("a"));
}

/** Says so when a request is there, and answers it only when it is cut off. */
function silence(): { reply: () => Promise<StubReply>; asked: Promise<void> } {
  const { promise, resolve } = Promise.withResolvers<void>();
  return { asked: promise, reply: () => (resolve(), new Promise<never>(() => {})) };
}

for (const style of STYLES) {
  for (const [way, go] of Object.entries(WAYS)) {
    const name = `${way}, ${style}`;
    const options = { style, toolkit: [toolOf("pay"), toolOf("mail")] };
    const paid = style === "openai"
      ? ["user: go", "assistant: [pay] [mail]", "tool: pay ran", "tool: mail ran"]
      : ["user: go", "assistant: [pay] [mail]", "user: pay ran mail ran"];

    Deno.test(`done: the whole transcript is saved (${name})`, async () => {
      await using server = stubLlm([calling("pay", "mail"), "Paid"]);
      const client = clientOf(server, options);
      const result = await go(client);
      assertEquals([result.status, result.text, result.turns], ["done", "Paid", 2]);
      assertEquals(await stored(client), [...paid, "assistant: Paid"]);
      assertEquals(await client.conversationStore().get("a"), result.messages);
    });

    Deno.test(`provider error before anything closed: nothing is saved (${name})`, async () => {
      await using server = stubLlm([{ status: 400 }, "ok"]);
      const client = clientOf(server, options);
      const error = await assertRejects(() => go(client), ProviderError, "LLM 400");
      assertEquals([error.status, error.result, error.partialText], [400, undefined, undefined]);
      assertEquals(await client.conversationStore().get("a"), null);
      await go(client);
      assertEquals(await stored(client), ["user: go", "assistant: ok"]);
    });

    Deno.test(`provider error after a round: the round is saved and on the error (${name})`, async () => {
      await using server = stubLlm([calling("pay", "mail"), { status: 400 }]);
      const client = clientOf(server, options);
      const error = await assertRejects(() => go(client), ProviderError);
      assertEquals(await stored(client), paid);
      const result = error.result!;
      assertEquals(lines(result.messages), paid);
      assertEquals([result.status, result.toolCallCount, result.turns], ["incomplete", 2, 1]);
      assertEquals([result.usage.totalTokens, error.partialText], [15, undefined]);
    });

    Deno.test(`abort before anything: not even asked (${name})`, async () => {
      await using server = stubLlm([]);
      const client = clientOf(server, options);
      const reason = new Error("not needed");
      const error = await assertRejects(
        () => go(client, AbortSignal.abort(reason)),
        RunAbortedError,
      );
      assertEquals([error.code, error.name], ["aborted", "AbortError"]);
      assertEquals(error.cause, reason);
      assertEquals([error.result, await stored(client)], [undefined, []]);
    });

    Deno.test(`abort during a request: the request is cut, nothing is saved (${name})`, async () => {
      using server = silentServer();
      const controller = new AbortController();
      const client = clientOf(server, options);
      const asking = assertRejects(() => go(client, controller.signal), RunAbortedError);
      await server.asked;
      controller.abort();
      await asking;
      await server.gone;
      assertEquals(await client.conversationStore().get("a"), null);
    });

    Deno.test(`abort during a request after a round: the round is saved (${name})`, async () => {
      const { reply, asked } = silence();
      await using server = stubLlm([calling("pay", "mail"), reply]);
      const controller = new AbortController();
      const client = clientOf(server, options);
      const asking = assertRejects(() => go(client, controller.signal), RunAbortedError);
      await asked;
      controller.abort();
      const error = await asking;
      assertEquals(await stored(client), paid);
      assertEquals(lines(error.result?.messages), paid);
    });

    Deno.test(`abort while tools run: who finished is kept, the rest is closed (${name})`, async () => {
      await using server = stubLlm([calling("pay", "hang"), "fine"]);
      const controller = new AbortController();
      const seen = Promise.withResolvers<unknown>();
      const hang = toolOf("hang", (_, signal) => {
        signal.addEventListener("abort", () => seen.resolve(signal.reason));
        setTimeout(() => controller.abort(), 0);
        return new Promise(() => {});
      });
      const client = clientOf(server, { style, toolkit: [toolOf("pay"), hang] });
      const error = await assertRejects(() => go(client, controller.signal), RunAbortedError);
      assertInstanceOf(await seen.promise, RunAbortedError);
      const kept = style === "openai"
        ? ["user: go", "assistant: [pay] [hang]", "tool: pay ran", `tool: ${INTERRUPTED}`]
        : ["user: go", "assistant: [pay] [hang]", `user: pay ran ${INTERRUPTED}`];
      assertEquals(await stored(client), kept);
      assertEquals(error.result?.toolCalls.map(({ isError }) => isError), [false, true]);
      // The stub refuses a transcript with an open call.
      await client.ask("well?", { id: "a" });
    });

    Deno.test(`abort while the only tool runs: asking again is safe (${name})`, async () => {
      await using server = stubLlm([calling("hang"), "fine"]);
      const controller = new AbortController();
      const hang = toolOf("hang", () => {
        controller.abort();
        return new Promise(() => {});
      });
      const client = clientOf(server, { style, toolkit: [hang] });
      const error = await assertRejects(() => go(client, controller.signal), RunAbortedError);
      assertEquals([error.result?.turns, await stored(client)], [1, []]);
      await client.ask("well?", { id: "a" });
      assertEquals(await stored(client), ["user: well?", "assistant: fine"]);
    });
  }
}

for (const style of STYLES) {
  Deno.test(`abort in the middle of a stream: what was said is saved (${style})`, async () => {
    await using server = stubLlm(["Hello there, Ann", "ok"], { deltaLength: 5 });
    const client = clientOf(server, { style });
    const controller = new AbortController();
    const stream = client.stream("go", { id: "a", signal: controller.signal });
    let said = "";
    const error = await assertRejects(async () => {
      for await (const event of stream) {
        if (event.type === "text") said += event.delta;
        if (said.length >= 10) controller.abort(new Error("enough"));
      }
    }, RunAbortedError);
    assertEquals([error.partialText, error.result?.text], [said, said]);
    assertEquals(await stored(client), ["user: go", `assistant: ${said}`]);
    await client.ask("more", { id: "a" });
  });

  Deno.test(`leaving a stream: exactly what was read is saved (${style})`, async () => {
    await using server = stubLlm(["Hello there, Ann", "ok"], { deltaLength: 5 });
    const client = clientOf(server, { style });
    const stream = client.stream("go", { id: "a" });
    await readUntil(stream, (event) => event.type === "text");
    assertEquals(await stored(client), ["user: go", "assistant: Hello"]);
    const error = await assertRejects(() => stream.result, RunAbortedError);
    assertEquals([error.code, error.partialText], ["aborted", "Hello"]);
    await client.ask("more", { id: "a" });
  });

  Deno.test(`leaving a stream after its last word: the whole answer is saved (${style})`, async () => {
    await using server = stubLlm(["Hello", "ok"], { deltaLength: 5 });
    const client = clientOf(server, { style });
    await readUntil(client.stream("go", { id: "a" }), (event) => event.type === "usage");
    assertEquals(await stored(client), ["user: go", "assistant: Hello"]);
    await client.ask("more", { id: "a" });
  });

  Deno.test(`leaving a stream before the tools run: what was said is saved (${style})`, async () => {
    let runs = 0;
    await using server = stubLlm([{ text: "Let me pay", ...calling("pay") }, "ok"]);
    const client = clientOf(server, { style, toolkit: [toolOf("pay", () => ++runs)] });
    await readUntil(client.stream("go", { id: "a" }), (event) => event.type === "tool_call");
    assertEquals([runs, await stored(client)], [0, ["user: go", "assistant: Let me pay"]]);
    await client.ask("more", { id: "a" });
  });

  Deno.test(`leaving a stream while tools run ends them, and keeps who finished (${style})`, async () => {
    await using server = stubLlm([calling("pay", "hang"), "ok"]);
    const ended = Promise.withResolvers<void>();
    const hang = toolOf("hang", (_, signal) => {
      signal.addEventListener("abort", () => ended.resolve());
      return new Promise(() => {});
    });
    const client = clientOf(server, { style, toolkit: [toolOf("pay"), hang] });
    await readUntil(client.stream("go", { id: "a" }), (event) => event.type === "tool_result");
    await ended.promise;
    assertStringIncludes((await stored(client)).join("\n"), `pay ran`);
    assertStringIncludes((await stored(client)).join("\n"), INTERRUPTED);
    await client.ask("more", { id: "a" });
  });

  Deno.test(`a stream that is cut short is an error, never done (${style})`, async () => {
    const said = style === "openai" ? deltas("Hel", "lo") : [
      { type: "message_start", message: { role: "assistant", content: [], usage: {} } },
      { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
      { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "Hello" } },
    ].map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join("");
    for (const end of ["close", "reset"] as const) {
      await using server = stubLlm([{ sse: [said], end }, "ok"]);
      const client = clientOf(server, { style, retries: 2 });
      const error = await assertRejects(() => WAYS.stream!(client)) as ToolnexusError;
      assertInstanceOf(error, StreamError);
      assertEquals(error.code, "stream_truncated");
      assertEquals([error.partialText, error.result?.text], ["Hello", "Hello"]);
      assertEquals(error.result?.status, "incomplete");
      // A failure is no wish of the user's: the part is handed back, not stored.
      assertEquals(await stored(client), []);
      await client.ask("again", { id: "a" });
    }
  });
}

Deno.test("leaving a stream of which much came at once: nothing unread is saved", async () => {
  await using server = stubLlm([{
    sse: [deltas("one ", "two ", "three ", "four") + END_OF_STREAM],
  }]);
  const client = clientOf(server);
  const stream = client.stream("go", { id: "a" });
  let reads = 0;
  for await (const _ of stream) if (++reads === 2) break;
  assertEquals(await stored(client), ["user: go", "assistant: one two "]);
});

Deno.test("leaving a stream that ran ahead of its reader: nothing unread is saved", async () => {
  const call = { index: 0, id: "c1", function: { name: "pay", arguments: "{}" } };
  const choice = { index: 0, delta: { tool_calls: [call] }, finish_reason: "tool_calls" };
  const first = deltas("I will ", "pay") + `data: ${JSON.stringify({ choices: [choice] })}\n\n`;
  const second = deltas("That is paid now, and here is more that nobody has read");
  const ranAhead = Promise.withResolvers<void>();
  const client = clientOfFetch((_, number) => {
    const chunks = number === 1 ? [first, "data: [DONE]\n\n"] : [second];
    const body = new ReadableStream({
      pull(controller) {
        const chunk = chunks.shift();
        if (chunk !== undefined) return controller.enqueue(new TextEncoder().encode(chunk));
        // The second answer's delta was taken in, and more is asked for.
        ranAhead.resolve();
        return new Promise(() => {});
      },
    }, { highWaterMark: 0 });
    return new Response(body, { headers: { "content-type": "text/event-stream" } });
  }, { toolkit: [toolOf("pay")] });
  const stream = client.stream("go", { id: "a" });
  stream.result.catch(() => {});
  await ranAhead.promise;
  await readUntil(stream, (event) => event.type === "text");
  assertEquals(await stored(client), ["user: go", "assistant: I will pay [pay]", "tool: pay ran"]);
});

Deno.test("a throw in the reader's loop ends the run like leaving it", async () => {
  await using server = stubLlm(["Hello there"]);
  const client = clientOf(server);
  await assertRejects(
    async () => {
      for await (const _ of client.stream("go", { id: "a" })) throw new Error("mine");
    },
    Error,
    "mine",
  );
  assertEquals(await stored(client), ["user: go", "assistant: Hell"]);
});

Deno.test("a throw in onText ends the run like leaving it", async () => {
  await using server = stubLlm(["Hello there"]);
  const client = clientOf(server);
  const onText = () => {
    throw new Error("mine");
  };
  const error = await assertRejects(() => client.ask("go", { id: "a", onText }), HookError, "mine");
  assertEquals(error.partialText, "Hell");
  assertEquals(await stored(client), ["user: go", "assistant: Hell"]);
});

Deno.test("an onText that never comes back does not outlive an abort", async () => {
  await using server = stubLlm(["Hello there"]);
  const client = clientOf(server);
  const controller = new AbortController();
  const onText = () => {
    controller.abort();
    return new Promise<void>(() => {});
  };
  const { signal } = controller;
  await assertRejects(() => client.ask("go", { id: "a", signal, onText }), RunAbortedError);
});

Deno.test("an aborted onText run keeps what was said", async () => {
  await using server = stubLlm(["Hello there"]);
  const client = clientOf(server);
  const controller = new AbortController();
  const asking = client.ask("go", {
    id: "a",
    signal: controller.signal,
    onText: () => controller.abort(),
  });
  const error = await assertRejects(() => asking, RunAbortedError);
  assertEquals(await stored(client), ["user: go", `assistant: ${error.partialText}`]);
});

Deno.test("run() hands back what was completed, and stores nothing", async () => {
  await using server: StubLlm = stubLlm([calling("pay"), { status: 401 }]);
  const client = clientOf(server, { toolkit: [toolOf("pay")] });
  const error = await assertRejects(() => client.run("go"), ProviderError);
  assertEquals(lines(error.result?.messages), ["user: go", "assistant: [pay]", "tool: pay ran"]);
  assertEquals(error.result?.toolCalls[0]?.output, "pay ran");
});

Deno.test("what a failed turn kept is what the next ask goes on from", async () => {
  await using server = stubLlm([calling("pay"), { status: 503 }, "Paid"]);
  const client = clientOf(server, { toolkit: [toolOf("pay")] });
  await assertRejects(() => client.ask("pay", { id: "a" }), ProviderError);
  const { messages } = await client.ask("did you?", { id: "a" });
  assertEquals(lines(messages), [
    "user: pay",
    "assistant: [pay]",
    "tool: pay ran",
    "user: did you?",
    "assistant: Paid",
  ]);
});

for (const way of ["run", "stream"] as const) {
  Deno.test(`abort in the very tick of the response, or of its first byte: ended at once (${way})`, async () => {
    for (let ticks = 0; ticks < 20; ticks++) {
      const controller = new AbortController();
      // A fetch of one's own may know nothing of signals, and this body has no end.
      const client = clientOfFetch(async () => {
        (async () => {
          for (let tick = 0; tick < ticks; tick++) await undefined;
          controller.abort();
        })();
        return await Promise.resolve(new Response(new ReadableStream({ type: "bytes" })));
      }, { idleTimeoutMs: 1000 });
      const { signal } = controller;
      const go = way === "run"
        ? client.run("go", { signal })
        : client.stream("go", { signal }).result;
      assertEquals((await assertRejects(() => go, RunAbortedError)).code, "aborted");
    }
  });
}

Deno.test("abort while a plain answer is read: its body is let go, whoever fetched it", async () => {
  const controller = new AbortController();
  const read = Promise.withResolvers<void>(), cancelled = Promise.withResolvers<void>();
  const client = clientOfFetch(() => {
    const body = new ReadableStream({
      pull: () => read.resolve(),
      cancel: () => cancelled.resolve(),
    }, { highWaterMark: 0 });
    return new Response(body, { headers: { "content-length": "50" } });
  });
  const asking = client.run("go", { signal: controller.signal });
  await read.promise;
  controller.abort();
  await assertRejects(() => asking, RunAbortedError);
  await cancelled.promise;
});

Deno.test("a run that is left after a pause keeps each answer once, and tells all that was said", async () => {
  const text = (text: string) => ({ type: "text", text });
  const answers = [
    { content: [text("First half, ")], stop_reason: "pause_turn" },
    {
      content: [text("second half."), { type: "tool_use", id: "toolu_1", name: "t", input: {} }],
      stop_reason: "tool_use",
    },
  ];
  const client = clientOfFetch(
    (_, call) => Response.json({ type: "message", role: "assistant", ...answers[call - 1] }),
    { style: "anthropic", toolkit: [toolOf("t")] },
  );
  const stream = client.stream("go", { id: "a" });
  await readUntil(stream, ({ type }) => type === "tool_call");
  assertEquals(await stored(client), [
    "user: go",
    "assistant: First half, ",
    "assistant: second half.",
  ]);
  const { result } = await assertRejects(() => stream.result, RunAbortedError);
  assertEquals(result?.text, "First half, second half.");
});
