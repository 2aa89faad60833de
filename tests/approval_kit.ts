// What the tests of suspended runs have in common: the two ways to run, tools that ask a human, the
// open stores, and the proof that no mark of a suspension leaves this machine.
import { assert } from "@std/assert";
import {
  type AskOptions,
  type Client,
  type ConversationStore,
  type DefinedTool,
  defineTool,
  InMemoryConversationStore,
  type Message,
  pending,
  type PendingInit,
  type PendingRequest,
  type ResumeOptions,
  type RunResult,
  type ToolContext,
} from "../mod.ts";
import type { StubLlm } from "../src/testing/mod.ts";
import { FsConversationStore } from "../stores/fs.ts";
import { KvConversationStore } from "../stores/kv.ts";

export const STYLES = ["openai", "anthropic"] as const;

export const INTERRUPTED = "interrupted: may or may not have run";

/** One of the two ways to run. */
export interface Way {
  ask(client: Client, prompt: string, options: AskOptions): Promise<RunResult>;
  resume(client: Client, options: ResumeOptions): Promise<RunResult>;
}

/** Plain and streamed. */
export const WAYS: Record<"plain" | "streamed", Way> = {
  plain: {
    ask: (client, prompt, options) => client.ask(prompt, options),
    resume: (client, options) => client.resume(options),
  },
  streamed: {
    async ask(client, prompt, options) {
      const stream = client.stream(prompt, options);
      for await (const _ of stream);
      return await stream.result;
    },
    async resume(client, options) {
      const stream = client.resumeStream(options);
      for await (const _ of stream);
      return await stream.result;
    },
  },
};

/** A tool that asks a human, and writes down its runs with an answer. */
export type AskingTool = DefinedTool & {
  /** The contexts of the runs that a human allowed. */
  readonly runs: ToolContext[];
  /** How often it has asked. */
  readonly asked: number;
};

/** A tool that suspends until it is answered: `<name>?`, then `<name> done`. */
export function asking(name: string, request: Partial<PendingInit> = {}): AskingTool {
  const runs: ToolContext[] = [];
  let asked = 0;
  const tool = defineTool({
    name,
    description: `does ${name}`,
    inputSchema: { type: "object" },
    run: (_args, context) => {
      if (context.answer === undefined) {
        asked++;
        return pending({ kind: "approval", prompt: `${name}?`, ...request });
      }
      runs.push(context);
      return `${name} done`;
    },
  });
  return Object.defineProperties(tool, {
    runs: { value: runs },
    asked: { get: () => asked },
  }) as AskingTool;
}

/** The request for which a run has stopped. */
export function requestOf(result: RunResult): PendingRequest {
  assert(result.pending, `it is ${result.status}`);
  return result.pending;
}

/** Yes to the request for which a run has stopped. */
export function yesTo(result: RunResult): { id: string; ok: true } {
  return { id: requestOf(result).id, ok: true };
}

/** The tool results of a transcript, in either style, as `<id>: <text>`. */
export function resultsOf(messages: readonly Message[] | null | undefined): string[] {
  return (messages ?? []).flatMap((message) => {
    if (message.role === "tool") return [`${message.tool_call_id}: ${textOf(message.content)}`];
    if (!Array.isArray(message.content)) return [];
    const blocks = message.content.filter(({ type }) => type === "tool_result");
    return blocks.map((block) => `${block.tool_use_id}: ${textOf(block.content)}`);
  });
}

function textOf(content: unknown): string {
  if (!Array.isArray(content)) return String(content);
  return content.map(({ text }: { text: string }) => text).join("");
}

/** The ids of the tool calls of a transcript, in either style. */
export function callIdsOf(messages: readonly Message[] | null | undefined): string[] {
  return (messages ?? []).flatMap(({ content, tool_calls: calls }) => {
    const blocks = Array.isArray(content) ? content.filter(({ type }) => type === "tool_use") : [];
    return [...Array.isArray(calls) ? calls : [], ...blocks].map(({ id }) => id);
  });
}

/** Checks that no request to the model had a mark of a suspension in it. */
export function assertNoMarkWasSent(server: StubLlm): void {
  for (const { text } of server.requests) {
    assert(!/"pending"|toolCallId|pnd-/.test(text), `a mark was sent: ${text}`);
  }
}

/** A store that several clients open, each as a process of its own would. */
export interface SharedStore extends AsyncDisposable {
  open(): Promise<ConversationStore>;
}

/** The stores of this package. In memory there is only one. */
export const STORES: Record<"memory" | "fs" | "kv", () => Promise<SharedStore>> = {
  memory() {
    const store = new InMemoryConversationStore();
    return Promise.resolve({
      open: () => Promise.resolve(store),
      [Symbol.asyncDispose]: () => Promise.resolve(),
    });
  },
  async fs() {
    const folder = await Deno.makeTempDir({ prefix: "toolnexus-suspension-" });
    return {
      open: () => Promise.resolve(new FsConversationStore(`${folder}/conversations`)),
      [Symbol.asyncDispose]: () => Deno.remove(folder, { recursive: true }),
    };
  },
  async kv() {
    const folder = await Deno.makeTempDir({ prefix: "toolnexus-suspension-" });
    const databases: Deno.Kv[] = [];
    return {
      async open() {
        const database = await Deno.openKv(`${folder}/conversations.db`);
        databases.push(database);
        return new KvConversationStore(database);
      },
      async [Symbol.asyncDispose]() {
        for (const database of databases) database.close();
        await Deno.remove(folder, { recursive: true });
      },
    };
  },
};
