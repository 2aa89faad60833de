/** The tool calls of an answer: side by side, in order, and whatever goes wrong is a result. */
import {
  assert,
  assertEquals,
  assertMatch,
  assertRejects,
  assertStringIncludes,
} from "@std/assert";
import { FakeTime } from "@std/testing/time";
import { defineTool, type Tool, type ToolContext, type ToolResult } from "../mod.ts";
import { type StubAnswer, stubLlm } from "../src/testing/mod.ts";
import {
  calling,
  clientOf,
  clientOfFetch,
  countedSignal,
  eventsOf,
  lines,
  throughTime,
  toolOf,
} from "./client_kit.ts";

const STYLES = ["openai", "anthropic"] as const;

/** A tool that is just an object, as a third party writes it. */
function handMade(name: string, execute: Tool["execute"], rest: Partial<Tool> = {}): Tool {
  const inputSchema = { type: "object", properties: {} };
  return { name, description: name, inputSchema, source: "custom", execute, ...rest };
}

/** The output of the only call of a run. */
async function outputOf(tools: Tool[], answer: StubAnswer): Promise<ToolResult> {
  await using server = stubLlm([answer, "ok"]);
  const { toolCalls } = await clientOf(server, { toolkit: tools }).run("go");
  const { output, isError } = toolCalls[0]!;
  // The model is told the same.
  assertEquals(server.requests[1]!.body.messages.at(-1)!.content, output);
  return { output, isError };
}

for (const style of STYLES) {
  Deno.test(`calls run at once, and their results stand in the order of the calls (${style})`, async () => {
    await using server = stubLlm([calling("slow", "fast", "quick"), "ok"]);
    const all = Promise.withResolvers<void>();
    const ended: string[] = [];
    let running = 0;
    const tool = (name: string, rank: number) =>
      toolOf(name, async () => {
        if (++running === 3) all.resolve();
        await all.promise;
        for (let turn = 0; turn < rank; turn++) await new Promise((r) => setTimeout(r, 0));
        ended.push(name);
        return name;
      });
    const toolkit = [tool("slow", 6), tool("fast", 1), tool("quick", 3)];
    const { messages, toolCalls } = await clientOf(server, { style, toolkit }).run("go");
    assertEquals(ended, ["fast", "quick", "slow"]);
    assertEquals(toolCalls.map(({ name }) => name), ["slow", "fast", "quick"]);
    assertEquals(
      lines(messages).slice(2, -1),
      style === "openai" ? ["tool: slow", "tool: fast", "tool: quick"] : ["user: slow fast quick"],
    );
  });

  Deno.test(`a call that fails loses no sibling's result, and the model is told (${style})`, async () => {
    await using server = stubLlm([calling("none", "throws", "pay"), "ok"]);
    const toolkit = [toolOf("pay"), toolOf("throws", () => Promise.reject(new Error("no money")))];
    const { toolCalls, status } = await clientOf(server, { style, toolkit }).run("go");
    assertEquals(toolCalls.map(({ output, isError }) => [output, isError]), [
      ["unknown tool: none", true],
      ["no money", true],
      ["pay ran", false],
    ]);
    assertEquals(status, "done");
    if (style === "anthropic") {
      const results = server.requests[1]!.body.messages.at(-1)!.content as { is_error?: true }[];
      assertEquals(results.map(({ is_error }) => is_error), [true, true, undefined]);
    }
  });

  for (const args of ['{"amount": 5', "", "5", "[]", "null", '"x"', "{'a':1}", "{}{}"]) {
    if (style === "anthropic" && args === "") continue; // no arguments, in that style
    Deno.test(`a tool never runs on arguments ${args || "that are empty"} (${style})`, async () => {
      await using server = stubLlm([{ toolCalls: [{ id: "c1", name: "pay", args }] }, "ok"]);
      let runs = 0;
      const client = clientOf(server, { style, toolkit: [toolOf("pay", () => ++runs)] });
      // Streamed, since only so a broken text can be sent in either style.
      const events = await eventsOf(client.stream("go", { id: "a" }));
      const result = events.find((event) => event.type === "tool_result")!;
      if (args === "") return void assertEquals([runs, result.isError], [1, false]);
      assertEquals([runs, result.isError], [0, true]);
      assertStringIncludes(result.output, "not executed");
      // What is stored can be sent: the stub refuses arguments of a wrong form.
      assertEquals(server.requests.length, 2);
    });
  }
}

Deno.test("an answer cut by its limit: its last call does not run on what is left", async () => {
  for (const args of ["{}", '{"amount": 5']) {
    const { output, isError } = await outputOf(
      [toolOf("pay")],
      { toolCalls: [{ name: "pay", args }], finishReason: "length" },
    );
    assertStringIncludes(output, "not executed");
    assertEquals(isError, true);
  }
  const whole = { toolCalls: [{ name: "pay", args: '{"amount":5}' }], finishReason: "length" };
  assertEquals(await outputOf([toolOf("pay")], whole), { output: "pay ran", isError: false });
});

Deno.test("a string is the output as it is, anything else is JSON, nothing is empty", async () => {
  const cases: [unknown, string][] = [
    ["Sunny", "Sunny"],
    ["", ""],
    [undefined, ""],
    [null, "null"],
    [5, "5"],
    [false, "false"],
    [{ a: [1, { b: null }] }, '{"a":[1,{"b":null}]}'],
    [[], "[]"],
    [new Date(0), '"1970-01-01T00:00:00.000Z"'],
  ];
  for (const [value, output] of cases) {
    assertEquals(await outputOf([toolOf("t", () => value)], calling("t")), {
      output,
      isError: false,
    });
  }
  const failed = { output: "no", isError: true };
  assertEquals(await outputOf([toolOf("t", () => failed)], calling("t")), failed);
});

Deno.test("an output that is no JSON, and throws of all kinds, are error results", async () => {
  const cycle: Record<string, unknown> = {};
  cycle.self = cycle;
  const throwing = (value: unknown) => () => {
    throw value;
  };
  for (
    const run of [
      () => cycle,
      () => 5n,
      throwing(new Error("boom")),
      throwing("boom"),
      throwing(undefined),
      throwing(null),
      throwing(new Error("")),
      throwing({ code: 5 }),
      () => Promise.reject(new DOMException("gone", "AbortError")),
    ]
  ) {
    const { output, isError } = await outputOf([toolOf("t", run)], calling("t"));
    assert(isError && output !== "", `${run}: ${output}`);
  }
});

Deno.test("a tool made by hand: what it gives is taken, whatever its form", async () => {
  for (
    const [given, expected] of [
      [{ output: "fine", isError: false }, { output: "fine", isError: false }],
      ["fine", { output: "fine", isError: false }],
      [undefined, { output: "", isError: false }],
      [{ output: 5 }, { output: '{"output":5}', isError: false }],
    ] as [unknown, ToolResult][]
  ) {
    const tool = handMade("t", () => given as ToolResult);
    assertEquals(await outputOf([tool], calling("t")), expected);
  }
});

Deno.test("metadata that is none is left out, and the turn is kept", async () => {
  for (const metadata of [null, "fine", 5, [], new Date(0)]) {
    await using server = stubLlm([calling("t"), "ok"]);
    const tool = handMade("t", () => ({ output: "fine", isError: false, metadata }) as never);
    const { toolCalls, messages } = await clientOf(server, { toolkit: [tool] })
      .ask("go", { id: "a" });
    assertEquals([toolCalls[0]!.output, toolCalls[0]!.isError], ["fine", false]);
    assertEquals(lines(messages).at(-1), "assistant: ok");
  }
});

Deno.test("a tool that hangs ends with its time, and hears of it", async () => {
  using time = new FakeTime();
  for (const [own, limit] of [[undefined, 50], [30, 30]] as const) {
    let reason: unknown;
    const hang = handMade("hang", (_, { signal, timeoutMs }) => {
      assertEquals(timeoutMs, limit);
      signal.addEventListener("abort", () => reason = signal.reason);
      return new Promise(() => {});
    }, { timeoutMs: own });
    const call = { id: "c1", function: { name: "hang", arguments: "{}" } };
    const client = clientOfFetch((_, number) => {
      const message = number === 1 ? { tool_calls: [call] } : { content: "ok" };
      return Response.json({ choices: [{ message }] });
    }, { toolkit: [hang], toolTimeoutMs: 50 });
    const started = time.now;
    const { toolCalls, status } = await throughTime(time, client.run("go"));
    assertEquals(time.now - started, limit);
    assertEquals(toolCalls[0]!.output, `timed out after ${limit} ms`);
    assertEquals([toolCalls[0]!.isError, status], [true, "done"]);
    assertMatch(String(reason), /timed out/);
  }
});

Deno.test("a tool that is done in time leaves no timer and no listener", async () => {
  await using server = stubLlm([calling("t"), "ok"]);
  const { controller, listeners } = countedSignal();
  const client = clientOf(server, { toolkit: [toolOf("t")], toolTimeoutMs: 60_000 });
  await client.run("go", { signal: controller.signal });
  assertEquals(listeners(), 0);
});

Deno.test("a tool is told its call, its round and its conversation, and nothing else", async () => {
  await using server = stubLlm([calling("t"), calling("t"), "ok", calling("t"), "ok"]);
  const contexts: ToolContext[] = [];
  const tool = handMade(
    "t",
    (_, context) => (contexts.push(context), { output: "", isError: false }),
  );
  const client = clientOf(server, { toolkit: [tool] });
  await client.ask("go", { id: "a" });
  await client.run("go");
  const told = contexts.map(({ signal, ...rest }) => (assert(signal instanceof AbortSignal), rest));
  assertEquals(told, [
    { callId: "c-t", turn: 1, conversationId: "a" },
    { callId: "c-t", turn: 2, conversationId: "a" },
    { callId: "c-t", turn: 1 },
  ]);
});

Deno.test("types: a tool's arguments come from its schema, and nothing is any", () => {
  defineTool({
    name: "pay",
    description: "pays",
    inputSchema: {
      type: "object",
      properties: { amount: { type: "number" }, note: { type: "string" } },
      required: ["amount"],
    },
    run: ({ amount, note }, context) => {
      const whole: number = amount;
      const words: string | undefined = note;
      const id: string = context.callId;
      // @ts-expect-error: a context is not any
      context.whatever;
      // @ts-expect-error: a number is not any
      amount.whatever;
      return [whole, words, id];
    },
  });
});

Deno.test("the same call id twice with the same arguments is one call, run once", async () => {
  await using server = stubLlm([
    { toolCalls: [{ id: "x", name: "pay", args: "{}" }, { id: "x", name: "pay", args: "{}" }] },
    "ok",
  ]);
  let runs = 0;
  const client = clientOf(server, { toolkit: [toolOf("pay", () => ++runs)] });
  const { toolCallCount } = await client.run("go");
  assertEquals([runs, toolCallCount], [1, 1]);
});

Deno.test("arguments named like a prototype are data", async () => {
  await using server = stubLlm([
    { toolCalls: [{ name: "t", args: '{"__proto__":{"admin":1}}' }] },
    "ok",
  ]);
  let admin: unknown = "unset";
  await clientOf(server, { toolkit: [toolOf("t", (args) => admin = args.admin)] }).run("go");
  assertEquals([admin, ({} as { admin?: unknown }).admin], [undefined, undefined]);
});

Deno.test("a tool named like an object's own method is unknown", async () => {
  for (const name of ["toString", "constructor", "hasOwnProperty"]) {
    const { output } = await outputOf([toolOf("pay")], { toolCalls: [{ name }] });
    assertEquals(output, `unknown tool: ${name}`);
  }
});

Deno.test("a tool that is slow to hear of an abort cannot change what was saved", async () => {
  await using server = stubLlm([calling("slow", "fast")]);
  const controller = new AbortController();
  const gate = Promise.withResolvers<string>();
  const toolkit = [
    toolOf("slow", () => gate.promise),
    toolOf("fast", () => (setTimeout(() => controller.abort(), 0), "fast")),
  ];
  const client = clientOf(server, { toolkit });
  const error = await assertRejects(() => client.ask("go", { id: "a", signal: controller.signal }));
  gate.resolve("too late");
  await new Promise((resolve) => setTimeout(resolve, 0));
  const { result } = error as { result?: { toolCalls: { output: string }[] } };
  assertEquals(result?.toolCalls.map(({ output }) => output), [
    "interrupted: may or may not have run",
    "fast",
  ]);
});

Deno.test("a getter that throws in what a tool gives is that tool's failure, and no other's", async () => {
  await using server = stubLlm([calling("pay", "mail", "slow"), "ok"]);
  const receipt = {
    get number() {
      throw new Error("lazy load failed");
    },
  };
  const tools = [
    handMade("pay", () => ({ output: "paid", isError: false, metadata: receipt })),
    toolOf("mail"),
    Object.defineProperty(handMade("slow", () => ({ output: "", isError: false })), "timeoutMs", {
      get() {
        throw new Error("no time");
      },
    }),
  ];
  const { toolCalls } = await clientOf(server, { toolkit: tools }).run("go");
  assertEquals(toolCalls.map(({ output, isError }) => [output, isError]), [
    ["lazy load failed", true],
    ["mail ran", false],
    ["no time", true],
  ]);
});

Deno.test("a result may be an object of a class; what is for the host stays with it", async () => {
  class Refusal implements ToolResult {
    output = "no such user";
    isError = true;
    metadata = { token: "for the host only" };
  }
  const refusing = handMade("find", () => new Refusal());
  assertEquals(await outputOf([refusing], calling("find")), {
    output: "no such user",
    isError: true,
  });
});

Deno.test("a failure whose message is no text is told as one", async () => {
  for (
    const [message, told] of [
      [["a", "b"], "a,b"],
      [{ toString: () => "c" }, "c"],
      [Object.create(null), "a value that cannot be told"],
    ]
  ) {
    const failing = handMade("find", () => {
      throw Object.assign(new Error(), { message });
    });
    assertEquals(await outputOf([failing], calling("find")), { output: told, isError: true });
  }
});

Deno.test("without tools nothing of a request is about them", async () => {
  await using server = stubLlm(["ok"]);
  const requestParams = { tool_choice: "auto", parallel_tool_calls: false };
  await clientOf(server, { requestParams }).run("go");
  assertEquals(Object.keys(server.requests[0]!.body).sort(), ["messages", "model"]);
});

for (const style of STYLES) {
  Deno.test(`a name that the model made up is sent back as every provider takes it (${style})`, async () => {
    const names = ["functions.weather", "file read<|channel|>", "dotted.tool", "x".repeat(100)];
    const toolCalls = names.map((name, index) => ({ id: `c${index}`, name }));
    await using server = stubLlm([{ toolCalls }, "ok", "ok"], { strict: false });
    const toolkit = [handMade("dotted.tool", () => ({ output: "ran", isError: false }))];
    const client = clientOf(server, { style, toolkit });
    const first = await client.ask("go", { id: "a" });
    assertEquals(first.toolCalls.map(({ name }) => name), names);
    assertEquals(callNames(first.messages), names); // kept as it came
    await client.ask("again", { id: "a" });
    for (const { body } of server.requests.slice(1)) {
      assertEquals(callNames(body.messages), [
        "functions_weather",
        "file_read__channel__",
        "dotted.tool", // an endpoint that takes it declared knows it
        "x".repeat(64),
      ]);
    }
  });
}

/** The names of the calls of a transcript, in either style. */
function callNames(messages: readonly Record<string, unknown>[]): unknown[] {
  return messages.flatMap(({ tool_calls: calls = [], content }) => [
    ...(calls as { function: { name: string } }[]).map((call) => call.function.name),
    ...(Array.isArray(content) ? content : []).flatMap(({ type, name }) =>
      type === "tool_use" ? [name] : []
    ),
  ]);
}
