/** What a client did, as events and as a text that a Prometheus server reads. */
import { assert, assertEquals, assertRejects, assertStringIncludes } from "@std/assert";
import parsePrometheusText from "npm:parse-prometheus-text-format@1.1.1";
import {
  type Client,
  type ClientOptions,
  type MetricEvent,
  pending,
  ProviderError,
} from "../mod.ts";
import { Metrics } from "../src/metrics.ts";
import { stubLlm } from "../src/testing/mod.ts";
import { calling, clientOf, toolOf } from "./client_kit.ts";

const BOUNDS = ["0.05", "0.1", "0.25", "0.5", "1", "2.5", "5", "10", "30", "60", "+Inf"];

interface Family {
  name: string;
  help: string;
  type: string;
  metrics: { labels?: Record<string, string>; value: string }[];
}

/**
 * The families of a text, read by a parser of the format. It folds a histogram into one entry and
 * loses its labels on the way, so histograms are given to it as what they are made of.
 */
function parsed(text: string): Map<string, Family> {
  const parse = parsePrometheusText as (text: string) => Family[];
  const types = new Map(parse(text).map(({ name, type }) => [name, type]));
  const samples = parse(text.replaceAll(/^(# TYPE \S+) histogram$/gm, "$1 untyped"));
  const families = new Map<string, Family>();
  let count = 0;
  for (const { name, help, type, metrics } of samples) {
    // The parts of a histogram come in turns.
    const family = families.get(name) ?? { name, help, type: types.get(name) ?? type, metrics: [] };
    family.metrics.push(...metrics);
    families.set(name, family);
    count += metrics.length;
  }
  // Nothing was passed over.
  assertEquals(count, text.split("\n").filter((line) => line !== "" && line[0] !== "#").length);
  return families;
}

/** The samples of a family: its labels and the value of each. */
function samples(families: Map<string, Family>, name: string): [Record<string, string>, number][] {
  const { metrics } = families.get(name) ?? { metrics: [] };
  return metrics.map(({ labels = {}, value }) => [labels, Number(value)]);
}

Deno.test("metrics() counts requests, tokens, tool calls and failed runs", async () => {
  const usage = { promptTokens: 7, completionTokens: 3 };
  await using server = stubLlm([
    { ...calling("ping", "ping2", "ghost"), usage },
    { text: "done", usage },
    { status: 400 },
  ]);
  const toolkit = [
    toolOf("ping"),
    toolOf("ping2", () => {
      throw new Error("no");
    }),
  ];
  const client = clientOf(server, { toolkit });
  await client.run("go");
  await assertRejects(() => client.run("go"), ProviderError);
  const families = parsed(client.metrics());
  assertEquals(samples(families, "toolnexus_llm_requests_total"), [
    [{ model: "test", status: "error" }, 1],
    [{ model: "test", status: "ok" }, 2],
  ]);
  assertEquals(samples(families, "toolnexus_llm_tokens_total"), [
    [{ type: "completion" }, 6],
    [{ type: "prompt" }, 14],
  ]);
  assertEquals(samples(families, "toolnexus_tool_calls_total"), [
    [{ tool: "ping", source: "native", is_error: "false" }, 1],
    [{ tool: "ping2", source: "native", is_error: "true" }, 1],
    // There is no end to the names that a model can make up: they are one label.
    [{ tool: "unknown", source: "unknown", is_error: "true" }, 1],
  ]);
  assertEquals(samples(families, "toolnexus_run_errors_total"), [[{ model: "test" }, 1]]);
  assertEquals(samples(families, "toolnexus_llm_request_duration_seconds_count"), [
    [{ model: "test" }, 3],
  ]);
  assertEquals(samples(families, "toolnexus_tool_duration_seconds_count"), [
    [{ tool: "ping" }, 1],
    [{ tool: "ping2" }, 1],
    [{ tool: "unknown" }, 1],
  ]);
});

Deno.test("metrics() does not grow with the names that a model makes up", async () => {
  await using server = stubLlm(({ body }) =>
    body.messages.at(-1)!.role === "tool" ? "done" : calling(crypto.randomUUID())
  );
  const client = clientOf(server);
  await client.run("go");
  const families = client.metrics().split("\n").length;
  for (let run = 0; run < 5; run++) await client.run("go");
  assertEquals(client.metrics().split("\n").length, families);
});

Deno.test("metrics() is valid before anything happened, and names every family", () => {
  const families = parsed(new Metrics().text());
  assertEquals([...families.values()].map(({ name, type, metrics }) => [name, type, metrics]), [
    ["toolnexus_llm_requests_total", "COUNTER", []],
    ["toolnexus_llm_tokens_total", "COUNTER", []],
    ["toolnexus_llm_request_duration_seconds", "HISTOGRAM", []],
    ["toolnexus_tool_calls_total", "COUNTER", []],
    ["toolnexus_tool_duration_seconds", "HISTOGRAM", []],
    ["toolnexus_run_errors_total", "COUNTER", []],
  ]);
  for (const { help } of families.values()) assert(help !== "");
});

Deno.test("metrics() puts a duration into each bucket that it fits", () => {
  const metrics = new Metrics();
  const tool = { event: "tool", tool: "ping", source: "native", isError: false } as const;
  for (const ms of [1, 50, 51, 900, 45_000, 61_000]) metrics.record({ ...tool, ms });
  const families = parsed(metrics.text());
  assertEquals(
    samples(families, "toolnexus_tool_duration_seconds_bucket"),
    [2, 3, 3, 3, 4, 4, 4, 4, 4, 5, 6].map((count, index) => {
      return [{ tool: "ping", le: BOUNDS[index]! }, count];
    }),
  );
  const [[, sum]] = samples(families, "toolnexus_tool_duration_seconds_sum") as [[unknown, number]];
  assert(Math.abs(sum - 107.002) < 1e-9, `${sum}`);
  assertEquals(samples(families, "toolnexus_tool_duration_seconds_count"), [[{ tool: "ping" }, 6]]);
});

Deno.test("metrics() escapes what a label may hold, whatever a model calls a tool", () => {
  const names = [
    `say "hi"`,
    "back\\slash",
    "two\nlines",
    `\\"`,
    `\\n`,
    `},le="1"} 7`,
    "",
    "é 漢 😀",
    "\ttab",
    "# TYPE x counter",
  ];
  const metrics = new Metrics();
  const tool = { event: "tool", source: "custom", isError: true, ms: 1 } as const;
  for (const name of [...names, "half \ud83d"]) metrics.record({ ...tool, tool: name });
  const families = parsed(metrics.text());
  const told = samples(families, "toolnexus_tool_calls_total").map(([{ tool }]) => tool);
  assertEquals(told.toSorted(), [...names, "half \ufffd"].toSorted());
  for (const [, count] of samples(families, "toolnexus_tool_calls_total")) assertEquals(count, 1);
});

Deno.test("metrics() counts names that are one in UTF-8 as one, and others apart", () => {
  const metrics = new Metrics();
  const tool = { event: "tool", source: "custom", isError: true, ms: 1 } as const;
  for (const name of ["a\ud83d", "a\ud83e", "a\ufffd"]) metrics.record({ ...tool, tool: name });
  for (const [name, source] of [["b\0c", "d"], ["b", "c\0d"]] as const) {
    metrics.record({ ...tool, tool: name, source });
  }
  const counts = samples(parsed(metrics.text()), "toolnexus_tool_calls_total");
  assertEquals(counts.map(([, count]) => count).toSorted(), [1, 1, 3]);
});

Deno.test("metrics() has one order, whatever came first", () => {
  const events: MetricEvent[] = ["b", "a", "c", "a\\", `a"`].flatMap((name): MetricEvent[] => [
    { event: "tool", tool: name, source: "mcp", isError: false, ms: 20 },
    { event: "tool", tool: name, source: "mcp", isError: true, ms: 20 },
    { event: "llm", model: name, status: "ok", ms: 20, promptTokens: 1, completionTokens: 1 },
    { event: "llm", model: name, status: "error", ms: 20, promptTokens: 0, completionTokens: 0 },
    { event: "run", model: name, turns: 1, toolCalls: 1, totalTokens: 2, ms: 20, error: "no" },
  ]);
  const text = (order: readonly MetricEvent[]) => {
    const metrics = new Metrics();
    for (const event of order) metrics.record(event);
    return metrics.text();
  };
  assertEquals(text(events.toReversed()), text(events));
  assertEquals(text(events.toSorted(() => -1)), text(events));
});

Deno.test("onMetric gets an event for each request, tool call and run", async () => {
  const events: MetricEvent[] = [];
  const usage = { promptTokens: 7, completionTokens: 3 };
  await using server = stubLlm([{ ...calling("ping"), usage }, { text: "done", usage }]);
  const onMetric = (event: MetricEvent) => void events.push(event);
  const client = clientOf(server, { toolkit: [toolOf("ping")], onMetric });
  await client.ask("go", { id: "a" });
  const llm = { event: "llm", model: "test", status: "ok", ...usage } as const;
  assertEquals(withoutTimes(events), [
    llm,
    { event: "tool", tool: "ping", source: "native", isError: false },
    llm,
    { event: "run", model: "test", turns: 2, toolCalls: 1, totalTokens: 20 },
  ]);
  for (const { ms } of events) assert(ms >= 0 && ms < 60_000);
});

Deno.test("a request that is sent again is one event; one that fails in the end, too", async () => {
  const events: MetricEvent[] = [];
  await using server = stubLlm([
    { status: 503 },
    { status: 503 },
    "ok",
    ...Array(3).fill({ status: 503 }),
  ]);
  const onMetric = (event: MetricEvent) => void events.push(event);
  const client = clientOf(server, { retries: 2, onMetric });
  await client.run("go");
  const error = await assertRejects(() => client.run("go"), ProviderError);
  assertEquals(error.attempts, 3);
  assertEquals(events.map((event) => [event.event, "status" in event && event.status]), [
    ["llm", "ok"],
    ["run", false],
    ["llm", "error"],
    ["run", false],
  ]);
  const [, , failed, run] = withoutTimes(events);
  const tokens = { promptTokens: 0, completionTokens: 0 };
  assertEquals(failed, { event: "llm", model: "test", status: "error", ...tokens });
  assertStringIncludes(String((run as { error?: string }).error), "LLM 503");
  const families = parsed(client.metrics());
  assertEquals(samples(families, "toolnexus_llm_requests_total").map(([, count]) => count), [1, 1]);
});

Deno.test("a run that ends before its first request is a failed run, too", async () => {
  await using server = stubLlm(() => "ok");
  const down = () => {
    throw new Error("the store is down");
  };
  const rows: [string, Partial<ClientOptions>, (client: Client) => Promise<unknown>][] = [
    [
      "the store is down",
      { store: { get: down, save: down } },
      (client) => client.ask("go", { id: "a" }),
    ],
    ["nothing to resume", {}, (client) => client.resume({ id: "a" })],
    ["aborted", {}, (client) => client.run("go", { signal: AbortSignal.abort() })],
    ["aborted", {}, (client) => client.stream("go", { signal: AbortSignal.abort() }).result],
  ];
  for (const [says, options, go] of rows) {
    const events: MetricEvent[] = [];
    const onMetric = (event: MetricEvent) => void events.push(event);
    const client = clientOf(server, { ...options, onMetric });
    await assertRejects(() => go(client));
    const [{ error, ...run }] = withoutTimes(events) as [{ error: string }];
    assertEquals(run, { event: "run", model: "test", turns: 0, toolCalls: 0, totalTokens: 0 });
    assertStringIncludes(error, says);
    assertEquals(events.length, 1);
    assertEquals(samples(parsed(client.metrics()), "toolnexus_run_errors_total"), [
      [{ model: "test" }, 1],
    ]);
  }
});

Deno.test("a suspension is no error, and the approved call is counted apart", async () => {
  const events: MetricEvent[] = [];
  await using server = stubLlm([calling("pay"), "Paid"]);
  const pay = {
    ...toolOf("pay"),
    execute: (_: unknown, { answer }: { answer?: unknown }) =>
      answer ? { output: "paid", isError: false } : pending({ kind: "approval", prompt: "Pay?" }),
  };
  const onMetric = (event: MetricEvent) => void events.push(event);
  const client = clientOf(server, { toolkit: [pay], onMetric });
  const { pending: request } = await client.ask("go", { id: "a" });
  await client.resume({ id: "a", answer: { id: request!.id, ok: true } });
  const tool = { event: "tool", tool: "pay", source: "native", isError: false } as const;
  const tools = events.filter(({ event }) => event === "tool");
  assertEquals(withoutTimes(tools), [{ ...tool, pending: true }, tool]);
  assertEquals(samples(parsed(client.metrics()), "toolnexus_tool_calls_total"), [
    [{ tool: "pay", source: "native", is_error: "false" }, 2],
  ]);
  assertEquals(samples(parsed(client.metrics()), "toolnexus_run_errors_total"), []);
});

Deno.test("an onMetric that throws ends no run", async () => {
  await using server = stubLlm([calling("ping"), "done"]);
  const onMetric = () => {
    throw new Error("metrics are down");
  };
  const client = clientOf(server, { toolkit: [toolOf("ping")], onMetric });
  assertEquals((await client.run("go")).text, "done");
  const families = parsed(client.metrics());
  assertEquals(samples(families, "toolnexus_llm_requests_total"), [
    [{ model: "test", status: "ok" }, 2],
  ]);
});

function withoutTimes(events: readonly MetricEvent[]): Partial<MetricEvent>[] {
  return events.map(({ ms: _, ...rest }) => rest);
}
