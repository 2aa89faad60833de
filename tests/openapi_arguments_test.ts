/** The arguments of an OpenAPI operation's tool: their schema, and how they are sent. */
import { assert, assertEquals } from "@std/assert";
import type { JsonSchema } from "../mod.ts";
import { jsonSchema } from "../src/sources/json_schema.ts";
import { httpToolsFromOpenAPI } from "../src/sources/openapi.ts";
import { documentOf, Library } from "./openapi_kit.ts";

Deno.test("query parameters are sent in the style of each", async () => {
  await using server = await Library.open();
  const { line } = await server.call("books_list", {
    tag: ["a&b", "c"],
    page: 2,
    sort_by_: "year",
    ids: [1, 2],
    colors: ["red", "blue"],
    filter: { year: { gte: 1800 }, in: ["en"] },
    size: { w: 3, h: 4 },
    where: { a: [1] },
  });
  assertEquals(
    line,
    "GET /v1/books?tag=a&b&tag=c&page=2&sort[by]=year&ids=1,2&colors=red|blue" +
      '&filter[year][gte]=1800&filter[in][0]=en&w=3&h=4&where={"a":[1]}',
  );
});

Deno.test("headers and cookies are sent, those of the request itself are no arguments", async () => {
  await using server = await Library.open();
  const { headers } = await server.call("books_list", { "X-Trace": ["a", "b"], session: "x;y" });
  assertEquals(headers.get("x-trace"), "a,b");
  assertEquals(headers.get("cookie"), "session=x%3By");
  assertEquals(headers.get("accept"), "application/json");
  const names = Object.keys(server.properties("books_list"));
  assertEquals(names.filter((name) => /^(accept|authorization)$/i.test(name)), []);
});

Deno.test("an operation's parameter stands in for its path's", async () => {
  await using server = await Library.open();
  assertEquals(server.properties("delete_books_id"), {
    id: { type: "integer", description: "Overridden" },
  });
  assertEquals(server.properties("books_put").id, { type: "string", description: "Which one" });
});

Deno.test("the properties of a body are arguments, without those that the server sets", async () => {
  await using server = await Library.open();
  const { properties, required, additionalProperties } = server.tool("books_create")
    .inputSchema as { [key: string]: unknown; properties: object };
  assertEquals(Object.keys(properties), [
    "title",
    "subtitle",
    "format",
    "author",
    "editor",
    "sequel",
    "keywords",
    "isbn",
  ]);
  assertEquals([required, additionalProperties], [["title", "isbn"], false]);
  const { headers } = await server.call("books_create", { title: "Emma", isbn: "1" });
  assertEquals(headers.get("content-type"), "application/json");
});

Deno.test("a body that may be left out demands nothing, and is sent as the type it has", async () => {
  await using server = await Library.open();
  assertEquals(server.tool("books_put").inputSchema.required, ["id"]);
  const bare = await server.call("books_put", { id: "x" });
  assertEquals([bare.body, bare.headers.get("content-type")], ["", null]);
  const { body, headers } = await server.call("books_put", { id: "x", subtitle: null });
  assertEquals(body, '{"subtitle":null}');
  assertEquals(headers.get("content-type"), "application/merge-patch+json");
});

Deno.test("a body that is no object with properties is the argument `body`", async () => {
  await using server = await Library.open();
  assertEquals(server.tool("shelve").inputSchema.required, ["body"]);
  const { body } = await server.call("shelve", { body: [{ label: "a" }] });
  assertEquals(body, '[{"label":"a"}]');
  const note = await server.call("note", { body: "plain text" });
  assertEquals([note.body, note.headers.get("content-type")], ["plain text", "text/plain"]);
});

Deno.test("a form is encoded as the document says, else with brackets", async () => {
  await using server = await Library.open();
  const { body, headers } = await server.call("lend", {
    book: "Emma & co",
    tags: ["a", "b"],
    to: { name: "Ann" },
    days: [1, 2],
  });
  assertEquals(headers.get("content-type"), "application/x-www-form-urlencoded");
  assertEquals([...new URLSearchParams(body)], [
    ["book", "Emma & co"],
    ["tags", "a"],
    ["tags", "b"],
    ["to[name]", "Ann"],
    ["days", "1,2"],
  ]);
});

Deno.test("OpenAPI 3.0 schemas become JSON Schema", async () => {
  await using server = await Library.open();
  const list = server.properties("books_list");
  assertEquals(list.page, { type: "integer", exclusiveMinimum: 0 });
  const { title, subtitle, format, keywords } = server.properties("books_create");
  assertEquals(title, { type: "string" });
  assertEquals(subtitle, { type: ["string", "null"] });
  assertEquals(format, { type: ["string", "null"], enum: ["paper", "audio", null] });
  assertEquals(keywords, { type: "array", items: {} });
});

Deno.test("a schema used once is put in place; one used more often, or by itself, is a definition", async () => {
  await using server = await Library.open();
  const { author, editor, sequel } = server.properties("books_create");
  assertEquals(author, { $ref: "#/$defs/Person" });
  assertEquals(editor, { $ref: "#/$defs/Person", description: "Who made it ready" });
  assertEquals(sequel, { $ref: "#/$defs/Book" });
  const { $defs } = server.tool("books_create").inputSchema as {
    $defs: Record<string, JsonSchema>;
  };
  assertEquals(Object.keys($defs).toSorted(), ["Book", "Person"]);
  assertEquals($defs.Person, {
    type: "object",
    properties: { name: { type: "string", minLength: 1 }, born: { type: "integer" } },
  });
  assertEquals($defs.Book?.required, ["title"]);
});

Deno.test("a schema that contains itself stays whole: it can still be checked against", async () => {
  await using server = await Library.open();
  const { "~standard": shelve } = jsonSchema(server.tool("shelve").inputSchema);
  const deep = (label: unknown) => ({ body: [{ label: "a", inside: { inside: { label } } }] });
  assertEquals(await shelve.validate(deep("b")), { value: deep("b") });
  const { issues } = await shelve.validate(deep(7));
  assertEquals(issues?.map(({ path }) => path), [["body", 0, "inside", "inside", "label"]]);
});

Deno.test("a name that comes twice is told apart by its place", async () => {
  const parameter = (place: string) => ({ name: "id", in: place, schema: { type: "string" } });
  const schema = {
    type: "object",
    properties: { id: { type: "string" }, body_id: { type: "string" } },
  };
  const spec = documentOf("/users/{id}", {
    post: {
      operationId: "move",
      parameters: ["cookie", "header", "query", "path"].map(parameter),
      requestBody: { content: { "application/json": { schema } } },
    },
  });
  await using server = await Library.open(spec);
  const tools = await httpToolsFromOpenAPI(spec, { baseUrl: `http://${server.host}` });
  const names = Object.keys(tools[0]?.inputSchema.properties as object);
  assertEquals(names, ["id", "query_id", "header_id", "cookie_id", "body_id", "body_body_id"]);
  await tools[0]?.execute(Object.fromEntries(names.map((name) => [name, `<${name}>`])));
  const { line, headers, body } = server.seen[0]!;
  assertEquals(line, "POST /users/%3Cid%3E?id=<query_id>");
  assertEquals(headers.get("id"), "<header_id>");
  assertEquals(headers.get("cookie"), "id=%3Ccookie_id%3E");
  assertEquals(JSON.parse(body), { id: "<body_id>", body_id: "<body_body_id>" });
});

Deno.test("a document that doubles at every step is read in no time, or refused", async () => {
  const schemas: Record<string, object> = { S40: { properties: { a: { type: "string" } } } };
  for (let step = 0; step < 40; step++) {
    const next = { $ref: `#/components/schemas/S${step + 1}` };
    schemas[`S${step}`] = { allOf: [next, next] };
  }
  const content = { "application/json": { schema: { $ref: "#/components/schemas/S0" } } };
  const references = documentOf("/a", { post: { requestBody: { content } } }, {
    components: { schemas },
  });
  const [tool] = await httpToolsFromOpenAPI(references);
  assertEquals(tool?.inputSchema.properties, { a: { type: "string" } });

  const anchors = ["x0: &x0 { type: object, properties: { a: { type: string } } }"];
  for (let step = 1; step <= 40; step++) {
    anchors.push(
      `x${step}: &x${step} { type: object, properties: { a: *x${step - 1}, b: *x${step - 1} } }`,
    );
  }
  const reasons: string[] = [];
  const text = `
openapi: 3.1.0
servers: [{ url: "http://api.test" }]
${anchors.join("\n")}
paths: { /a: { post: { requestBody: { content: { application/json: { schema: *x40 } } } } } }
`;
  assertEquals(await httpToolsFromOpenAPI(text, { onSkip: (_, why) => reasons.push(why) }), []);
  assertEquals(reasons, ["schemas have more than 20000 parts"]);
});

Deno.test("OpenAPI 3.1 keeps what JSON Schema knows", async () => {
  const schema = {
    type: "object",
    properties: {
      note: { type: ["string", "null"], examples: ["x"] },
      kind: { const: "order" },
      pair: { type: "array", prefixItems: [{ type: "string" }, { type: "number" }] },
      extra: { type: "object", additionalProperties: { $ref: "#/components/schemas/Money" } },
      total: { $ref: "#/components/schemas/Money", description: "All of it" },
    },
  };
  const Money = { type: "object", properties: { amount: { type: "number", exclusiveMinimum: 0 } } };
  const tools = await httpToolsFromOpenAPI(documentOf("/orders", {
    post: { requestBody: { content: { "application/json": { schema } } } },
  }, { components: { schemas: { Money } } }));
  assertEquals(tools[0]?.inputSchema, {
    type: "object",
    properties: {
      note: { type: ["string", "null"], examples: ["x"] },
      kind: { const: "order" },
      pair: { type: "array", prefixItems: [{ type: "string" }, { type: "number" }] },
      extra: { type: "object", additionalProperties: { $ref: "#/$defs/Money" } },
      total: { $ref: "#/$defs/Money", description: "All of it" },
    },
    additionalProperties: false,
    $defs: { Money },
  });
});

Deno.test("references in circles end, in schemas and elsewhere", async () => {
  const reasons: string[] = [];
  const spec = documentOf("/a", {
    get: { parameters: [{ $ref: "#/components/parameters/A" }] },
    post: { requestBody: { content: { "application/json": { schema: ref("A") } } } },
  }, {
    components: {
      parameters: {
        A: { $ref: "#/components/parameters/B" },
        B: { $ref: "#/components/parameters/A" },
      },
      schemas: {
        A: { allOf: [ref("B")], properties: { b: ref("B") } },
        B: { allOf: [ref("A")], properties: { a: ref("A") } },
      },
    },
  });
  const tools = await httpToolsFromOpenAPI(spec, { onSkip: (_, reason) => reasons.push(reason) });
  assertEquals(reasons, ['$ref "#/components/parameters/A" leads to itself']);
  assertEquals(tools.map(({ name }) => name), ["post_a"]);
  assert(JSON.stringify(tools[0]?.inputSchema).length < 1000);

  function ref(name: string) {
    return { $ref: `#/components/schemas/${name}` };
  }
});
