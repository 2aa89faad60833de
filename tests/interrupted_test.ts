/** Processes that are killed in the middle of a run, and what `resume({ id })` makes of it. */
import { assert, assertEquals, assertRejects } from "@std/assert";
import { fromFileUrl } from "@std/path";
import { type Answer, type Client, createClient, StaleAnswerError } from "../mod.ts";
import { refusalsOf, type StubLlm, stubLlm, type StubReply } from "../src/testing/mod.ts";
import { INTERRUPTED, resultsOf, yesTo } from "./approval_kit.ts";
import { calling } from "./client_kit.ts";
import { jobs, openStore, startedJobs } from "./fixtures/suspended_payments.ts";
import { Session } from "./session.ts";

type Checkpoint = "run" | "round";

/** Where a process is killed, and what it leaves with `checkpoint: "round"`. */
interface Kill {
  where: string;
  /** The model call that never ends, by the number of results that it is sent. */
  silentAt?: number;
  /** The tool that never ends, or the save after the tools. */
  stall?: string;
  /** The jobs that were started; with `checkpoint: "run"` the save comes after all of them. */
  started: string[];
  /** The results that the model is sent when the run goes on; none if nothing is recorded. */
  told: string[];
}

// The run that is asked for: mail, then log, then an answer.
const ASKED: Kill[] = [
  { where: "1st model call", silentAt: 0, started: [], told: [] },
  { where: "tool of round 1", stall: "mail", started: ["mail"], told: [`mail: ${INTERRUPTED}`] },
  { where: "save after tools", stall: "save", started: ["mail"], told: [`mail: ${INTERRUPTED}`] },
  { where: "2nd model call", silentAt: 1, started: ["mail"], told: ["mail: mail ran"] },
  {
    where: "tool of round 2",
    stall: "log",
    started: ["mail", "log"],
    told: ["mail: mail ran", `log: ${INTERRUPTED}`],
  },
];

// The run that is resumed: pay, which is approved, and mail, in one round; then an answer.
const RESUMED: Kill[] = [
  { where: "approved tool", stall: "pay", started: ["mail", "pay"], told: [`pay: ${INTERRUPTED}`] },
  {
    where: "save after tool",
    stall: "save",
    started: ["mail", "pay"],
    told: [`pay: ${INTERRUPTED}`],
  },
  { where: "2nd model call", silentAt: 2, started: ["mail", "pay"], told: ["pay: pay ran"] },
];

const HEAD = ["store", "checkpoint", "killed in", "recorded", "tools run", "resume({ id })"];

for (const kind of ["fs", "kv"]) {
  Deno.test(`kill -9 in a run on ${kind}: what was recorded is not run twice`, async () => {
    const rows = [HEAD];
    for (const checkpoint of ["round", "run"] as const) {
      for (const kill of ASKED) {
        rows.push(await inFolder((folder) => killAsk(folder, kind, checkpoint, kill)));
      }
    }
    console.log(tableOf(rows));
  });

  Deno.test(`kill -9 in a resumed run on ${kind}: the approved tool is not run twice`, async () => {
    const rows = [HEAD];
    for (const checkpoint of ["round", "run"] as const) {
      for (const kill of RESUMED) {
        rows.push(await inFolder((folder) => killResume(folder, kind, checkpoint, kill)));
      }
    }
    console.log(tableOf(rows));
  });
}

/** Asks in a process that is killed, goes on in this one, and gives a row of the table. */
async function killAsk(
  folder: string,
  kind: string,
  checkpoint: Checkpoint,
  kill: Kill,
): Promise<string[]> {
  await using model = modelOf(kill, [calling("mail"), calling("log"), "Done."]);
  await killed(model, { folder, kind, checkpoint, stall: kill.stall });
  const isLastSave = checkpoint === "run" && kill.stall === "save";
  const started = isLastSave ? ["mail", "log"] : kill.started;
  assertEquals(await startedJobs(folder), started);

  const { store, close } = await openStore(folder, kind);
  const client = clientOf(model.server, folder, checkpoint, store);
  const stored = await store.get("rent") ?? [];
  const told = checkpoint === "round" ? kill.told : [];
  let outcome: string;
  if (told.length === 0) {
    // Nothing is known of the run: it can be asked for again, and nothing else.
    assertEquals(stored, []);
    await assertRejects(() => client.resume({ id: "rent" }), StaleAnswerError);
    outcome = "stale_answer";
    const { status, text } = await client.ask("Pay the rent", { id: "rent" });
    assertEquals([status, text], ["done", "Done."]);
    assertEquals(await startedJobs(folder), [...started, "mail", "log"]);
  } else {
    const result = await client.resume({ id: "rent" });
    assertEquals([result.status, result.text], ["done", "Done."]);
    assertEquals(model.told()[0], told);
    const left = told.length === 1 ? ["log"] : [];
    assertEquals(await startedJobs(folder), [...started, ...left]);
    outcome = `done; told ${told.map(shortly).join(", ")}`;
    assertEquals(refusalsOf("openai", { model: "m", messages: result.messages }), []);
    assertEquals((await client.resume({ id: "rent" })).turns, 0);
  }
  close();
  return [kind, checkpoint, kill.where, recorded(stored), started.join(", "), outcome];
}

/** Suspends, resumes in a process that is killed, goes on in this one, and gives a row. */
async function killResume(
  folder: string,
  kind: string,
  checkpoint: Checkpoint,
  kill: Kill,
): Promise<string[]> {
  await using model = modelOf(kill, [calling("pay", "mail"), undefined, "Done."]);
  const before = await openStore(folder, kind);
  const asker = clientOf(model.server, folder, checkpoint, before.store);
  const answer = yesTo(await asker.ask("Pay the rent", { id: "rent" }));
  before.close();
  await killed(model, { folder, kind, checkpoint, stall: kill.stall, answer });
  assertEquals(await startedJobs(folder), kill.started);

  const { store, close } = await openStore(folder, kind);
  const client = clientOf(model.server, folder, checkpoint, store);
  const stored = await store.get("rent") ?? [];
  await assertRejects(() => client.resume({ id: "rent", answer }), StaleAnswerError);
  const result = await client.resume({ id: "rent" });
  assertEquals([result.status, result.text], ["done", "Done."]);
  // Without checkpoints the claim is all that is there.
  const told = checkpoint === "run" ? [`pay: ${INTERRUPTED}`] : kill.told;
  assertEquals(model.told()[0], [...told, "mail: mail ran"]);
  assertEquals(await startedJobs(folder), kill.started);
  close();
  const outcome = `done; told ${told.map(shortly).join(", ")}`;
  return [kind, checkpoint, kill.where, recorded(stored), kill.started.join(", "), outcome];
}

/** A model that answers by the number of results that it is sent, and is silent once. */
function modelOf(kill: Kill, replies: readonly (StubReply | undefined)[]) {
  const asked = Promise.withResolvers<void>();
  let isAlive = true;
  const requests: string[][] = [];
  const server = stubLlm(({ body }) => {
    const results = resultsOf(body.messages).map((line) => line.replace(/^c-/, ""));
    if (isAlive && results.length === kill.silentAt) {
      asked.resolve();
      return new Promise<never>(() => {});
    }
    if (!isAlive) requests.push(results);
    return replies[results.length]!;
  });
  return {
    server,
    asked: asked.promise,
    /** From here on it answers everything. */
    revive: () => isAlive = false,
    /** The results that each request has brought since then. */
    told: () => requests,
    [Symbol.asyncDispose]: () => server.close(),
  };
}

/** Runs the program until it is where it is to be killed, and kills it. */
async function killed(
  model: ReturnType<typeof modelOf>,
  options: { folder: string; stall: string | undefined; answer?: Answer } & Record<string, unknown>,
): Promise<void> {
  const { folder, stall } = options;
  const script = fromFileUrl(new URL("./fixtures/interrupted_run.ts", import.meta.url));
  const permissions = ["net=127.0.0.1", `read=${folder}`, `write=${folder}`];
  const flags = permissions.map((permission) => `--allow-${permission}`);
  const argument = JSON.stringify({ ...options, baseUrl: model.server.baseUrl });
  const command = ["run", "--quiet", "--no-prompt", "--unstable-kv", ...flags, script, argument];
  await using session = new Session([Deno.execPath(), ...command], {});
  await (stall === undefined ? model.asked : session.shows("stalled\n"));
  session.process.kill("SIGKILL");
  await session.ended();
  assertEquals((await session.process.status).signal, "SIGKILL");
  assert(!session.output.includes("ended"), session.output);
  assertEquals(session.errors, "");
  model.revive();
}

function clientOf(
  { baseUrl }: StubLlm,
  folder: string,
  checkpoint: Checkpoint,
  store: Awaited<ReturnType<typeof openStore>>["store"],
): Client {
  const toolkit = jobs(folder);
  return createClient({ baseUrl, style: "openai", model: "m", store, checkpoint, toolkit });
}

/** What a transcript holds of the run, in a word. */
function recorded(stored: readonly { role: string; content?: unknown }[]): string {
  const calls = stored.filter(({ role }) => role === "assistant").length;
  const results = stored.filter(({ role }) => role === "tool");
  const isClaimed = results.some(({ content }) => `${content}`.startsWith("resuming: "));
  if (isClaimed) return "the claim";
  if (calls === 0) return "nothing";
  return results.length >= calls ? `${calls} round(s)` : `${calls} round(s), the last one open`;
}

function shortly(result: string): string {
  return result.replace(/: interrupted.*/, " may not have run").replace(/^(\w+): \1 ran/, "$1 ran");
}

function tableOf(rows: string[][]): string {
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)));
  const lines = rows.map((row) => row.map((cell, column) => cell.padEnd(widths[column]!)));
  return lines.map((line) => line.join("  ").trimEnd()).join("\n");
}

async function inFolder<Result>(work: (folder: string) => Promise<Result>): Promise<Result> {
  const folder = await Deno.makeTempDir({ prefix: "toolnexus-interrupted-" });
  try {
    return await work(folder);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}
