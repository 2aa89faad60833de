/**
 * MCP servers that do what they should not, in every phase. With `TOOLNEXUS_MCP_TABLE=1` the tests
 * print what became of each: transport, phase, outcome, time, processes left.
 */
import { assert, assertEquals, assertRejects, assertStringIncludes } from "@std/assert";
import { connectMcp, listMcpTools, type McpServerConfig } from "@toolnexus/client/mcp";
import { loadClient } from "../src/sources/mcp_package.ts";
import { call, ourServer, processesWith, withWarnings } from "./fixtures/mcp/kit.ts";

// Loaded beforehand, so that no server's time is spent on it.
await loadClient();

/** The times of the servers for which a test waits until they have run out. */
const timeouts: Record<string, number> = {
  silent: 800,
  flood: 800,
  // Before its list does not come, the program has to start, on a busy machine too.
  "no-list": 2_000,
};
/** Nothing here may take longer than its time and this: much less than the 30 s of a server. */
const slack = 6_000;

/** A server of ours that misbehaves, marked so that its processes can be found. */
function bad(mode: string, options: { timeout?: number } = {}) {
  const mark = crypto.randomUUID();
  return { mark, server: { ...ourServer("misbehaving_server.ts", mode, mark), ...options } };
}

const noStart: [name: string, phase: string, reason: string, server: McpServerConfig | string][] = [
  ["a command that is not there", "start", "no-such-command", { command: "no-such-command" }],
  ["a working directory that is not there", "start", "nowhere", { command: "sh", cwd: "/nowhere" }],
  ["a program that ends at once", "initialize", "exit code 3, and said: cannot start", "no-start"],
  ["a program that answers nothing", "initialize", "no answer within 800 ms", "silent"],
  ["a flood of lines that are no messages", "initialize", "no answer within 800 ms", "flood"],
  ["a message without an end", "initialize", "longer than 16777216 bytes", "endless"],
  ["a list that never comes", "tools/list", "no answer within 2000 ms", "no-list"],
  ["a list without an end", "tools/list", "(1000)", "pages"],
];

for (const [name, phase, reason, given] of noStart) {
  Deno.test(`${name} fails that server alone, within its time`, async () => {
    const limitMs = timeouts[String(given)];
    const { mark, server } = typeof given === "string"
      ? bad(given, limitMs === undefined ? {} : { timeout: limitMs })
      : { mark: "no-such-mark", server: given };
    const good = bad("none");
    const started = performance.now();
    const { value: mcp, warnings } = await withWarnings(() =>
      connectMcp({ bad: server, good: good.server })
    );
    const elapsed = performance.now() - started;
    const { message } = mcp.errors()["bad"]!;
    assertEquals(mcp.status(), { bad: "failed", good: "connected" });
    assertStringIncludes(message, `MCP server bad failed at ${phase}: `);
    assertStringIncludes(message, reason);
    assertEquals(warnings, [message]);
    assert(elapsed < (limitMs ?? 0) + slack, `gave up after ${elapsed} ms`);
    assertEquals((await call(mcp, "good_work")).output, "worked");
    await mcp.close();
    const left = await processesWith(mark) + await processesWith(good.mark);
    assertEquals(left, 0);
    row("stdio", name, phase, "failed, the other one works", elapsed, left);
  });
}

for (
  const [mode, name] of [
    ["garbage", "lines that are no messages between those that are"],
    ["no-greeting", "a program that ends when it is greeted in the newest protocol"],
    ["unknown-unanswered", "a program that does not answer what it does not know"],
  ] as const
) {
  Deno.test(`${name} keeps nothing from working`, async () => {
    const { mark, server } = bad(mode, { timeout: 3_000 }); // a third of it for the greeting
    const started = performance.now();
    const mcp = await connectMcp({ it: server });
    const elapsed = performance.now() - started;
    assertEquals(mcp.errors(), {});
    assertEquals((await call(mcp, "it_work")).output, "worked");
    await mcp.close();
    const left = await processesWith(mark);
    assertEquals(left, 0);
    row("stdio", name, "initialize", "connected", elapsed, left);
  });
}

Deno.test("a call without an answer is an error result in time, and the next call works", async () => {
  const { mark, server } = bad("none");
  const mcp = await connectMcp({ it: server });
  const started = performance.now();
  const { isError, output } = await call(mcp, "it_wait", {}, { timeoutMs: 400 });
  const elapsed = performance.now() - started;
  assertEquals([isError, output], [
    true,
    "MCP server it, tool wait: no answer within 400 ms",
  ]);
  assert(elapsed < 400 + slack);
  assertEquals((await call(mcp, "it_work")).output, "worked");
  await mcp.close();
  const left = await processesWith(mark);
  assertEquals(left, 0);
  row("stdio", "a call without an answer", "tools/call", "error result", elapsed, left);
});

Deno.test("an aborted call is cancelled at the server, and the next call works", async () => {
  await using mcp = await connectMcp({ it: bad("none").server });
  const controller = new AbortController();
  const running = call(mcp, "it_wait", {}, { signal: controller.signal });
  await call(mcp, "it_work"); // the server has read what was sent before
  controller.abort(new Error("the user left"));
  const { isError, output } = await running;
  assertEquals([isError, output], [true, "MCP server it, tool wait: the user left"]);
  const methods = (await call(mcp, "it_methods")).output.split(" ");
  assertEquals(methods.slice(-2), ["notifications/cancelled", "tools/call"]);
  const aborted = AbortSignal.abort(new Error("too late"));
  assertStringIncludes((await call(mcp, "it_work", {}, { signal: aborted })).output, "too late");
});

Deno.test("progress gives a call its time anew", async () => {
  await using mcp = await connectMcp({ it: bad("none").server });
  const { output } = await call(mcp, "it_progress", {}, { timeoutMs: 900 });
  assertEquals(output, "at last", "it took 1000 ms");
});

Deno.test("a server that dies in a call says how, and is failed from then on", async () => {
  const { mark, server } = bad("none");
  const mcp = await connectMcp({ it: server, other: bad("none").server });
  const started = performance.now();
  const [died, waited] = await Promise.all([call(mcp, "it_die"), call(mcp, "it_wait")]);
  const elapsed = performance.now() - started;
  for (const { isError, output } of [died, waited]) {
    assertEquals(isError, true);
    assertStringIncludes(output, "the server ended with exit code 7");
    assertStringIncludes(output, "the disk is on fire");
  }
  assert(elapsed < slack, `told after ${elapsed} ms`);
  assertEquals(mcp.status(), { it: "failed", other: "connected" });
  assertStringIncludes((await call(mcp, "it_work")).output, "not connected");
  assertEquals((await call(mcp, "other_work")).output, "worked");
  await mcp.close();
  assertEquals(mcp.status(), { it: "failed", other: "disabled" });
  const left = await processesWith(mark);
  assertEquals(left, 0);
  row("stdio", "a program that dies", "tools/call", "error result, then failed", elapsed, left);
});

Deno.test("a result of five million characters is cut", async () => {
  await using mcp = await connectMcp({ it: bad("none").server });
  const { output } = await call(mcp, "it_huge");
  assertEquals(output.length, 100_000 + "\n[cut: 5000000 characters in all]".length);
});

Deno.test("closing ends a program, also one that will not end and one whose children will not", async () => {
  const closings = [
    ["none", "a program that ends with its input", 0],
    ["stubborn", "a program that ignores the end of its input and SIGTERM", 3_000],
    ["grandchild", "a program whose children ignore SIGTERM", 3_000],
  ] as const;
  await Promise.all(closings.map(async ([mode, name, graceMs]) => {
    const { mark, server } = bad(mode);
    const mcp = await connectMcp({ it: server });
    assertEquals((await call(mcp, "it_work")).output, "worked");
    assert(await processesWith(mark) >= (mode === "grandchild" ? 3 : 1));
    const started = performance.now();
    await Promise.all([mcp.close(), mcp.close()]);
    const elapsed = performance.now() - started;
    const left = await processesWith(mark);
    assertEquals(left, 0);
    assert(elapsed < graceMs + slack, `closed after ${elapsed} ms`);
    row("stdio", name, "close", "ended", elapsed, left);
  }));
});

Deno.test("a signal ends the whole load at once, and every program with it", async () => {
  const [silent, stubborn, good] = [bad("silent"), bad("stubborn"), bad("none")];
  const config = { silent: silent.server, stubborn: stubborn.server, good: good.server };
  for (const connect of [connectMcp, listMcpTools]) {
    const controller = new AbortController();
    const timer = setTimeout(() => controller.abort(new Error("changed my mind")), 300);
    const started = performance.now();
    await assertRejects(
      () => connect({ ...config }, { signal: controller.signal }),
      Error,
      "changed my mind",
    );
    const elapsed = performance.now() - started;
    clearTimeout(timer);
    assert(elapsed < 300 + slack, `rejected after ${elapsed} ms`);
    let left = 0;
    for (const { mark } of [silent, stubborn, good]) left += await processesWith(mark);
    assertEquals(left, 0);
    row("stdio", `${connect.name} is cancelled after 300 ms`, "any", "rejects", elapsed, left);
  }
  const aborted = AbortSignal.abort(new Error("never mind"));
  await assertRejects(() => connectMcp(config, { signal: aborted }), Error, "never mind");
});

Deno.test("what the configuration names as secret is in no error", async () => {
  const { server } = bad("no-start");
  // One of them is longer than what is told of a program's last words.
  for (const token of ["sesame-open", "sesame-" + "open".repeat(100)]) {
    const { value: mcp, warnings } = await withWarnings(() =>
      connectMcp({ it: { ...server, env: { TOOLNEXUS_TOKEN: token } } })
    );
    assertStringIncludes(mcp.errors()["it"]!.message, "TOKEN is [redacted]");
    assert(!warnings.join().includes("sesame"));
    await mcp.close();
  }
});

Deno.test("clearEnv gives a program its env alone, otherwise it inherits", async () => {
  const { server } = bad("none");
  await using mcp = await connectMcp({
    all: { ...server, env: { TOOLNEXUS_X: "1" } },
    few: { ...server, env: { TOOLNEXUS_X: "1", DENO_DIR: await denoDir() }, clearEnv: true },
  });
  const all = (await call(mcp, "all_environment")).output.split(" ");
  assert(all.includes("HOME") && all.includes("TOOLNEXUS_X"));
  const few = (await call(mcp, "few_environment")).output.split(" ");
  assert(few.includes("TOOLNEXUS_X") && !few.includes("HOME"), few.join());
});

/** Where the npm packages are, for a program that is not told by its environment. */
async function denoDir(): Promise<string> {
  const { stdout } = await new Deno.Command(Deno.execPath(), { args: ["info", "--json"] }).output();
  return JSON.parse(new TextDecoder().decode(stdout)).denoDir;
}

function row(...cells: [string, string, string, string, number, number]): void {
  if (!Deno.env.get("TOOLNEXUS_MCP_TABLE")) return;
  const texts = cells.map((cell) => typeof cell === "number" ? String(Math.round(cell)) : cell);
  console.log(`| ${texts.join(" | ")} |`);
}
