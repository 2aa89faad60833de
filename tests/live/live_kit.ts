// What the live tests have in common: the server that is tested and what it can do, clients of it, a
// tool, and a look at what the server is doing.
import { assertEquals } from "@std/assert";
import {
  type Client,
  type ClientOptions,
  createClient,
  type DefinedTool,
  defineTool,
  InMemoryConversationStore,
  type Message,
  type RunResult,
  type StreamEvent,
  type StyleName,
  type Usage,
} from "../../mod.ts";

const HOW_TO_START = `Start a model server in another terminal:

  tests/live/llama_server.sh

and pass on the line that it prints when it is ready:

  LLM_BASE_URL=… LLM_MODEL=… deno task live
`;

function required(name: string): string {
  const value = Deno.env.get(name);
  if (!value) throw new Error(`${name} is not set. ${HOW_TO_START}`);
  return value;
}

const baseUrl = required("LLM_BASE_URL").replace(/\/+$/, "");
const model = required("LLM_MODEL");
const { origin } = new URL(baseUrl);

/** What the server can do beside chat completions. */
async function answers(url: string, method: string): Promise<boolean> {
  try {
    const response = await fetch(url, { method, body: method === "POST" ? "{}" : null });
    await response.body?.cancel();
    return response.status !== 404 && response.status !== 405 && response.status !== 501;
  } catch (cause) {
    throw new Error(`no model server answers at ${origin}. ${HOW_TO_START}`, { cause });
  }
}
export const hasMessages = await answers(`${baseUrl.replace(/\/v1$/, "")}/v1/messages`, "POST");
export const hasSlots = await answers(`${origin}/slots`, "GET");
if (!hasMessages) console.warn(`${origin} has no /v1/messages: the anthropic style is not tested`);
if (!hasSlots) console.warn(`${origin} has no /slots: its generation cannot be watched`);

/** A test in each style that the server speaks. */
export function inBothStyles(
  name: string,
  test: (style: StyleName) => Promise<void>,
  ignore = false,
): void {
  Deno.test({ name: `openai: ${name}`, ignore, fn: () => test("openai") });
  Deno.test({
    name: `anthropic: ${name}`,
    ignore: ignore || !hasMessages,
    fn: () => test("anthropic"),
  });
}

/** A client that answers briefly and always the same, and the bodies of the requests it sent. */
export function clientOf(style: StyleName, options: Partial<ClientOptions> = {}): {
  client: Client;
  store: InMemoryConversationStore;
  bodies: { messages: Message[]; [key: string]: unknown }[];
} {
  const store = new InMemoryConversationStore();
  const bodies: { messages: Message[] }[] = [];
  const client = createClient({
    baseUrl,
    style,
    model,
    store,
    retries: 0,
    maxTokens: 16,
    systemPrompt: "Be brief.",
    ...options,
    requestParams: { temperature: 0, ...options.requestParams },
    fetch: (input, init) => {
      bodies.push(JSON.parse(String(init?.body)));
      return fetch(input, init);
    },
  });
  return { client, store, bodies };
}

/** Options that make the model call a tool, and answer briefly where it has a result to answer to. */
export function forced(style: StyleName): Partial<ClientOptions> {
  return {
    maxTokens: 120,
    requestParams: { tool_choice: style === "openai" ? "required" : { type: "any" } },
    bodyTransform: (body) => {
      const last = (body.messages as Message[]).at(-1)!;
      const { tool_choice: _, ...unforced } = body;
      return resultsOf(last).length > 0 ? { ...unforced, max_tokens: 16 } : body;
    },
  };
}

/** A tool with a report of its runs. */
export function weatherTool(): { tool: DefinedTool; runs: { city: string; callId: string }[] } {
  const runs: { city: string; callId: string }[] = [];
  const tool = defineTool({
    name: "weather",
    description: "Current weather of a city",
    inputSchema: {
      type: "object",
      properties: { city: { type: "string", enum: ["Oslo", "Lima"] } },
      required: ["city"],
      additionalProperties: false,
    },
    run: ({ city }, { callId }) => {
      runs.push({ city, callId });
      return `${city}: rain, ${runs.length} degrees`;
    },
  });
  return { tool, runs };
}

/** The tool results in a message of either style. */
export function resultsOf(message: Message): { id: unknown; content: unknown }[] {
  if (message.role === "tool") return [{ id: message.tool_call_id, content: message.content }];
  if (!Array.isArray(message.content)) return [];
  return message.content
    .filter((block) => block.type === "tool_result")
    .map((block) => ({ id: block.tool_use_id, content: block.content }));
}

/** A value with its leaves replaced by the names of their types. */
export function shapeOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(shapeOf);
  if (value === null || typeof value !== "object") return typeof value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, shapeOf(item)]));
}

/** All input tokens: the anthropic style counts those from the cache apart. */
export function inputTokens(style: StyleName, usage: Usage): number {
  return usage.promptTokens + (style === "anthropic" ? usage.cachedTokens ?? 0 : 0);
}

/** Reads a stream to its end. */
export async function readAll(
  client: Client,
  prompt: string,
  options?: Parameters<Client["stream"]>[1],
): Promise<{ events: StreamEvent[]; text: string; result: RunResult }> {
  const stream = client.stream(prompt, options);
  const events = await Array.fromAsync(stream);
  const text = events.map((event) => event.type === "text" ? event.delta : "").join("");
  return { events, text, result: await stream.result };
}

// What llama.cpp tells of the places where it generates; `has_next_token` stays true where a
// generation was cut off and becomes false where it came to its end.
interface Slot {
  id: number;
  is_processing: boolean;
  next_token?: { has_next_token: boolean }[];
}

async function slotsThat(isWanted: (slot: Slot) => boolean): Promise<Slot[]> {
  const response = await fetch(`${origin}/slots`);
  return (await response.json() as Slot[]).filter(isWanted);
}

async function until<T>(
  what: string,
  everyMs: number,
  look: () => Promise<T | undefined>,
): Promise<T> {
  const deadline = Date.now() + 20_000;
  while (Date.now() < deadline) {
    const seen = await look();
    if (seen !== undefined) return seen;
    await new Promise((resolve) => setTimeout(resolve, everyMs));
  }
  throw new Error(`${what} was not seen within 20 s`);
}

/** Waits until the server generates, ends the run by `end`, and sees the server stop midway. */
export async function assertStops(end: () => unknown): Promise<void> {
  const busy = await until("a generation", 20, async () => {
    return (await slotsThat((slot) => slot.is_processing)).at(0);
  });
  await end();
  // The server looks after a connection when nothing happened for a second, and our look is a thing
  // that happens: more than a second must pass between two of them.
  const slot = await until("the end of the generation", 1_500, async () => {
    return (await slotsThat((slot) => slot.id === busy.id && !slot.is_processing)).at(0);
  });
  assertEquals(slot.next_token?.at(0)?.has_next_token, true, "the generation was not cut off");
}
