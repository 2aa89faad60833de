// The client against a real model server, in both wire styles. Nothing here depends on what the
// model says: a forced call, a token limit and the server's own book-keeping make it do what is
// tested.
import {
  assert,
  assertEquals,
  assertGreater,
  assertInstanceOf,
  assertLess,
  assertNotEquals,
} from "@std/assert";
import {
  defineTool,
  InMemoryConversationStore,
  type Message,
  ProviderError,
  RunAbortedError,
  type RunResult,
  type StyleName,
} from "../../mod.ts";
import {
  assertStops,
  clientOf,
  forced,
  hasMessages,
  hasSlots,
  inBothStyles,
  inputTokens,
  readAll,
  resultsOf,
  shapeOf,
  weatherTool,
} from "./live_kit.ts";

function assertCounted(style: StyleName, result: RunResult): void {
  const { promptTokens, completionTokens, totalTokens } = result.usage;
  assertGreater(inputTokens(style, result.usage), 0);
  assertGreater(completionTokens, 0);
  assertEquals(totalTokens, promptTokens + completionTokens);
}

inBothStyles("a plain and a streamed answer agree, and the deltas are the text", async (style) => {
  const { client, bodies } = clientOf(style);
  const plain = await client.run("Say hello.");
  const streamed = await readAll(client, "Say hello.");

  // Whether tokens came from the server's cache is not the answer's: usage is looked at below.
  const withoutUsage = ({ usage: _, ...result }: RunResult) => result;
  assertEquals(shapeOf(withoutUsage(streamed.result)), shapeOf(withoutUsage(plain)));
  assertEquals(bodies.map((body) => body.stream ?? false), [false, true]);
  for (const result of [plain, streamed.result]) {
    assertNotEquals(result.text, "");
    assertEquals(result.status, "done");
    assertEquals(result.turns, 1);
    assertEquals(result.messages.map(({ role }) => role), ["user", "assistant"]);
    assertCounted(style, result);
    assert(result.usage.completionTokens <= 16);
  }
  assertEquals(
    inputTokens(style, streamed.result.usage),
    inputTokens(style, plain.usage),
  );
  assertEquals(streamed.text, streamed.result.text);
  assertEquals(streamed.events.at(-1), { type: "done", result: streamed.result });
  assertEquals(
    streamed.events.filter(({ type }) => type === "usage"),
    [{ type: "usage", usage: streamed.result.usage }],
  );
  assertGreater(streamed.events.filter(({ type }) => type === "text").length, 1);

  const deltas: string[] = [];
  const asked = await client.ask("Say hello.", { onText: (delta) => void deltas.push(delta) });
  assertEquals(deltas.join(""), asked.text);
});

inBothStyles("a token limit is the finish reason", async (style) => {
  const { client } = clientOf(style, { maxTokens: 2 });
  const limit = style === "openai" ? "length" : "max_tokens";
  assertEquals((await client.run("Write a story.")).finishReason, limit);
  assertEquals((await readAll(client, "Write a story.")).result.finishReason, limit);
});

inBothStyles("a forced call runs the tool and its result goes back", async (style) => {
  for (const isStreamed of [false, true]) {
    const { tool, runs } = weatherTool();
    const { client, bodies } = clientOf(style, { ...forced(style), toolkit: [tool] });
    const prompt = "What is the weather in Oslo?";
    const streamed = isStreamed ? await readAll(client, prompt) : undefined;
    const result = streamed?.result ?? await client.run(prompt);

    // A model that does not know when to stop makes more calls until the limit cuts one short: that
    // one is not run.
    assertGreater(runs.length, 0);
    const expected = runs.map(({ city, callId }, index) => ({
      id: callId,
      name: "weather",
      args: { city },
      output: `${city}: rain, ${index + 1} degrees`,
      isError: false,
    }));
    assertEquals(result.toolCalls.filter(({ isError }) => !isError), expected);
    assertEquals(result.toolCallCount, result.toolCalls.length);
    assertEquals([result.status, result.turns], ["done", 2]);
    assertCounted(style, result);

    // The second request carried the results, in call order; so does the transcript.
    assertEquals(bodies.length, 2);
    const sent = result.toolCalls.map(({ id, output }) => ({ id, content: output }));
    assertEquals(bodies[1]!.messages.flatMap(resultsOf), sent);
    assertEquals(result.messages.flatMap(resultsOf), sent);
    assertEquals(bodies.map((body) => "tool_choice" in body), [true, false]);
    if (streamed === undefined) continue;

    assertEquals(streamed.text, result.text);
    const seen = streamed.events.filter((event) => "id" in event);
    assertEquals(
      seen.filter(({ id }) => runs.some(({ callId }) => callId === id)),
      [
        ...expected.map(({ id, name, args }) => ({ type: "tool_call" as const, id, name, args })),
        ...expected.map(({ args: _, ...end }) => ({ type: "tool_result" as const, ...end })),
      ],
    );
  }
});

inBothStyles("a call that the token limit cut short is not run", async (style) => {
  let runs = 0;
  const route = defineTool({
    name: "route",
    description: "Plans a route",
    inputSchema: {
      type: "object",
      properties: {
        stops: { type: "array", items: { type: "string", enum: ["Oslo", "Lima"] }, minItems: 20 },
      },
      required: ["stops"],
    },
    run: () => ++runs,
  });
  for (const isStreamed of [false, true]) {
    const { client, bodies } = clientOf(style, {
      ...forced(style),
      maxTokens: 40,
      toolkit: [route],
    });
    const result = isStreamed
      ? (await readAll(client, "Plan a route.")).result
      : await client.run("Plan a route.");
    assertEquals(runs, 0);
    assertEquals(result.toolCalls.map(({ name, isError }) => ({ name, isError })), [
      { name: "route", isError: true },
    ]);
    assertEquals(bodies[1]!.messages.flatMap(resultsOf).length, 1);
    assertEquals(result.status, "done");
  }
});

inBothStyles("three asks on one id are remembered", async (style) => {
  const { client, store, bodies } = clientOf(style);
  const id = "the same";
  const first = await client.ask("My name is Ada.", { id });
  const { result: second } = await readAll(client, "I live in Paris.", { id });
  const third = await client.ask("Who am I?", { id });

  assertEquals(
    third.messages.map(({ role }) => role),
    ["user", "assistant", "user", "assistant", "user", "assistant"],
  );
  assertEquals(third.messages.slice(0, 4), second.messages);
  assertEquals(second.messages.slice(0, 2), first.messages);
  assertEquals(await store.get(id), third.messages);

  const sent = bodies[2]!.messages.filter(({ role }) => role !== "system");
  assertEquals(sent, third.messages.slice(0, 5));
  const inputs = [first, second, third].map(({ usage }) => inputTokens(style, usage));
  assertLess(inputs[0]!, inputs[1]!);
  assertLess(inputs[1]!, inputs[2]!);
});

inBothStyles("eight asks at once on one id are all kept", async (style) => {
  const { client, store } = clientOf(style, { maxTokens: 3 });
  const prompts = Array.from({ length: 8 }, (_, index) => `Number ${index}.`);
  await Promise.all(prompts.map((prompt) => client.ask(prompt, { id: "busy" })));
  const kept = await store.get("busy");
  assertEquals(kept?.filter(({ role }) => role === "user").map(({ content }) => content), prompts);
  assertEquals(kept?.length, 16);
});

inBothStyles("a prompt that overflows the context is a typed error", async (style) => {
  const { client, store, bodies } = clientOf(style);
  const prompt = "word ".repeat(40_000);
  for (const ask of [() => client.ask(prompt, { id: "full" }), () => readAll(client, prompt)]) {
    bodies.length = 0;
    const error = await ask().then(() => undefined, (error) => error);
    assertInstanceOf(error, ProviderError);
    assertEquals([error.code, error.status, error.retryable], ["provider_error", 400, false]);
    assert(error.message.startsWith("LLM 400: "), error.message);
    assert(error.providerMessage, "the server says why");
    assertEquals(bodies.length, 1);
  }
  assertEquals(await store.get("full") ?? null, null);
});

// Half a minute of generation for the little model: it does not end by itself in time.
const LONG = { maxTokens: 1500, systemPrompt: "" };
const LONG_PROMPT = "Write a very long story about a city.";

inBothStyles("abort stops the server's generation", async (style) => {
  const { client, store } = clientOf(style, LONG);
  const controller = new AbortController();
  const reason = new Error("enough");
  const run = client.ask(LONG_PROMPT, { id: "aborted", signal: controller.signal })
    .then(() => undefined, (error) => error);
  await assertStops(() => controller.abort(reason));
  const error = await run;
  assertInstanceOf(error, RunAbortedError);
  assertEquals([error.code, error.name, error.cause], ["aborted", "AbortError", reason]);
  assertEquals(await store.get("aborted") ?? null, null);
}, !hasSlots);

inBothStyles(
  "leaving a stream stops the server's generation and keeps what was said",
  async (style) => {
    const { client, store } = clientOf(style, LONG);
    const stream = client.stream(LONG_PROMPT, { id: "left" });
    const events = stream[Symbol.asyncIterator]();
    let text = "";
    while (text.length < 20) {
      const { value } = await events.next();
      assertEquals(value?.type, "text");
      if (value?.type === "text") text += value.delta;
    }
    await assertStops(() => events.return?.());
    assertInstanceOf(await stream.result.catch((error) => error), RunAbortedError);
    const kept = await store.get("left");
    assertEquals(kept?.map(({ role }) => role), ["user", "assistant"]);
    assert(JSON.stringify(kept?.[1]?.content).includes(JSON.stringify(text).slice(1, -1)));
  },
  !hasSlots,
);

Deno.test({
  name: "a conversation with tool rounds moves from style to style and back",
  ignore: !hasMessages,
  fn: async () => {
    const store = new InMemoryConversationStore();
    const id = "moving";
    let before: Message[] = [];
    for (const style of ["openai", "anthropic", "openai", "anthropic"] as const) {
      const { tool, runs } = weatherTool();
      const { client } = clientOf(style, { ...forced(style), store, toolkit: [tool] });
      const result = await client.ask(`Weather, please, in the ${style} style.`, { id });
      assertGreater(runs.length, 0);
      assertEquals(result.status, "done");
      assertEquals(result.messages.slice(0, before.length), before);
      assertEquals(result.repaired, undefined);
      before = result.messages;
    }
    assertEquals(await store.get(id), before);
  },
});
