// What the tests of the client have in common: clients with short defaults, transcripts as lines of
// text, a store that writes down what it is given, a signal whose listeners are counted.
import type { FakeTime } from "@std/testing/time";
import {
  type Client,
  type ClientOptions,
  ConversationConflictError,
  type ConversationStore,
  createClient,
  type DefinedTool,
  defineTool,
  equalMessages,
  type Message,
  type RunStream,
  type StreamEvent,
} from "../mod.ts";
import type { StubReply } from "../src/testing/mod.ts";

/** A client of a server; it asks once and does not wait between tries, unless told otherwise. */
export function clientOf(
  server: { baseUrl: string },
  options: Partial<ClientOptions> = {},
): Client {
  return createClient({
    baseUrl: server.baseUrl,
    style: "openai",
    model: "test",
    retries: 0,
    retryBaseMs: 0,
    ...options,
  });
}

/** A client whose requests go to a function. */
export function clientOfFetch(
  answer: (request: Request, call: number) => Response | Promise<Response>,
  options: Partial<ClientOptions> = {},
): Client {
  let calls = 0;
  return clientOf({ baseUrl: "http://model.test/v1" }, {
    fetch: async (input, init) => await answer(new Request(input, init), ++calls),
    ...options,
  });
}

/** A whole answer in the OpenAI style. */
export function answerOf(text: string): Response {
  const message = { role: "assistant", content: text };
  return Response.json({ choices: [{ index: 0, message, finish_reason: "stop" }] });
}

/** The events of an OpenAI stream that says `deltas`; without its end. */
export function deltas(...texts: string[]): string {
  const event = (content: string) => ({ choices: [{ index: 0, delta: { content } }] });
  return texts.map((text) => `data: ${JSON.stringify(event(text))}\n\n`).join("");
}

/** How an OpenAI stream ends. */
export const END_OF_STREAM =
  `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n`;

/** A tool that gives what `run` gives. */
export function toolOf(
  name: string,
  run: (args: Record<string, unknown>, signal: AbortSignal) => unknown = () => `${name} ran`,
): DefinedTool {
  return defineTool({
    name,
    description: `does ${name}`,
    inputSchema: { type: "object" },
    run: (args, context) => run(args as Record<string, unknown>, context.signal),
  });
}

/** A model's reply that is held back until it is let go, and a sign that it was asked for. */
export function held(answer: StubReply) {
  const asked = Promise.withResolvers<void>(), gate = Promise.withResolvers<void>();
  const reply = async () => {
    asked.resolve();
    await gate.promise;
    return answer;
  };
  return { reply, asked: asked.promise, letGo: gate.resolve };
}

/** A tool that runs until it is let go, and a sign that it runs. */
export function heldTool(name: string, output: string = `${name} ran`) {
  const runs = Promise.withResolvers<void>(), gate = Promise.withResolvers<void>();
  const tool = toolOf(name, async () => {
    runs.resolve();
    await gate.promise;
    return output;
  });
  return { tool, runs: runs.promise, letGo: gate.resolve };
}

/** An answer that calls tools by name, with the ids `c-<name>`. */
export function calling(...names: string[]): { toolCalls: { id: string; name: string }[] } {
  return { toolCalls: names.map((name) => ({ id: `c-${name}`, name })) };
}

/** A transcript as lines: `user: hi`, `assistant: [weather]`, `tool: Sunny`. */
export function lines(messages: readonly Message[] | null | undefined): string[] {
  return (messages ?? []).map((message) => {
    const calls = (message.tool_calls ?? []) as { function: { name: string } }[];
    const called = calls.map((call) => `[${call.function.name}]`);
    return `${message.role}: ${[...texts(message.content), ...called].join(" ")}`;
  });
}

function texts(content: unknown): string[] {
  if (typeof content === "string") return content === "" ? [] : [content];
  if (!Array.isArray(content)) return [];
  return content.flatMap((block: Record<string, unknown>) => {
    if (block.type === "tool_use") return [`[${block.name}]`];
    return texts(block.text ?? block.content);
  });
}

/** Reads a stream to its end. */
export async function eventsOf(stream: RunStream): Promise<StreamEvent[]> {
  return await Array.fromAsync(stream);
}

/** The text that events bring. */
export function textOf(events: readonly StreamEvent[]): string {
  return events.map((event) => event.type === "text" ? event.delta : "").join("");
}

/** Reads a stream until an event is like that, then leaves it. */
export async function readUntil(
  stream: RunStream,
  isLast: (event: StreamEvent) => boolean,
): Promise<StreamEvent[]> {
  const events: StreamEvent[] = [];
  for await (const event of stream) {
    events.push(event);
    if (isLast(event)) break;
  }
  return events;
}

/** A store that keeps JSON, refuses stale writes, and writes down each save. */
export class LedgerStore implements ConversationStore {
  /** Every save that was tried, with the base it came with. */
  readonly saves: { id: string; messages: string[]; base: string[] | undefined }[] = [];
  /** Done before the nth save, from 1: what someone else does meanwhile. */
  readonly beforeSave: Record<number, () => void> = {};
  readonly #kept = new Map<string, string>();

  get(id: string): Message[] | undefined {
    const kept = this.#kept.get(id);
    return kept === undefined ? undefined : JSON.parse(kept);
  }

  save(id: string, messages: readonly Message[], base?: readonly Message[]): void {
    this.saves.push({ id, messages: lines(messages), base: base && lines(base) });
    this.beforeSave[this.saves.length]?.();
    if (base !== undefined && !equalMessages(this.get(id) ?? [], base)) {
      throw new ConversationConflictError(id);
    }
    this.put(id, messages);
  }

  /** What someone else writes, past every check. */
  put(id: string, messages: readonly Message[]): void {
    this.#kept.set(id, JSON.stringify(messages));
  }

  /** What someone else adds. */
  append(id: string, ...messages: Message[]): void {
    this.put(id, [...this.get(id) ?? [], ...messages]);
  }
}

/** The store as another process opens it: asks through it do not wait for those of this one. */
export function opened(store: ConversationStore): ConversationStore {
  return {
    get: (id) => store.get(id),
    save: (id, messages, base) => store.save(id, messages, base),
  };
}

/** A store of two closures over a map of JSON, which ignores `base`. */
export function plainStore(): ConversationStore & { kept: Map<string, string> } {
  const kept = new Map<string, string>();
  return {
    kept,
    get: (id) => JSON.parse(kept.get(id) ?? "null"),
    save: (id, messages) => void kept.set(id, JSON.stringify(messages)),
  };
}

/** The signal of a controller, with a count of the listeners that are on it. */
export function countedSignal(): { controller: AbortController; listeners: () => number } {
  const controller = new AbortController();
  const { signal } = controller;
  const listening = new Set<unknown>();
  const { addEventListener, removeEventListener } = signal;
  signal.addEventListener = (...args: Parameters<typeof addEventListener>) => {
    listening.add(args[1]);
    addEventListener.apply(signal, args);
  };
  signal.removeEventListener = (...args: Parameters<typeof removeEventListener>) => {
    listening.delete(args[1]);
    removeEventListener.apply(signal, args);
  };
  return { controller, listeners: () => listening.size };
}

/** A server that takes one request and never answers. */
export interface SilentServer extends Disposable {
  baseUrl: string;
  /** A request is there. */
  asked: Promise<void>;
  /** The client has hung up. */
  gone: Promise<void>;
}

/** Starts a server that writes `start`, if anything, and then stays silent until it is left. */
export function silentServer(start = ""): SilentServer {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const asked = Promise.withResolvers<void>();
  const gone = (async () => {
    using connection = await listener.accept();
    const buffer = new Uint8Array(65_536);
    await connection.read(buffer);
    await connection.write(new TextEncoder().encode(start));
    asked.resolve();
    // A client that hangs up may do so by a reset.
    while (await connection.read(buffer).catch(() => null) !== null);
  })();
  gone.catch(() => {});
  return {
    baseUrl: `http://127.0.0.1:${listener.addr.port}/v1`,
    asked: asked.promise,
    gone,
    [Symbol.dispose]: () => listener.close(),
  };
}

/** Moves the clock from timer to timer until a promise is settled. */
export async function throughTime<Value>(time: FakeTime, promise: Promise<Value>): Promise<Value> {
  let isSettled = false;
  const settled = () => void (isSettled = true);
  promise.then(settled, settled);
  while (!isSettled) await time.nextAsync();
  return await promise;
}
