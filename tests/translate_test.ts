import { assertEquals, assertRejects } from "@std/assert";
import {
  createClient,
  defineTool,
  type OpenAITool,
  ProviderError,
  type TranslateRequest,
} from "../mod.ts";
import { stubLlm, type StubReply } from "../src/testing/mod.ts";
import { toolOf } from "./client_kit.ts";

const STYLES = ["openai", "anthropic"] as const;

const weather: OpenAITool = {
  type: "function",
  function: {
    name: "weather",
    description: "The weather in a city",
    parameters: { type: "object", properties: { city: { type: "string" } } },
  },
};

function setUp(style: typeof STYLES[number], replies: StubReply[], options = {}) {
  const server = stubLlm(replies);
  const client = createClient({
    baseUrl: server.baseUrl,
    style,
    model: "test-model",
    retries: 0,
    ...options,
  });
  return { server, client };
}

for (const style of STYLES) {
  Deno.test(`translate() gives an answer in the OpenAI shape, from ${style}`, async () => {
    const { server, client } = setUp(style, ["Hello"]);
    await using _ = server;
    const { raw, ...result } = await client.translate({
      messages: [{ role: "system", content: "Be terse" }, { role: "user", content: "Hi" }],
    });
    assertEquals(result, {
      text: "Hello",
      toolCalls: [],
      finishReason: "stop",
      usage: { promptTokens: 10, completionTokens: 5, totalTokens: 15 },
      model: "test-model",
    });
    assertEquals(typeof raw, "object");
  });

  Deno.test(`translate() gives calls and runs none of them, from ${style}`, async () => {
    let runs = 0;
    const lookup = defineTool({ name: "lookup", description: "Looks up", run: () => void runs++ });
    const call = { id: "c1", name: "weather", args: { city: "Paris" } };
    const { server, client } = setUp(style, [{ text: "Let me see", toolCalls: [call] }]);
    await using _ = server;
    const result = await client.translate({
      messages: [{ role: "user", content: "Weather in Paris?" }],
      tools: [weather],
      toolkit: [lookup],
      toolChoice: "required",
      maxTokens: 77,
    });
    assertEquals(result.toolCalls, [{ id: "c1", name: "weather", arguments: '{"city":"Paris"}' }]);
    assertEquals([result.finishReason, result.text, runs], ["tool_calls", "Let me see", 0]);
    const { body } = server.requests[0]!;
    assertEquals(body.max_tokens, 77);
    assertEquals(body.tool_choice, style === "openai" ? "required" : { type: "any" });
    assertEquals((body.tools as unknown[]).length, 2);
  });

  Deno.test(`translate() takes a whole OpenAI transcript with tool results, to ${style}`, async () => {
    const { server, client } = setUp(style, ["It is sunny"]);
    await using _ = server;
    const tool_calls = [{
      id: "call:1",
      type: "function",
      function: { name: "weather", arguments: '{"city":"Paris"}' },
    }];
    const messages = [
      { role: "user", content: "Weather?" },
      { role: "assistant", content: null, tool_calls },
      { role: "tool", tool_call_id: "call:1", content: "Sunny" },
    ];
    const before = structuredClone(messages);
    assertEquals((await client.translate({ messages })).text, "It is sunny");
    assertEquals(messages, before);
    if (style === "openai") assertEquals(server.requests[0]!.body.messages, messages);
  });

  Deno.test(`translate() names the tool that must be called, to ${style}`, async () => {
    const { server, client } = setUp(style, ["ok"]);
    await using _ = server;
    const toolChoice = { type: "function", function: { name: "weather" } };
    await client.translate({
      messages: [{ role: "user", content: "Hi" }],
      tools: [weather],
      toolChoice,
    });
    const expected = style === "openai" ? toolChoice : { type: "tool", name: "weather" };
    assertEquals(server.requests[0]!.body.tool_choice, expected);
  });

  Deno.test(`translate() tells an answer that was cut, from ${style}`, async () => {
    const finishReason = style === "openai" ? "length" : "max_tokens";
    const { server, client } = setUp(style, [{ text: "Once upon", finishReason }]);
    await using _ = server;
    const result = await client.translate({ messages: [{ role: "user", content: "A story" }] });
    assertEquals([result.finishReason, result.text], ["length", "Once upon"]);
  });

  Deno.test(`translate() has a word for the reasons of other servers, from ${style}`, async () => {
    const words = [
      ["model_length", "length"],
      ["MAX_TOKENS", "length"],
      ["sensitive", "content_filter"],
      ["REFUSAL", "content_filter"],
      ["eos", "stop"],
    ];
    const replies = words.map(([finishReason = ""]) => ({ text: "Once upon", finishReason }));
    const { server, client } = setUp(style, replies);
    await using _ = server;
    for (const [given, expected] of words) {
      const { finishReason } = await client.translate({
        messages: [{ role: "user", content: "A story" }],
      });
      assertEquals([given, finishReason], [given, expected]);
    }
  });

  Deno.test(`translate() takes the system prompt of the request, then the transcript's, then the client's, to ${style}`, async () => {
    const { server, client } = setUp(style, ["1", "2", "3"], { systemPrompt: "client" });
    await using _ = server;
    const user = { role: "user", content: "Hi" };
    const seeded = [{ role: "system", content: "transcript" }, user];
    await client.translate({ messages: seeded, system: "request" });
    await client.translate({ messages: seeded });
    await client.translate({ messages: [user] });
    const systems = server.requests.map(({ body }) =>
      style === "anthropic" ? body.system : (body.messages as { content: string }[])[0]!.content
    );
    assertEquals(systems, ["request", "transcript", "client"]);
  });
}

Deno.test("translate() sends OpenAI declarations as they are to an endpoint of that style", async () => {
  const { server, client } = setUp("openai", ["ok"]);
  await using _ = server;
  const strict = { ...weather, function: { ...weather.function, strict: true } };
  await client.translate({ messages: [{ role: "user", content: "Hi" }], tools: [strict] });
  assertEquals(server.requests[0]!.body.tools, [strict]);
});

Deno.test("translate() declares a tool that says next to nothing as Anthropic takes it", async () => {
  const { server, client } = setUp("anthropic", ["ok"]);
  await using _ = server;
  const bare = { type: "function", function: { name: "ping", description: null, parameters: {} } };
  const request = { messages: [{ role: "user", content: "Hi" }], tools: [bare] };
  await client.translate(request as unknown as TranslateRequest);
  assertEquals(server.requests[0]!.body.tools, [
    { name: "ping", description: "", input_schema: { type: "object" } },
  ]);
});

Deno.test("translate() calls the model hooks once and touches no store", async () => {
  const seen: string[] = [];
  const { server, client } = setUp("openai", ["ok"], {
    store: {
      get: () => {
        throw new Error("get");
      },
      save: () => {
        throw new Error("save");
      },
    },
    hooks: {
      beforeLLM: () => void seen.push("before"),
      afterLLM: () => void seen.push("after"),
      beforeTool: () => void seen.push("tool"),
    },
  });
  await using _ = server;
  await client.translate({ messages: [{ role: "user", content: "Hi" }] });
  assertEquals(seen, ["before", "after"]);
});

Deno.test("translate() throws what the provider says", async () => {
  const { server, client } = setUp("openai", [{ status: 400, body: { error: { message: "no" } } }]);
  await using _ = server;
  await assertRejects(
    () => client.translate({ messages: [{ role: "user", content: "Hi" }] }),
    ProviderError,
    "LLM 400: no",
  );
});

Deno.test("translate() refuses what is no declaration or no transcript", async () => {
  const client = createClient({ baseUrl: "http://127.0.0.1:1/v1", style: "openai", model: "m" });
  const messages = [{ role: "user", content: "Hi" }];
  const undeclared = { messages, tools: [{ name: "x" }] } as unknown as TranslateRequest;
  await assertRejects(() => client.translate(undeclared), TypeError);
  const unlisted = { messages, tools: {} } as unknown as TranslateRequest;
  await assertRejects(() => client.translate(unlisted), TypeError, "tools must be an array");
  const unread = { messages: "Hi" } as unknown as TranslateRequest;
  await assertRejects(() => client.translate(unread), TypeError);
});

for (const style of STYLES) {
  Deno.test(`translate() declares a tool once, as the request does, to ${style}`, async () => {
    const { server, client } = setUp(style, ["ok"]);
    await using _ = server;
    const own = defineTool({ name: "weather", description: "The toolkit's", run: () => "" });
    const other = defineTool({ name: "other", description: "Another", run: () => "" });
    const messages = [{ role: "user", content: "Hi" }];
    await client.translate({ messages, toolkit: [own, other], tools: [weather] });
    const tools = server.requests[0]!.body.tools as { function?: object; name?: string }[];
    const names = tools.map((tool) => ({ ...tool, ...tool.function }).name);
    assertEquals(names, ["other", "weather"]);
    if (style === "openai") assertEquals(tools[1], weather);
  });
}

Deno.test("translate() declares the client's tools only when it is given them", async () => {
  const toolkit = [defineTool({ name: "own", description: "The client's", run: () => "" })];
  const { server, client } = setUp("openai", ["ok"], { toolkit });
  await using _ = server;
  await client.translate({ messages: [{ role: "user", content: "Hi" }] });
  assertEquals(server.requests[0]!.body.tools, undefined);
});

Deno.test("translate() refuses a tool choice and a signal that are none, and asks nobody", async () => {
  const { server, client } = setUp("anthropic", []);
  await using _ = server;
  const messages = [{ role: "user", content: "Hi" }];
  const choices = [
    "requierd",
    { type: "auto" },
    { type: "function", name: "weather" },
    { type: "function", function: {} },
    { type: "tool", function: { name: "weather" } },
    null,
    5,
  ];
  for (const toolChoice of choices) {
    const request = { messages, toolChoice } as unknown as TranslateRequest;
    await assertRejects(() => client.translate(request), TypeError, "toolChoice must be");
  }
  const request = { messages, signal: {} } as unknown as TranslateRequest;
  await assertRejects(() => client.translate(request), TypeError, "signal must be");
});

for (const style of STYLES) {
  Deno.test(`translate() declares what beforeLLM gives, to ${style}`, async () => {
    const messages = [{ role: "user", content: "Hi" }];
    for (const tools of [[], [toolOf("other")]]) {
      const { server, client } = setUp(style, ["ok"], { hooks: { beforeLLM: () => ({ tools }) } });
      await using _ = server;
      await client.translate({ messages, tools: [weather], toolChoice: "auto" });
      const { body } = server.requests[0]!;
      assertEquals(JSON.stringify(body.tools ?? []).includes("weather"), false);
      assertEquals(JSON.stringify(body.tools ?? []).includes("other"), tools.length > 0);
    }
  });

  Deno.test(`translate() sends no tool choice where there is no tool, to ${style}`, async () => {
    const { server, client } = setUp(style, ["ok", "ok"]);
    await using _ = server;
    for (const toolChoice of ["auto", "none"] as const) {
      await client.translate({ messages: [{ role: "user", content: "Hi" }], toolChoice });
    }
    assertEquals(server.requests.map(({ body }) => body.tool_choice), [undefined, undefined]);
  });
}

Deno.test("translate() refuses a limit and a system prompt that are none, and asks nobody", async () => {
  const { server, client } = setUp("openai", []);
  await using _ = server;
  const messages = [{ role: "user", content: "Hi" }];
  for (const maxTokens of ["5", 0, -1, 1.5, NaN, null]) {
    const request = { messages, maxTokens } as unknown as TranslateRequest;
    await assertRejects(() => client.translate(request), Error, "maxTokens must be");
  }
  for (const system of [5, {}, null]) {
    const request = { messages, system } as unknown as TranslateRequest;
    await assertRejects(() => client.translate(request), TypeError, "system must be a string");
  }
});
