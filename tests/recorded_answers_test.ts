/**
 * What a llama.cpp server said, byte for byte (tests/fixtures/llama_cpp/record.sh), in both styles:
 * plain and streamed, whole and one byte at a time. Each is the right answer or a typed error, and no
 * tool runs with arguments that the model did not finish.
 */
import { assert, assertEquals, assertInstanceOf, assertRejects } from "@std/assert";
import {
  createClient,
  defineTool,
  ProviderError,
  type RunResult,
  StreamError,
  type StyleName,
  ToolnexusError,
} from "../mod.ts";

const styles = ["openai", "anthropic"] as const;
const folder = new URL("./fixtures/llama_cpp/", import.meta.url);

/** How an answer arrives; a plain one is also taken where a stream was asked for, and the reverse. */
const ways = [
  { method: "run", cut: Infinity },
  { method: "stream", cut: Infinity },
  { method: "run", cut: 1 },
  { method: "stream", cut: 1 },
] as const;

/** A recorded answer, in pieces of so many bytes. */
async function recorded(name: string, cut: number): Promise<Response> {
  const file = await Deno.readTextFile(new URL(`${name}.txt`, folder));
  const [, head = "", body = ""] = /^(.*?)\r?\n\r?\n(.*)$/s.exec(file) ?? [];
  const [statusLine = "", ...lines] = head.split(/\r?\n/);
  const bytes = new TextEncoder().encode(body);
  let at = 0;
  const stream = new ReadableStream<Uint8Array<ArrayBuffer>>({
    pull(controller) {
      if (at === bytes.length) return controller.close();
      controller.enqueue(bytes.slice(at, at + cut));
      at = Math.min(bytes.length, at + cut);
    },
  });
  return new Response(stream, {
    status: Number(statusLine.split(" ")[1]),
    headers: lines.map((line): [string, string] => {
      const [name = "", value = ""] = line.split(/:\s*/, 2);
      return [name, value];
    }).filter(([name]) => !/^(content-length|transfer-encoding)$/i.test(name)),
  });
}

/** Runs the loop over these answers, one a call; `ran` names the tools that were run. */
async function replay(
  style: StyleName,
  answers: readonly string[],
  { method, cut }: typeof ways[number],
): Promise<{ ran: string[]; result: RunResult }> {
  const ran: string[] = [];
  const left = [...answers];
  const tool = (name: string, properties: Record<string, object>) =>
    defineTool({
      name,
      description: name,
      inputSchema: { type: "object", properties },
      run: (args) => {
        ran.push(`${name} ${JSON.stringify(args)}`);
        return "done";
      },
    });
  const client = createClient({
    baseUrl: "http://llama.test",
    style,
    model: "smollm2-135m-instruct",
    retries: 0,
    fetch: () => recorded(left.shift() ?? "no more answers", cut),
    toolkit: [
      tool("weather", { city: { type: "string" } }),
      tool("add", { a: { type: "integer" }, b: { type: "integer" } }),
      tool("route", { stops: { type: "array" } }),
    ],
  });
  try {
    const result = method === "run" ? await client.run("Hi") : await client.stream("Hi").result;
    assertEquals(left, [], "every answer was asked for");
    return { ran, result };
  } catch (error) {
    assertEquals(ran, [], "nothing runs where the answer is an error");
    throw error;
  }
}

const replayed = new Set<string>();

/** Replays each of the recordings in every way. */
function inEveryWay(
  what: string,
  names: readonly string[],
  check: (name: string, way: typeof ways[number]) => Promise<void>,
): void {
  for (const name of names) {
    replayed.add(name);
    Deno.test(`${name}: ${what}, whole and one byte at a time, by run() and stream()`, async () => {
      for (const way of ways) await check(name, way);
    });
  }
}

for (const style of styles) {
  const after = `${style}_result`;
  replayed.add(after);

  inEveryWay("a text", [`${style}_plain`, `${style}_stream`], async (name, way) => {
    const { result } = await replay(style, [name], way);
    assertEquals(result.text, "Hello! I'm here to help with");
    assertEquals(result.finishReason, style === "openai" ? "length" : "max_tokens");
    assertEquals(result.usage.completionTokens, 8);
    assertEquals([result.toolCallCount, result.turns], [0, 1]);
  });

  inEveryWay("a call", [`${style}_tool`, `${style}_tool_stream`], async (name, way) => {
    const { ran, result } = await replay(style, [name, after], way);
    assertEquals(ran, ['weather {"city":"Oslo"}']);
    assertEquals(result.text, "The weather in Oslo is quite extreme.");
    assertEquals(result.usage.completionTokens, 25 + 9);
  });

  inEveryWay("two calls", [`${style}_tools`, `${style}_tools_stream`], async (name, way) => {
    const { ran, result } = await replay(style, [name, after], way);
    assertEquals(ran, ['add {"a":2,"b":3}', 'weather {"city":"Oslo"}']);
    assertEquals(result.toolCalls.map(({ name }) => name), ["add", "weather"]);
    assertEquals(new Set(result.toolCalls.map(({ id }) => id)).size, 2);
  });

  inEveryWay(
    "a call cut short is not run",
    [`${style}_tool_cut`, `${style}_tool_cut_stream`],
    async (name, way) => {
      const { ran, result } = await replay(style, [name, after], way);
      assertEquals(ran, []);
      assertEquals(result.toolCalls.map(({ name, isError }) => [name, isError]), [["route", true]]);
      assertEquals(result.text, "The weather in Oslo is quite extreme.");
    },
  );

  inEveryWay("an error in mid-stream", [`${style}_bad_call_stream`], async (name, way) => {
    const error = await assertRejects(() => replay(style, [name], way), ToolnexusError);
    assert(error instanceof StreamError || error instanceof ProviderError, error.name);
    assert(error.message.includes("does not match the expected peg-native format"), error.message);
  });

  const refusals: [name: string, status: number, message: string][] = [
    [`${style}_bad_call`, 500, "does not match the expected peg-native format"],
    [`${style}_no_messages`, style === "openai" ? 400 : 500, "'messages' is required"],
    [`${style}_overflow`, 400, "request (3021 tokens) exceeds the available context size"],
    ["not_found", 404, "File Not Found"],
    ...(style === "openai"
      ? [["openai_broken_arguments_sent", 500, "Failed to parse tool call arguments as JSON"]]
      : []) as [string, number, string][],
  ];
  for (const [name, status, message] of refusals) {
    inEveryWay(`a refusal with ${status}`, [name], async (name, way) => {
      const error = await assertRejects(() => replay(style, [name], way), ProviderError, message);
      assertInstanceOf(error, ProviderError);
      assertEquals([error.status, error.providerMessage?.includes(message)], [status, true]);
    });
  }
}

Deno.test("every recording is replayed", async () => {
  const files = await Array.fromAsync(Deno.readDir(folder));
  const names = files.map(({ name }) => name).filter((name) => name.endsWith(".txt"));
  assertEquals(names.map((name) => name.slice(0, -".txt".length)).sort(), [...replayed].sort());
});
