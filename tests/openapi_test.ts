/** The operations of an OpenAPI document as tools. */
import { assertEquals, assertRejects, assertThrows } from "@std/assert";
import { parse } from "@std/yaml";
import { createToolkit, pendingOf } from "../mod.ts";
import { jsonSchema } from "../src/sources/json_schema.ts";
import { httpToolsFromOpenAPI, type OpenAPIOptions } from "../src/sources/openapi.ts";
import { stubLlm } from "../src/testing/mod.ts";
import { clientOf } from "./client_kit.ts";
import { documentOf, Library, library } from "./openapi_kit.ts";

Deno.test("each operation becomes a tool, named by its id or by its method and path", async () => {
  await using server = await Library.open();
  assertEquals(server.names, [
    "books_list",
    "books_create",
    "books_put",
    "delete_books_id",
    "get_books_id_pages_page",
    "shelve",
    "note",
    "lend",
  ]);
  assertEquals(server.tool("books_list").description, "Lists books\n\nNewest first.");
  assertEquals(server.tool("shelve").description, "POST /shelves");
  assertEquals(server.tool("shelve").source, "http");
});

Deno.test("an operation that cannot be a tool is skipped with the reason, the rest is there", async () => {
  await using server = await Library.open();
  assertEquals(server.skipped, [
    "upload: body is multipart/form-data",
    'broken: $ref "#/components/parameters/Nowhere" leads nowhere',
    'elsewhere: $ref "https://library.invalid/common.yaml#/Page" leads out of the document',
  ]);
});

Deno.test("a model uses an API by its document", async () => {
  await using server = await Library.open();
  await using llm = stubLlm([
    {
      toolCalls: [
        { name: "books_create", args: { title: "Emma", isbn: "1" } },
        { name: "delete_books_id", args: { id: 7 } },
      ],
    },
    "Done",
  ]);
  const names = ["books_create", "delete_books_id"];
  const toolkit = createToolkit({ tools: names.map((name) => server.tool(name)) });
  const { text } = await clientOf(llm, { toolkit }).run("Add Emma, remove 7");
  assertEquals(text, "Done");
  assertEquals(server.seen.map(({ line, body }) => `${line} ${body}`).toSorted(), [
    "DELETE /v1/books/7 ",
    'POST /v1/books {"title":"Emma","isbn":"1"}',
  ]);
});

Deno.test("an argument for a path stays in its segment", async () => {
  await using server = await Library.open();
  const { line } = await server.call("books_put", { id: "a/b?c", dry: true });
  assertEquals(line, "PUT /v1/books/a%2Fb%3Fc?dry=true");
  const up = await server.call("books_put", { id: "../admin" });
  assertEquals(up.line, "PUT /v1/books/..%2Fadmin");
  const { isError } = await server.tool("books_put").execute({ id: ".." });
  assertEquals([isError, server.seen.length], [true, 2]);
});

Deno.test("a path's own placeholders are arguments although nothing declares them", async () => {
  await using server = await Library.open();
  assertEquals(server.tool("get_books_id_pages_page").inputSchema.required, ["id", "page"]);
  const { line } = await server.call("get_books_id_pages_page", { id: "x", page: "7" });
  assertEquals(line, "GET /v1/books/x/pages/7");
});

Deno.test("an argument that is missing or unknown is an error result, and nothing is sent", async () => {
  await using server = await Library.open();
  const cases: [string, Record<string, unknown>, string][] = [
    ["books_create", { title: "Emma" }, "argument isbn is missing"],
    ["books_create", { title: "Emma", isbn: "1", id: "7" }, "unknown argument: id"],
    ["delete_books_id", { id: null }, "argument id is missing"],
    ["books_list", { __proto__x: 1 }, "unknown argument: __proto__x"],
    ["books_list", { constructor: 1 }, "unknown argument: constructor"],
  ];
  for (const [name, args, output] of cases) {
    assertEquals(await server.tool(name).execute(args), { output, isError: true });
  }
  assertEquals(server.seen.length, 0);
});

Deno.test("tool names are legal, at most 64 characters, and unique", async () => {
  const item = (operationId: string) => ({ get: { operationId } });
  const long = "a".repeat(70);
  const spec = documentOf("/1", item("läst/all"), {
    paths: {
      "/1": item("list.all"),
      "/2": item("list all"),
      "/3": item(long),
      "/4": item(long + "b"),
      "/": { get: {} },
      "/a-b/{c}": { get: {}, post: {} },
    },
  });
  const tools = await httpToolsFromOpenAPI(spec);
  assertEquals(tools.map(({ name }) => name), [
    "list_all",
    "list_all_2",
    "a".repeat(64),
    "a".repeat(62) + "_2",
    "get",
    "get_a_b_c",
    "post_a_b_c",
  ]);
  const prefixed = await httpToolsFromOpenAPI(spec, { namePrefix: "shop_" });
  assertEquals(prefixed[0]?.name, "shop_list_all");
  assertEquals(prefixed[2]?.name, "shop_" + "a".repeat(59));
});

Deno.test("filter() chooses operations by id, tag, method or path", async () => {
  const names = async (filter: OpenAPIOptions["filter"]) => {
    await using server = await Library.open(library, { filter });
    return server.names;
  };
  assertEquals(await names(({ operationId }) => operationId === "note"), ["note"]);
  assertEquals(await names(({ tags, method }) => tags.includes("books") && method === "GET"), [
    "books_list",
  ]);
  assertEquals(await names(({ path }) => path === "/shelves"), ["shelve"]);
  assertEquals(await names(({ deprecated }) => deprecated), ["delete_books_id"]);
});

Deno.test("needsApproval() chooses what a human must approve", async () => {
  await using server = await Library.open(library, {
    needsApproval: ({ method }) => method !== "GET",
  });
  const asked = await server.tool("delete_books_id").execute({ id: 7 });
  assertEquals(pendingOf(asked)?.data, { tool: "delete_books_id", args: { id: 7 } });
  assertEquals(server.seen.length, 0);
  await server.call("books_list", {});
});

Deno.test("headers come from the options, with ${NAME} from the environment", async () => {
  Deno.env.set("TOOLNEXUS_LIBRARY_TOKEN", "t0ken-t0ken");
  try {
    const headers = { Authorization: "Bearer ${TOOLNEXUS_LIBRARY_TOKEN}", "X-Trace": "ours" };
    await using server = await Library.open(library, { headers });
    const seen = await server.call("books_list", { "X-Trace": ["theirs"] });
    assertEquals(seen.headers.get("authorization"), "Bearer t0ken-t0ken");
    assertEquals(seen.headers.get("x-trace"), "ours");
  } finally {
    Deno.env.delete("TOOLNEXUS_LIBRARY_TOKEN");
  }
});

Deno.test("the server is the nearest one that the document names, or baseUrl", async () => {
  const urls: string[] = [];
  const fetch: typeof globalThis.fetch = (input) => {
    urls.push(String(input));
    return Promise.resolve(new Response());
  };
  const spec = documentOf("/a", {
    get: { servers: [{ url: "https://operation.test/" }] },
    post: {},
    servers: [{ url: "https://path.test" }],
  });
  for (const tool of await httpToolsFromOpenAPI(spec, { fetch })) await tool.execute({});
  const baseUrl = "https://mine.test/api/";
  for (const tool of await httpToolsFromOpenAPI(spec, { fetch, baseUrl })) await tool.execute({});
  for (const tool of await httpToolsFromOpenAPI(library, { fetch, onSkip: () => {} })) {
    if (tool.name === "books_list") await tool.execute({});
  }
  assertEquals(urls, [
    "https://operation.test/a",
    "https://path.test/a",
    "https://mine.test/api/a",
    "https://mine.test/api/a",
    "http://library.invalid/v1/books",
  ]);
});

Deno.test("a relative server of an operation or a path is found from the document's", async () => {
  const urls: string[] = [];
  const fetch: typeof globalThis.fetch = (input) => {
    urls.push(String(input));
    return Promise.resolve(new Response());
  };
  const spec = documentOf("/a", {
    get: { servers: [{ url: "/upload" }] },
    put: { servers: [{ url: "files/" }] },
    post: { servers: [{ url: "//files.test/v1" }] },
    delete: {},
    servers: [{ url: "/" }],
  }, { servers: [{ url: "http://api.test/v2/" }] });
  for (const tool of await httpToolsFromOpenAPI(spec, { fetch })) await tool.execute({});
  assertEquals(urls, [
    "http://api.test/upload/a",
    "http://api.test/v2/files/a",
    "http://files.test/v1/a",
    "http://api.test/a",
  ]);
});

Deno.test("one path or operation that is wrong costs no other", async () => {
  const skipped: string[] = [];
  const spec = documentOf("", {}, {
    paths: {
      "/elsewhere": { $ref: "./elsewhere.yaml" },
      "/wrong": {
        get: { servers: [{ url: "ftp://api.test" }] },
        put: { servers: [{ url: "http://{host}/" }] },
        trace: {},
        post: {},
      },
    },
  });
  const tools = await httpToolsFromOpenAPI(spec, {
    onSkip: ({ method, path }, reason) => skipped.push(`${method} ${path}: ${reason}`),
  });
  assertEquals(tools.map(({ name }) => name), ["post_wrong"]);
  assertEquals(skipped, [
    '* /elsewhere: $ref "./elsewhere.yaml" leads out of the document',
    'GET /wrong: server must be an http or https URL without a query: "ftp://api.test"',
    "PUT /wrong: server variable host has no value",
    "TRACE /wrong: method TRACE cannot be sent",
  ]);
});

Deno.test("no path and no server of a document takes the headers to another host", async () => {
  const reasons: string[] = [];
  const hosts = new Set<string>();
  const options: OpenAPIOptions = {
    headers: { authorization: "Bearer of-a-key" },
    onSkip: (_, reason) => reasons.push(reason),
    fetch: (input) => {
      hosts.add(new URL(String(input)).host);
      return Promise.resolve(new Response());
    },
  };
  const paths: Record<string, object> = {
    "/elsewhere": { get: { servers: [{ url: "https://evil.test" }] } },
    "/plain": { get: {}, post: { servers: [{ url: "http://api.test/upload" }] } },
  };
  for (
    const path of [".evil.test/a", "@evil.test/a", ":81/a", "\\\\evil.test/a", "//evil.test/a"]
  ) {
    paths[path] = { get: {} };
  }
  const spec = documentOf("", {}, { paths });
  const callAll = async (more: OpenAPIOptions) => {
    const tools = await httpToolsFromOpenAPI(spec, { ...options, ...more });
    for (const tool of tools) assertEquals((await tool.execute({})).isError, false);
    return tools.length;
  };
  assertEquals(await callAll({}), 3);
  assertEquals(reasons, [
    "server https://evil.test is not http://api.test, where the headers belong",
    ...[".evil.test/a", "@evil.test/a", ":81/a", "\\\\evil.test/a"].map((path) =>
      `path must begin with a slash: ${JSON.stringify(path)}`
    ),
  ]);
  assertEquals([...hosts], ["api.test"]);
  assertEquals(await callAll({ baseUrl: "https://mine.test" }), 4);
  assertEquals([...hosts], ["api.test", "mine.test"]);
});

Deno.test("text in YAML or JSON, or an object, gives the same tools; the object stays as it was", async () => {
  const object = parse(library, { schema: "core" }) as object;
  const before = JSON.stringify(object);
  const shapes = await Promise.all(
    [library, JSON.stringify(object), object, `\uFEFF${JSON.stringify(object)}`].map(
      async (spec) => {
        await using server = await Library.open(spec);
        return server.names.map((name) => [name, server.tool(name).inputSchema]);
      },
    ),
  );
  assertEquals(shapes[1], shapes[0]);
  assertEquals(shapes[2], shapes[0]);
  assertEquals(shapes[3], shapes[0], "a byte order mark does not matter");
  assertEquals(JSON.stringify(object), before);
});

Deno.test("descriptions are cut at what providers accept", async () => {
  const tools = await httpToolsFromOpenAPI(
    documentOf("/a", { get: { summary: "s", description: "x".repeat(3000) } }),
  );
  assertEquals(tools[0]?.description.length, 1024);
});

Deno.test("what is no OpenAPI 3 document is a TypeError that says so", async () => {
  const wrong: [unknown, string][] = [
    ["https://api.test/openapi.json", "spec must be an OpenAPI document"],
    [undefined, "spec must be an OpenAPI document"],
    [[], "spec must be an OpenAPI document"],
    ["{ not json", "spec is neither JSON nor YAML"],
    ["a: [", "spec is neither JSON nor YAML"],
    ['swagger: "2.0"', "spec must be of OpenAPI 3.0 or 3.1: its version is 2.0"],
    [{ openapi: "4.0.0" }, "its version is 4.0.0"],
    [{ info: {} }, "its version is none"],
  ];
  for (const [spec, message] of wrong) {
    await assertRejects(() => httpToolsFromOpenAPI(spec as string), TypeError, message);
  }
});

Deno.test("options that are wrong are told once, not skipped over for each operation", async () => {
  const spec = documentOf("/a", { get: {} });
  const wrong: [OpenAPIOptions, string][] = [
    [{ baseUrl: "api.test" }, "baseUrl must be an http or https URL"],
    [{ baseUrl: "http://{host}" }, "url must have no placeholder before its path"],
    [{ baseUrl: "http://api.test/?key=1" }, "baseUrl must be an http or https URL without a query"],
    [{ headers: { "a b": "c" } }, 'header "a b" has a name or value'],
    [{ filter: 5 } as unknown as OpenAPIOptions, "filter must be a function: 5"],
    [{ onSkip: "x" } as unknown as OpenAPIOptions, 'onSkip must be a function: "x"'],
    [
      { needsApproval: true } as unknown as OpenAPIOptions,
      "needsApproval must be a function: true",
    ],
    [{ namePrefix: 5 } as unknown as OpenAPIOptions, "namePrefix must be a string: 5"],
  ];
  for (const [options, message] of wrong) {
    await assertRejects(() => httpToolsFromOpenAPI(spec, options), TypeError, message);
  }
  await assertRejects(() => httpToolsFromOpenAPI(spec, { timeoutMs: 0 }), RangeError, "timeoutMs");
  const resultMode = "xml" as "text";
  await assertRejects(() => httpToolsFromOpenAPI(spec, { resultMode }), TypeError, "resultMode");
  const relative = { ...spec, servers: [{ url: "/api/v3" }] };
  await assertRejects(() => httpToolsFromOpenAPI(relative), TypeError, "give baseUrl");
  const open = { ...spec, servers: [{ url: "https://{region}.api.test" }] };
  await assertRejects(
    () => httpToolsFromOpenAPI(open),
    TypeError,
    "server variable region has no value",
  );
  assertThrows(() => jsonSchema({ $ref: "#/nowhere" }), TypeError);
});

Deno.test("a skipped operation is a warning where nobody listens", async () => {
  const { warn } = console;
  const lines: unknown[] = [];
  console.warn = (line: unknown) => void lines.push(line);
  try {
    const content = { "multipart/form-data": {} };
    await httpToolsFromOpenAPI(documentOf("/a", { post: { requestBody: { content } } }));
  } finally {
    console.warn = warn;
  }
  assertEquals(lines, ["openapi: POST /a is no tool: body is multipart/form-data"]);
});

Deno.test({
  name: "a document is read without any permission",
  permissions: "none",
  async fn() {
    const spec = documentOf("/a", { get: { parameters: [{ $ref: "other.yaml#/P" }] }, post: {} });
    const reasons: string[] = [];
    const tools = await httpToolsFromOpenAPI(spec, { onSkip: (_, reason) => reasons.push(reason) });
    assertEquals(tools.map(({ name }) => name), ["post_a"]);
    assertEquals(reasons, ['$ref "other.yaml#/P" leads out of the document']);
  },
});
