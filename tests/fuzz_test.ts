import { assert } from "@std/assert";
import {
  createClient,
  createToolkit,
  defineTool,
  type Message,
  type RunResult,
  type StyleName,
  ToolnexusError,
} from "../mod.ts";
import { refusalsOf } from "../src/testing/strict.ts";
import { madeAnswer, plainBody, streamEvents, streamText } from "./wire/answers.ts";
import { byteDamages, eventDamages, typeConfused } from "./wire/damage.ts";
import { FROM_INSIDE } from "./wire/expect.ts";
import { finalAnswer, type Json, rawAnswer } from "./wire/fixture.ts";
import { Random } from "./wire/random.ts";
import { type RawAnswer, RawServer } from "./wire/raw_server.ts";
import { readBody, wereDelivered } from "./wire/reading.ts";

// Answers in both styles, streamed and plain, damaged in every way that a network and a bad server
// have. Whatever comes, the client gives a right answer or a typed error, and no tool runs with
// arguments that the server did not deliver for a call of it.

// Other runs: TOOLNEXUS_FUZZ_SEED=… TOOLNEXUS_FUZZ_RUNS=… deno task test tests/fuzz_test.ts
const seed = Number(Deno.env.get("TOOLNEXUS_FUZZ_SEED") ?? 20_260_101);
const runs = Number(Deno.env.get("TOOLNEXUS_FUZZ_RUNS") ?? 5_000);
const KEY = "sk-fuzz-SECRET-0123456789";

/** A run that takes longer hangs. */
const LIMIT_MS = 20_000;

/** On a slow machine there are fewer runs, not more time: in milliseconds for each of the two tests. */
const MOST_MS = { fetch: 12_000, connection: 6_000 };

/** One answer on its way, and the client that asks for it. */
interface Attempt {
  style: StyleName;
  mode: "run" | "stream";
  bytes: Uint8Array;
  /** The bytes as the network cuts them. */
  chunks: Uint8Array[];
  contentType: string;
  end: "whole" | "reset" | "silence";
  /** What the bytes say, where nothing has damaged them. */
  undamaged?: { text: string; calls: { name: string; args: Json }[] };
}

/** What the client made of it. */
interface Outcome {
  result?: RunResult;
  error?: unknown;
  ran: { name: string; args: Json }[];
  deltas: string;
  stored: readonly Message[];
  /** Every body that the client sent. */
  bodies: Json[];
}

function attempt(random: Random): Attempt {
  const style = random.of(["openai", "anthropic"] as const);
  const mode = random.of(["run", "stream"] as const);
  const answer = madeAnswer(random);
  const isStream = random.below(3) > 0;
  const isDamaged = random.below(5) > 0;
  let text: string;
  if (isStream) {
    const damage = isDamaged ? random.of(Object.values(eventDamages)) : eventDamages.none;
    text = streamText(damage(streamEvents(style, answer, random), random), random);
  } else {
    const body = plainBody(style, answer);
    const isConfused = isDamaged && random.below(2) === 0;
    text = JSON.stringify(isConfused ? typeConfused(body, random) : body) ?? "";
  }
  let bytes: Uint8Array = new TextEncoder().encode(text);
  // Bytes are left alone as often as not: what is read from them is then known exactly.
  if (isDamaged && bytes.length > 0 && random.below(2) === 0) {
    bytes = random.of(Object.values(byteDamages))(bytes, random);
  }
  const end = isDamaged && random.below(20) === 0
    ? random.of(["reset", "silence"] as const)
    : "whole";
  return {
    style,
    mode,
    bytes,
    chunks: chunksOf(bytes, random),
    contentType: random.of([
      isStream ? "text/event-stream" : "application/json",
      isStream ? "text/event-stream; charset=utf-8" : "application/json; charset=utf-8",
      "text/plain",
    ]),
    end,
    ...(!isDamaged && { undamaged: answer }),
  };
}

function chunksOf(bytes: Uint8Array, random: Random): Uint8Array[] {
  const size = random.of([2, 20, 100, 500, 500, 100_000]);
  const chunks: Uint8Array[] = [];
  for (let start = 0; start < bytes.length;) {
    const end = start + 1 + random.below(size);
    chunks.push(bytes.subarray(start, end));
    start = end;
  }
  return chunks;
}

/** Asks once; the answer comes through `fetch`, or from a server where there is one. */
async function ask(attempt: Attempt, server?: RawServer): Promise<Outcome> {
  const { style, mode } = attempt;
  const outcome: Outcome = { ran: [], deltas: "", stored: [], bodies: [] };
  const tool = (name: string) =>
    defineTool({
      name,
      description: name,
      inputSchema: { type: "object", properties: {} },
      run: (args) => {
        outcome.ran.push({ name, args });
        return "ok";
      },
    });
  const client = createClient({
    baseUrl: server?.origin ?? "http://127.0.0.1:1",
    style,
    model: "m",
    apiKey: KEY,
    retries: 0,
    ...(attempt.end === "silence" && { idleTimeoutMs: 25 }),
    maxTurns: 3,
    toolkit: createToolkit({ tools: [tool("lookup"), tool("ping")] }),
    fetch: async (input, init) => {
      outcome.bodies.push(JSON.parse(String(init?.body)));
      return await (server === undefined ? responseTo(attempt, outcome) : fetch(input, init));
    },
  });
  try {
    await within(LIMIT_MS, async () => {
      if (mode === "run") outcome.result = await client.ask("go", { id: "c" });
      else {
        const stream = client.stream("go", { id: "c" });
        for await (const event of stream) if (event.type === "text") outcome.deltas += event.delta;
        outcome.result = await stream.result;
      }
    });
  } catch (error) {
    outcome.error = error;
  }
  outcome.stored = await client.conversationStore().get("c") ?? [];
  return outcome;
}

function responseTo(attempt: Attempt, { bodies }: Outcome): Response {
  if (bodies.length > 1) return Response.json(finalAnswer(attempt.style, false).json);
  const chunks = attempt.chunks.values();
  const body = new ReadableStream<Uint8Array>({
    type: "bytes",
    pull(controller) {
      const { done, value } = chunks.next();
      // A byte stream takes its chunks away from whoever gives them.
      if (!done) controller.enqueue(value.slice());
      else if (attempt.end === "whole") {
        controller.close();
        (controller as ReadableByteStreamController).byobRequest?.respond(0);
      } else if (attempt.end === "reset") controller.error(new TypeError("connection reset"));
    },
  });
  return new Response(body, { headers: { "content-type": attempt.contentType } });
}

/** Everything that is wrong with what the client made of an answer. */
async function faults(attempt: Attempt, outcome: Outcome): Promise<string[]> {
  const { style, undamaged } = attempt;
  const { result, error, ran, stored, bodies, deltas } = outcome;
  const reading = readBody(style, attempt.bytes);
  const wrong: string[] = [];
  if (error !== undefined) {
    const shown = Deno.inspect(error);
    if (!(error instanceof ToolnexusError)) wrong.push(`it threw ${shown}`);
    if (FROM_INSIDE.test(shown)) wrong.push(`an error from inside: ${shown}`);
    if (shown.includes("SECRET")) wrong.push("the key is shown");
    if (undamaged !== undefined) wrong.push(`a whole answer ended in ${shown}`);
  }
  if (reading.fault !== undefined && (result !== undefined || ran.length > 0)) {
    wrong.push(`it was taken for an answer, but ${reading.fault}`);
  }
  for (const { name, args } of ran) {
    if (!wereDelivered(args, reading)) wrong.push(`${name} got ${JSON.stringify(args)}`);
  }
  if (result !== undefined && bodies.length === 1 && reading.text !== undefined) {
    if (result.text !== reading.text.toWellFormed()) {
      wrong.push(`the text is ${JSON.stringify(result.text)}, not ${JSON.stringify(reading.text)}`);
    }
    if (attempt.mode === "stream" && deltas !== result.text) wrong.push(`the deltas are ${deltas}`);
  }
  if (undamaged !== undefined && error === undefined) {
    const { text, calls } = undamaged;
    const wanted = JSON.stringify(calls.map(({ name, args }) => ({ name, args })));
    if (JSON.stringify(ran) !== wanted) wrong.push(`${JSON.stringify(ran)} ran, not ${wanted}`);
    if (attempt.mode === "stream" && deltas !== text + (calls.length > 0 ? "fin" : "")) {
      wrong.push(`the deltas are ${JSON.stringify(deltas)}, not ${JSON.stringify(text)}`);
    }
  }
  for (const body of bodies) wrong.push(...refusalsOf(style, body));
  if (stored.length > 0) wrong.push(...await refusedNext(style, stored));
  return wrong;
}

/** What a provider would refuse of the next request on a stored transcript. */
async function refusedNext(style: StyleName, history: readonly Message[]): Promise<string[]> {
  const reasons: string[] = [];
  for (const next of [style, style === "openai" ? "anthropic" : "openai"] as const) {
    const client = createClient({
      baseUrl: "http://127.0.0.1:1",
      style: next,
      model: "m",
      fetch: (_input, init) => {
        reasons.push(...refusalsOf(next, JSON.parse(String(init?.body))));
        return Promise.resolve(Response.json(finalAnswer(next, false).json));
      },
    });
    await client.run("and now?", { history: [...history] });
  }
  return reasons;
}

async function within(ms: number, work: () => Promise<void>): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no end after ${ms} ms`)), ms);
  });
  try {
    await Promise.race([work(), late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Runs many attempts; the first that is wrong ends it, with all that is needed to repeat it. */
async function fuzz(
  through: keyof typeof MOST_MS,
  count: number,
  server?: ServerOfAttempts,
): Promise<void> {
  const started = performance.now();
  const ends = { answers: 0, errors: 0, toolRuns: 0 };
  let run = 0;
  for (; run < count && performance.now() - started < MOST_MS[through]; run++) {
    const made = attempt(new Random(seed + run));
    if (server !== undefined) server.attempt = made;
    const outcome = await ask(made, server?.raw);
    const wrong = await faults(made, outcome);
    ends[outcome.error === undefined ? "answers" : "errors"]++;
    ends.toolRuns += outcome.ran.length;
    const { style, mode, contentType, end, bytes } = made;
    assert(
      wrong.length === 0,
      `TOOLNEXUS_FUZZ_SEED=${
        seed + run
      } TOOLNEXUS_FUZZ_RUNS=1: ${style}, ${mode}, ${contentType}, ` +
        `${end}\n${new TextDecoder().decode(bytes)}\n${wrong.join("\n")}`,
    );
  }
  const seconds = ((performance.now() - started) / 1000).toFixed(1);
  console.log(
    `fuzz through ${through}: ${run} runs in ${seconds} s, seed ${seed}: ${ends.answers} answers, ` +
      `${ends.errors} typed errors, ${ends.toolRuns} tool runs`,
  );
}

/** A server for one attempt after the other. */
class ServerOfAttempts implements AsyncDisposable {
  attempt: Attempt | undefined;
  readonly raw = new RawServer(({ body }) => this.#answer(body));

  async #answer(body: Json): Promise<RawAnswer> {
    const made = this.attempt!;
    if (JSON.stringify(body.messages).includes("tool")) {
      return await rawAnswer(finalAnswer(made.style, body.stream === true), false);
    }
    return {
      status: 200,
      headers: { "content-type": made.contentType },
      pieces: made.chunks.map((bytes) => ({ bytes })),
      isStream: true,
      end: made.end,
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.raw[Symbol.asyncDispose]();
  }
}

Deno.test("damaged answers end in a right answer or a typed error", async () => {
  await fuzz("fetch", runs);
});

Deno.test("damaged answers on a real connection end in a right answer or a typed error", async () => {
  await using server = new ServerOfAttempts();
  await fuzz("connection", Math.ceil(runs / 20), server);
});
