/** Two processes answer one request at once: the tool runs once, and the other is told. */
import { assertEquals, assertGreater } from "@std/assert";
import { fromFileUrl } from "@std/path";
import { createClient } from "../mod.ts";
import { stubLlm } from "../src/testing/mod.ts";
import { resultsOf, STYLES, yesTo } from "./approval_kit.ts";
import { openStore, payments, payTool } from "./fixtures/suspended_payments.ts";
import { Session } from "./session.ts";

const RACES = 100;

for (const kind of ["fs", "kv"]) {
  Deno.test(`100 races of two processes on ${kind}: 100 runs, and the loser is always told`, async () => {
    const folder = await Deno.makeTempDir({ prefix: "toolnexus-race-" });
    try {
      await race(folder, kind);
    } finally {
      await Deno.remove(folder, { recursive: true });
    }
  });
}

async function race(folder: string, kind: string): Promise<void> {
  await using server = stubLlm(({ body }) =>
    resultsOf(body.messages).length > 0 ? "Paid." : { toolCalls: [{ name: "pay" }] }
  );
  const { baseUrl } = server;
  const { store, close } = await openStore(folder, kind);
  const started = performance.now();
  const requests = [];
  for (let number = 0; number < RACES; number++) {
    const id = `rent/${number}`;
    const style = STYLES[number % 2]!;
    const toolkit = [payTool(folder, "nobody")];
    const client = createClient({ baseUrl, style, model: "m", store, toolkit });
    const answer = yesTo(await client.ask("Pay the rent", { id }));
    // Half of them are resumed in the other style.
    requests.push({ id, answer, style: STYLES[(number >> 1) % 2]! });
  }
  const racing = performance.now();

  await using ann = racer(folder, kind, baseUrl, "ann");
  await using bob = racer(folder, kind, baseUrl, "bob");
  const racers = [ann, bob];
  await Promise.all(racers.map((racer) => racer.shows("ready\n")));
  for (const [number, request] of requests.entries()) {
    await Promise.all(racers.map((racer) => racer.type(JSON.stringify(request) + "\n")));
    await Promise.all(racers.map((racer) => racer.shows(new RegExp(`(.*\n){${number + 2}}`))));
  }
  await Promise.all(racers.map((racer) => racer.endOfInput()));
  assertEquals(await Promise.all(racers.map((racer) => racer.ended())), [0, 0]);

  const [byAnn, byBob] = racers.map(({ output }) => output.trimEnd().split("\n").slice(1));
  const conflicts = [byAnn!.pop()!, byBob!.pop()!].map((line) => Number(line.split(" ")[1]));
  const wins = [byAnn!, byBob!].map((outcomes) => outcomes.filter((one) => one === "won").length);
  const paid = await payments(folder);
  console.log(
    `${kind}: ${RACES} races, ${paid.length} runs, wins ${wins.join(" + ")}, ` +
      `lost at the claim ${conflicts.join(" + ")}, ` +
      `${seconds(started, racing)} to suspend, ${seconds(racing)} to race`,
  );
  const pairs = byAnn!.map((outcome, number) => [outcome, byBob![number]].toSorted());
  assertEquals(pairs, Array(RACES).fill(["stale_answer", "won"]));
  assertEquals(
    paid.map((line) => line.split(" ")[0]).toSorted(),
    requests.map(({ id }) => id).toSorted(),
  );
  // Else they were never at it at once.
  assertGreater(conflicts[0]! + conflicts[1]!, 0);

  for (const { id } of requests) {
    const messages = await store.get(id) ?? [];
    assertEquals(messages.length, 4);
    assertEquals(resultsOf(messages).map((line) => line.split(": ")[1]), ["paid"]);
  }
  // One request to suspend, one by the winner: the loser asked for nothing.
  assertEquals(server.requests.length, 2 * RACES);
  close();
}

/** A process that takes part in races. */
function racer(folder: string, kind: string, baseUrl: string, name: string): Session {
  const script = fromFileUrl(new URL("./fixtures/resume_race.ts", import.meta.url));
  const permissions = ["net=127.0.0.1", `read=${folder}`, `write=${folder}`];
  const flags = permissions.map((permission) => `--allow-${permission}`);
  const args = [script, folder, kind, baseUrl, name];
  return new Session(
    [Deno.execPath(), "run", "--quiet", "--no-prompt", "--unstable-kv", ...flags, ...args],
    {},
  );
}

function seconds(from: number, to: number = performance.now()): string {
  return `${((to - from) / 1_000).toFixed(1)} s`;
}
