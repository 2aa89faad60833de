/** The KV store among processes on one database file: several writers, and writers that are killed. */
import { assert, assertEquals, assertGreater } from "@std/assert";
import { KvConversationStore } from "../stores/kv.ts";
import { lostOf } from "./fixtures/append.ts";
import { program, run } from "./fixtures/fs_folder.ts";
import { transcript } from "./fixtures/kv_save_loop.ts";
import { rowsOf, withFile } from "./fixtures/kv_wrapper.ts";

Deno.test("four processes append 250 messages each to one conversation: all 1,000 are kept", async () => {
  await withFile(async (path) => {
    const writers = ["anna", "bert", "cleo", "dana"];
    const start = performance.now();
    const conflicts = await Promise.all(
      writers.map((writer) => run("kv_append", [folderOf(path), "one/chat", writer, "250"])),
    );
    console.log(
      `4 × 250 appends: ${seconds(start)}, conflicts ${conflicts.map((text) => text.trim())}`,
    );
    using kv = await Deno.openKv(path);
    const messages = await new KvConversationStore(kv).get("one/chat");
    assertEquals(lostOf(messages, writers, 250), []);
    assertEquals((await rowsOf(kv, ["toolnexus", "head"])).length, 1);
  });
});

Deno.test("200 kills at random instants: the old or the new transcript, nothing acknowledged lost", async () => {
  const start = performance.now();
  const totals = { kills: 0, saves: 0, unacknowledged: 0, leftovers: 0 };
  const lane = () =>
    withFile(async (path) => {
      for (let turn = 0; turn < 50; turn++) await killOnce(path, `chat ${turn % 2}`, totals);
    });
  await Promise.all([lane(), lane(), lane(), lane()]);
  console.log(`kill -9: ${seconds(start)}, ${JSON.stringify(totals)}`);
  assertEquals(totals.kills, 200);
  // Else the kills did not hit what this is about.
  assertGreater(totals.leftovers, 0);
});

/** Runs a program that saves without end, kills it, and checks what it left. */
async function killOnce(
  path: string,
  id: string,
  totals: { kills: number; saves: number; unacknowledged: number; leftovers: number },
): Promise<void> {
  const child = program("kv_save_loop", [folderOf(path), id]).spawn();
  const errors = new Response(child.stderr).text();
  let printed = "";
  let timer: ReturnType<typeof setTimeout> | undefined;
  for await (const text of child.stdout.pipeThrough(new TextDecoderStream())) {
    printed += text;
    timer ??= setTimeout(() => child.kill("SIGKILL"), 30 * Math.random());
  }
  clearTimeout(timer);
  assertEquals([(await child.status).signal, await errors], ["SIGKILL", ""]);

  const acknowledged = printed.trim().split("\n").map(Number);
  using kv = await Deno.openKv(path);
  const store = new KvConversationStore(kv);
  const messages = await store.get(id) ?? [];
  const last = parseInt(String(messages.at(-1)?.content));
  const unacknowledged = last - (acknowledged.at(-1) ?? NaN);
  assert(unacknowledged === 0 || unacknowledged === 1, `${last} after ${acknowledged.at(-1)}`);
  assert(JSON.stringify(messages) === JSON.stringify(transcript(last)), `torn at save ${last}`);
  totals.kills++;
  totals.saves += acknowledged.length + unacknowledged;
  totals.unacknowledged += unacknowledged;

  if (await store.sweep({ graceMs: 0 }) > 0) totals.leftovers++;
  assertEquals((await rowsOf(kv)).length, await rowsOfLive(kv));
}

/** The number of rows that heads speak of, and of heads. */
async function rowsOfLive(kv: Deno.Kv): Promise<number> {
  const decoder = new TextDecoder();
  const heads = await rowsOf(kv, ["toolnexus", "head"]);
  return heads.reduce(
    (sum, { value }) => sum + 1 + JSON.parse(decoder.decode(value as Uint8Array)).chunks,
    0,
  );
}

function folderOf(path: string): string {
  return path.slice(0, path.lastIndexOf("/"));
}

function seconds(start: number): string {
  return `${((performance.now() - start) / 1_000).toFixed(1)} s`;
}
