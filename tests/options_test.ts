/** Wrong options are refused at once, by name and value; right ones are all taken. */
import {
  assert,
  assertEquals,
  assertRejects,
  assertStringIncludes,
  assertThrows,
} from "@std/assert";
import {
  type AskOptions,
  type ClientOptions,
  createClient,
  createToolkit,
  type Prompt,
  type Tool,
} from "../mod.ts";
import { flakyStore, stubLlm } from "../src/testing/mod.ts";
import { clientOf, plainStore, toolOf } from "./client_kit.ts";

const RIGHT: ClientOptions = { baseUrl: "http://a.test/v1", style: "openai", model: "m" };

/** Options, wrong values, the class of the error, and how the value is named. */
const WRONG: [string, [unknown, string][], ErrorConstructor][] = [
  ["baseUrl", [[undefined, "undefined"], ["", '""'], [5, "5"], ["a.test", "a.test"], [
    "ftp://a.test",
    "ftp",
  ], [{}, "{}"]], TypeError],
  ["style", [
    [undefined, "undefined"],
    ["gemini", '"gemini"'],
    ["OpenAI", '"OpenAI"'],
    ["toString", '"toString"'],
    [["openai"], "openai"],
    [null, "null"],
  ], TypeError],
  ["model", [[undefined, "undefined"], ["", '""'], [5, "5"], [null, "null"]], TypeError],
  ["apiKey", [[5, ""], [{}, ""], [null, ""]], TypeError],
  ["systemPrompt", [[5, "5"], [["x"], '["x"]'], [null, "null"]], TypeError],
  ["headers", [["x", ""], [5, ""], [[["a", "b"]], ""], [new Headers({ a: "b" }), ""]], TypeError],
  ["toolkit", [[{}, "{}"], ["x", '"x"'], [null, "null"]], TypeError],
  ["checkpoint", [["turn", '"turn"'], [true, "true"], [null, "null"]], TypeError],
  [
    "store",
    [[{}, "{}"], [null, "null"], [{ get() {} }, "{}"], [new Map(), ""], ["x", '"x"']],
    TypeError,
  ],
  ["hooks", [["x", '"x"'], [null, "null"], [[], "[]"]], TypeError],
  ["requestParams", [["x", '"x"'], [null, "null"], [[], "[]"], [new Map(), ""], [
    { seed: 1n },
    "bigint",
  ], [{
    f() {},
  }, "function"]], TypeError],
  ...["waitFor", "onError", "onMetric", "bodyTransform", "fetch"].map((name) =>
    [name, [["x", '"x"'], [{}, "{}"], [null, "null"]], TypeError] as typeof WRONG[number]
  ),
  ...["maxTurns", "maxTokens", "retries"].flatMap((name) =>
    [
      [name, [["5", '"5"'], [null, "null"], [5n, "5n"], [{}, "{}"]], TypeError],
      [name, [[-1, "-1"], [1.5, "1.5"], [NaN, "NaN"]], RangeError],
    ] as typeof WRONG
  ),
  ["maxTurns", [[0, "0"]], RangeError],
  ["maxTokens", [[0, "0"]], RangeError],
  ...[
    "retryBaseMs",
    "maxRetryDelayMs",
    "timeoutMs",
    "requestTimeoutMs",
    "idleTimeoutMs",
    "toolTimeoutMs",
  ].flatMap((name) =>
    [
      [name, [["5", '"5"'], [null, "null"], [new Date(0), "1970"]], TypeError],
      [name, [[-1, "-1"], [NaN, "NaN"]], RangeError],
    ] as typeof WRONG
  ),
  ...["timeoutMs", "requestTimeoutMs", "idleTimeoutMs", "toolTimeoutMs"].map((name) =>
    [name, [[0, "0"]], RangeError] as typeof WRONG[number]
  ),
];

for (const [name, values, kind] of WRONG) {
  Deno.test(`${name}: ${values.map(([value]) => Deno.inspect(value)).join(", ")} is a ${kind.name}`, () => {
    for (const [value, shown] of values) {
      const error = assertThrows(
        () => createClient({ ...RIGHT, [name]: value } as unknown as ClientOptions),
        kind,
        name,
      );
      assertStringIncludes(error.message, shown, `${name}: ${Deno.inspect(value)}`);
      assert(!error.message.endsWith("."));
    }
  });
}

Deno.test("options that are none", () => {
  for (const options of [undefined, null, "x", 5, []]) {
    assertThrows(() => createClient(options as unknown as ClientOptions), TypeError, "options");
  }
});

Deno.test("a hook, a header and a tool are named each", () => {
  const rows: [Partial<Record<keyof ClientOptions, unknown>>, string][] = [
    [{ hooks: { beforeLLM: "x" } }, "hooks.beforeLLM"],
    [{ hooks: { afterTool: null } }, "hooks.afterTool"],
    [{ hooks: { beforeLlm: () => {} } }, "beforeLlm"],
    [{ headers: { "a b": "x" } }, "a b"],
    [{ headers: { "x-a": "line\nbreak" } }, "x-a"],
    [{ headers: { "x-a": 5 } }, "x-a"],
    [{ headers: { "x-a": {} } }, "x-a"],
    [{ toolkit: [{}] }, "tool"],
    [{ toolkit: [{ name: "pay" }] }, "pay"],
    [{ toolkit: [{ name: "pay", execute() {} }] }, "inputSchema"],
    [{ toolkit: [null] }, "tool"],
    [{ requestParams: { messages: [] } }, "messages"],
    [{ requestParams: { tools: [] } }, "tools"],
    [{ requestParams: { stream: true } }, "stream"],
  ];
  for (const [options, names] of rows) {
    const wrong = { ...RIGHT, ...options } as ClientOptions;
    const error = assertThrows(() => createClient(wrong), TypeError);
    assertStringIncludes(error.message, names, Deno.inspect(options));
  }
});

Deno.test("an option that is undefined is one that was left out", async () => {
  await using server = stubLlm(["ok"]);
  const names = ["apiKey", "headers", "systemPrompt", "toolkit", "maxTurns", "maxTokens", "store"];
  names.push("checkpoint", "hooks", "waitFor", "onError", "onMetric", "retries", "retryBaseMs");
  names.push("maxRetryDelayMs", "timeoutMs", "requestTimeoutMs", "idleTimeoutMs", "toolTimeoutMs");
  names.push("requestParams", "bodyTransform", "fetch");
  const options = Object.fromEntries(names.map((name) => [name, undefined]));
  const client = createClient({ ...RIGHT, baseUrl: server.baseUrl, ...options });
  const call = { id: "a", toolkit: undefined, signal: undefined, onText: undefined };
  assertEquals((await client.ask("go", call)).text, "ok");
});

Deno.test("right options of every kind are taken", () => {
  createClient({
    ...RIGHT,
    maxTurns: 1,
    maxTokens: 1,
    retries: 0,
    retryBaseMs: 0,
    maxRetryDelayMs: Infinity,
    timeoutMs: Infinity,
    requestTimeoutMs: 0.5,
    idleTimeoutMs: Infinity,
    toolTimeoutMs: 2 ** 40,
    store: plainStore(),
    toolkit: createToolkit(),
    hooks: {},
    headers: {},
    requestParams: { temperature: 0, stop: ["x"] },
    apiKey: "",
    systemPrompt: "",
  });
});

Deno.test("options are read once: changing them later changes nothing", async () => {
  await using server = stubLlm(["ok"]);
  const headers: Record<string, string> = { "x-a": "1" };
  const toolkit: Tool[] = [toolOf("pay")];
  const options = { ...RIGHT, baseUrl: server.baseUrl, headers, toolkit, model: "m" };
  const client = createClient(options);
  headers["x-a"] = "2";
  toolkit.push(toolOf("mail"));
  options.model = "other";
  await client.run("go");
  const [request] = server.requests;
  assertEquals([request!.headers.get("x-a"), request!.body.model], ["1", "m"]);
  assertEquals((request!.body.tools as unknown[]).length, 1);
});

// ---- calls ----

const CALLS: [string, Record<string, unknown>, string][] = [
  ["signal", { signal: {} }, "{}"],
  ["signal", { signal: new AbortController() }, ""],
  ["signal", { signal: null }, "null"],
  ["toolkit", { toolkit: {} }, "{}"],
  ["toolkit", { toolkit: "x" }, '"x"'],
  ["tool", { toolkit: [{}] }, "{}"],
];

Deno.test("wrong options of a call are a TypeError before any work", async () => {
  await using server = stubLlm([]);
  const asked: string[] = [];
  const store = flakyStore(plainStore(), (operation) => (asked.push(operation), "ok"));
  const client = clientOf(server, { store });
  for (const [name, options, shown] of CALLS) {
    for (const way of ["run", "ask", "stream"] as const) {
      const id = way === "run" ? {} : { id: "a" };
      const call = async () => {
        const running = client[way]("go", { ...id, ...options } as AskOptions);
        return await (way === "stream"
          ? (running as ReturnType<typeof client.stream>).result
          : running);
      };
      const error = await assertRejects(call, TypeError, name);
      assertStringIncludes(error.message, shown);
    }
  }
  for (const options of [null, "thread-1", 5, []]) {
    const wrong = options as unknown as AskOptions;
    await assertRejects(() => client.run("go", wrong), TypeError, "options");
    await assertRejects(() => client.ask("go", wrong), TypeError, "options");
    assertThrows(() => client.stream("go", wrong), TypeError, "options");
    assertThrows(() => client.conversation(wrong), TypeError, "options");
    const conversation = client.conversation();
    await assertRejects(() => conversation.send("go", wrong), TypeError, "options");
    await assertRejects(() => conversation.resume(wrong), TypeError, "options");
    assertThrows(() => conversation.stream("go", wrong), TypeError, "options");
    assertThrows(() => conversation.resumeStream(wrong), TypeError, "options");
  }
  await assertRejects(
    () => client.ask("go", { onText: "x" as unknown as () => void }),
    TypeError,
    "onText",
  );
  for (const history of ["x", {}, [null], [5], [{ role: "user", content: 1n }]]) {
    const wrong = { history } as unknown as { history: [] };
    await assertRejects(() => client.run("go", wrong), TypeError);
    assertThrows(() => client.stream("go", wrong), TypeError);
  }
  assertEquals(asked, []);
});

Deno.test("a stream's wrong options are told where it is made", () => {
  const client = createClient(RIGHT);
  assertThrows(() => client.stream("go", { id: "" }), TypeError, "id");
  assertThrows(() => client.stream(5 as unknown as Prompt), TypeError, "prompt");
});

Deno.test("a prompt that is none is a TypeError before any work", async () => {
  await using server = stubLlm([]);
  const client = clientOf(server);
  const cycle: Record<string, unknown> = {};
  cycle.self = cycle;
  for (
    const prompt of [undefined, null, 5, {}, true, ["text"], [null], [5], [cycle], [{ f() {} }]]
  ) {
    const wrong = prompt as unknown as Prompt;
    await assertRejects(
      () => client.ask(wrong, { id: "a" }),
      TypeError,
      undefined,
      Deno.inspect(prompt),
    );
  }
});
