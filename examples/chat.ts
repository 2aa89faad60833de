// A chat in the terminal with any endpoint. The conversation is kept under an id; Ctrl-C stops the
// answer and keeps what was said.
//
//   deno run -P=chat examples/chat.ts --help

import { parseArgs } from "node:util";
import { createClient, InMemoryConversationStore, ToolnexusError } from "@toolnexus/client";
import type { Client, ConversationStore, StyleName } from "@toolnexus/client";
import { FsConversationStore } from "@toolnexus/client/stores/fs";
import { KvConversationStore } from "@toolnexus/client/stores/kv";
import { stubLlm, type StubRequest } from "@toolnexus/client/testing";

const HELP = `A chat in the terminal.

  deno task chat [options]

  --base-url URL  the endpoint, such as https://api.openai.com/v1; without it a script on this
                  machine answers
  --style STYLE   openai or anthropic (default openai)
  --model MODEL   the model, as the endpoint names it
  --store STORE   memory (default), fs:DIR or kv:FILE
  --id ID         the conversation (default chat)
  --help          this text

LLM_BASE_URL, LLM_STYLE and LLM_MODEL are the defaults of the first three. The key is LLM_API_KEY;
without it OPENAI_API_KEY, ANTHROPIC_API_KEY or OPENROUTER_API_KEY, for the host it belongs to.

Ctrl-C stops an answer and keeps what was said. Ctrl-C again, or Ctrl-D, leaves.
`;

const isColored = Deno.stdout.isTerminal() && !Deno.noColor;
const paint = (code: number) => (text: string) => isColored ? `\x1b[${code}m${text}\x1b[0m` : text;
const dim = paint(2), red = paint(31), cyan = paint(36);

/** The answer that is being given: Ctrl-C stops it. */
let answering: AbortController | undefined;
let interruptedAt = -Infinity;

if (import.meta.main) {
  try {
    await main();
  } catch (error) {
    console.error(red(error instanceof Error ? error.message : String(error)));
    Deno.exit(1);
  }
}

async function main(): Promise<void> {
  const options = optionsOf(Deno.args);
  if (options === undefined) return console.log(HELP);
  const { baseUrl, style, model, id } = options;
  using opened = await openStore(options.store);
  const { store } = opened;
  await using stub = baseUrl === undefined
    ? stubLlm(scripted, { delayMs: 15, strict: "refuse" })
    : undefined;
  const client = createClient({
    baseUrl: baseUrl ?? stub!.baseUrl,
    style,
    model,
    apiKey: env("LLM_API_KEY"),
    store,
  });
  const kept = (await store.get(id))?.length ?? 0;
  console.log(dim(
    `${stub ? "a script on this machine answers, see --help" : model} · ${id}` +
      (kept > 0 ? ` · ${kept} messages kept` : ""),
  ));
  Deno.addSignalListener("SIGINT", onInterrupt);
  for await (const prompt of prompts()) {
    if (prompt.trim() !== "") await answer(client, prompt, id);
  }
}

/** Leaving is no failure, whether a signal tells it or a prompt() that ends with null: a 0. */
function onInterrupt(): void {
  // `deno task` passes on what the terminal has sent already: two signals at once are one Ctrl-C.
  if (performance.now() - interruptedAt < 500) return;
  interruptedAt = performance.now();
  if (answering === undefined || answering.signal.aborted) Deno.exit(0);
  answering.abort();
}

async function answer(client: Client, prompt: string, id: string): Promise<void> {
  answering = new AbortController();
  let isThinking = false;
  try {
    for await (const event of client.stream(prompt, { id, signal: answering.signal })) {
      if (event.type === "text") write((isThinking ? "\n" : "") + cyan(event.delta));
      if (event.type === "reasoning") write(dim(event.delta));
      isThinking = event.type === "reasoning";
    }
    write("\n");
  } catch (error) {
    if (!(error instanceof ToolnexusError)) throw error;
    const isStopped = error.code === "aborted";
    const fate = error.partialText === undefined ? "nothing was said" : "what was said is kept";
    write(isStopped ? dim(`\n[stopped: ${fate}]\n`) : red(`\n[${error.message}]\n`));
    if (error.suppressed !== undefined) write(red(`[${error.suppressed.message}]\n`));
    // The second signal comes now, not in the next answer.
    if (isStopped) await new Promise((resolve) => setTimeout(resolve, 100));
  } finally {
    answering = undefined;
  }
}

/** What the user types: with line editing in a terminal, line by line from a pipe. */
async function* prompts(): AsyncGenerator<string> {
  if (Deno.stdin.isTerminal()) {
    for (let line: string | null; (line = prompt(">")) !== null;) yield line;
    return;
  }
  let rest = "";
  for await (const chunk of Deno.stdin.readable.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + chunk).split("\n");
    rest = lines.pop() ?? "";
    yield* lines;
  }
  if (rest !== "") yield rest;
}

/** The options; undefined when help is wanted. */
function optionsOf(args: string[]):
  | { baseUrl: string | undefined; style: StyleName; model: string; store: string; id: string }
  | undefined {
  const { values } = parseArgs({
    args,
    options: {
      "base-url": { type: "string" },
      style: { type: "string" },
      model: { type: "string" },
      store: { type: "string", default: "memory" },
      id: { type: "string", default: "chat" },
      help: { type: "boolean", short: "h" },
    },
  });
  if (values.help) return undefined;
  const baseUrl = values["base-url"] ?? env("LLM_BASE_URL");
  const style = values.style ?? env("LLM_STYLE") ?? "openai";
  const model = values.model ?? env("LLM_MODEL") ?? (baseUrl ? undefined : "script");
  if (style !== "openai" && style !== "anthropic") {
    throw new TypeError(`--style must be openai or anthropic: ${style}`);
  }
  if (model === undefined) throw new TypeError("--model is needed with --base-url");
  return { baseUrl, style, model, store: values.store, id: values.id };
}

async function openStore(name: string): Promise<{ store: ConversationStore } & Disposable> {
  const [kind, place = ""] = name.split(/:(.*)/s);
  if (kind === "memory" && place === "") {
    return { store: new InMemoryConversationStore(), [Symbol.dispose]() {} };
  }
  if (kind === "fs" && place !== "") {
    return { store: new FsConversationStore(place), [Symbol.dispose]() {} };
  }
  if (kind === "kv" && place !== "") {
    const kv = await Deno.openKv(place);
    return { store: new KvConversationStore(kv), [Symbol.dispose]: () => kv.close() };
  }
  throw new TypeError(`--store must be memory, fs:DIR or kv:FILE: ${name}`);
}

/** The script that answers when there is no endpoint. */
function scripted({ body }: StubRequest): string {
  const { content } = body.messages.at(-1) ?? {};
  const prompt = typeof content === "string" ? content : JSON.stringify(content);
  const [, count] = /count to (\d{1,4})/i.exec(prompt) ?? [];
  if (count !== undefined) {
    return Array.from({ length: Number(count) }, (_, index) => index + 1).join(" ");
  }
  return `You said ${JSON.stringify(prompt)}. This conversation has ${body.messages.length} ` +
    `message(s) so far. I am only a script: ask me to count to 100, and stop me with Ctrl-C.`;
}

/** An environment variable; an empty one is none. */
function env(name: string): string | undefined {
  return Deno.env.get(name) || undefined;
}

function write(text: string): void {
  Deno.stdout.writeSync(new TextEncoder().encode(text));
}
