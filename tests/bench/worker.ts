// Measures one subject in a process of its own and prints one line of JSON: microseconds of CPU of
// all its threads, so that the collector and the compiler count too.
//
//   worker.ts <origin> <floor|memory|fs|kv> <calls|conversation|heap>

import process from "node:process";
import type { ConversationStore } from "../../mod.ts";
import { DELTAS } from "./server.ts";
import { client, floor, type Subject } from "./subjects.ts";

const [origin, name, part] = Deno.args as [string, string, string];
const TURNS = 300;
/** Conversations that go on in turns; a turn on a disk is long enough to be measured alone. */
const CONVERSATIONS = name === "fs" || name === "kv" ? 1 : 4;
const REMEMBERED = 500;

const folder = await Deno.makeTempDir({ prefix: "toolnexus-bench-" });
try {
  const subject = name === "floor" ? floor(origin) : await client(origin, await storeOf(name));
  const parts: Record<string, (subject: Subject) => Promise<Record<string, number>>> = {
    calls,
    conversation,
    heap,
  };
  console.log(JSON.stringify(await parts[part]!(subject)));
} finally {
  await Deno.remove(folder, { recursive: true });
}

async function storeOf(name: string): Promise<ConversationStore | undefined> {
  if (name === "fs") {
    const { FsConversationStore } = await import("../../stores/fs.ts");
    return new FsConversationStore(folder);
  }
  if (name === "kv") {
    const { KvConversationStore } = await import("../../stores/kv.ts");
    return new KvConversationStore(await Deno.openKv(`${folder}/kv`));
  }
  return undefined; // the client's own
}

async function calls(subject: Subject): Promise<Record<string, number>> {
  const stream = (scenario: "stream" | "packed") => async () => {
    let deltas = 0;
    await subject.stream(scenario, () => deltas++);
    if (name === "floor" && deltas !== DELTAS) throw new Error(`${deltas} deltas`);
  };
  return {
    once: await cpuOf(subject.once),
    once64: await cpuOf(subject.once, 64),
    tools: await cpuOf(subject.tools),
    tools64: await cpuOf(subject.tools, 64),
    stream: await cpuOf(stream("stream")) / DELTAS * 1_000,
    packed: await cpuOf(stream("packed")) / DELTAS * 1_000,
  };
}

async function conversation(subject: Subject): Promise<Record<string, number>> {
  const spent = new Map<number, number>();
  for (let turn = 1; turn <= TURNS; turn++) {
    const before = cpu();
    for (let id = 0; id < CONVERSATIONS; id++) await subject.ask(`id${id}`, promptOf(turn, id));
    spent.set(turn, (cpu() - before) / CONVERSATIONS);
  }
  const mean = (from: number, to: number) => {
    const values = [...spent].filter(([turn]) => turn >= from && turn <= to).map(([, us]) => us);
    return values.reduce((sum, value) => sum + value, 0) / values.length;
  };
  return { turn10: mean(6, 15), turn100: mean(96, 105), turn300: mean(291, 300) };
}

async function heap(subject: Subject): Promise<Record<string, number>> {
  const { gc } = globalThis as { gc?: () => void };
  if (gc === undefined) throw new Error("heap needs --v8-flags=--expose-gc");
  const used = () => {
    for (let times = 0; times < 3; times++) gc();
    const { heapUsed, external } = Deno.memoryUsage();
    return heapUsed + external;
  };
  const converse = async (id: string) => {
    for (let turn = 1; turn <= 10; turn++) await subject.ask(id, promptOf(turn, id));
  };
  for (let id = 0; id < 20; id++) await converse(`warm${id}`);
  const before = used();
  for (let id = 0; id < REMEMBERED; id++) await converse(`id${id}`);
  return { heap: (used() - before) / 1024 / REMEMBERED };
}

/** A kibibyte that no other prompt shares. */
function promptOf(turn: number, id: unknown): string {
  const start = new TextEncoder().encode(`Turn ${turn} of ${id}: go on with the story. `);
  const bytes = new Uint8Array(1024).fill(120);
  bytes.set(start);
  return new TextDecoder().decode(bytes);
}

async function cpuOf(run: () => Promise<unknown>, atOnce = 1): Promise<number> {
  await repeat(run, 300, atOnce);
  const before = cpu();
  const runs = await repeat(run, 600, atOnce);
  return (cpu() - before) / runs;
}

async function repeat(run: () => Promise<unknown>, ms: number, atOnce: number): Promise<number> {
  const end = performance.now() + ms;
  let runs = 0;
  await Promise.all(Array.from({ length: atOnce }, async () => {
    do {
      runs++;
      await run();
    } while (performance.now() < end);
  }));
  return runs;
}

function cpu(): number {
  const { user, system } = process.cpuUsage();
  return user + system;
}
