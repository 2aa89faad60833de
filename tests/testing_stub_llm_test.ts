import {
  assert,
  assertEquals,
  assertInstanceOf,
  assertMatch,
  assertRejects,
  assertStringIncludes,
  assertThrows,
} from "@std/assert";
import { FakeTime } from "@std/testing/time";
import { type StubLlm, stubLlm, type StubReply } from "../src/testing/mod.ts";

type Style = "openai" | "anthropic";
// deno-lint-ignore no-explicit-any
type Json = any;

const PATHS = { openai: "/chat/completions", anthropic: "/messages" };
const HELLO = [{ role: "user", content: "hello" }];

/** Sends a request that the provider of the style would accept, but for what `body` changes. */
function send(
  stub: StubLlm,
  style: Style,
  body: object = {},
  init: RequestInit = {},
): Promise<Response> {
  const basis = {
    model: "m",
    messages: HELLO,
    ...(style === "anthropic" ? { max_tokens: 9 } : {}),
  };
  return fetch(stub.baseUrl + PATHS[style], {
    method: "POST",
    body: JSON.stringify({ ...basis, ...body }),
    ...init,
  });
}

async function json(response: Promise<Response>): Promise<Json> {
  return await (await response).json();
}

/** The JSON of every event, `[DONE]` left out; an event's name must be its type. */
async function events(response: Promise<Response>): Promise<Json[]> {
  const text = await (await response).text();
  return text.split("\n\n").slice(0, -1).flatMap((event) => {
    const lines = event.split("\n");
    const data = lines.at(-1)?.slice("data: ".length) ?? "";
    if (data === "[DONE]") return [];
    const parsed = JSON.parse(data);
    if (lines.length === 2) assertEquals(lines[0], `event: ${parsed.type}`);
    return [parsed];
  });
}

/** What closing a stub complains of. */
async function complaints(stub: StubLlm): Promise<string[]> {
  const error = await assertRejects(() => stub.close(), AggregateError);
  return error.errors.map((each: Error) => each.message);
}

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

Deno.test("a call past the script gets a 500 that is not to be retried, and closing says so", async () => {
  const stub = stubLlm(["only one"]);
  await json(send(stub, "openai"));
  for (const style of ["openai", "anthropic"] as const) {
    const response = await send(stub, style);
    assertEquals([response.status, response.headers.get("x-should-retry")], [500, "false"]);
    assertStringIncludes((await response.json()).error.message, "all were used");
  }
  assertEquals(await complaints(stub), [
    "call 2 (/v1/chat/completions) got no reply: the script has 1 and all were used",
    "call 3 (/v1/messages) got no reply: the script has 1 and all were used",
  ]);
});

Deno.test("closing names every reply that nobody asked for", async () => {
  const stub = stubLlm(["a", { text: "b" }, () => "c"]);
  await json(send(stub, "openai"));
  assertEquals(await complaints(stub), [
    'reply 2 was never asked for: {"text":"b"}',
    "reply 3 was never asked for: a function",
  ]);
});

Deno.test("closing complains once, and a second time does nothing", async () => {
  const stub = stubLlm(["a"]);
  const error = await assertRejects(() => stub.close(), AggregateError);
  assertEquals(error.message, 'stub LLM:\n- reply 1 was never asked for: "a"');
  await stub.close();
  await stub[Symbol.asyncDispose]();
});

Deno.test("a reply function that throws, or returns no reply, is a failure of the test", async () => {
  const stub = stubLlm([
    () => {
      throw new Error("no such case");
    },
    () => ({ txt: "typo" }) as unknown as StubReply,
  ]);
  assertEquals((await json(send(stub, "openai"))).error?.type, "server_error");
  assertEquals((await json(send(stub, "anthropic"))).error?.type, "api_error");
  assertEquals(await complaints(stub), [
    "call 1 (/v1/chat/completions) got no reply: no such case",
    'call 2 (/v1/messages) got no reply: what its function returned is no reply: {"txt":"typo"}',
  ]);
});

Deno.test("what is no model call gets a 404, and closing says so", async () => {
  const stub = stubLlm(() => "yes");
  const models = await fetch(`${stub.baseUrl}/models`);
  assertEquals(models.status, 404);
  await models.body?.cancel();
  const read = await fetch(stub.baseUrl + PATHS.openai);
  assertEquals(read.status, 404);
  await read.body?.cancel();
  assertEquals(await complaints(stub), [
    "GET /v1/models is no model call",
    "GET /v1/chat/completions is no model call",
  ]);
  assertEquals(stub.requests.length, 0);
});

Deno.test("a refused transcript gets the provider's 400, uses up no reply, and fails the test", async () => {
  const stub = stubLlm(["fine"]);
  const orphan = [{ role: "tool", tool_call_id: "c1", content: "5" }];
  const openai = await send(stub, "openai", { messages: orphan });
  assertEquals(openai.status, 400);
  assertEquals(await openai.json(), {
    error: {
      message: "messages[0]: a tool result with no call before it",
      type: "invalid_request_error",
      param: null,
      code: null,
    },
  });
  const anthropic = await send(stub, "anthropic", { messages: [], stream: true });
  assertEquals(anthropic.status, 400);
  assertEquals(anthropic.headers.get("content-type"), "application/json");
  assertEquals(await anthropic.json(), {
    type: "error",
    error: { type: "invalid_request_error", message: "messages: must be a non-empty array" },
  });
  const garbage = await send(stub, "openai", {}, { body: "{" });
  assertEquals((await garbage.json()).error.message, "the body is not a JSON object");
  assertEquals((await json(send(stub, "openai"))).choices[0]?.message?.content, "fine");
  assertEquals(await complaints(stub), [
    "call 1 (/v1/chat/completions) was refused: messages[0]: a tool result with no call before it",
    "call 2 (/v1/messages) was refused: messages: must be a non-empty array",
    "call 3 (/v1/chat/completions) was refused: the body is not a JSON object",
  ]);
});

Deno.test('strict: "refuse" refuses and is content, strict: false accepts', async () => {
  await using refusing = stubLlm([], { strict: "refuse" });
  const refused = await send(refusing, "anthropic", { max_tokens: undefined });
  assertEquals(refused.status, 400);
  assertStringIncludes((await refused.json()).error.message, "max_tokens");
  await using lenient = stubLlm(["yes"], { strict: false });
  const accepted = await json(send(lenient, "openai", { messages: [{ role: "tool" }] }));
  assertEquals(accepted.choices[0]?.message?.content, "yes");
});

Deno.test("closing waits for nobody: silent streams, readers that stopped, replies that never come", async () => {
  const stub = stubLlm([
    { sse: ["data: a\n\n"], end: "hang" },
    { sse: Array<string>(200).fill("x".repeat(100_000)) },
    () => new Promise<string>(() => {}),
    "late",
  ], { strict: false });
  const silent = await send(stub, "openai", { stream: true });
  const unread = await send(stub, "openai", { stream: true });
  const waiting = assertRejects(() => send(stub, "openai"), TypeError);
  while (stub.requests.length < 3) await new Promise((resolve) => setImmediate(resolve));
  const before = performance.now();
  assertEquals(await complaints(stub), ['reply 4 was never asked for: "late"']);
  assert(performance.now() - before < 1_000, "closing took a second");
  await waiting;
  await assertRejects(() => silent.text(), TypeError);
  await unread.body?.cancel().catch(() => {});
});

Deno.test("when a test fails and its stub as well, both errors are shown", async () => {
  const failing = async () => {
    await using _stub = stubLlm(["never asked for"]);
    await Promise.reject(new Error("the assertion"));
  };
  const error = await failing().catch((error) => error);
  assertInstanceOf(error, SuppressedError);
  const shown = (error as Error).cause as AggregateError;
  assertEquals(shown.errors.map((each: Error) => each.message), [
    "the assertion",
    'stub LLM:\n- reply 1 was never asked for: "never asked for"',
  ]);
});

Deno.test("stubLlm refuses a script or an option that is none", () => {
  for (const reply of [{ txt: "a" }, 5, null, { sse: [], body: "" }, undefined]) {
    assertThrows(() => stubLlm([reply as StubReply]), TypeError, "reply 1 is no reply");
  }
  assertThrows(() => stubLlm([], { deltaLength: 0 }), RangeError, "deltaLength");
  assertThrows(() => stubLlm([], { chunkBytes: 1.5 }), RangeError, "chunkBytes");
  assertThrows(() => stubLlm([], { delayMs: -1 }), RangeError, "delayMs");
});

Deno.test("stubLlm needs the loopback and no other permission", async () => {
  const url = import.meta.resolve("../src/testing/mod.ts");
  const program = `
    import { stubLlm } from ${JSON.stringify(url)};
    await using stub = stubLlm(["hello"]);
    const response = await fetch(stub.baseUrl + "/chat/completions", {
      method: "POST",
      body: JSON.stringify({ model: "m", messages: [{ role: "user", content: "hi" }], stream: true }),
    });
    console.log((await response.text()).includes("[DONE]"));`;
  const child = new Deno.Command(Deno.execPath(), {
    args: ["run", "--no-prompt", "--no-config", "--ext=ts", "--allow-net=127.0.0.1", "-"],
    env: { NO_COLOR: "1" },
    stdin: "piped",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  await ReadableStream.from([program]).pipeThrough(new TextEncoderStream()).pipeTo(child.stdin);
  const { code, stdout, stderr } = await child.output();
  const decoder = new TextDecoder();
  assertEquals([code, decoder.decode(stdout), decoder.decode(stderr)], [0, "true\n", ""]);
});
