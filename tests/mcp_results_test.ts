/** What a server's tool is to the model: its arguments, and the text of its results. */
import { assertEquals, assertMatch } from "@std/assert";
import { connectMcp, listMcpTools } from "@toolnexus/client/mcp";
import denoConfig from "../deno.json" with { type: "json" };
import { serve } from "./fixtures/mcp/http_server.ts";
import { call, httpProgram, ourServer } from "./fixtures/mcp/kit.ts";

const text = (text: string) => ({ type: "text", text });

/** A server with one tool. */
function serveTool(tool: object, result: (args: unknown) => object) {
  return serve((_, { id, method, params }) => {
    const results: Record<string, () => object> = {
      "tools/list": () => ({ tools: [{ name: "work", inputSchema: { type: "object" }, ...tool }] }),
      "tools/call": () => result(params?.arguments),
    };
    const answer = results[method ?? ""]?.();
    return answer && Response.json({ jsonrpc: "2.0", id, result: answer });
  });
}

/** What the model reads of each result. */
async function outputs(tool: object, results: object[]): Promise<[boolean, string][]> {
  const rest = [...results];
  await using server = serveTool(tool, () => rest.shift()!);
  await using mcp = await connectMcp({ it: { url: server.url } });
  const given: [boolean, string][] = [];
  for (const _ of results) {
    const { isError, output } = await call(mcp, "it_work");
    given.push([isError, output]);
  }
  return given;
}

Deno.test("a result that is not what the tool's output schema says is given as it came", async () => {
  const count = { type: "object", properties: { n: { type: "integer" } }, required: ["n"] };
  const created = [text("created order 4711")];
  const results = [{ content: created }, { content: created, structuredContent: { n: 1.5 } }];
  assertEquals(await outputs({ outputSchema: count }, results), [
    [false, "created order 4711"],
    [false, 'created order 4711\n{"n":1.5}'],
  ]);
  const outputSchema = { type: "object", properties: { n: { $ref: "#/nowhere" } } };
  assertEquals(await outputs({ outputSchema }, [{ content: created }]), [
    [false, "created order 4711"],
  ]);
});

Deno.test("structured content stands for the texts that say the same, of failures too", async () => {
  const data = { items: [{ id: 1 }, "two"], total: 3 };
  const results = [
    { content: [text(JSON.stringify(data, null, 2)), text("")], structuredContent: data },
    { content: [text('{ "id": 1 }'), text("two"), text("3")], structuredContent: data },
    { content: [text("three items"), text("1")], structuredContent: data },
    { content: [], structuredContent: { error: "quota exceeded" }, isError: true },
    { content: [text("retry at noon")], structuredContent: { code: 429 }, isError: true },
    { content: [text(" ")], isError: true },
  ];
  assertEquals(await outputs({}, results), [
    [false, '{"items":[{"id":1},"two"],"total":3}'],
    [false, '{"items":[{"id":1},"two"],"total":3}'],
    [false, 'three items\n1\n{"items":[{"id":1},"two"],"total":3}'],
    [true, '{"error":"quota exceeded"}'],
    [true, 'retry at noon\n{"code":429}'],
    [true, "MCP tool returned an error"],
  ]);
});

Deno.test("a tool whose server wants another header than it listed is listed again and called", async () => {
  await using program = await httpProgram(ourServer("modern_server.ts", "http"), {}, /^\d+$/m);
  await using mcp = await connectMcp({ it: { url: `http://127.0.0.1:${program.line}/mcp` } });
  const { isError, output } = await call(mcp, "it_locate", { region: "eu" });
  assertEquals([isError, output], [false, "found in eu\n{}"]);
});

Deno.test("arguments whose names a provider would refuse are renamed, and called by their own", async () => {
  const long = "l".repeat(70);
  const names = [
    "$top",
    "_top",
    "_top_2",
    "user[name]",
    "größe",
    "",
    long,
    `${long}2`,
    "plain.a-b",
  ];
  const properties = Object.fromEntries(names.map((name) => [name, { title: name }]));
  const inputSchema = { type: "object", properties, required: ["$top", "plain.a-b"] };
  await using server = serveTool({ inputSchema }, (args) => ({
    content: [text(JSON.stringify(args))],
  }));
  const config = { it: { url: server.url } };
  await using mcp = await connectMcp(config);
  const schema = mcp.tools()[0]!.inputSchema;
  const renamed = Object.entries(schema["properties"] as Record<string, { title: string }>);
  assertEquals(renamed.map(([name, { title }]) => [title, name]), [
    ["$top", "_top_3"],
    ["_top", "_top"],
    ["_top_2", "_top_2"],
    ["user[name]", "user_name_"],
    ["größe", "gr__e"],
    ["", "_"],
    [long, "l".repeat(64)],
    [`${long}2`, `${"l".repeat(62)}_2`],
    ["plain.a-b", "plain.a-b"],
  ]);
  for (const [name] of renamed) assertMatch(name, /^[a-zA-Z0-9_.-]{1,64}$/);
  assertEquals(schema["required"], ["_top_3", "plain.a-b"]);
  const args = { _top_3: 1, _top: 2, user_name_: "Ann", other: true };
  assertEquals(JSON.parse((await call(mcp, "it_work", args)).output), {
    $top: 1,
    _top: 2,
    "user[name]": "Ann",
    other: true,
  });
  const { tools } = await listMcpTools(config);
  assertEquals(tools["it"]![0]!.inputSchema["properties"], properties);
});

Deno.test("names in what is combined at the top of a schema are renamed, too", async () => {
  const inputSchema = {
    type: "object",
    properties: {},
    anyOf: [
      { properties: { "user id": { type: "string" } }, required: ["user id"] },
      { properties: { "user@mail": { type: "string" } }, required: ["user@mail"] },
    ],
  };
  await using server = serveTool({ inputSchema }, (args) => ({
    content: [text(JSON.stringify(args))],
  }));
  await using mcp = await connectMcp({ it: { url: server.url } });
  const { properties } = mcp.tools()[0]!.inputSchema as { properties: object };
  assertEquals(Object.keys(properties), ["user_id", "user_mail"]);
  const { output } = await call(mcp, "it_work", { user_mail: "ann@mail.test" });
  assertEquals(JSON.parse(output), { "user@mail": "ann@mail.test" });
});

Deno.test("servers are told this package's version", async () => {
  const told: unknown[] = [];
  await using server = serve((_, { params }) => {
    if (params?.clientInfo !== undefined) told.push(params.clientInfo);
    return undefined;
  });
  await using _ = await connectMcp({ it: { url: server.url } });
  assertEquals(told, [{ name: "toolnexus", version: denoConfig.version }]);
});
