// Plays one wire fixture: a client as a user makes it, asked once, against a server that misbehaves.

import {
  createClient,
  createToolkit,
  defineTool,
  type Message,
  pending,
  type StyleName,
  type Toolkit,
  ToolnexusError,
} from "../../mod.ts";
import { finalAnswer, type Fixture, type Json, rawAnswer } from "./fixture.ts";
import { RawServer } from "./raw_server.ts";

/** The key of every fixture that does not say otherwise: no error may show it. */
export const KEY = "sk-wire-SECRET-0123456789";

/** A run that takes longer hangs, unless the fixture says otherwise. */
const LIMIT_MS = 4_000;

/** What was seen. Paths of a fixture's `see` begin here. */
export interface Observed {
  requests: Json[];
  ran: { name: string; args: Json }[];
  events?: Json[];
  /** The text deltas, joined. */
  deltas?: string;
  result?: Json;
  /** The result before the second prompt. */
  first?: Json;
  streamResult?: Json;
  // deno-lint-ignore no-explicit-any
  error?: any;
  stored?: Json;
  /** `response` of each `afterLLM`. */
  responses: Json[];
  metricEvents: Json[];
  metrics: string;
  fetchCalls: number;
  onErrorCalls: number;
  ms: number;
  connectionsLeft: number;
  listenersLeft: number;
  /** The error with all that hangs on it, the metrics and the console, as text. */
  shown: string;
  /** The next request on what was kept, by style. */
  next: { style: StyleName; body?: Json; error?: string }[];
}

/** Plays a fixture, with its streams as written or one byte a network chunk. */
export async function play(fixture: Fixture, byteByByte: boolean): Promise<Observed> {
  const { mode, client: setup = {}, limitMs = LIMIT_MS } = fixture;
  const script = [...fixture.server];
  await using server = new RawServer(({ url, body }) => {
    const asked = /\/messages(\?|$)/.test(url) ? "anthropic" : "openai";
    const answer = script.shift() ?? finalAnswer(asked, body.stream === true);
    return rawAnswer(answer, byteByByte);
  });
  const observed: Observed = {
    requests: server.requests,
    ran: [],
    responses: [],
    metricEvents: [],
    metrics: "",
    fetchCalls: 0,
    onErrorCalls: 0,
    ms: 0,
    connectionsLeft: 0,
    listenersLeft: 0,
    shown: "",
    next: [],
  };
  using _environment = new Environment(setup.env);
  using output = new ConsoleOutput();
  const toolkit = toolsOf(observed);
  const caller = new CallerSignal();
  const started = performance.now();
  const client = createClient(optionsOf(fixture, server.origin, observed));
  const ask = async (prompt: string, history: Message[] | undefined) => {
    const signal = setup.signal || setup.abortAfterMs !== undefined ? caller.signal : undefined;
    const options = { toolkit, signal, ...(history === undefined ? { id: "c" } : { history }) };
    if (mode === "stream") {
      const stream = client.stream(prompt, options);
      observed.events = [];
      for await (const event of stream) {
        observed.events.push(event.type === "done" ? { type: "done" } : event);
        if (event.type === "done") observed.result = plain(event.result);
        if (event.type === "text" && setup.leaveAfterText) return;
      }
      observed.streamResult = plain(await stream.result);
    } else {
      const asked = history === undefined
        ? client.ask(prompt, options)
        : client.run(prompt, options);
      observed.result = plain(await asked);
    }
  };
  const abort = setup.abortAfterMs === undefined ? undefined : setTimeout(
    () => caller.abort(new Error("the user pressed stop")),
    setup.abortAfterMs,
  );
  try {
    for (let k = 0; k < (setup.repeat ?? 1); k++) {
      await within(limitMs, ask(setup.prompt ?? "hello", setup.history));
    }
    if (setup.then !== undefined) {
      observed.first = observed.result;
      const history = setup.history && observed.result?.messages;
      await within(limitMs, ask(setup.then, history));
    }
  } catch (error) {
    observed.error = error;
  } finally {
    clearTimeout(abort);
  }
  observed.ms = performance.now() - started;
  observed.deltas = (observed.events ?? []).filter(({ type }) => type === "text")
    .map(({ delta }) => delta).join("");
  observed.connectionsLeft = await server.connectionsLeft(300);
  observed.listenersLeft = caller.listeners;
  observed.stored = plain(await client.conversationStore().get("c"));
  observed.metrics = client.metrics();
  observed.shown = [
    observed.error === undefined ? "" : Deno.inspect(observed.error, { depth: 12 }),
    observed.error instanceof Error ? everythingOn(observed.error) : "",
    JSON.stringify(observed.metricEvents),
    observed.metrics,
    ...output.lines,
  ].join("\n");
  const kept = setup.history === undefined ? observed.stored : observed.result?.messages;
  observed.next = await nextRequests(kept, toolkit, fixture);
  return observed;
}

function optionsOf(fixture: Fixture, origin: string, observed: Observed) {
  const { style, client: setup = {} } = fixture;
  const base = new URL(setup.base ?? "https://h.test/v1");
  // `h.test` stands for the server itself; any other host is reached through the given `fetch`.
  const isServer = base.hostname === "h.test";
  const direct = isServer && !setup.fetch;
  const baseUrl = isServer ? base.href.replace(base.origin, origin) : setup.base!;
  const { set, drop = [], dropLastUser, onError } = setup;
  return {
    baseUrl,
    style,
    model: "t",
    retryBaseMs: 1,
    ...(setup.env === undefined && { apiKey: setup.key ?? KEY }),
    ...setup.options,
    ...(!direct && {
      fetch: (input: string | URL | Request, init?: RequestInit) => {
        observed.fetchCalls++;
        const { pathname, search } = new URL(String(input));
        return fetch(origin + pathname + search, init);
      },
    }),
    ...((set !== undefined || drop.length > 0) && {
      bodyTransform: (body: Record<string, unknown>) =>
        Object.fromEntries(
          Object.entries({ ...body, ...set }).filter(([key]) => !drop.includes(key)),
        ),
    }),
    ...(onError !== undefined && {
      onError: () => {
        observed.onErrorCalls++;
        return onError;
      },
    }),
    onMetric: (event: unknown) => void observed.metricEvents.push(plain(event)),
    hooks: {
      afterLLM: ({ response }: { response: unknown }) =>
        void observed.responses.push(plain(response)),
      ...(dropLastUser && {
        beforeLLM: ({ messages }: { messages: readonly Message[] }) => ({
          messages: messages.slice(0, -1),
        }),
      }),
    },
  };
}

function toolsOf(observed: Observed): Toolkit {
  const q = { type: "object", properties: { q: { type: "string" } } } as const;
  const tool = (name: string, run: (args: Json) => unknown) =>
    defineTool({
      name,
      description: `The tool ${name}`,
      inputSchema: q,
      run: (args) => {
        observed.ran.push({ name, args: structuredClone(args) });
        return run(args);
      },
    });
  return createToolkit({
    tools: [
      tool("lookup", ({ q }) => {
        if (q !== undefined && typeof q !== "string") throw new TypeError("q is no string");
        return "ok";
      }),
      tool("ping", () => "pong"),
      tool("empty", () => ""),
      tool("half_a_character", () => "a\ud83d"),
      tool("bigint", () => ({ n: 10n })),
      tool("ask_human", () => pending({ kind: "input", prompt: "need" })),
    ],
  });
}

/** What a client sends when it goes on from what was kept: in each style, on a server that is well. */
async function nextRequests(kept: Json, toolkit: Toolkit, fixture: Fixture) {
  if (!kept?.length || fixture.expect.sendable === undefined) return [];
  const styles: StyleName[] = fixture.expect.sendable === "both"
    ? ["openai", "anthropic"]
    : [fixture.style];
  return await Promise.all(styles.map(async (style) => {
    let body: Json;
    const client = createClient({
      baseUrl: "http://h.test/v1",
      style,
      model: "t",
      fetch: (_input, init) => {
        body = JSON.parse(String(init?.body));
        return Promise.resolve(Response.json(finalAnswer(style, false).json));
      },
    });
    try {
      await client.run("go on", { toolkit, history: structuredClone(kept) });
      return { style, body };
    } catch (error) {
      return { style, error: String(error) };
    }
  }));
}

/** A time limit for what must not hang. */
async function within<Value>(ms: number, work: Promise<Value>): Promise<Value> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no end after ${ms} ms`)), ms);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** A signal of the caller's that counts who listens to it. */
class CallerSignal {
  readonly #controller = new AbortController();
  readonly #listening = new Set<unknown>();
  readonly signal = this.#controller.signal;

  constructor() {
    const { signal } = this;
    const add = signal.addEventListener.bind(signal),
      remove = signal.removeEventListener.bind(signal);
    signal.addEventListener = (type: string, listener: EventListener, options?: unknown) => {
      this.#listening.add(listener);
      add(type, listener, options as AddEventListenerOptions);
    };
    signal.removeEventListener = (type: string, listener: EventListener) => {
      this.#listening.delete(listener);
      remove(type, listener);
    };
  }

  abort(reason: Error): void {
    this.#controller.abort(reason);
  }

  get listeners(): number {
    return this.#listening.size;
  }
}

/** Sets environment variables, and puts back what was there. */
class Environment implements Disposable {
  readonly #before: [string, string | undefined][];

  constructor(variables: Record<string, string> | undefined) {
    const names = variables === undefined ? [] : Object.keys(variables);
    this.#before = names.map((name) => [name, Deno.env.get(name)]);
    for (const name of names) Deno.env.set(name, variables![name]!);
  }

  [Symbol.dispose](): void {
    for (const [name, value] of this.#before) {
      if (value === undefined) Deno.env.delete(name);
      else Deno.env.set(name, value);
    }
  }
}

/** Takes note of what is printed. */
class ConsoleOutput implements Disposable {
  readonly lines: string[] = [];
  readonly #before = { ...console };

  constructor() {
    for (const name of ["log", "info", "warn", "error", "debug"] as const) {
      console[name] = (...values) => void this.lines.push(values.map(String).join(" "));
    }
  }

  [Symbol.dispose](): void {
    Object.assign(console, this.#before);
  }
}

/** Every string on an error and on what it carries, hidden properties too. */
function everythingOn(error: Error): string {
  const seen = new Set<unknown>();
  const visit = (value: unknown): string => {
    if (typeof value !== "object" || value === null || seen.has(value)) return String(value);
    seen.add(value);
    return Object.getOwnPropertyNames(value)
      .map((name) => `${name}: ${visit((value as Record<string, unknown>)[name])}`).join("\n");
  };
  return visit(error);
}

function plain(value: unknown): Json {
  return value === undefined ? undefined : JSON.parse(JSON.stringify(value) ?? "null");
}

/** Whether an error is one that the client promises. */
export function isTyped(error: unknown): error is ToolnexusError {
  return error instanceof ToolnexusError && error.code !== undefined;
}
