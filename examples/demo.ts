// The main job in a terminal: a streamed answer, two tools side by side, a second client that
// continues the same conversation, and the transcript that was kept. Nothing leaves this machine.
//
//   deno run --allow-net=127.0.0.1 examples/demo.ts

import { createClient, defineTool, InMemoryConversationStore } from "@toolnexus/client";
import type { Client, Message } from "@toolnexus/client";
import { stubLlm, type StubRequest } from "@toolnexus/client/testing";

const ID = "trip-1";

type Paint = (text: string) => string;
const isColored = Deno.stdout.isTerminal() && !Deno.noColor;
const paint = (code: number): Paint => (text) => isColored ? `\x1b[${code}m${text}\x1b[0m` : text;
const bold = paint(1), dim = paint(2), green = paint(32), yellow = paint(33), cyan = paint(36);

/** What the stand-in for a model says, at a speed at which one can watch it. */
await using server = stubLlm([
  {
    text: "Let me look at both.",
    toolCalls: [
      { name: "weather", args: { city: "Lisbon" } },
      { name: "weather", args: { city: "Oslo" } },
    ],
  },
  (request) => `${toolResults(request).join("\n")}\nGo to Lisbon, and leave the umbrella at home.`,
  ({ body }) =>
    `Sun cream, sunglasses, and a jumper for the evenings.\n` +
    `(I was sent ${body.messages.length} messages: yours, and all that was said before it.)`,
], { delayMs: 30 });

const reports: Record<string, { sky: string; ms: number }> = {
  Lisbon: { sky: "sunny, 24 °C", ms: 900 }, // as long as a real service takes
  Oslo: { sky: "rain, 9 °C", ms: 600 },
};
const weather = defineTool({
  name: "weather",
  description: "The weather in a city",
  inputSchema: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
  async run({ city }) {
    const report = reports[city];
    if (report === undefined) throw new Error(`no such city: ${city}`);
    await new Promise((resolve) => setTimeout(resolve, report.ms));
    return `${city}: ${report.sky}`;
  },
});

const store = new InMemoryConversationStore();
const { baseUrl } = server;
const small = createClient({ baseUrl, style: "openai", model: "small", store, toolkit: [weather] });
const large = createClient({ baseUrl, style: "anthropic", model: "large", store });

console.log(dim("\nThe models are a script on this machine; everything else is the real thing."));
heading("A small model answers, with two tools side by side");
await show(small, "small", "Lisbon or Oslo this weekend?");
heading("A large model of another provider continues the same conversation");
await show(large, "large", "What do I pack?");
heading(`The transcript that was kept as ${JSON.stringify(ID)}`);
for (const message of (await store.get(ID)) ?? []) line(dim, message.role, summary(message));
console.log();

/** Asks, and shows what happens as it happens. */
async function show(client: Client, name: string, prompt: string): Promise<void> {
  line(green, "you", prompt);
  let isInText = false;
  let calledAt = 0;
  for await (const event of client.stream(prompt, { id: ID })) {
    if (event.type === "text") {
      write((isInText ? "" : label(cyan, name)) + event.delta.replaceAll("\n", "\n" + label(dim)));
      isInText = true;
      continue;
    }
    if (isInText) write("\n");
    isInText = false;
    if (event.type === "tool_call") {
      calledAt = Date.now();
      line(yellow, "call", `${event.name} ${JSON.stringify(event.args)}`);
    } else if (event.type === "tool_result") {
      const time = dim(`after ${((Date.now() - calledAt) / 1000).toFixed(1)} s`);
      line(yellow, "result", `${event.output}  ${time}`);
    } else if (event.type === "done") {
      const { turns, toolCallCount, usage } = event.result;
      const totals = [`${turns} answer(s)`, `${toolCallCount} tool call(s)`];
      line(dim, "", dim([...totals, `${usage.totalTokens} tokens`].join(", ")));
    }
  }
}

/** A message in one line, in whichever provider's shape it is. */
function summary({ content, tool_calls: calls }: Message): string {
  const blocks = Array.isArray(content) ? content : [{ text: content }];
  const text = blocks.map((block) => block.text ?? "").join(" ").replaceAll("\n", " ");
  const names = Array.isArray(calls) ? calls.map((call) => `[calls ${call.function.name}]`) : [];
  const whole = [text, ...names].join(" ");
  return whole.length > 66 ? whole.slice(0, 65) + "…" : whole;
}

function toolResults({ body }: StubRequest): string[] {
  return body.messages.filter(({ role }) => role === "tool").map(({ content }) => `${content}`);
}

function heading(text: string): void {
  console.log(`\n${bold(text)}\n`);
}

function line(color: Paint, name: string, text: string): void {
  console.log(label(color, name) + text);
}

function label(color: Paint, name = ""): string {
  return "  " + color(name.padEnd(11));
}

function write(text: string): void {
  Deno.stdout.writeSync(new TextEncoder().encode(text));
}
