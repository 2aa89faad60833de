import { assertEquals, assertRejects } from "@std/assert";
import {
  createClient,
  createToolkit,
  defineTool,
  InMemoryConversationStore,
  type RunResult,
  type StreamEvent,
  type StyleName,
  ToolnexusError,
} from "../mod.ts";

// A second opinion on both protocols: a mock server of the providers that we did not write. It knows
// nothing of this client, and turns each fixture into what either provider would send.

const CUT_TEXT = "this answer is never going to end as it should";
const thinking = { reasoning: "the user wants the weather", reasoningSignature: "c2lnbmF0dXJl" };
// Each provider has names of its own for the counts.
const usage = { prompt_tokens: 12, completion_tokens: 3, input_tokens: 12, output_tokens: 3 };
const fixtures = [
  { match: { userMessage: "hello" }, response: { content: "Hi there, how are you? 🌍", usage } },
  {
    match: { userMessage: "hidden" },
    response: { content: "found", redactedThinking: ["b3BhcXVl"] },
  },
  {
    match: { userMessage: "weather", hasToolResult: false },
    response: {
      content: "I look it up.",
      toolCalls: [
        { id: "call_a", name: "weather", arguments: '{"city":"Málaga"}' },
        { id: "call_b", name: "weather", arguments: '{"city":"Reykjavík"}' },
      ],
    },
    chunkSize: 3,
  },
  {
    match: { userMessage: "weather", hasToolResult: true },
    response: { content: "Warm in Málaga, cold in Reykjavík." },
    chunkSize: 5,
  },
  {
    match: { userMessage: "think", hasToolResult: false },
    response: { ...thinking, toolCalls: [{ id: "call_t", name: "weather", arguments: "{}" }] },
    chunkSize: 4,
  },
  { match: { userMessage: "think", hasToolResult: true }, response: { content: "done" } },
  {
    match: { userMessage: "busy", sequenceIndex: 0 },
    response: {
      error: { message: "slow down", type: "rate_limit_error" },
      status: 429,
      retryAfter: 0,
    },
  },
  { match: { userMessage: "busy" }, response: { content: "now" } },
  {
    match: { userMessage: "refused" },
    response: { error: { message: "no such model", type: "not_found_error" }, status: 404 },
  },
  {
    match: { userMessage: "cut" },
    response: { content: CUT_TEXT },
    chunkSize: 5,
    truncateAfterChunks: 6,
    latency: 5,
  },
];

/** The mock server as a process of its own, on the loopback. */
class Aimock implements AsyncDisposable {
  readonly url: string;
  readonly #process: Deno.ChildProcess;
  readonly #stdin: WritableStreamDefaultWriter<Uint8Array>;

  private constructor(
    url: string,
    process: Deno.ChildProcess,
    stdin: WritableStreamDefaultWriter<Uint8Array>,
  ) {
    this.url = url;
    this.#process = process;
    this.#stdin = stdin;
  }

  static async start(): Promise<Aimock> {
    const script = new URL("fixtures/aimock_server.ts", import.meta.url).pathname;
    const process = new Deno.Command(Deno.execPath(), {
      args: ["run", "--no-prompt", "--allow-net=127.0.0.1", "--allow-env", "--allow-read", script],
      stdin: "piped",
      stdout: "piped",
    }).spawn();
    const stdin = process.stdin.getWriter();
    await stdin.write(new TextEncoder().encode(`${JSON.stringify(fixtures)}\n`));
    let printed = "";
    for await (const text of process.stdout.pipeThrough(new TextDecoderStream())) {
      printed += text;
      if (printed.includes("\n")) break;
    }
    return new Aimock(printed.trim(), process, stdin);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stdin.close();
    await this.#process.status;
  }
}

Deno.test("a server that we did not write agrees with the client", async (t) => {
  await using mock = await Aimock.start();
  for (const style of ["openai", "anthropic"] as const) {
    for (const mode of ["plain", "streamed"] as const) {
      const both = mode === "plain" ? checks : { ...checks, ...checksOfStreams };
      for (const [title, check] of Object.entries(both)) {
        await t.step(`${style}, ${mode}: ${title}`, () => check(new User(mock, style, mode)));
      }
    }
  }
  await t.step("a conversation with tools moves from style to style", async () => {
    const store = new InMemoryConversationStore();
    const openai = new User(mock, "openai", "streamed", store);
    const anthropic = new User(mock, "anthropic", "streamed", store);
    for (const user of [openai, anthropic, openai, anthropic]) {
      const { text } = await user.ask("the weather, please");
      assertEquals(text, "Warm in Málaga, cold in Reykjavík.");
    }
    assertEquals((await store.get("c"))?.filter(({ role }) => role === "user").length, 6);
  });
});

/** What a user sees, in one style and one way to ask. */
class User {
  readonly events: StreamEvent[] = [];
  readonly asked: string[] = [];
  errors = 0;
  readonly mock: Aimock;
  readonly style: StyleName;
  readonly #mode: "plain" | "streamed";
  readonly #store: InMemoryConversationStore;

  constructor(
    mock: Aimock,
    style: StyleName,
    mode: "plain" | "streamed",
    store: InMemoryConversationStore = new InMemoryConversationStore(),
  ) {
    this.mock = mock;
    this.style = style;
    this.#mode = mode;
    this.#store = store;
  }

  get isStreamed(): boolean {
    return this.#mode === "streamed";
  }

  async ask(prompt: string): Promise<RunResult> {
    const client = createClient({
      baseUrl: `${this.mock.url}/v1`,
      style: this.style,
      model: "mock-model",
      apiKey: "a-key-for-the-mock",
      retryBaseMs: 1,
      // The mock counts how often a fixture was asked for by this header.
      headers: { "x-test-id": `${this.style} ${this.#mode}` },
      onError: (info) => {
        this.errors++;
        return info.retryable ? "retry" : "fail";
      },
      store: this.#store,
      toolkit: createToolkit({
        tools: [defineTool({
          name: "weather",
          description: "Tells the weather",
          inputSchema: { type: "object", properties: { city: { type: "string" } } },
          run: ({ city }) => {
            this.asked.push(city ?? "anywhere");
            return `fine in ${city ?? "anywhere"}`;
          },
        })],
      }),
    });
    if (!this.isStreamed) return await client.ask(prompt, { id: "c" });
    const stream = client.stream(prompt, { id: "c" });
    for await (const event of stream) this.events.push(event);
    return await stream.result;
  }

  textOfEvents(type: "text" | "reasoning"): string {
    return this.events.map((event) => event.type === type ? event.delta : "").join("");
  }
}

const checks: Record<string, (user: User) => Promise<void>> = {
  async "an answer"(user) {
    const result = await user.ask("hello");
    assertEquals([result.text, result.status], ["Hi there, how are you? 🌍", "done"]);
    assertEquals(result.finishReason, user.style === "openai" ? "stop" : "end_turn");
    assertEquals(result.usage, { promptTokens: 12, completionTokens: 3, totalTokens: 15 });
    if (user.isStreamed) assertEquals(user.textOfEvents("text"), result.text);
  },

  async "two tools at once"(user) {
    const { text, toolCalls, turns } = await user.ask("weather");
    assertEquals([text, turns], ["Warm in Málaga, cold in Reykjavík.", 2]);
    assertEquals(user.asked, ["Málaga", "Reykjavík"]);
    assertEquals(
      toolCalls.map(({ id, args, output }) => [id, args, output]),
      [
        ["call_a", { city: "Málaga" }, "fine in Málaga"],
        ["call_b", { city: "Reykjavík" }, "fine in Reykjavík"],
      ],
    );
  },

  async "thinking before a call is kept as it came"(user) {
    const { text, messages } = await user.ask("think");
    assertEquals(text, "done");
    if (user.isStreamed) assertEquals(user.textOfEvents("reasoning"), thinking.reasoning);
    const [, answer] = messages;
    if (user.style === "openai") assertEquals(answer?.reasoning_content, thinking.reasoning);
    else {
      assertEquals((answer?.content as unknown[])[0], {
        type: "thinking",
        thinking: thinking.reasoning,
        signature: thinking.reasoningSignature,
      });
    }
  },

  async "thinking that is hidden is kept, and can be asked on"(user) {
    assertEquals((await user.ask("hidden")).text, "found");
    const { messages } = await user.ask("hello");
    if (user.style === "openai") return;
    assertEquals(messages[1]?.content, [
      { type: "redacted_thinking", data: "b3BhcXVl" },
      { type: "text", text: "found" },
    ]);
  },

  async "a rate limit is waited out"(user) {
    assertEquals([(await user.ask("busy")).text, user.errors], ["now", 1]);
  },

  async "a refusal is a typed error with the provider's words"(user) {
    const error = await assertRejects(() => user.ask("refused")) as Error & { status?: number };
    assertEquals([error.name, error.status], ["ProviderError", 404]);
    assertEquals(error.message, "LLM 404: no such model");
  },
};

const checksOfStreams: Record<string, (user: User) => Promise<void>> = {
  async "a stream that is cut is a typed error with the text so far"(user) {
    const { partialText } = await assertRejects(() => user.ask("cut"), ToolnexusError);
    assertEquals([CUT_TEXT.startsWith(partialText!), partialText !== ""], [true, true]);
  },
};
