/** Holds the import rules of the project: what may import what, and what may not be there at all. */
import { assert, assertEquals } from "@std/assert";
import { fromFileUrl, join, relative, toFileUrl } from "@std/path";

const root = fromFileUrl(new URL("..", import.meta.url));

/** The core, from the innermost to the outermost. */
const layers: readonly RegExp[] = [
  /^src\/(types|errors)\.ts$/,
  /^src\/(async_hooks|checks|conversation_id|environment|json|json_copy|messages|pending|scope|secrets)\.ts$/,
  /^src\/(hooks|memory_store|metrics|run_scope|tracer|usage)\.ts$/,
  /^src\/(wire|tools|transcript)\//,
  /^src\/(compactor|endpoint|options|queue|round|run|tracing|transaction|trim_turns)\.ts$/,
  /^src\/(beginning|loop|tool_round)\.ts$/,
  /^src\/(execution|run_stream|translate)\.ts$/,
  /^src\/(client|in_process)\.ts$/,
  /^mod\.ts$/,
];

/** What a third party could have written: it sees `mod.ts` alone. */
const addOns = ["stores/", "src/sources/", "src/ui/", "src/testing/"];

const longest = 420;

/** The files each file imports, types included, as paths from the root. */
type Graph = ReadonlyMap<string, readonly string[]>;

interface Module {
  specifier: string;
  kind?: string;
  error?: string;
  dependencies?: { code?: { specifier?: string }; type?: { specifier?: string } }[];
}

Deno.test("mod.ts pulls in no remote, npm or node module", async () => {
  const modules = await moduleGraph(join(root, "mod.ts"));
  const foreign = modules.filter((module) => !module.specifier.startsWith(toFileUrl(root).href));
  assertEquals(foreign.map((module) => module.specifier), []);
});

Deno.test("mod.ts pulls in no store, source, browser stream or test kit", async () => {
  const graph = toGraph(await moduleGraph(join(root, "mod.ts")));
  assertEquals([...graph.keys()].filter(isAddOn), []);
});

Deno.test("mod.ts type-checks where there are web APIs alone", async () => {
  const config = await Deno.makeTempFile({ suffix: ".json" });
  try {
    const compilerOptions = { strict: true, lib: ["esnext", "dom", "dom.asynciterable"] };
    await Deno.writeTextFile(config, JSON.stringify({ compilerOptions, lock: false }));
    await deno("check", "--quiet", "--config", config, join(root, "mod.ts"));
  } finally {
    await Deno.remove(config);
  }
});

Deno.test("each file of the core stands in one layer", async () => {
  const core = (await sourceFiles()).filter((file) =>
    /^(src\/|mod\.ts)/.test(file) && !isAddOn(file)
  );
  const layersOf = (file: string) => layers.filter((layer) => layer.test(file)).length;
  assertEquals(core.filter((file) => layersOf(file) !== 1), []);
});

Deno.test("imports run one way, from the client down to the types", async () => {
  assertEquals(upwardImports(await projectGraph()), []);
});

Deno.test("types and errors import nothing but each other", async () => {
  const graph = await projectGraph();
  const innermost = [...graph.keys()].filter((file) => layerOf(file) === 0);
  const outside = innermost.flatMap((file) => (graph.get(file) ?? []).filter(layerOf));
  assertEquals(outside, []);
});

Deno.test("no file imports itself round a corner", async () => {
  assertEquals(cycles(await projectGraph()), []);
});

Deno.test("stores, sources, browser streams and the test kit see mod.ts alone", async () => {
  assertEquals(importsPastTheFront(await projectGraph()), []);
});

Deno.test("the core names neither Deno nor a node module", async () => {
  const found: string[] = [];
  for (const file of await sourceFiles()) {
    if (!isCore(file)) continue;
    for (const name of platformNames(file, await Deno.readTextFile(join(root, file)))) {
      found.push(`${file}: ${name}`);
    }
  }
  assertEquals(found, []);
});

Deno.test(`no file is longer than ${longest} lines`, async () => {
  const files = await sourceFiles();
  assert(files.includes("mod.ts"), "the walk found no mod.ts");
  const lengths = await Promise.all(files.map(async (file) => {
    const text = await Deno.readTextFile(join(root, file));
    return { file, lines: text.split("\n").length - 1 };
  }));
  assertEquals(lengths.filter(({ lines }) => lines > longest), []);
});

Deno.test("each of these rules sees a breach", () => {
  const graph: Graph = new Map([
    ["src/wire/openai.ts", ["src/helper.ts"]],
    ["src/helper.ts", ["src/loop.ts"]],
    ["src/loop.ts", ["src/types.ts", "src/helper.ts"]],
    ["stores/fs.ts", ["mod.ts", "stores/files.ts", "src/types.ts"]],
    ["mod.ts", ["src/client.ts"]],
  ]);
  assertEquals(upwardImports(graph), ["src/wire/openai.ts reaches src/loop.ts"]);
  assertEquals(cycles(graph), ["src/helper.ts → src/loop.ts → src/helper.ts"]);
  assertEquals(importsPastTheFront(graph), ["stores/fs.ts imports src/types.ts"]);
  assertEquals(
    platformNames(
      "core.ts",
      `import "node:fs"; globalThis.Deno?.args; // Deno.args
       globalThis.process?.getBuiltinModule?.("node:async_hooks");`,
    ),
    ["node:fs", "Deno"],
  );
});

/** `a reaches b` for every two files of which the inner one depends, over any path, on the outer. */
function upwardImports(graph: Graph): string[] {
  return [...graph.keys()].flatMap((file) => {
    const layer = layerOf(file);
    if (layer < 0) return [];
    return [...reachable(graph, file)]
      .filter((other) => layerOf(other) > layer)
      .map((other) => `${file} reaches ${other}`);
  });
}

function cycles(graph: Graph): string[] {
  const found: string[] = [];
  const done = new Set<string>();
  const visit = (file: string, path: readonly string[]): void => {
    const start = path.indexOf(file);
    if (start >= 0) found.push([...path.slice(start), file].join(" → "));
    if (start >= 0 || done.has(file)) return;
    for (const next of graph.get(file) ?? []) visit(next, [...path, file]);
    done.add(file);
  };
  for (const file of graph.keys()) visit(file, []);
  return found;
}

function importsPastTheFront(graph: Graph): string[] {
  return [...graph].filter(([file]) => isAddOn(file)).flatMap(([file, imports]) => {
    const home = addOns.find((folder) => file.startsWith(folder)) ?? "";
    return imports
      .filter((other) => other !== "mod.ts" && !other.startsWith(home))
      .map((other) => `${file} imports ${other}`);
  });
}

/** Where the code (comments do not count) names `Deno`, or a node module other than by asking for it. */
function platformNames(file: string, source: string): string[] {
  const plugin: Deno.lint.Plugin = {
    name: "core",
    rules: {
      "web-only": {
        create: (context) => ({
          Identifier(node) {
            if (node.name === "Deno") context.report({ node, message: node.name });
          },
          Literal(node) {
            const asked = node.parent.type === "CallExpression";
            if (typeof node.value === "string" && node.value.startsWith("node:") && !asked) {
              context.report({ node, message: node.value });
            }
          },
        }),
      },
    },
  };
  return Deno.lint.runPlugin(plugin, file, source).map((diagnostic) => diagnostic.message);
}

function layerOf(file: string): number {
  return layers.findIndex((layer) => layer.test(file));
}

function isAddOn(file: string): boolean {
  return addOns.some((folder) => file.startsWith(folder));
}

function isCore(file: string): boolean {
  return file === "mod.ts" || file.startsWith("src/") && !isAddOn(file);
}

function reachable(graph: Graph, from: string): Set<string> {
  const seen = new Set<string>();
  const waiting = [...graph.get(from) ?? []];
  for (let file = waiting.pop(); file !== undefined; file = waiting.pop()) {
    if (seen.has(file)) continue;
    seen.add(file);
    waiting.push(...graph.get(file) ?? []);
  }
  return seen;
}

/** The graph of everything that is published. */
async function projectGraph(): Promise<Graph> {
  const entry = await Deno.makeTempFile({ suffix: ".ts" });
  try {
    const published = (await sourceFiles()).filter((file) => !file.startsWith("examples/"));
    const lines = published.map((file) => `import "${toFileUrl(join(root, file)).href}";`);
    await Deno.writeTextFile(entry, lines.join("\n"));
    const graph = toGraph(await moduleGraph(entry));
    for (const file of published) assert(graph.has(file), `${file} is not in the module graph`);
    return graph;
  } finally {
    await Deno.remove(entry);
  }
}

function toGraph(modules: readonly Module[]): Graph {
  const graph = new Map<string, string[]>();
  for (const module of modules) {
    const file = inProject(module.specifier);
    if (file === undefined) continue;
    const imports = (module.dependencies ?? [])
      .flatMap(({ code, type }) => [code?.specifier, type?.specifier])
      .flatMap((specifier) => inProject(specifier) ?? []);
    graph.set(file, [...new Set(imports)]);
  }
  return graph;
}

/** The path from the root; undefined for what lies elsewhere, as the stand-ins for `@std` do. */
function inProject(specifier: string | undefined): string | undefined {
  if (!specifier?.startsWith(toFileUrl(root).href)) return undefined;
  const file = relative(root, fromFileUrl(specifier)).replaceAll("\\", "/");
  return file.startsWith("tests/links/") ? undefined : file;
}

async function moduleGraph(entry: string): Promise<Module[]> {
  const output = await deno("info", "--json", "--config", join(root, "deno.json"), entry);
  const { modules }: { modules: Module[] } = JSON.parse(output);
  for (const module of modules) assert(!module.error, module.error);
  return modules;
}

async function deno(...args: string[]): Promise<string> {
  const command = new Deno.Command(Deno.execPath(), { args, cwd: root, env: { NO_COLOR: "1" } });
  const { success, stdout, stderr } = await command.output();
  assert(success, new TextDecoder().decode(stderr));
  return new TextDecoder().decode(stdout);
}

async function sourceFiles(): Promise<string[]> {
  const files: string[] = ["mod.ts"];
  for (const folder of ["src", "stores", "examples"]) await collect(folder, files);
  return files;
}

async function collect(folder: string, files: string[]): Promise<void> {
  for await (const entry of entries(join(root, folder))) {
    const path = `${folder}/${entry.name}`;
    if (entry.isDirectory) await collect(path, files);
    else if (path.endsWith(".ts")) files.push(path);
  }
}

async function* entries(path: string): AsyncGenerator<Deno.DirEntry> {
  try {
    yield* Deno.readDir(path);
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
}
