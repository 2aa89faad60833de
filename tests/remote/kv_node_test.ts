/**
 * The KV store on Node with the npm package `@deno/kv`, on the database files that Deno uses. Needs
 * `node` and `npm`, and the network for what it installs into a folder of its own.
 */
import { assertEquals } from "@std/assert";
import { fromFileUrl } from "@std/path";
import { KvConversationStore } from "../../stores/kv.ts";
import { lostOf } from "../fixtures/append.ts";
import { run } from "../fixtures/processes.ts";
import { transcript } from "../fixtures/kv_save_loop.ts";

const packages = ["@deno/kv@0.14.0", "esbuild@0.25.12"];
const version = await output("node", ["--version"]).catch(() => undefined);

Deno.test({
  name: version
    ? `the KV store on Node ${version.trim()}`
    : "the KV store on Node (not run: no node here)",
  ignore: version === undefined,
  fn: async (t) => {
    const directory = await Deno.makeTempDir();
    const path = `${directory}/test.kv`;
    const onNode = (call: string) =>
      output("node", [
        "--input-type=module",
        "--eval",
        `import { openKv } from "@deno/kv";
         import { appendBoth, contract, exchange } from "./bundle.mjs";
         console.log(await ${call});
         process.exit(0);`,
      ], directory);

    try {
      await t.step("is bundled", async () => {
        const start = performance.now();
        const flags = ["--no-audit", "--no-fund", "--silent", "--prefix", directory];
        await output("npm", ["install", ...flags, ...packages], directory);
        const installed = performance.now();
        await output("node_modules/.bin/esbuild", [
          fromFileUrl(new URL("../fixtures/kv_on_node.ts", import.meta.url)),
          "--bundle",
          "--format=esm",
          "--platform=neutral",
          "--target=node20",
          "--outfile=bundle.mjs",
          "--log-level=error",
        ], directory);
        const seconds = (ms: number) => `${(ms / 1000).toFixed(1)} s`;
        console.log(
          `install ${seconds(installed - start)}, bundle ${seconds(performance.now() - installed)}`,
        );
      });

      await t.step("reads what Deno wrote, and Deno what it wrote", async () => {
        using kv = await Deno.openKv(path);
        const store = new KvConversationStore(kv);
        await store.save("from deno", transcript(12), []);
        await store.save("from deno", transcript(13), transcript(12));
        assertEquals((await onNode(`exchange(openKv, ${JSON.stringify(path)})`)).trim(), "whole");
        const sameAs = async (id: string, number: number) =>
          JSON.stringify(await store.get(id)) === JSON.stringify(transcript(number));
        assertEquals([await sameAs("from deno", 14), await sameAs("from node", 5)], [true, true]);
      });

      await t.step("and Deno append to one conversation, and no message is lost", async () => {
        const start = performance.now();
        await Promise.all([
          run("kv_append", [directory, "both", "deno", "200"]),
          run("kv_append", [directory, "both", "other", "200"]),
          onNode(`appendBoth(openKv, ${JSON.stringify(path)}, 200)`),
        ]);
        using kv = await Deno.openKv(path);
        const messages = await new KvConversationStore(kv).get("both");
        assertEquals(lostOf(messages, ["deno", "other", "node"], 200), []);
        console.log(`3 × 200 appends: ${((performance.now() - start) / 1000).toFixed(1)} s`);
      });

      await t.step("keeps the contract", async () => {
        const result = await onNode(`contract(openKv, ${JSON.stringify(`${directory}/contract`)})`);
        const { cases, failed } = JSON.parse(result);
        console.log(`${cases} cases`);
        assertEquals(failed, []);
      });
    } finally {
      await Deno.remove(directory, { recursive: true });
    }
  },
});

async function output(command: string, args: string[], cwd?: string): Promise<string> {
  const options = { args, stdout: "piped", stderr: "piped" } as const;
  const result = await new Deno.Command(command, cwd ? { ...options, cwd } : options).output();
  const decoder = new TextDecoder();
  if (!result.success) throw new Error(`${command} failed: ${decoder.decode(result.stderr)}`);
  return decoder.decode(result.stdout);
}
