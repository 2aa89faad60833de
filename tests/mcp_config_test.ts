/** The configuration of MCP servers, what is refused in it, and what needs no server to be shown. */
import { assert, assertEquals, assertMatch, assertRejects, assertThrows } from "@std/assert";
import {
  answerToElicitResult,
  connectMcp,
  elicitationToRequest,
  type McpServerConfig,
  parseMcpConfig,
} from "@toolnexus/client/mcp";
import { fromFileUrl, join } from "@std/path";
import { call, ourServer, processesWith, withWarnings } from "./fixtures/mcp/kit.ts";

const servers = {
  files: { command: "npx", args: ["-y", "some-server"], env: { DEBUG: "1" } },
  docs: { url: "https://docs.example/mcp", headers: { authorization: "Bearer x" }, timeout: 5_000 },
};

Deno.test("mcpServers, servers, mcp and a bare object are the same", () => {
  for (const config of [{ mcpServers: servers }, { servers }, { mcp: servers }, servers]) {
    assertEquals(parseMcpConfig(config), servers);
    assertEquals(parseMcpConfig(JSON.stringify(config)), servers);
  }
  const mixed = { ...servers, builtins: true, agents: {}, a2a: {}, mcpServer: {} };
  assertEquals(parseMcpConfig(mixed), servers, "what other ports keep beside them is no server");
  assertEquals(parseMcpConfig({ mcpServers: {} }), {});
});

Deno.test("a configuration is read from a file by path or URL", async () => {
  const file = await Deno.makeTempFile({ suffix: ".json" });
  await Deno.writeTextFile(file, JSON.stringify({ mcpServers: servers }));
  assertEquals(parseMcpConfig(file), servers);
  assertEquals(parseMcpConfig(new URL(`file://${file}`)), servers);
  await Deno.remove(file);
  assertThrows(() => parseMcpConfig(file), Deno.errors.NotFound);
  assertThrows(() => parseMcpConfig("{ not JSON"), SyntaxError);
});

Deno.test("every spelling of a server is accepted", () => {
  const spellings: McpServerConfig[] = [
    { type: "local", command: ["npx", "-y", "x"] },
    { type: "stdio", command: "npx", args: ["-y", "x"], environment: { A: "1" }, cwd: "/" },
    { type: "remote", url: "http://127.0.0.1/mcp" },
    { type: "http", url: new URL("https://a.test/mcp"), enabled: false },
    { type: "streamable-http", url: "https://a.test/mcp", disabled: true },
    { type: "sse", url: "https://a.test/sse", tools: { a: true } },
    { command: "x", tools: ["a"], clearEnv: true },
  ];
  for (const server of spellings) assertEquals(parseMcpConfig({ it: server }), { it: server });
});

Deno.test("what is wrong is refused before anything starts, by the name of its server", async () => {
  const wrong: [server: unknown, type: typeof TypeError | typeof RangeError, words: string][] = [
    [null, TypeError, "must be an object"],
    ["npx", TypeError, "must be an object"],
    [{}, TypeError, "command must be"],
    [{ command: "" }, TypeError, "command must be"],
    [{ command: [] }, TypeError, "command must be"],
    [{ command: "x", args: [1] }, TypeError, "command must be"],
    [{ type: "websocket", url: "ws://a.test" }, TypeError, "type is unknown"],
    [{ url: "a.test/mcp" }, TypeError, "url must be"],
    [{ url: "file:///etc/passwd" }, TypeError, "url must be"],
    [{ type: "remote" }, TypeError, "url must be"],
    [{ url: "https://a.test", headers: { a: 1 } }, TypeError, "headers must be"],
    [{ command: "x", env: { A: 1 } }, TypeError, "env must be"],
    [{ command: "x", cwd: 1 }, TypeError, "cwd must be"],
    [{ command: "x", clearEnv: "yes" }, TypeError, "clearEnv must be"],
    [{ command: "x", enabled: "no" }, TypeError, "enabled must be"],
    [{ command: "x", tools: "a" }, TypeError, "tools must be"],
    [{ command: "x", timeout: 0 }, RangeError, "timeout must be"],
    [{ command: "x", timeout: "30" }, RangeError, "timeout must be"],
    [{ command: "x", timeout: 2 ** 31 }, RangeError, "timeout must be"],
  ];
  for (const [server, type, words] of wrong) {
    const { message } = assertThrows(() => parseMcpConfig({ it: server }), type, words);
    assertMatch(message, /^MCP server "it": /);
    await assertRejects(() => connectMcp({ it: server }), type, words);
  }
  assertThrows(() => parseMcpConfig([]), TypeError, "MCP config must be an object");
  assertThrows(() => parseMcpConfig({ mcpServers: [] }), TypeError, "mcpServers must be");
  const waitFor = "me" as unknown as () => never;
  await assertRejects(() => connectMcp({}, { waitFor }), TypeError, "waitFor");
});

Deno.test("a secret in the configuration is in no message", () => {
  const headers = { a: "sesame", b: 1 };
  const { message } = assertThrows(
    () => parseMcpConfig({ it: { url: "https://a.test", headers } }),
    TypeError,
  );
  assert(!message.includes("sesame"));
});

Deno.test("a tool is taken by the server's own name for it", async () => {
  const server = ourServer("misbehaving_server.ts");
  const { value: mcp, warnings } = await withWarnings(() =>
    connectMcp({
      "my server": { ...server, tools: ["work", "wrok"] },
      some: { ...server, tools: { work: true, die: false } },
      most: { ...server, tools: { die: false, wait: false, huge: false, ask: false } },
      none: { ...server, tools: [] },
      off: { ...server, enabled: false },
    })
  );
  assertEquals(mcp.tools().map(({ name }) => name), [
    "my_server_work",
    "some_work",
    "most_work",
    "most_progress",
    "most_environment",
    "most_methods",
    "most_withdraw",
    "most_answers",
  ]);
  assertEquals(warnings, ["MCP server my server has no tool wrok"]);
  assertEquals(mcp.status()["off"], "disabled");
  assertEquals((await call(mcp, "my_server_work")).metadata, { server: "my server" });
  await mcp.close();
  assertEquals((await call(mcp, "some_work")).isError, true);
});

Deno.test("a name that providers would refuse is cut, the same way everywhere", async () => {
  const server = { ...ourServer("misbehaving_server.ts"), tools: ["work", "wait"] };
  await using mcp = await connectMcp({ ["a".repeat(70)]: server });
  assertEquals(mcp.tools().map(({ name }) => name), [
    `${"a".repeat(55)}_8ec96969`,
    `${"a".repeat(55)}_996f42dd`,
  ]);
  assertEquals((await mcp.tools()[0]!.execute({}, undefined as never)).output, "worked");
});

Deno.test("a server's question becomes a request, and an answer its result", () => {
  const schema = { type: "object", properties: { name: { type: "string" } } };
  const form = elicitationToRequest({ message: "Who?", requestedSchema: schema });
  assertMatch(form.id, /^elc-./);
  assertEquals({ ...form, id: "" }, { id: "", kind: "input", prompt: "Who?", data: { schema } });
  const page = elicitationToRequest({ message: "Log in", mode: "url", url: "https://a.test/" });
  assertEquals({ ...page, id: "" }, {
    id: "",
    kind: "authorization",
    prompt: "Log in",
    url: "https://a.test/",
  });
  assert(form.id !== page.id);
  const answer = (rest: object) => answerToElicitResult({ id: "elc-1", ok: false, ...rest });
  assertEquals(answer({ ok: true }), { action: "accept", content: {} });
  assertEquals(answer({ ok: true, data: { a: 1 } }), { action: "accept", content: { a: 1 } });
  assertEquals(answer({ reason: "declined" }), { action: "decline" });
  assertEquals(answer({ reason: "expired" }), { action: "cancel" });
});

const root = fromFileUrl(new URL("..", import.meta.url));

Deno.test("a program needs --allow-run of its command; with kill, its children go too", async () => {
  const run = async (mode: string, more: string) => {
    const mark = crypto.randomUUID();
    const { command, args } = ourServer("misbehaving_server.ts", mode, mark);
    const script = `
      import { connectMcp } from "@toolnexus/client/mcp";
      const mcp = await connectMcp({ it: ${JSON.stringify({ command, args })} });
      const { output } = await mcp.tools()[0].execute({}, undefined);
      await mcp.close();
      console.log(output, mcp.status().it, Deno.permissions.querySync({ name: "run" }).state);
    `;
    const said = await runScript(script, `--allow-run=${command}${more}`);
    return [said, await processesWith(mark)];
  };
  const ended = ["worked disabled prompt\n", 0];
  const runs = [run("stubborn", ""), run("grandchild", ",kill")];
  assertEquals(await Promise.all(runs), [ended, ended]);
});

Deno.test("a remote server needs --allow-net of its host alone", async () => {
  await using server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: () => {} }, () => {
    return new Response("no", { status: 404 });
  });
  const host = `127.0.0.1:${server.addr.port}`;
  const script = `
    import { connectMcp } from "@toolnexus/client/mcp";
    const mcp = await connectMcp({ it: { url: "http://${host}/mcp" } });
    console.log(mcp.errors().it.message);
    await mcp.close();
  `;
  const output = await runScript(script, `--allow-net=${host}`);
  assertMatch(output, /^MCP server it failed at initialize: HTTP 404/);
});

Deno.test("neither ./skills nor mod.ts knows of MCP, and ./mcp loads its client by need", async () => {
  const modules = async (entry: string) => {
    const { stdout } = await new Deno.Command(Deno.execPath(), {
      args: ["info", "--json", "--config", join(root, "deno.json"), join(root, entry)],
    }).output();
    const { modules }: { modules: { specifier: string }[] } = JSON.parse(
      new TextDecoder().decode(stdout),
    );
    return modules.map(({ specifier }) => specifier);
  };
  for (const entry of ["mod.ts", "src/sources/skills.ts"]) {
    assertEquals(
      (await modules(entry)).filter((specifier) => /\/mcp[_.]|modelcontext/.test(specifier)),
      [],
    );
  }
  const script = `
    import { parseMcpConfig } from "@toolnexus/client/mcp";
    console.log(Object.keys(parseMcpConfig({ a: { command: "b" } })));
  `;
  const loadsClient = async (script: string) =>
    /modelcontextprotocol\/client\/\d/.test(await runScript(script, "--log-level=debug"));
  assertEquals(await loadsClient(script), false);
  const loader = new URL("../src/sources/mcp_package.ts", import.meta.url);
  const loading = `import { loadClient } from "${loader}"; await loadClient();`;
  assertEquals(await loadsClient(loading), true);
});

/** Runs a program that has one permission; both of its outputs. */
async function runScript(script: string, permission: string): Promise<string> {
  const child = new Deno.Command(Deno.execPath(), {
    args: ["run", "--no-prompt", permission, "--config", join(root, "deno.json"), "-"],
    env: { NO_COLOR: "1" },
    stdin: "piped",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  const writer = child.stdin.getWriter();
  await writer.write(new TextEncoder().encode(script));
  await writer.close();
  const { stdout, stderr } = await child.output();
  return new TextDecoder().decode(stdout) + new TextDecoder().decode(stderr);
}
