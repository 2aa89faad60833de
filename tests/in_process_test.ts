import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import {
  createInProcessClient,
  defineTool,
  type InProcessRequest,
  type InProcessResponse,
  ProviderError,
  RunAbortedError,
} from "../mod.ts";

const add = defineTool({
  name: "add",
  description: "Adds two numbers",
  inputSchema: {
    type: "object",
    properties: { a: { type: "number" }, b: { type: "number" } },
    required: ["a", "b"],
  },
  run: ({ a, b }) => a + b,
});

/** A model that gives these answers in turn, and keeps what it was asked. */
function scripted(...responses: InProcessResponse[]) {
  const requests: InProcessRequest[] = [];
  const generate = (request: InProcessRequest) => {
    requests.push(request);
    return responses.shift() ?? { content: "no more" };
  };
  return { generate, requests };
}

Deno.test("a function is asked with the system prompt, the transcript, the tools and the model", async () => {
  const { generate, requests } = scripted({ content: "ok" });
  const client = createInProcessClient({
    model: "my-local",
    systemPrompt: "You are terse",
    toolkit: [add],
    generate,
  });
  assertEquals((await client.run("What is 2 + 3?")).text, "ok");
  const { messages, tools, model } = requests[0]!;
  assertEquals(messages, [
    { role: "system", content: "You are terse" },
    { role: "user", content: "What is 2 + 3?" },
  ]);
  assertEquals([tools[0]?.function.name, model], ["add", "my-local"]);
});

Deno.test("a function's tool calls run and go back to it", async () => {
  const { generate, requests } = scripted(
    {
      toolCalls: [{ name: "add", arguments: { a: 2, b: 3 } }, {
        name: "add",
        arguments: '{"a":1,"b":1}',
      }],
    },
    { content: "5 and 2", usage: { promptTokens: 7, completionTokens: 2 } },
  );
  const client = createInProcessClient({ model: "m", toolkit: [add], generate });
  const result = await client.ask("Add", { id: "thread-1" });
  assertEquals(result.toolCalls.map(({ output }) => output), ["5", "2"]);
  assertEquals(result.usage, { promptTokens: 7, completionTokens: 2, totalTokens: 9 });
  assertEquals(requests[1]!.messages.map(({ role }) => role), [
    "user",
    "assistant",
    "tool",
    "tool",
  ]);
  assertEquals((await client.conversationStore().get("thread-1"))?.length, 5);
});

Deno.test("a function's own error message survives, and is not tried again by default", async () => {
  let calls = 0;
  const client = createInProcessClient({
    model: "m",
    generate: () => {
      calls++;
      throw new Error("the weights are missing");
    },
  });
  const error = await assertRejects(
    () => client.run("Hi"),
    ProviderError,
    "the weights are missing",
  );
  assertEquals((error.cause as Error).message, "the weights are missing");
  assertEquals(calls, 1);
});

Deno.test("a function's own error message survives, though it names a cause", async () => {
  const cause = new Error("ENOENT");
  const thrown = new Error("the weights could not be read", { cause });
  const client = createInProcessClient({ model: "m", generate: () => Promise.reject(thrown) });
  const error = await assertRejects(() => client.run("Hi"), ProviderError);
  assertEquals(error.message, "LLM request failed: the weights could not be read");
  assertEquals(error.cause, thrown);
});

Deno.test("all tokens that a function reports are told", async () => {
  const usage = {
    promptTokens: 10,
    completionTokens: 5,
    totalTokens: 15,
    cachedTokens: 4,
    reasoningTokens: 2,
  };
  const client = createInProcessClient({ model: "m", generate: () => ({ content: "ok", usage }) });
  assertEquals((await client.run("Hi")).usage, usage);
});

Deno.test("a function is asked again when retries are wanted", async () => {
  let calls = 0;
  const client = createInProcessClient({
    model: "m",
    retries: 1,
    retryBaseMs: 0,
    generate: () => {
      if (calls++ === 0) throw new Error("warming up");
      return { content: "ready" };
    },
  });
  assertEquals((await client.run("Hi")).text, "ready");
});

Deno.test("a client of a function does not stream", async () => {
  const client = createInProcessClient({ model: "m", generate: () => ({ content: "x" }) });
  await assertRejects(
    async () => {
      for await (const _ of client.stream("Hi")) { /* never */ }
    },
    ProviderError,
    "does not support streaming",
  );
});

Deno.test("a client of a function needs the function, and an answer from it", async () => {
  // deno-lint-ignore no-explicit-any
  const none = { model: "m" } as any;
  assertThrows(() => createInProcessClient(none), TypeError, "requires a `generate` function");
  const client = createInProcessClient({ model: "m", generate: () => ({}) });
  await assertRejects(() => client.run("Hi"), ProviderError, "must return { content }");
});

Deno.test("a function that hears nothing of an abort does not keep the run from ending", async () => {
  const controller = new AbortController();
  let signal: AbortSignal | undefined;
  const client = createInProcessClient({
    model: "m",
    generate: (request) => {
      signal = request.signal;
      controller.abort();
      return new Promise(() => {});
    },
  });
  await assertRejects(() => client.run("Hi", { signal: controller.signal }), RunAbortedError);
  assert(signal?.aborted);
});

Deno.test("retries that are undefined are those that were left out", async () => {
  let calls = 0;
  const client = createInProcessClient({
    model: "m",
    retries: undefined,
    retryBaseMs: 0,
    generate: () => {
      calls++;
      throw new Error("no");
    },
  });
  await assertRejects(() => client.run("Hi"), ProviderError);
  assertEquals(calls, 1);
});

Deno.test("a function that gives nothing is told what it must give", async () => {
  for (const nothing of [undefined, null]) {
    const generate = () => nothing as unknown as InProcessResponse;
    const client = createInProcessClient({ model: "m", generate });
    await assertRejects(() => client.run("Hi"), ProviderError, "must return { content }");
  }
});

Deno.test("onText asks for a stream, which is refused once and for all", async () => {
  const { generate, requests } = scripted({ content: "x" });
  const client = createInProcessClient({ model: "m", retries: 2, retryBaseMs: 0, generate });
  const error = await assertRejects(
    () => client.run("Hi", { onText: () => {} }),
    ProviderError,
    "does not support streaming",
  );
  assertEquals([error.retryable, error.attempts, requests.length], [false, 1, 0]);
});

Deno.test("the failure of another client's run is not taken for this run's own", async () => {
  const ping = defineTool({ name: "ping", description: "Says pong", run: () => "pong" });
  let calls = 0;
  const inner = createInProcessClient({
    model: "inner",
    toolkit: [ping],
    generate() {
      if (calls++ === 0) return { toolCalls: [{ name: "ping" }] };
      throw new Error("inner is down");
    },
  });
  const failing = inner.run("a secret of the inner run");
  const outer = createInProcessClient({
    model: "outer",
    toolkit: [ping],
    generate: async ({ messages }) =>
      messages.length === 1 ? { toolCalls: [{ name: "ping" }] } : { content: (await failing).text }, // both runs wait for the same failure
  });
  const prompts = ["Ann", "Bob"];
  const errors = await Promise.all(
    prompts.map((prompt) => assertRejects(() => outer.run(prompt), ProviderError)),
  );
  assertEquals(errors.map(({ result }) => result?.messages[0]?.content), prompts);
  for (const error of errors) {
    assertEquals(error.message, "LLM request failed: LLM request failed: inner is down");
    assertEquals((error.cause as ProviderError).result?.toolCallCount, 1);
  }
});
