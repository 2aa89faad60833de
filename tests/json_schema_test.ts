import { assert, assertEquals, assertMatch, assertThrows } from "@std/assert";
import { defineTool, type JsonSchema } from "../mod.ts";
import { jsonSchema } from "../src/sources/json_schema.ts";

/** The problems of a value, as `place: message`. */
async function problems(schema: JsonSchema, value: unknown): Promise<string[]> {
  const { issues = [] } = await jsonSchema(schema)["~standard"].validate(value);
  return issues.map(({ message, path }) => `${path?.join("/")}: ${message}`);
}

const ORDER = {
  type: "object",
  properties: {
    city: { type: "string", minLength: 1 },
    items: {
      type: "array",
      items: {
        type: "object",
        properties: { sku: { type: "string" }, n: { type: "integer", minimum: 1 } },
        required: ["sku"],
        additionalProperties: false,
      },
    },
    unit: { enum: ["kg", "lb"] },
  },
  required: ["city", "items"],
  additionalProperties: false,
} as const;

Deno.test("a value that fits is given back as it is", async () => {
  const value = { city: "Paris", items: [{ sku: "a", n: 2 }], unit: "kg" };
  const result = await jsonSchema(ORDER)["~standard"].validate(value);
  assert(result.issues === undefined);
  assert(result.value === value as unknown, "no copy, no change");
});

Deno.test("every problem is told, each once and with its place", async () => {
  const value = { items: [{ sku: "a" }, { n: 0, size: 1 }], unit: "g", extra: true };
  assertEquals(await problems(ORDER, value), [
    ': Instance does not have required property "city"',
    'items/1: Instance does not have required property "sku"',
    "items/1/n: 0 is less than 1",
    "items/1/size: is not allowed",
    'unit: Instance does not match any of ["kg","lb"]',
    "extra: is not allowed",
  ]);
});

Deno.test("a tool turns a bad call away with the list", async () => {
  let runs = 0;
  const tool = defineTool({
    name: "order",
    description: "Orders",
    inputSchema: jsonSchema(ORDER),
    run: ({ city, items }) => `${++runs}: ${items.length} to ${city}`,
  });
  assertEquals(tool.inputSchema, ORDER);
  const good = await tool.execute({ city: "Paris", items: [] });
  assertEquals(good.output, "1: 0 to Paris");
  const bad = await tool.execute({ city: "", items: [{ sku: 7 }] });
  assertEquals([bad.isError, runs], [true, 1]);
  assertMatch(bad.output, /^invalid arguments for order: city: String is too short/);
  assertMatch(bad.output, /items\[0\]\.sku: Instance type "number" is invalid/);
});

Deno.test("the schema that was given is neither changed nor held on to", async () => {
  const schema = { type: "object", properties: { n: { type: "number" } } };
  const before = JSON.stringify(schema);
  const wrapped = jsonSchema(schema);
  await wrapped["~standard"].validate({ n: 1 });
  assertEquals(JSON.stringify(schema), before);
  assertEquals(Object.getOwnPropertyNames(schema.properties.n), ["type"]);
  schema.properties.n.type = "string";
  const { validate, jsonSchema: form } = wrapped["~standard"];
  assertEquals((await validate({ n: 1 })).issues, undefined);
  assertEquals(JSON.stringify(form.input({ target: "draft-2020-12" })), before);
});

Deno.test("references are followed, also in circles", async () => {
  const tree = {
    $ref: "#/$defs/node",
    $defs: {
      node: {
        type: "object",
        properties: {
          label: { type: "string" },
          children: { type: "array", items: { $ref: "#/$defs/node" } },
        },
      },
    },
  };
  const value = { label: "a", children: [{ children: [{ label: 7 }] }] };
  assertEquals(await problems(tree, value), [
    'children/0/children/0/label: Instance type "number" is invalid. Expected "string"',
  ]);
});

Deno.test("of alternatives, what each would need is told", async () => {
  const schema = {
    properties: {
      when: { anyOf: [{ type: "null" }, { type: "string", format: "date" }] },
    },
  };
  assertEquals(await problems(schema, { when: null }), []);
  assertEquals(await problems(schema, { when: "2026-11-30" }), []);
  assertEquals(await problems(schema, { when: "soon" }), [
    "when: Instance does not match any subschemas",
    'when: Instance type "string" is invalid. Expected "null"',
    'when: String does not match format "date"',
  ]);
});

Deno.test("names with odd characters keep their place", async () => {
  const name = "a/b~c %#é";
  const schema = { properties: { [name]: { type: "string" } } };
  const { issues } = await jsonSchema(schema)["~standard"].validate({ [name]: 1 });
  assertEquals(issues?.map(({ path }) => path), [[name]]);
});

Deno.test("the draft is that of $schema, 2020-12 where there is none", async () => {
  const pair = { items: [{ type: "string" }], additionalItems: false };
  const draft7 = { $schema: "http://json-schema.org/draft-07/schema#", ...pair };
  assertEquals((await problems(draft7, ["a", "b"])).length, 1);
  const newest = { prefixItems: [{ type: "string" }], items: false };
  assertEquals((await problems(newest, ["a", "b"])).length, 1);
  // In draft 7 nothing beside a `$ref` counts.
  const beside = { $ref: "#/definitions/any", type: "string", definitions: { any: {} } };
  assertEquals(await problems({ $schema: draft7.$schema, ...beside }, 7), []);
  assertEquals((await problems(beside, 7)).length, 1);
});

Deno.test("the dialect is not declared to the endpoint", () => {
  const schema = { $schema: "https://json-schema.org/draft/2020-12/schema", type: "object" };
  const inputSchema = jsonSchema(schema);
  const tool = defineTool({ name: "t", description: "", inputSchema, run: () => "" });
  assertEquals(tool.inputSchema, { type: "object" });
});

Deno.test("a schema that could never check anything is a TypeError at once", () => {
  const wrong: [unknown, string][] = [
    [null, "JSON Schema must be an object: null"],
    [[], "JSON Schema must be an object: []"],
    ["object", 'JSON Schema must be an object: "object"'],
    [{ properties: { a: { $ref: "#/$defs/b" } } }, '$ref "#/$defs/b" of the JSON Schema leads'],
    [{ $ref: "https://schemas.test/a.json" }, '$ref "https://schemas.test/a.json" of the'],
    [{ properties: { a: { pattern: "(" } } }, 'pattern "(" of the JSON Schema is no regular'],
    [{ patternProperties: { "[": {} } }, 'pattern "[" of the JSON Schema is no regular'],
  ];
  for (const [schema, message] of wrong) {
    assertThrows(() => jsonSchema(schema as JsonSchema), TypeError, message);
  }
});

Deno.test({
  name: "checking needs no permission, and no eval",
  permissions: "none",
  async fn() {
    const { Function } = globalThis;
    globalThis.Function = new Proxy(Function, {
      construct: () => {
        throw new EvalError("no code from strings here");
      },
    });
    try {
      assertEquals((await problems(ORDER, { city: 7 })).length, 2);
    } finally {
      globalThis.Function = Function;
    }
  },
});
