/** Real MCP servers, from npm: over standard input and output, streamable HTTP and SSE, of both eras. */
import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { createToolkit, type PendingRequest } from "@toolnexus/client";
import { connectMcp, listMcpTools } from "@toolnexus/client/mcp";
import {
  call,
  freePort,
  httpProgram,
  npmServer,
  ourServer,
  processesWith,
} from "./fixtures/mcp/kit.ts";
import { runExample } from "./fixtures/run_example.ts";

Deno.test("three servers from npm become one toolkit", async () => {
  const dir = await Deno.realPath(await Deno.makeTempDir());
  await Deno.writeTextFile(`${dir}/note.txt`, "remember the milk");
  const MEMORY_FILE_PATH = `${dir}/memory.json`;
  {
    await using toolkit = createToolkit({
      sources: [
        await connectMcp({
          mcpServers: {
            everything: npmServer("everything"),
            files: npmServer("filesystem", dir),
            memory: { ...npmServer("memory"), env: { MEMORY_FILE_PATH } },
          },
        }),
      ],
    });
    assertEquals(toolkit.status(), {
      everything: "connected",
      files: "connected",
      memory: "connected",
    });
    const execute = (name: string, args: Record<string, unknown>) => {
      const { signal } = new AbortController();
      return toolkit.execute(name, args, { signal, callId: "1", turn: 1 });
    };
    assertEquals((await execute("everything_echo", { message: "hi" })).output, "Echo: hi");
    assertEquals(
      JSON.parse((await execute("files_read_text_file", { path: `${dir}/note.txt` })).output),
      { content: "remember the milk" },
    );
    const outside = await execute("files_read_text_file", { path: "/etc/hostname" });
    assert(outside.isError);
    assertStringIncludes(outside.output, "Access denied");
    const entity = { name: "Ann", entityType: "person", observations: ["likes tea"] };
    await execute("memory_create_entities", { entities: [entity] });
    const { output } = await execute("memory_read_graph", {});
    assertEquals(JSON.parse(output).entities, [entity]);
    assert(await Deno.stat(MEMORY_FILE_PATH), "the server was told where to write");
    assertEquals(toolkit.get("files_read_text_file")?.inputSchema["type"], "object");
    assert(await processesWith(dir) > 0);
  }
  assertEquals(await processesWith(dir), 0, "closing the toolkit ends the programs");
  await Deno.remove(dir, { recursive: true });
});

Deno.test("what a tool gives becomes text: data as JSON, pictures and links by name", async () => {
  await using mcp = await connectMcp({ it: npmServer("everything") });
  const image = await call(mcp, "it_get-tiny-image");
  assertMatch(image.output, /\n\[image, image\/png, \d+ bytes\]\n/);
  const [part] = image.metadata?.["content"] as { mimeType: string }[];
  assertEquals(part?.mimeType, "image/png");
  const weather = await call(mcp, "it_get-structured-content", { location: "Chicago" });
  assertEquals(Object.keys(JSON.parse(weather.output)), ["temperature", "conditions", "humidity"]);
  const links = await call(mcp, "it_get-resource-links", { count: 1 });
  assertMatch(links.output, /\n\[resource, demo:\/\/resource\/\S+, text\/plain, [^\]]+\]$/);
  const wrong = await call(mcp, "it_get-sum", { a: "one" });
  assertEquals(wrong.isError, true);
  assertStringIncludes(wrong.output, "get-sum");
});

Deno.test("a server's form goes to waitFor, and the answer back", async () => {
  const requests: PendingRequest[] = [];
  await using mcp = await connectMcp({ it: npmServer("everything") }, {
    waitFor: (request) => {
      requests.push(request);
      return { id: request.id, ok: true, data: { name: "Ann" } };
    },
  });
  const { output } = await call(mcp, "it_trigger-elicitation-request");
  assertStringIncludes(output, "- Name: Ann");
  assertEquals(requests.map(({ kind }) => kind), ["input"]);
  assertMatch(requests[0]!.id, /^elc-/);
  const schema = requests[0]!.data?.["schema"] as { required: string[] };
  assertEquals(schema.required, ["name"]);
});

Deno.test("a human may take longer than a call", async () => {
  await using mcp = await connectMcp({ it: npmServer("everything") }, {
    waitFor: async ({ id }) => {
      await new Promise((resolve) => setTimeout(resolve, 900));
      return { id, ok: true, data: { name: "Ann" } };
    },
  });
  const slow = { timeoutMs: 600 };
  const { output } = await call(mcp, "it_trigger-elicitation-request", {}, slow);
  assertStringIncludes(output, "- Name: Ann");
});

Deno.test("declined, cancelled and failed answers reach the server as what they are", async () => {
  const answers = [
    { ok: false, reason: "declined" },
    { ok: false, reason: "not now" },
    new Error("nobody is there"),
  ];
  await using mcp = await connectMcp({ it: npmServer("everything") }, {
    waitFor: ({ id }) => {
      const answer = answers.shift()!;
      if (answer instanceof Error) throw answer;
      return { id, ...answer };
    },
  });
  for (const action of ["decline", "cancel", "cancel"]) {
    const { output } = await call(mcp, "it_trigger-elicitation-request");
    assertStringIncludes(output, `"action": "${action}"`);
  }
});

Deno.test("a page to visit goes to waitFor as an authorization with its url", async () => {
  let asked: PendingRequest | undefined;
  await using mcp = await connectMcp({ it: npmServer("everything") }, {
    waitFor: (request) => {
      asked = request;
      return { id: request.id, ok: true };
    },
  });
  const { isError } = await call(mcp, "it_trigger-url-elicitation", {
    url: "https://login.test/",
    message: "Log in first",
  });
  assertEquals(isError, false);
  assertEquals([asked?.kind, asked?.url], ["authorization", "https://login.test/"]);
});

Deno.test("without waitFor a server is told that nobody can be asked", async () => {
  await using mcp = await connectMcp({ it: npmServer("everything") });
  const names = mcp.tools().map(({ name }) => name);
  assert(!names.some((name) => name.includes("elicitation")), "it does not even offer to ask");
});

for (const transport of ["streamableHttp", "sse"] as const) {
  Deno.test(`server-everything works over HTTP: ${transport}`, async () => {
    const port = freePort();
    const PORT = String(port);
    await using _ = await httpProgram(npmServer("everything", transport), { PORT }, /port \d+/);
    const url = `http://127.0.0.1:${port}/${transport === "sse" ? "sse" : "mcp"}`;
    await using mcp = await connectMcp({ it: { url } }, {
      waitFor: ({ id }) => ({ id, ok: true, data: { name: "Ann" } }),
    });
    assertEquals(mcp.status(), { it: "connected" });
    assertEquals((await call(mcp, "it_echo", { message: "hi" })).output, "Echo: hi");
    const { output } = await call(mcp, "it_trigger-elicitation-request");
    assertStringIncludes(output, "- Name: Ann");
    if (transport === "sse") {
      await using direct = await connectMcp({ it: { type: "sse", url } });
      assertEquals((await call(direct, "it_echo", { message: "hi" })).output, "Echo: hi");
    }
  });
}

Deno.test("a server of the newest revision works over both transports, questions too", async () => {
  await using program = await httpProgram(ourServer("modern_server.ts", "http"), {}, /^\d+$/m);
  const answers = [true, true, false];
  await using mcp = await connectMcp({
    local: ourServer("modern_server.ts"),
    remote: { url: `http://127.0.0.1:${program.line}/mcp` },
  }, {
    waitFor: ({ id, prompt }) => {
      assertEquals(prompt, "Deploy?");
      return { id, ok: answers.shift()!, data: { sure: true } };
    },
  });
  assertEquals(mcp.errors(), {});
  for (const name of ["local", "remote"]) {
    assertEquals((await call(mcp, `${name}_add`, { a: 2, b: 3 })).output, "5");
    assertEquals((await call(mcp, `${name}_deploy`)).output, "deployed");
  }
  const refused = await call(mcp, "local_deploy");
  assertEquals([refused.isError, refused.output], [true, "not deployed"]);
});

Deno.test("listMcpTools lists everything, whatever the configuration takes, and leaves nothing", async () => {
  const dir = await Deno.realPath(await Deno.makeTempDir());
  const files = { ...npmServer("filesystem", dir), tools: ["read_file"] };
  const off = { ...npmServer("memory"), disabled: true };
  const { tools, status } = await listMcpTools({ servers: { files, off } });
  assertEquals(status, { files: "connected", off: "disabled" });
  assertEquals(Object.keys(tools), ["files"]);
  assert(tools["files"]!.length > 10);
  assert(
    tools["files"]!.some(({ name, inputSchema }) =>
      name === "read_text_file" && inputSchema["type"] === "object"
    ),
  );
  assertEquals(await processesWith(dir), 0);
  await using mcp = await connectMcp({ mcp: { files, off } });
  assertEquals(mcp.tools().map(({ name }) => name), ["files_read_file"]);
  await mcp.close();
  await Deno.remove(dir);
});

Deno.test("mcp.ts calls a server's tools, answers its question, and reports a broken one", async () => {
  const { output, errors } = await runExample("mcp.ts");
  assertEquals(output.split("\n").slice(0, 3), [
    '{ demo: "connected", broken: "failed" }',
    "The server asks: Please provide inputs for the following fields:",
    "demo_get-sum: The sum of 2 and 3 is 5.",
  ]);
  assertStringIncludes(errors, "MCP server broken failed at initialize");
});
