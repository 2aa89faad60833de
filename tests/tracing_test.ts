/** Spans of a run, collected by the real OpenTelemetry SDK, in memory. */
import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import { context, type Span, type Tracer as OTelTracer } from "npm:@opentelemetry/api@1.10.0";
import { AsyncLocalStorageContextManager } from "npm:@opentelemetry/context-async-hooks@2.12.1";
import { BasicTracerProvider, type ReadableSpan } from "npm:@opentelemetry/sdk-trace-base@2.12.1";
import {
  createInProcessClient,
  pending,
  ProviderError,
  RunAbortedError,
  type Tracer,
} from "../mod.ts";
import { stubLlm } from "../src/testing/mod.ts";
import { calling, clientOf, clientOfFetch, eventsOf, readUntil, toolOf } from "./client_kit.ts";

const STYLES = ["openai", "anthropic"] as const;
const INTERNAL = 0, CLIENT = 2, ERROR = 2;

/** A tracer of the SDK, and the spans that it has ended, in the order in which they began. */
function collector(): { tracer: OTelTracer; spans: () => readonly ReadableSpan[] } & Disposable {
  const began: ReadableSpan[] = [];
  const provider = new BasicTracerProvider({
    spanProcessors: [{
      onStart: (span) => void began.push(span as unknown as ReadableSpan),
      onEnd: () => {},
      forceFlush: () => Promise.resolve(),
      shutdown: () => Promise.resolve(),
    }],
  });
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  return {
    tracer: provider.getTracer("test"),
    spans() {
      for (const { name, ended } of began) assert(ended, `${name} was not ended`);
      return began;
    },
    [Symbol.dispose]: () => context.disable(),
  };
}

/** The spans as a tree of names. */
function tree(spans: readonly ReadableSpan[], parent?: string, indent = ""): string[] {
  return spans
    .filter((span) => span.parentSpanContext?.spanId === parent)
    .flatMap((span) => [
      indent + span.name,
      ...tree(spans, span.spanContext().spanId, indent + "  "),
    ]);
}

function named(spans: readonly ReadableSpan[], name: string): ReadableSpan[] {
  return spans.filter((span) => span.name === name);
}

const WAYS = ["ask", "stream"] as const;

for (const style of STYLES) {
  for (const way of WAYS) {
    Deno.test(`a run is a span, and in it each request and tool call (${way}, ${style})`, async () => {
      using collected = collector();
      const { tracer, spans } = collected;
      const usage = { promptTokens: 7, completionTokens: 3 };
      await using server = stubLlm([{ ...calling("ping", "pong"), usage }, {
        text: "done",
        usage,
      }]);
      // What a tool does is part of its span.
      const ping = toolOf("ping", async () => {
        await Promise.resolve();
        return tracer.startActiveSpan("inside", (span) => (span.end(), "pinged"));
      });
      const client = clientOf(server, { style, toolkit: [ping, toolOf("pong")], tracer });
      if (way === "ask") await client.ask("go", { id: "thread-1" });
      else await eventsOf(client.stream("go", { id: "thread-1" }));
      assertEquals(tree(spans()), [
        "invoke_agent",
        "  chat test",
        "  execute_tool ping",
        "    inside",
        "  execute_tool pong",
        "  chat test",
      ]);
      const [run] = named(spans(), "invoke_agent"), [chat] = named(spans(), "chat test");
      const [tool] = named(spans(), "execute_tool ping");
      const { port } = new URL(server.baseUrl);
      const common = {
        "gen_ai.provider.name": style,
        "gen_ai.request.model": "test",
        "gen_ai.conversation.id": "thread-1",
      };
      const address = { "server.address": "127.0.0.1", "server.port": Number(port) };
      const { "gen_ai.response.id": id, "gen_ai.response.model": model, ...rest } =
        chat!.attributes;
      assertEquals([typeof id, model], ["string", "test"]);
      assertEquals(rest, {
        ...common,
        ...address,
        "gen_ai.operation.name": "chat",
        ...(way === "stream" && { "gen_ai.request.stream": true }),
        "gen_ai.usage.input_tokens": 7,
        "gen_ai.usage.output_tokens": 3,
        "gen_ai.response.finish_reasons": [style === "openai" ? "tool_calls" : "tool_use"],
      });
      assertEquals(run!.attributes, {
        ...common,
        ...address,
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.usage.input_tokens": 14,
        "gen_ai.usage.output_tokens": 6,
        "gen_ai.response.finish_reasons": [style === "openai" ? "stop" : "end_turn"],
        "toolnexus.status": "done",
      });
      assertEquals(tool!.attributes, {
        ...common,
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "ping",
        "gen_ai.tool.call.id": "c-ping",
        "gen_ai.tool.type": "function",
      });
      assertEquals([run!.kind, chat!.kind, tool!.kind], [INTERNAL, CLIENT, INTERNAL]);
      for (const { status } of spans()) assertEquals(status.code, 0);
    });
  }
}

Deno.test("runs at once, and runs inside of runs, keep their spans apart", async () => {
  using collected = collector();
  const { tracer, spans } = collected;
  await using server = stubLlm(({ body }) => {
    const asked = JSON.stringify(body.messages.at(-1));
    return asked.includes("delegate") ? calling("sub") : "ok";
  });
  const sub = toolOf("sub", async () => (await client.run("small")).text);
  const client = clientOf(server, { toolkit: [sub], tracer });
  await tracer.startActiveSpan("request", async (span: Span) => {
    await Promise.all([client.ask("delegate", { id: "a" }), client.ask("plain", { id: "b" })]);
    span.end();
  });
  const [request] = tree(spans());
  assertEquals(request, "request");
  assertEquals(
    tree(spans()).slice(1).toSorted(),
    [
      "      invoke_agent",
      "        chat test",
      "    chat test",
      "    chat test",
      "    chat test",
      "    execute_tool sub",
      "  invoke_agent",
      "  invoke_agent",
    ].toSorted(),
  );
});

Deno.test("a failure is told by its kind, and by nothing that was said", async () => {
  using collected = collector();
  const { tracer, spans } = collected;
  const secret = "my secret";
  await using server = stubLlm([
    calling("boom"),
    { status: 400, body: JSON.stringify({ error: { message: `bad: ${secret}` } }) },
  ]);
  const boom = toolOf("boom", () => {
    throw new Error(secret);
  });
  const client = clientOf(server, { toolkit: [boom], tracer, apiKey: `key-${secret}` });
  await assertRejects(() => client.ask(secret, { id: "a" }), ProviderError);
  const failed = spans().filter(({ status }) => status.code === ERROR);
  assertEquals(failed.map(({ name, attributes }) => [name, attributes["error.type"]]), [
    ["invoke_agent", "400"],
    ["execute_tool boom", "tool_error"],
    ["chat test", "400"],
  ]);
  const told = spans().map(({ name, attributes, events, status }) => ({
    name,
    attributes,
    events,
    status,
  }));
  assert(!JSON.stringify(told).includes("secret"), JSON.stringify(told));
});

Deno.test("a suspension is no failure, and a resume is a run of its own", async () => {
  using collected = collector();
  const { tracer, spans } = collected;
  await using server = stubLlm([calling("pay"), "Paid"]);
  const pay = {
    ...toolOf("pay"),
    execute: (_: unknown, { answer }: { answer?: unknown }) =>
      answer ? { output: "paid", isError: false } : pending({ kind: "approval", prompt: "Pay?" }),
  };
  const client = clientOf(server, { toolkit: [pay], tracer });
  const { pending: request } = await client.ask("go", { id: "a" });
  await client.resume({ id: "a", answer: { id: request!.id, ok: true } });
  assertEquals(tree(spans()), [
    "invoke_agent",
    "  chat test",
    "  execute_tool pay",
    "invoke_agent",
    "  execute_tool pay",
    "  chat test",
  ]);
  const status = named(spans(), "invoke_agent").map(({ attributes }) =>
    attributes["toolnexus.status"]
  );
  assertEquals(status, ["pending", "done"]);
  const tools = named(spans(), "execute_tool pay");
  assertEquals(tools.map(({ attributes }) => attributes["toolnexus.pending"]), [true, undefined]);
  assertEquals(spans().filter(({ status }) => status.code === ERROR), []);
});

Deno.test("a run that is left or aborted ends its spans", async () => {
  using collected = collector();
  const { tracer, spans } = collected;
  const asked = Promise.withResolvers<void>();
  await using server = stubLlm([
    "one two three four five six",
    () => (asked.resolve(), new Promise<never>(() => {})),
  ], { delayMs: 5 });
  const client = clientOf(server, { tracer });
  await readUntil(client.stream("count"), ({ type }) => type === "text");
  const controller = new AbortController();
  const run = client.run("wait", { signal: controller.signal });
  await asked.promise;
  controller.abort();
  await assertRejects(() => run, RunAbortedError);
  assertEquals(tree(spans()), ["invoke_agent", "  chat test", "invoke_agent", "  chat test"]);
  for (const { attributes, status } of spans()) {
    assertEquals([attributes["error.type"], status.code], ["aborted", ERROR]);
  }
  // A stream that nobody reads is no run.
  const unread = client.stream("never");
  await unread[Symbol.asyncIterator]().return!();
  assertEquals(spans().length, 4);
});

Deno.test("one call to the model alone is one span; a function is at no address", async () => {
  using collected = collector();
  const { tracer, spans } = collected;
  await using server = stubLlm(["Hi"]);
  await clientOf(server, { tracer }).translate({ messages: [{ role: "user", content: "hi" }] });
  const client = createInProcessClient({
    model: "own",
    generate: () => ({ content: "hi" }),
    tracer,
  });
  await client.run("hi");
  assertEquals(tree(spans()), ["chat test", "invoke_agent", "  chat own"]);
  assertEquals(named(spans(), "chat own")[0]!.attributes["server.address"], undefined);
});

Deno.test("cached tokens are input tokens, in the sense of either provider", async () => {
  using collected = collector();
  const { tracer, spans } = collected;
  const usage = { promptTokens: 100, completionTokens: 3, cachedTokens: 60 };
  await using server = stubLlm(() => ({ text: "ok", usage }));
  for (const style of STYLES) {
    const { usage } = await clientOf(server, { style, tracer }).run("hi");
    const { attributes } = spans().findLast(({ name }) => name === "chat test")!;
    const whole = style === "openai"
      ? usage.promptTokens
      : usage.promptTokens + usage.cachedTokens!;
    assertEquals(attributes["gen_ai.usage.input_tokens"], whole);
    assertEquals(attributes["gen_ai.usage.cache_read.input_tokens"], 60);
  }
});

Deno.test("tokens that a cache took are input tokens, too, and are told apart", async () => {
  using collected = collector();
  const { tracer, spans } = collected;
  const answer = {
    type: "message",
    role: "assistant",
    content: [{ type: "text", text: "ok" }],
    stop_reason: "end_turn",
    usage: {
      input_tokens: 3,
      output_tokens: 1,
      cache_read_input_tokens: 100,
      cache_creation_input_tokens: 2_000,
    },
  };
  const client = clientOfFetch(() => Response.json(answer), { style: "anthropic", tracer });
  const { usage } = await client.run("hi");
  assertEquals([usage.promptTokens, usage.cachedTokens, usage.cacheCreationTokens], [
    3,
    100,
    2_000,
  ]);
  for (const { attributes } of spans()) {
    assertEquals(attributes["gen_ai.usage.input_tokens"], 2_103);
    assertEquals(attributes["gen_ai.usage.cache_read.input_tokens"], 100);
    assertEquals(attributes["gen_ai.usage.cache_creation.input_tokens"], 2_000);
  }
});

Deno.test("a tracer that throws ends no run", async () => {
  await using server = stubLlm(() => "ok");
  const broken = () => {
    throw new Error("collector is down");
  };
  const span = { setAttributes: broken, setStatus: broken, end: broken };
  const tracers: Tracer[] = [
    { startActiveSpan: broken },
    { startActiveSpan: (_name, _options, work) => work(span) },
    { startActiveSpan: () => {} },
    // The runner fails a test that leaves an unhandled rejection.
    { startActiveSpan: () => Promise.reject(new Error("collector is down")) },
    {
      startActiveSpan(_name, _options, work) {
        const fails = () => Promise.reject(new Error("collector is down"));
        work({ setAttributes: fails, setStatus: fails, end: fails });
      },
    },
  ];
  for (const tracer of tracers) {
    assertEquals((await clientOf(server, { tracer }).run("hi")).text, "ok");
  }
});

Deno.test("a tracer that is none is refused at once", () => {
  for (const tracer of [{}, "otel", null, { startSpan() {} }]) {
    const options = { tracer: tracer as unknown as Tracer };
    const create = () => clientOf({ baseUrl: "http://model.test" }, options);
    assertThrows(create, TypeError, "tracer must have startActiveSpan()");
  }
});
