import {
  assertEquals,
  assertInstanceOf,
  assertRejects,
  assertStringIncludes,
  assertThrows,
} from "@std/assert";
import { stubLlm, type StubReply } from "../src/testing/mod.ts";
import { complaints, json, PATHS, send } from "./fixtures/stub_calls.ts";

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

Deno.test("a reply that HTTP cannot carry is a failure of the test", async () => {
  const replies: StubReply[] = [
    { status: 204, body: "not allowed here" },
    { status: 99 },
    { headers: { "x-odd": "a\nb" } },
    { body: { count: 1n } },
    { sse: [], status: 1_000 },
  ];
  const stub = stubLlm(replies);
  for (const reply of replies) {
    const response = await send(stub, "openai");
    assertEquals([response.status, response.headers.get("x-should-retry")], [500, "false"]);
    assertStringIncludes((await response.json()).error.message, "got no reply", String(reply));
  }
  assertEquals((await complaints(stub)).length, replies.length);
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
  assertEquals(await complaints(stub), ['reply 4 was never asked for: "late"']);
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
