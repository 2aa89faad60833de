import { assert, assertEquals, assertMatch, assertRejects } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import { createClient } from "../mod.ts";
import { type StubLlm, stubLlm, type StubReply } from "../src/testing/mod.ts";
import { events, HELLO, type Json, json, send } from "./fixtures/stub_calls.ts";

Deno.test("stubLlm answers a chat completion", async () => {
  await using stub = stubLlm(["It is noon."]);
  const response = await send(stub, "openai");
  assertEquals(response.headers.get("content-type"), "application/json");
  assertEquals(response.headers.get("x-request-id"), "req_1");
  const body = await response.json();
  assertEquals(body, {
    id: "chatcmpl-1",
    object: "chat.completion",
    created: body.created,
    model: "m",
    choices: [{
      index: 0,
      message: { role: "assistant", content: "It is noon." },
      finish_reason: "stop",
    }],
    usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 },
  });
});

Deno.test("stubLlm answers a message", async () => {
  await using stub = stubLlm(["It is noon."]);
  const response = await send(stub, "anthropic");
  assertEquals(response.headers.get("request-id"), "req_1");
  assertEquals(await response.json(), {
    id: "msg_1",
    type: "message",
    role: "assistant",
    model: "m",
    content: [{ type: "text", text: "It is noon." }],
    stop_reason: "end_turn",
    stop_sequence: null,
    usage: { input_tokens: 10, output_tokens: 5 },
  });
});

const CALLS: StubReply = {
  text: "Let me look.",
  reasoning: "I need the time \u{1f600}.",
  toolCalls: [
    { name: "clock", args: { zone: "Europe/Berlin" } },
    { id: "mine", name: "ping" },
    { name: "broken", args: '{"zone": "Eur' },
  ],
  usage: { promptTokens: 7, completionTokens: 3, cachedTokens: 2, reasoningTokens: 1 },
};

Deno.test("stubLlm calls tools and reasons, in openai style", async () => {
  await using stub = stubLlm([CALLS]);
  const body = await json(send(stub, "openai"));
  assertEquals(body.choices[0]?.finish_reason, "tool_calls");
  assertEquals(body.choices[0]?.message, {
    role: "assistant",
    content: "Let me look.",
    reasoning_content: "I need the time \u{1f600}.",
    tool_calls: [
      {
        id: "call_1",
        type: "function",
        function: { name: "clock", arguments: '{"zone":"Europe/Berlin"}' },
      },
      { id: "mine", type: "function", function: { name: "ping", arguments: "{}" } },
      { id: "call_2", type: "function", function: { name: "broken", arguments: '{"zone": "Eur' } },
    ],
  });
  assertEquals(body.usage, {
    prompt_tokens: 7,
    completion_tokens: 3,
    total_tokens: 10,
    prompt_tokens_details: { cached_tokens: 2 },
    completion_tokens_details: { reasoning_tokens: 1 },
  });
});

Deno.test("stubLlm calls tools and reasons, in anthropic style", async () => {
  await using stub = stubLlm([CALLS]);
  const body = await json(send(stub, "anthropic"));
  assertEquals(body.stop_reason, "tool_use");
  assertEquals(body.content, [
    { type: "thinking", thinking: "I need the time \u{1f600}.", signature: "signature-1" },
    { type: "text", text: "Let me look." },
    { type: "tool_use", id: "toolu_1", name: "clock", input: { zone: "Europe/Berlin" } },
    { type: "tool_use", id: "mine", name: "ping", input: {} },
    { type: "tool_use", id: "toolu_2", name: "broken", input: '{"zone": "Eur' },
  ]);
  assertEquals(body.usage, {
    input_tokens: 7,
    cache_read_input_tokens: 2,
    output_tokens: 3,
  });
});

Deno.test("stubLlm makes up call ids that no other call of the stub has", async () => {
  await using stub = stubLlm(() => ({ toolCalls: [{ name: "f" }, { name: "f" }] }));
  const ids: string[] = [];
  for (let i = 0; i < 3; i++) {
    const { choices } = await json(send(stub, "openai"));
    ids.push(...choices[0]?.message.tool_calls.map((call: Json) => call.id));
  }
  assertEquals(ids, ["call_1", "call_2", "call_3", "call_4", "call_5", "call_6"]);
});

Deno.test("stubLlm streams text, reasoning and arguments in several deltas, in openai style", async () => {
  await using stub = stubLlm([CALLS]);
  const seen = await events(send(stub, "openai", { stream: true }));
  const deltas = seen.map((event) => event.choices[0]?.delta);
  const pieces = (key: string) => deltas.flatMap((delta) => delta[key] ? [delta[key]] : []);
  assertEquals(deltas[0], { role: "assistant", content: "" });
  assertEquals(pieces("content"), ["Let ", "me l", "ook."]);
  assertEquals(pieces("reasoning_content").join(""), "I need the time \u{1f600}.");
  assert(pieces("reasoning_content").every((piece) => piece.isWellFormed()));
  const calls = pieces("tool_calls").flat();
  assertEquals(calls[0], {
    index: 0,
    id: "call_1",
    type: "function",
    function: { name: "clock", arguments: "" },
  });
  for (const [index, whole] of ['{"zone":"Europe/Berlin"}', "{}", '{"zone": "Eur'].entries()) {
    const parts = calls.filter((call) => call.index === index);
    assertEquals(parts.map((call) => call.function?.arguments).join(""), whole);
    assertEquals(parts.filter((call) => "id" in call).length, 1);
    if (whole.length > 4) assert(parts.length > 3);
  }
  assertEquals(seen.at(-1)?.choices[0]?.finish_reason, "tool_calls");
  assert(seen.every((event) => !("usage" in event)), "usage came unasked");
});

Deno.test("stubLlm ends an openai stream with the usage, if asked for, and [DONE]", async () => {
  await using stub = stubLlm(["hello", "hello"]);
  const body = { stream: true, stream_options: { include_usage: true } };
  const seen = await events(send(stub, "openai", body));
  assertEquals(seen.slice(0, -1).map((event) => event.usage), [null, null, null, null]);
  assertEquals(seen.at(-1)?.choices, []);
  assertEquals(seen.at(-1)?.usage?.total_tokens, 15);
  const response = await send(stub, "openai", body);
  assertEquals(response.headers.get("content-type"), "text/event-stream; charset=utf-8");
  assert((await response.text()).endsWith("data: [DONE]\n\n"));
});

Deno.test("stubLlm streams the full event sequence in anthropic style", async () => {
  await using stub = stubLlm([CALLS]);
  const seen = await events(send(stub, "anthropic", { stream: true }));
  const types = seen.map((event) => event.type);
  assertEquals(types[0], "message_start");
  assertEquals(types.slice(-2), ["message_delta", "message_stop"]);
  assertEquals(types.filter((type) => type === "content_block_start").length, 5);
  assertEquals(types.filter((type) => type === "content_block_stop").length, 5);
  assertEquals(seen[0]?.message?.content, []);
  assertEquals(seen.at(-2)?.delta, { stop_reason: "tool_use", stop_sequence: null });
  assertEquals(seen.at(-2)?.usage, { output_tokens: 3 });
  const joined = (index: number, key: string) =>
    seen.filter((event) => event.index === index && event.type === "content_block_delta")
      .map((event) => event.delta?.[key]).join("");
  assertEquals(joined(0, "thinking"), "I need the time \u{1f600}.");
  assertEquals(joined(0, "signature"), "signature-1");
  assertEquals(joined(1, "text"), "Let me look.");
  assertEquals(joined(2, "partial_json"), '{"zone":"Europe/Berlin"}');
  assertEquals(joined(3, "partial_json"), "");
  assertEquals(joined(4, "partial_json"), '{"zone": "Eur');
});

Deno.test("stubLlm takes a finish reason in the provider's word", async () => {
  await using stub = stubLlm([
    { text: "a", finishReason: "length" },
    { text: "a", finishReason: "max_tokens" },
    { text: "a", finishReason: "content_filter" },
  ]);
  assertEquals((await json(send(stub, "openai"))).choices[0]?.finish_reason, "length");
  assertEquals((await json(send(stub, "anthropic"))).stop_reason, "max_tokens");
  const streamed = await events(send(stub, "openai", { stream: true }));
  assertEquals(streamed.at(-1)?.choices[0]?.finish_reason, "content_filter");
});

Deno.test("stubLlm sends a raw reply as it stands", async () => {
  const page = "<html>busy</html>";
  await using stub = stubLlm([
    { status: 502, headers: { "content-type": "text/html" }, body: page },
    { body: { choices: [] } },
    { body: "" },
    { body: new Uint8Array([0, 255]) },
    { status: 429, headers: { "retry-after": "7" } },
    { status: 529 },
    { status: 204 },
  ]);
  const first = await send(stub, "openai");
  assertEquals([first.status, first.headers.get("content-type")], [502, "text/html"]);
  assertEquals(await first.text(), page);
  assertEquals(await json(send(stub, "openai")), { choices: [] });
  assertEquals(await (await send(stub, "openai", { stream: true })).text(), "");
  assertEquals(await (await send(stub, "openai")).bytes(), new Uint8Array([0, 255]));
  const limited = await send(stub, "openai");
  assertEquals([limited.status, limited.headers.get("retry-after")], [429, "7"]);
  assertEquals((await limited.json()).error.type, "rate_limit_error");
  const overloaded = await send(stub, "anthropic");
  assertEquals(overloaded.status, 529);
  assertEquals((await overloaded.json()).error.type, "overloaded_error");
  const empty = await send(stub, "openai");
  assertEquals([empty.status, await empty.text()], [204, ""]);
});

Deno.test("stubLlm gives each response a request id, unless the reply has one", async () => {
  await using stub = stubLlm([
    "a",
    { status: 500, headers: { "x-request-id": "mine", "request-id": "other" } },
    { sse: ["data: [DONE]"], headers: { "request-id": "mine" } },
  ]);
  const ids = [];
  for (const style of ["openai", "openai", "anthropic"] as const) {
    const response = await send(stub, style);
    await response.body?.cancel();
    ids.push([response.headers.get("x-request-id"), response.headers.get("request-id")]);
  }
  assertEquals(ids, [["req_1", null], ["mine", "other"], [null, "mine"]]);
});

Deno.test("stubLlm counts the tokens of the prompt cache as each provider does", async () => {
  const usage = { promptTokens: 7, cachedTokens: 2, cacheCreationTokens: 3 };
  await using stub = stubLlm(() => ({ text: "a", usage }));
  const anthropic = {
    input_tokens: 7,
    cache_read_input_tokens: 2,
    cache_creation_input_tokens: 3,
    output_tokens: 5,
  };
  assertEquals((await json(send(stub, "anthropic"))).usage, anthropic);
  const [start] = await events(send(stub, "anthropic", { stream: true }));
  assertEquals(start.message.usage, { ...anthropic, output_tokens: 1 });
  const { prompt_tokens_details } = (await json(send(stub, "openai"))).usage;
  assertEquals(prompt_tokens_details, { cached_tokens: 2 });
});

Deno.test("stubLlm writes the chunks of a raw stream one by one, wherever they are cut", async () => {
  const bytes = new TextEncoder().encode("data: \u{1f600}\n\n");
  const sse = ["data: a\r", "\n\r\n", bytes.subarray(0, 8), bytes.subarray(8), "data: [DONE]"];
  await using stub = stubLlm([{ sse, status: 201, headers: { "x-made-by": "hand" } }]);
  const response = await send(stub, "openai");
  assertEquals([response.status, response.headers.get("x-made-by")], [201, "hand"]);
  const chunks: Uint8Array[] = [];
  for await (const chunk of response.body ?? []) chunks.push(chunk);
  assertEquals(chunks.map((chunk) => chunk.length), [8, 3, 8, 4, 12]);
  const text = await new Blob(chunks as Uint8Array<ArrayBuffer>[]).text();
  assertEquals(text, "data: a\r\n\r\ndata: \u{1f600}\n\ndata: [DONE]");
});

Deno.test("stubLlm cuts any stream into network chunks of chunkBytes", async () => {
  const text = "gr\u00fc\u00df dich \u{1f600} ".repeat(50);
  await using stub = stubLlm([text], { chunkBytes: 1, deltaLength: 7 });
  const response = await send(stub, "openai", { stream: true });
  let whole = "";
  const decoder = new TextDecoder();
  for await (const chunk of response.body ?? []) {
    assertEquals(chunk.length, 1);
    whole += decoder.decode(chunk, { stream: true });
  }
  const seen = await events(Promise.resolve(new Response(whole)));
  assertEquals(seen.map((event) => event.choices[0]?.delta?.content ?? "").join(""), text);
  assertEquals(seen.length, Math.ceil([...text].length / 7) + 2);
});

Deno.test("stubLlm waits delayMs before each chunk", async () => {
  using time = new FakeTime();
  await using stub = stubLlm([{ sse: ["data: a\n\n", "data: b\n\n"] }], { delayMs: 1_000 });
  const response = await send(stub, "openai", { stream: true });
  const reader = (response.body ?? new ReadableStream()).getReader();
  let arrived = false;
  const first = reader.read().then((chunk) => {
    arrived = true;
    return chunk;
  });
  await time.tickAsync(999);
  assertEquals(arrived, false);
  await time.tickAsync(1);
  assertEquals(new TextDecoder().decode((await first).value), "data: a\n\n");
  const second = reader.read();
  await time.runAllAsync();
  assertEquals(new TextDecoder().decode((await second).value), "data: b\n\n");
  assertEquals((await reader.read()).done, true);
});

Deno.test("stubLlm breaks a connection on purpose", async () => {
  await using stub = stubLlm([{ sse: ["data: a\n\n"], end: "reset" }]);
  const response = await send(stub, "openai", { stream: true });
  const reader = (response.body ?? new ReadableStream()).getReader();
  assertEquals(new TextDecoder().decode((await reader.read()).value), "data: a\n\n");
  await assertRejects(() => reader.read(), TypeError);
});

Deno.test("stubLlm falls silent on purpose, and sees the client hang up", async () => {
  await using stub = stubLlm([{ sse: ["data: a\n\n"], end: "hang" }]);
  const caller = new AbortController();
  const response = await send(stub, "openai", { stream: true }, { signal: caller.signal });
  const reader = (response.body ?? new ReadableStream()).getReader();
  assertEquals(new TextDecoder().decode((await reader.read()).value), "data: a\n\n");
  const signal = stub.requests[0]?.signal;
  assertEquals(signal?.aborted, false);
  const gone = new Promise((resolve) => signal?.addEventListener("abort", resolve));
  caller.abort();
  await gone;
  await assertRejects(() => reader.read(), DOMException);
});

Deno.test("stubLlm tells a reply function that the client hung up", async () => {
  const hungUp = Promise.withResolvers<string>();
  await using stub = stubLlm([({ signal }) => {
    signal.addEventListener("abort", () => hungUp.resolve("hung up"));
    caller.abort();
    return hungUp.promise;
  }]);
  const caller = new AbortController();
  await assertRejects(() => send(stub, "openai", {}, { signal: caller.signal }), DOMException);
  assertEquals(await hungUp.promise, "hung up");
});

Deno.test("stubLlm leaves the signal of an answered request alone", async () => {
  await using stub = stubLlm(() => "yes");
  await (await send(stub, "openai")).text();
  await (await send(stub, "openai", { stream: true })).text();
  await (await send(stub, "openai")).text();
  assertEquals(stub.requests.map(({ signal }) => signal.aborted), [false, false, false]);
});

Deno.test("stubLlm makes replies from the request, one step or all of them", async () => {
  await using steps = stubLlm([
    "first",
    ({ body }) => `second, after ${body.messages.length}`,
    async ({ style }) => await Promise.resolve({ text: style, reasoning: "third" }),
  ]);
  const text = async (stub: StubLlm) =>
    (await json(send(stub, "openai"))).choices[0]?.message?.content;
  assertEquals(await text(steps), "first");
  assertEquals(await text(steps), "second, after 1");
  assertEquals(await text(steps), "openai");
  await using all = stubLlm(({ body }) => `I am ${body.model}`);
  for (let i = 0; i < 3; i++) assertEquals(await text(all), "I am m");
});

Deno.test("stubLlm records what was asked, in order", async () => {
  await using stub = stubLlm(() => "yes");
  await json(send(stub, "openai", { temperature: 0 }, { headers: { authorization: "Bearer x" } }));
  await json(fetch(`${stub.origin}/any/base/messages?beta=true`, {
    method: "POST",
    body: ' {"model":"n","max_tokens":1,"messages":[{"role":"user","content":"x"}]}',
  }));
  const [first, second] = stub.requests;
  assertEquals([first?.style, first?.method, first?.path], [
    "openai",
    "POST",
    "/v1/chat/completions",
  ]);
  assertEquals(first?.headers.get("authorization"), "Bearer x");
  assertEquals(first?.body, { model: "m", messages: HELLO, temperature: 0 });
  assertEquals([second?.style, second?.path], ["anthropic", "/any/base/messages"]);
  assertEquals(second?.url, `${stub.origin}/any/base/messages?beta=true`);
  assertEquals(
    second?.text,
    ' {"model":"n","max_tokens":1,"messages":[{"role":"user","content":"x"}]}',
  );
  assertMatch(stub.baseUrl, /^http:\/\/127\.0\.0\.1:\d+\/v1$/);
});

Deno.test("the arguments of a call may be given by either name", async () => {
  for (
    const call of [{ name: "pay", args: { euro: 1 } }, { name: "pay", arguments: { euro: 1 } }]
  ) {
    await using server = stubLlm([{ toolCalls: [call] }]);
    const client = createClient({
      baseUrl: server.baseUrl,
      style: "openai",
      model: "m",
      maxTurns: 1,
    });
    assertEquals((await client.run("go")).toolCalls[0]?.args, { euro: 1 });
  }
});
