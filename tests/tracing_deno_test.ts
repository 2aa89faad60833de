/** Spans as Deno itself exports them, with `OTEL_DENO=true`, to a collector over HTTP. */
import { assert, assertEquals } from "@std/assert";
import { fromFileUrl } from "@std/path";
import { stubLlm } from "../src/testing/mod.ts";
import { calling } from "./client_kit.ts";

/** A span in the JSON of OTLP: https://opentelemetry.io/docs/specs/otlp/#otlphttp */
interface Span {
  spanId: string;
  parentSpanId?: string;
  traceId: string;
  name: string;
  kind: number;
  startTimeUnixNano: string;
  status?: { code?: number };
  attributes: { key: string; value: Record<string, unknown> }[];
}

interface Export {
  resourceSpans: { scopeSpans: { scope: { name: string }; spans: Span[] }[] }[];
}

Deno.test("OTEL_DENO=true exports the spans, with each HTTP request in its own", async () => {
  const texts: string[] = [];
  await using collector = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen: () => {} },
    async (request) => {
      if (new URL(request.url).pathname === "/v1/traces") texts.push(await request.text());
      return Response.json({});
    },
  );
  const usage = { promptTokens: 7, completionTokens: 3 };
  await using server = stubLlm([
    { ...calling("ping"), usage },
    { status: 503 }, // sent again, inside of the same span
    { text: "my secret answer", usage },
    { status: 400, body: `{"error":{"message":"my secret"}}` },
  ]);
  await runTraced(server.baseUrl, `http://127.0.0.1:${collector.addr.port}`);
  const spans = texts.flatMap((text) =>
    (JSON.parse(text) as Export).resourceSpans.flatMap(({ scopeSpans }) =>
      scopeSpans.flatMap(({ spans }) => spans)
    )
  );
  assertEquals(tree(spans), [
    "invoke_agent",
    "  chat test",
    "    POST",
    "  execute_tool ping",
    "    inside",
    "  chat test",
    "    POST",
    "    POST",
    "invoke_agent",
    "  chat test",
    "    POST",
  ]);
  const [asked, failed] = byStart(spans).filter(({ name }) => name === "invoke_agent");
  assertEquals(attributesOf(asked!), {
    "gen_ai.operation.name": "invoke_agent",
    "gen_ai.provider.name": "openai",
    "gen_ai.request.model": "test",
    "gen_ai.conversation.id": "thread-1",
    "server.address": "127.0.0.1",
    "server.port": Number(new URL(server.baseUrl).port),
    "gen_ai.usage.input_tokens": 14,
    "gen_ai.usage.output_tokens": 6,
    "gen_ai.response.finish_reasons": ["stop"],
    "toolnexus.status": "done",
  });
  const ofAsked = spans.filter(({ traceId }) => traceId === asked!.traceId);
  for (const span of ofAsked.filter(({ name }) => /^(chat|execute_tool|invoke_agent)/.test(name))) {
    assertEquals(attributesOf(span)["gen_ai.conversation.id"], "thread-1");
    assertEquals(span.status?.code ?? 0, 0);
  }
  assertEquals([attributesOf(failed!)["error.type"], failed!.status?.code], ["400", 2]);
  assert(!texts.join().includes("my secret"), "what was said is in the spans");
  assert(!texts.join().includes("key-my"), "the key is in the spans");
});

async function runTraced(baseUrl: string, endpoint: string): Promise<void> {
  const program = fromFileUrl(new URL("fixtures/traced_program.ts", import.meta.url));
  const command = new Deno.Command(Deno.execPath(), {
    args: ["run", "--no-prompt", "--allow-net=127.0.0.1", "--allow-env=OTEL_*", program, baseUrl],
    env: {
      NO_COLOR: "1",
      OTEL_DENO: "true",
      OTEL_DENO_CONSOLE: "ignore",
      OTEL_METRICS_EXPORTER: "none",
      OTEL_EXPORTER_OTLP_PROTOCOL: "http/json",
      OTEL_EXPORTER_OTLP_ENDPOINT: endpoint,
    },
  });
  const { success, stderr } = await command.output();
  assert(success, new TextDecoder().decode(stderr));
}

function byStart(spans: readonly Span[]): Span[] {
  const start = (span: Span) => BigInt(span.startTimeUnixNano);
  return spans.toSorted((a, b) => start(a) < start(b) ? -1 : 1);
}

/** The spans as a tree of names, in the order in which they began. */
function tree(spans: readonly Span[], parent = "", indent = ""): string[] {
  return byStart(spans)
    .filter(({ parentSpanId = "" }) => parentSpanId === parent)
    .flatMap(({ name, spanId }) => [indent + name, ...tree(spans, spanId, indent + "  ")]);
}

function attributesOf({ attributes }: Span): Record<string, unknown> {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, plain(value)]));
}

/** An OTLP value as JavaScript has it; whole numbers come as text. */
function plain(value: Record<string, unknown>): unknown {
  if (value.intValue !== undefined) return Number(value.intValue);
  const list = value.arrayValue as { values: Record<string, unknown>[] } | undefined;
  return list === undefined ? Object.values(value)[0] : list.values.map(plain);
}
