/** The KV store among processes on one database file: several writers, and writers that are killed. */
import { assert, assertEquals } from "@std/assert";
import { KvConversationStore } from "../stores/kv.ts";
import { transcript } from "./fixtures/kv_save_loop.ts";
import { rowsOf, withFile } from "./fixtures/kv_wrapper.ts";
import { fourWriters, killed, type Kills, twoHundredKills } from "./fixtures/processes.ts";

Deno.test("four processes append 250 messages each to one conversation: all 1,000 are kept", async () => {
  await withFile(async (path) => {
    using kv = await Deno.openKv(path);
    const store = new KvConversationStore(kv);
    await fourWriters(store, "one/chat", "kv_append", folderOf(path));
    assertEquals((await rowsOf(kv, ["toolnexus", "head"])).length, 1);
  });
});

Deno.test("200 kills at random instants: the old or the new transcript, nothing acknowledged lost", async () => {
  const lane = (totals: Kills) =>
    withFile(async (path) => {
      for (let turn = 0; turn < 50; turn++) await killOnce(path, `chat ${turn % 2}`, totals);
    });
  await twoHundredKills([lane, lane, lane, lane]);
});

/** Runs a program that saves without end, kills it, and checks what it left. */
async function killOnce(path: string, id: string, totals: Kills): Promise<void> {
  const acknowledged = (await killed("kv_save_loop", [folderOf(path), id], 30)).map(Number);
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
