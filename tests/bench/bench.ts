// What this client costs beside a hand-written loop over `fetch`, the floor. The model is another
// process. Every figure is the median of interleaved rounds: compare ratios, not microseconds.
//
//   deno task bench

import { fromFileUrl } from "@std/path";

const ROUNDS = 3;
const COLD_STARTS = 8;
const here = fromFileUrl(new URL(".", import.meta.url));

/** What is measured, in the order of the table; a target is a ratio, or a figure with its unit. */
const ROWS: readonly [key: string, what: string, target: string][] = [
  ["once", "one call, µs", "1.1"],
  ["once64", "one call, 64 at once, µs", ""],
  ["tools", "a run with two tools, µs", "1.1"],
  ["tools64", "a run with two tools, 64 at once, µs", "1.15"],
  ["stream", "1,000 deltas, one chunk each, µs", "0.3"],
  ["packed", "1,000 deltas in 16 KiB chunks, µs", "1.0"],
  ["turn10 memory", "turn 10 of a conversation, memory, µs", ""],
  ["turn100 memory", "turn 100, memory, µs", ""],
  ["turn300 memory", "turn 300, memory, µs", "0.8"],
  ["turn300 fs", "turn 300, files, µs", ""],
  ["turn300 kv", "turn 300, Deno KV, µs", ""],
  ["cold", "cold start to the first answer, ms", "1.15"],
  ["heap", "heap of a conversation of 20 KiB, KiB", "24 KiB"],
  ["edge", "minimal edge handler, minified, KiB", ""],
  ["gzip", "the same, gzip, KiB", "12 KiB"],
];

const samples = new Map<string, { floor: number[]; client: number[] }>();

const started = performance.now();
await using server = await startServer();
for (let round = 1; round <= ROUNDS; round++) {
  // Who goes first has a cooler machine.
  for (const name of round % 2 === 1 ? ["floor", "memory"] : ["memory", "floor"]) {
    console.error(`round ${round} of ${ROUNDS}: ${name}`);
    note(name, "", await worker(name, "calls"));
    note(name, " memory", await worker(name, "conversation"));
  }
  for (const name of ["fs", "kv"]) {
    const { turn300 } = await worker(name, "conversation");
    note(name, ` ${name}`, { turn300: turn300! });
  }
}
for (const name of ["floor", "memory"]) note(name, "", await worker(name, "heap"));
for (const name of ["floor", "client"]) await coldStart(name); // fills the caches
for (let round = 0; round < COLD_STARTS; round++) {
  for (const name of ["floor", "client"]) note(name, "", { cold: await coldStart(name) });
}
note("client", "", await bundle());
printTable();
const { modules } = await graph();
console.log(
  `\nmod.ts: ${modules.length} modules of its own, ${
    Math.round(modules.reduce((sum, { size }) => sum + size, 0) / 1024)
  } KiB of source; ${((performance.now() - started) / 1000).toFixed(0)} s`,
);

function note(name: string, suffix: string, figures: Record<string, number>): void {
  for (const [key, value] of Object.entries(figures)) {
    const entry = samples.get(key + suffix) ?? { floor: [], client: [] };
    samples.set(key + suffix, entry);
    entry[name === "floor" ? "floor" : "client"].push(value);
  }
}

function printTable(): void {
  const rows = [["", "floor", "this client", "ratio", "target"]];
  for (const [key, what, target] of ROWS) {
    const entry = samples.get(key);
    if (entry === undefined) throw new Error(`${key} was not measured`);
    // The stores have no floor of their own: theirs is the transcript in a Map.
    const floors = entry.floor.length > 0
      ? entry.floor
      : samples.get(`${key.split(" ")[0]} memory`)?.floor ?? [];
    const floor = median(floors), client = median(entry.client);
    const ratio = Number.isNaN(floor) ? "" : (client / floor).toFixed(2);
    rows.push([what, shown(floor), shown(client), ratio, target && `≤ ${target}`]);
  }
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)));
  const line = (row: readonly string[]) =>
    `| ${
      row.map((cell, column) =>
        column === 0 ? cell.padEnd(widths[0]!) : cell.padStart(widths[column]!)
      ).join(" | ")
    } |`;
  rows.splice(
    1,
    0,
    widths.map((width, column) =>
      "-".repeat(column === 0 ? width : width - 1) + (column === 0 ? "" : ":")
    ),
  );
  for (const row of rows) console.log(line(row));
}

function shown(value: number): string {
  if (Number.isNaN(value)) return "";
  return value >= 100 ? value.toFixed(0) : value.toFixed(1);
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  if (sorted.length % 2 === 1) return sorted[middle]!;
  return (sorted[middle - 1]! + sorted[middle]!) / 2;
}

async function startServer(): Promise<{ origin: string } & AsyncDisposable> {
  const process = new Deno.Command(Deno.execPath(), {
    args: ["run", "--no-lock", "--allow-net=127.0.0.1", `${here}server.ts`],
    stdin: "piped",
    stdout: "piped",
  }).spawn();
  const reader = process.stdout.pipeThrough(new TextDecoderStream()).getReader();
  const { value = "" } = await reader.read();
  if (!value.startsWith("http")) throw new Error(`the server did not start: ${value}`);
  return {
    origin: value.trim(),
    async [Symbol.asyncDispose](): Promise<void> {
      await reader.cancel();
      await process.stdin.close();
      await process.status;
    },
  };
}

async function worker(name: string, part: string): Promise<Record<string, number>> {
  const output = await deno(
    ...["run", "--no-lock", "--unstable-kv", "-A", "--v8-flags=--expose-gc"],
    ...[`${here}worker.ts`, server.origin, name, part],
  );
  return JSON.parse(output);
}

async function coldStart(name: string): Promise<number> {
  const before = performance.now();
  const script = `${here}cold.ts`;
  await deno("run", "--no-lock", "--allow-net=127.0.0.1", script, server.origin, name);
  return performance.now() - before;
}

async function bundle(): Promise<Record<string, number>> {
  const code = await deno(
    ...["run", "--no-config", "--no-lock", "-A", "npm:esbuild@0.28.2", `${here}edge.ts`],
    ...["--bundle", "--minify", "--format=esm", "--platform=browser", "--log-level=error"],
  );
  const bytes = new Blob([code]);
  const gzip = await new Response(bytes.stream().pipeThrough(new CompressionStream("gzip"))).blob();
  return { edge: bytes.size / 1024, gzip: gzip.size / 1024 };
}

async function graph(): Promise<{ modules: { size: number }[] }> {
  return JSON.parse(await deno("info", "--json", "--no-lock", `${here}../../mod.ts`));
}

async function deno(...args: string[]): Promise<string> {
  const command = new Deno.Command(Deno.execPath(), { args, env: { NO_COLOR: "1" } });
  const { success, stdout, stderr } = await command.output();
  const text = new TextDecoder();
  if (!success) throw new Error(`deno ${args.join(" ")}: ${text.decode(stderr)}`);
  return text.decode(stdout);
}
