import { assertEquals, assertStringIncludes } from "@std/assert";
import {
  createClient,
  createToolkit,
  defineTool,
  InMemoryConversationStore,
  type Message,
  type RunResult,
  type StyleName,
} from "../mod.ts";
import { stubLlm, type StubReply } from "../src/testing/mod.ts";

// One conversation, two providers: each turn is asked in the other style. The stub is strict: what the
// real provider would refuse gets its 400.

const TURNS = 6;
const CITIES = ["Málaga", "Reykjavík", "東京"];

const weather = createToolkit({
  tools: [defineTool({
    name: "weather",
    description: "Tells the weather",
    inputSchema: { type: "object", properties: { city: { type: "string" } } },
    run: ({ city }) => {
      if (city === "東京") throw new Error(`nothing known of ${city}`);
      return `fine in ${city}`;
    },
  })],
});

/** A turn of the model: three calls at once, one of which fails, then an answer. */
function turnOf(turn: number): StubReply[] {
  return [
    {
      text: `looking, turn ${turn}`,
      reasoning: `thinking, turn ${turn}`,
      toolCalls: CITIES.map((city) => ({ name: "weather", args: { city } })),
    },
    { text: `answer ${turn} 🌍`, reasoning: `concluding, turn ${turn}` },
  ];
}

/** What is said in the first turns, as {@linkcode told} tells it. */
function saidIn(turns: number): string[] {
  return Array.from({ length: turns }, (_, turn) => [
    `user: question ${turn}`,
    `assistant: looking, turn ${turn}`,
    ...CITIES.map((city) => `call weather {"city":"${city}"}`),
    "result fine in Málaga",
    "result fine in Reykjavík",
    "result nothing known of 東京",
    `assistant: answer ${turn} 🌍`,
  ]).flat();
}

/** What a transcript of either style says, in order. */
function told(messages: readonly Message[]): string[] {
  return messages.flatMap((message) => {
    const { role, content } = message;
    if (role === "tool") return [`result ${content}`];
    // deno-lint-ignore no-explicit-any
    const blocks: any[] = typeof content === "string" ? [{ type: "text", text: content }] : [
      ...(content as unknown[] ?? []),
    ];
    // deno-lint-ignore no-explicit-any
    const calls: any[] = message.tool_calls as unknown[] ?? [];
    return [
      ...blocks.flatMap((block) =>
        block.type === "text"
          ? [`${role}: ${block.text}`]
          : block.type === "tool_use"
          ? [`call ${block.name} ${JSON.stringify(block.input)}`]
          : block.type === "tool_result"
          ? [`result ${block.content}`]
          : []
      ),
      ...calls.map((call) => `call ${call.function.name} ${call.function.arguments}`),
    ];
  });
}

for (const first of ["openai", "anthropic"] as const) {
  for (const mode of ["plain", "streamed", "plain and streamed in turn"] as const) {
    Deno.test(`six turns with parallel tools, ${first} first, ${mode}: nothing is refused or lost`, async () => {
      const script = Array.from({ length: TURNS }, (_, turn) => turnOf(turn)).flat();
      await using stub = stubLlm(script);
      const store = new InMemoryConversationStore();
      const second = first === "openai" ? "anthropic" : "openai";
      let before: readonly Message[] = [];
      for (let turn = 0; turn < TURNS; turn++) {
        const style: StyleName = turn % 2 === 0 ? first : second;
        const client = createClient({
          baseUrl: stub.baseUrl,
          style,
          model: "m",
          retries: 0,
          store,
          toolkit: weather,
        });
        const isStreamed = mode === "streamed" || (mode !== "plain" && turn % 3 === 0);
        const asked = { id: "c" };
        const result: RunResult = isStreamed
          ? await client.stream(`question ${turn}`, asked).result
          : await client.ask(`question ${turn}`, asked);

        assertEquals(result.text, `answer ${turn} 🌍`);
        assertEquals(result.repaired, undefined);
        assertEquals(result.toolCalls.map(({ isError }) => isError), [false, false, true]);
        // What the provider was sent is all that was ever said.
        const sent = stub.requests.at(-1)!;
        assertEquals(sent.style, style);
        assertEquals(told(sent.body.messages), saidIn(turn + 1).slice(0, -1));
        // What was stored before stands as it stood, to the byte.
        const stored = await store.get("c") ?? [];
        assertEquals(JSON.stringify(stored.slice(0, before.length)), JSON.stringify(before));
        assertEquals(told(stored), saidIn(turn + 1));
        before = stored;
      }
      assertEquals(stub.requests.length, TURNS * 2);
    });
  }
}

Deno.test("streamed thinking and its call go back byte for byte, in this turn and in the next", async () => {
  const thinking = 'so: "é" \\ 🌍\n\u2028 { } [ ]';
  const signature = "EqQBCkYIBBgCKkBV/+8=";
  const input = { city: "Málaga", when: { days: [1, 2.5, -3e-7], exact: true }, note: null };
  const content = [
    { type: "thinking", thinking, signature },
    { type: "redacted_thinking", data: "b3BhcXVl+/=" },
    { type: "text", text: "I look." },
    { type: "tool_use", id: "toolu_01AbC", name: "weather", input },
  ];
  const bytes = JSON.stringify(content);
  const events = [
    { type: "message_start", message: { role: "assistant", content: [], usage: {} } },
    ...blockEvents(0, { type: "thinking", thinking: "", signature: "" }, [
      ...pieces(thinking).map((thinking) => ({ type: "thinking_delta", thinking })),
      { type: "signature_delta", signature },
    ]),
    ...blockEvents(1, content[1]!, []),
    ...blockEvents(
      2,
      { type: "text", text: "" },
      pieces("I look.").map((text) => ({ type: "text_delta", text })),
    ),
    ...blockEvents(
      3,
      { ...content[3], input: {} },
      pieces(JSON.stringify(input)).map((partial_json) => ({
        type: "input_json_delta",
        partial_json,
      })),
    ),
    { type: "message_delta", delta: { stop_reason: "tool_use" }, usage: {} },
    { type: "message_stop" },
  ].map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);
  for (
    const chunks of [
      events,
      [...new TextEncoder().encode(events.join(""))].map((byte) => Uint8Array.of(byte)),
    ]
  ) {
    await using stub = stubLlm([{ sse: chunks }, "fine", "again fine"]);
    const client = createClient({
      baseUrl: stub.baseUrl,
      style: "anthropic",
      model: "m",
      toolkit: weather,
    });
    await client.stream("how is it?", { id: "c" }).result;
    await client.ask("and now?", { id: "c" });
    const stored = await client.conversationStore().get("c");
    assertEquals(JSON.stringify(stored?.[1]?.content), bytes);
    for (const { text } of stub.requests.slice(1)) {
      assertStringIncludes(text, `{"role":"assistant","content":${bytes}}`);
    }
    assertEquals(stub.requests.length, 3);
  }
});

function blockEvents(index: number, content_block: unknown, deltas: unknown[]) {
  return [
    { type: "content_block_start", index, content_block },
    ...deltas.map((delta) => ({ type: "content_block_delta", index, delta })),
    { type: "content_block_stop", index },
  ];
}

/** A text in pieces of three characters. */
function pieces(text: string): string[] {
  return text.match(/.{1,3}/gsu) ?? [];
}
