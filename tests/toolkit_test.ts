import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import {
  createToolkit,
  type DefinedTool,
  defineTool,
  sanitize,
  type Tool,
  type ToolContext,
  type Toolkit,
  type ToolSource,
  type ToolSourceProvider,
} from "../mod.ts";
import { stubLlm } from "../src/testing/mod.ts";
import { clientOf, toolOf } from "./client_kit.ts";

function from(source: ToolSource, name: string): Tool {
  return { ...toolOf(name), source };
}

function names(toolkit: Toolkit): string[] {
  return toolkit.tools().map(({ name }) => name);
}

/** What is warned of while `work` is done. */
function warningsOf(work: () => void): unknown[] {
  const { warn } = console;
  const lines: unknown[] = [];
  console.warn = (line: unknown) => void lines.push(line);
  try {
    work();
  } finally {
    console.warn = warn;
  }
  return lines;
}

Deno.test("MCP tools come first, then skills, then other sources, then one's own", () => {
  const sources: ToolSourceProvider[] = [
    { tools: () => [from("custom", "c1")] },
    { tools: () => [from("skill", "s1"), from("mcp", "m1")] },
    { tools: () => [from("http", "h1"), from("mcp", "m2")] },
  ];
  // A tool that is given stays where it is given, whatever it is.
  const toolkit = createToolkit({ tools: [toolOf("own"), from("mcp", "m3")], sources });
  assertEquals(names(toolkit), ["m1", "m2", "s1", "c1", "h1", "own", "m3"]);
});

Deno.test("the first tool of a name stays, with a warning for the later one", async () => {
  const first: Tool = { ...toolOf("read", () => "from mcp"), source: "mcp" };
  const toolkit = createToolkit({ sources: [{ tools: () => [first] }] });
  const warnings = warningsOf(() => {
    toolkit.register(toolOf("read", () => "mine"), toolOf("write"));
  });
  assertEquals(warnings, ['toolkit has a tool "read" already: the first one stays']);
  assertEquals(names(toolkit), ["read", "write"]);
  assertEquals((await toolkit.execute("read", {})).output, "from mcp");
});

Deno.test("disableTools leaves tools out, wherever they come from and whenever", () => {
  const source = { tools: () => [from("mcp", "shell"), from("mcp", "read")] };
  const tools = [toolOf("shell"), toolOf("mine")];
  let toolkit!: Toolkit;
  const warnings = warningsOf(() => {
    toolkit = createToolkit({ tools, sources: [source], disableTools: ["shell", "later"] });
    toolkit.register(toolOf("later"), toolOf("last"));
  });
  assertEquals([names(toolkit), warnings], [["read", "mine", "last"], []]);
  assertEquals(toolkit.get("shell"), undefined);
});

Deno.test("a disabled tool is unknown to the model that calls it all the same", async () => {
  await using server = stubLlm([{ toolCalls: [{ name: "shell", args: {} }] }, "Sorry"]);
  const toolkit = createToolkit({
    tools: [toolOf("shell"), toolOf("read")],
    disableTools: ["shell"],
  });
  const { toolCalls } = await clientOf(server, { toolkit }).run("hi");
  assertEquals(toolCalls[0]?.output, "unknown tool: shell");
  assertEquals(toolCalls[0]?.isError, true);
});

Deno.test("tools are declared in the shape of each provider, in their order", () => {
  const tools: DefinedTool[] = ["b", "a"].map((name) =>
    defineTool({ name, description: `does ${name}`, run: () => "" })
  );
  const toolkit = createToolkit({ tools });
  const inputSchema = { type: "object", properties: {}, additionalProperties: false };
  assertEquals(toolkit.toOpenAI()[0], {
    type: "function",
    function: { name: "b", description: "does b", parameters: inputSchema },
  });
  assertEquals(toolkit.toAnthropic()[1], {
    name: "a",
    description: "does a",
    input_schema: inputSchema,
  });
  assertEquals(toolkit.toGemini(), [{
    functionDeclarations: [
      { name: "b", description: "does b", parameters: inputSchema },
      { name: "a", description: "does a", parameters: inputSchema },
    ],
  }]);
  assertEquals(createToolkit().toGemini(), []);
  assertEquals(sanitize("my server/läs.t"), "my_server_l_s_t");
});

Deno.test("execute() runs a tool outside a run; whatever goes wrong is an error result", async () => {
  let context: ToolContext | undefined;
  const plain: Tool = {
    ...toolOf("plain"),
    execute: (_, given) => {
      context = given;
      return { output: "ran", isError: false };
    },
  };
  const throwing: Tool = { ...toolOf("throwing"), execute: () => Promise.reject(new Error("no")) };
  const empty: Tool = {
    ...toolOf("empty"),
    execute: () => {
      throw new Error("");
    },
  };
  // A tool in plain JavaScript may give back anything.
  const loose = { ...toolOf("loose"), execute: () => ({ sky: "sunny" }) } as unknown as Tool;
  const toolkit = createToolkit({ tools: [plain, throwing, empty, loose] });
  assertEquals(await toolkit.execute("plain", {}), { output: "ran", isError: false });
  assert(context?.callId && !context.signal.aborted);
  assertEquals(await toolkit.execute("throwing", {}), { output: "no", isError: true });
  assertEquals(await toolkit.execute("empty", {}), { output: "empty failed", isError: true });
  assertEquals(await toolkit.execute("loose", {}), { output: '{"sky":"sunny"}', isError: false });
  assertEquals(await toolkit.execute("x", {}), { output: "unknown tool: x", isError: true });
  assertEquals((await toolkit.execute("constructor", {})).isError, true);
});

Deno.test("prompt() and status() put the sources together", () => {
  const sources: ToolSourceProvider[] = [
    { tools: () => [], prompt: () => "First.", status: () => ({ a: "connected" }) },
    { tools: () => [] },
    { tools: () => [], prompt: () => "" },
    { tools: () => [], prompt: () => "Second.", status: () => ({ b: "failed" }) },
  ];
  const toolkit = createToolkit({ sources });
  assertEquals(toolkit.prompt(), "First.\n\nSecond.");
  assertEquals(toolkit.status(), { a: "connected", b: "failed" });
  assertEquals([createToolkit().prompt(), createToolkit().status()], ["", {}]);
});

Deno.test("await using closes every source, once", async () => {
  const closed: string[] = [];
  const source = (name: string): ToolSourceProvider => ({
    tools: () => [],
    close: async () => {
      await Promise.resolve();
      closed.push(name);
    },
  });
  {
    await using toolkit = createToolkit({
      sources: [source("a"), { tools: () => [] }, source("b")],
    });
    await Promise.all([toolkit.close(), toolkit.close()]);
    assertEquals(closed, ["a", "b"]);
  }
  assertEquals(closed, ["a", "b"]);
});

Deno.test("a source that fails to close keeps no other from closing, and is told", async () => {
  const closed: string[] = [];
  const failures = [new Error("still busy"), "no process"];
  const toolkit = createToolkit({
    sources: [
      { tools: () => [], close: () => Promise.reject(failures[0]) },
      {
        tools: () => [],
        close: () => {
          throw failures[1];
        },
      },
      { tools: () => [], close: () => void closed.push("c") },
    ],
  });
  const error = await assertRejects(
    () => toolkit.close(),
    AggregateError,
    "close failed: still busy; no process",
  );
  assertEquals([error.errors, closed], [failures, ["c"]]);
});

Deno.test("close() waits for all sources, also behind one that failed", async () => {
  const slow = Promise.withResolvers<void>();
  let isOver = false;
  const toolkit = createToolkit({
    sources: [
      { tools: () => [], close: () => Promise.reject(new Error("at once")) },
      { tools: () => [], close: () => slow.promise },
    ],
  });
  const closing = toolkit.close().finally(() => isOver = true);
  closing.catch(() => {});
  await new Promise((resolve) => setTimeout(resolve, 0));
  assertEquals(isOver, false);
  slow.resolve();
  await assertRejects(() => closing, AggregateError, "at once");
});

Deno.test("what is no tool is a TypeError that says why", () => {
  const wrong: [unknown, string][] = [
    [null, "tool must have a name: null"],
    [{ execute: () => {} }, "tool must have a name"],
    [{ name: "" }, "tool must have a name"],
    [{ name: "t" }, "tool t must have execute()"],
    [{ name: "t", execute: () => {} }, "tool t must have an inputSchema object"],
  ];
  for (const [tool, message] of wrong) {
    assertThrows(() => createToolkit({ tools: [tool as Tool] }), TypeError, message);
    assertThrows(() => createToolkit().register(tool as Tool), TypeError, message);
  }
  const one = toolOf("t") as unknown as Tool[];
  assertThrows(() => createToolkit({ tools: one }), TypeError, "tools must be an array: ");
  const source = {} as unknown as ToolSourceProvider[];
  assertThrows(() => createToolkit({ sources: source }), TypeError, "sources must be an array: {}");
});

Deno.test("a client takes a list of tools as well as a toolkit", async () => {
  for (const toolkit of [[toolOf("a")], createToolkit({ tools: [toolOf("a")] })]) {
    await using server = stubLlm([{ toolCalls: [{ name: "a", args: {} }] }, "done"]);
    const { toolCalls } = await clientOf(server).run("hi", { toolkit });
    assertEquals(toolCalls.map(({ output }) => output), ["a ran"]);
  }
});

Deno.test("a source that fails, or brings what is no tool, breaks no other", () => {
  const broken = () => {
    throw new Error("it is down");
  };
  const sources: ToolSourceProvider[] = [
    { tools: broken, prompt: broken, status: broken },
    { tools: () => [{ name: "half" } as Tool, toolOf("mail")], prompt: () => "Mail is here." },
    { tools: () => [], status: () => ({ mail: "connected" }) },
  ];
  let toolkit!: Toolkit;
  const told = warningsOf(() => {
    toolkit = createToolkit({ tools: [toolOf("pay")], sources });
    assertEquals([names(toolkit), toolkit.status()], [["mail", "pay"], { mail: "connected" }]);
    assertEquals(toolkit.prompt(), "Mail is here.");
  });
  assertEquals(told, [
    "tool source left out, its tools failed: it is down",
    "tool of a source left out: tool half must have execute()",
    "tool source left out, its status failed: it is down",
    "tool source left out, its prompt failed: it is down",
  ]);
  assertThrows(() => createToolkit({ tools: [{ name: "half" } as Tool] }), TypeError);
});
