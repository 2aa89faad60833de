// What is measured: the floor, a loop over `fetch` as one writes it by hand, and this client.

import type { ConversationStore, Message } from "../../mod.ts";

export interface Subject {
  once(): Promise<unknown>;
  tools(): Promise<unknown>;
  /** Reads a stream and hands on its pieces. */
  stream(scenario: "stream" | "packed", onText: (delta: string) => void): Promise<unknown>;
  ask(id: string, prompt: string): Promise<unknown>;
}

const SYSTEM = "You are a helpful assistant.";
const PROMPT = "What is the capital of France?";

interface BenchTool {
  name: string;
  description: string;
  inputSchema: Record<string, unknown>;
  // deno-lint-ignore no-explicit-any
  run(args: any): string;
}

const TOOLS: BenchTool[] = [
  {
    name: "weather",
    description: "The weather in a city",
    inputSchema: {
      type: "object",
      properties: { city: { type: "string" } },
      required: ["city"],
    },
    run: ({ city }) => `Sunny in ${city}`,
  },
  {
    name: "add",
    description: "Adds two numbers",
    inputSchema: {
      type: "object",
      properties: { a: { type: "number" }, b: { type: "number" } },
      required: ["a", "b"],
    },
    run: ({ a, b }) => String(a + b),
  },
];

/** No retries, no hooks, no checks, nothing saved. */
export function floor(origin: string): Subject {
  const headers = { "content-type": "application/json", authorization: "Bearer key" };
  const conversations = new Map<string, Message[]>();
  const declared = TOOLS.map(({ name, description, inputSchema }) => ({
    type: "function",
    function: { name, description, parameters: inputSchema },
  }));
  const post = async (scenario: string, messages: unknown[], rest: Record<string, unknown>) => {
    const body = JSON.stringify({ model: "bench", messages, ...rest });
    const url = `${origin}/${scenario}/v1/chat/completions`;
    const response = await fetch(url, { method: "POST", headers, body });
    if (!response.ok) throw new Error(`LLM ${response.status}`);
    return response;
  };
  const start = (prompt: string): Message[] => [
    { role: "system", content: SYSTEM },
    { role: "user", content: prompt },
  ];
  const run = async (scenario: string, messages: Message[], rest: Record<string, unknown>) => {
    for (;;) {
      const { choices: [{ message }] } = await (await post(scenario, messages, rest)).json();
      messages.push(message);
      if (!message.tool_calls?.length) return message.content;
      for (const { id, function: called } of message.tool_calls) {
        const tool = TOOLS.find(({ name }) => name === called.name)!;
        const content = tool.run(JSON.parse(called.arguments));
        messages.push({ role: "tool", tool_call_id: id, content });
      }
    }
  };
  return {
    once: () => run("plain", start(PROMPT), {}),
    tools: () => run("tools", start(PROMPT), { tools: declared }),
    async stream(scenario, onText) {
      const options = { stream: true, stream_options: { include_usage: true } };
      const response = await post(scenario, start(PROMPT), options);
      let rest = "";
      for await (const piece of response.body!.pipeThrough(new TextDecoderStream())) {
        const lines = (rest + piece).split("\n");
        rest = lines.pop()!;
        for (const line of lines) {
          if (!line.startsWith("data: ") || line === "data: [DONE]") continue;
          const text = JSON.parse(line.slice(6)).choices[0]?.delta.content;
          if (text) onText(text);
        }
      }
    },
    async ask(id, prompt) {
      let messages = conversations.get(id);
      if (messages === undefined) conversations.set(id, messages = start(prompt));
      else messages.push({ role: "user", content: prompt });
      return await run("chat", messages, {});
    },
  };
}

/** This client; nothing of it is loaded for the floor. */
export async function client(origin: string, store?: ConversationStore): Promise<Subject> {
  const { createClient, defineTool } = await import("../../mod.ts");
  const clients = new Map(["plain", "tools", "stream", "packed", "chat"].map((scenario) => [
    scenario,
    createClient({
      baseUrl: `${origin}/${scenario}/v1`,
      style: "openai",
      model: "bench",
      apiKey: "key",
      systemPrompt: SYSTEM,
      store,
    }),
  ]));
  const toolkit = TOOLS.map((tool) => defineTool(tool));
  return {
    once: () => clients.get("plain")!.run(PROMPT),
    tools: () => clients.get("tools")!.run(PROMPT, { toolkit }),
    async stream(scenario, onText) {
      for await (const event of clients.get(scenario)!.stream(PROMPT)) {
        if (event.type === "text") onText(event.delta);
      }
    },
    ask: (id, prompt) => clients.get("chat")!.ask(prompt, { id }),
  };
}
