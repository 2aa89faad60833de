/** The schemas of an OpenAPI document as the JSON Schema that a tool declares. */
import { assert, assertEquals } from "@std/assert";
import type { JsonSchema } from "../mod.ts";
import { httpToolsFromOpenAPI } from "../src/sources/openapi.ts";
import { documentOf } from "./openapi_kit.ts";

Deno.test("what JSON Schema does not know, or not in this shape, is left out", async () => {
  const schema = await schemaOf({
    type: "object",
    $schema: "https://json-schema.org/draft/2020-12/schema",
    $id: "https://elsewhere.test/schema",
    $defs: { Inner: { $ref: "#/components/schemas/Money" } },
    properties: {
      $id: { type: "string", $comment: "the property of this name stays", min_items: 3 },
      price: { $ref: "#/components/schemas/Money/$defs/Amount" },
      note: { type: "string", title: 7, description: { $ref: "#/components/schemas/Money" } },
      tree: { type: "array", minItems: "1", allOf: {}, items: { $recursiveRef: "#" } },
      json: { type: "string", contentSchema: { $ref: "#/components/schemas/Money" } },
      old: { type: "object", dependencies: { a: { $ref: "#/components/schemas/Money" } } },
      kept: { type: "object", default: { $ref: "a value", "x-y": 1 } },
    },
  }, { Money: { $defs: { Amount: { type: "number" } }, type: "object" } });
  assertEquals(schema.properties, {
    _id: { type: "string" },
    price: { type: "number" },
    note: { type: "string" },
    tree: { type: "array", items: {} },
    json: { type: "string", contentSchema: { type: "object" } },
    old: { type: "object" },
    kept: { type: "object", default: { $ref: "a value", "x-y": 1 } },
  });
  assert(!("$defs" in schema));
});

Deno.test("values that grow without bound or contain themselves are refused, whatever holds them", async () => {
  const reasons: string[] = [];
  const read = (anchors: string[], schema: string) =>
    httpToolsFromOpenAPI(
      `
openapi: 3.1.0
servers: [{ url: "http://api.test" }]
${anchors.join("\n")}
paths: { /a: { post: { requestBody: { content: { application/json: { schema: ${schema} } } } } } }
`,
      { onSkip: (_, why) => reasons.push(why) },
    );
  const grown = ["x0: &x0 [a]"];
  for (let step = 1; step <= 12; step++) {
    grown.push(`x${step}: &x${step} [${Array(10).fill(`*x${step - 1}`).join()}]`);
  }
  const long = [`x0: &x0 { description: ${"long ".repeat(1_000)} }`];
  const many = Array.from({ length: 1_000 }, (_, index) => `p${index}: *x0`).join();
  const wrong: [string[], string][] = [
    [grown, "{ properties: { a: { default: *x12 } } }"],
    [grown, "{ properties: { a: { enum: *x12 } } }"],
    [[], "{ properties: { a: { default: &d { self: *d } } } }"],
    [[], "&s { properties: { a: { items: *s } } }"],
    [long, `{ properties: { ${many} } }`],
  ];
  for (const [anchors, schema] of wrong) assertEquals(await read(anchors, schema), []);
  assertEquals(reasons, wrong.map(() => "schemas have more than 20000 parts"));
  // What is left out is not read either.
  const [tool] = await read(grown, "{ properties: { a: { type: string, example: *x12 } } }");
  assertEquals(tool?.inputSchema.properties, { a: { type: "string" } });
});

Deno.test("a long schema that is referred to often is a definition, a short one is put in place", async () => {
  const values = Array.from({ length: 100 }, (_, index) => `value ${index}`);
  const schema = await schemaOf({
    type: "object",
    properties: { a: ref("Long"), b: ref("Long"), c: ref("Short"), d: ref("Short") },
  }, { Long: { enum: values }, Short: { enum: ["x", "y"] } });
  assertEquals(schema.$defs, { Long: { enum: values } });
  const { a, d } = schema.properties as Record<string, JsonSchema>;
  assertEquals([a, d], [{ $ref: "#/$defs/Long" }, { enum: ["x", "y"] }]);
});

Deno.test("in OpenAPI 3.1 what stands beside a reference is one more condition", async () => {
  const schemas = {
    Base: { type: "object", properties: { id: { type: "string" } }, required: ["id"] },
  };
  const extended = { ...ref("Base"), properties: { extra: {} }, required: ["extra"] };
  const { properties, required } = await schemaOf(extended, schemas);
  assertEquals([properties, required], [{ id: { type: "string" }, extra: {} }, ["id", "extra"]]);
  const nested = await schemaOf({ properties: { a: extended } }, schemas);
  const beside = { type: "object", properties: { extra: {} }, required: ["extra"] };
  assertEquals(nested.properties, { a: { allOf: [schemas.Base, beside] } });
});

Deno.test("in OpenAPI 3.0 what stands beside a reference is ignored, but descriptions are kept", async () => {
  const schemas = { Name: { type: "string", minLength: 1 } };
  const name = { ...ref("Name"), minLength: 9, description: "Who", nullable: true, default: "x" };
  const { properties } = await schemaOf({ properties: { name } }, schemas, "3.0.3");
  assertEquals(properties, {
    name: { type: ["string", "null"], minLength: 1, description: "Who", default: "x" },
  });
});

Deno.test("a property that two parts of a body describe has the conditions of both", async () => {
  const { properties, required } = await schemaOf({
    allOf: [
      {
        properties: {
          status: { type: "string", enum: ["a", "b"] },
          size: { type: "integer", minimum: 1 },
          owner: ref("Owner"),
          id: { type: "string", readOnly: true },
        },
        required: ["id", "size"],
      },
      {
        properties: {
          status: { description: "How it is" },
          size: { type: "integer", minimum: 2 },
          owner: { properties: { name: { type: "string" } } },
          id: { description: "Set by the server" },
        },
      },
      { properties: { size: { type: "integer", maximum: 9 } } },
    ],
  }, { Owner: { type: "object", properties: { id: { type: "string" } } } });
  assertEquals(properties, {
    status: { type: "string", enum: ["a", "b"], description: "How it is" },
    size: {
      allOf: [
        { allOf: [{ type: "integer", minimum: 1 }, { type: "integer", minimum: 2 }] },
        { type: "integer", maximum: 9 },
      ],
    },
    owner: {
      allOf: [
        { type: "object", properties: { id: { type: "string" } } },
        { type: "object", properties: { name: { type: "string" } } },
      ],
    },
  });
  assertEquals(required, ["size"]);
});

Deno.test("a body with properties of any name stays one argument", async () => {
  const body = { type: "object", properties: { a: {} }, patternProperties: { "^x-": {} } };
  assertEquals((await schemaOf(body)).properties, { body });
});

function ref(name: string) {
  return { $ref: `#/components/schemas/${name}` };
}

/** The arguments of an operation with this body. */
async function schemaOf(schema: object, schemas: object = {}, openapi = "3.1.0") {
  const requestBody = { required: true, content: { "application/json": { schema } } };
  const rest = { openapi, components: { schemas } };
  const [tool] = await httpToolsFromOpenAPI(documentOf("/a", { post: { requestBody } }, rest));
  return tool!.inputSchema;
}

Deno.test("a property described anew is one schema, unless one of its forms allows null", async () => {
  const Size = { type: "string", enum: ["s", "m"] };
  const schema = await schemaOf(
    {
      allOf: [
        {
          properties: {
            size: { $ref: "#/components/schemas/Size" },
            note: { type: "string", nullable: true },
          },
        },
        {
          properties: {
            size: { $ref: "#/components/schemas/Size", description: "of the shirt" },
            note: { type: "string", enum: ["x"] },
          },
        },
      ],
    },
    { Size },
    "3.0.3",
  );
  assertEquals(schema.properties, {
    size: { ...Size, description: "of the shirt" },
    note: { allOf: [{ type: ["string", "null"] }, { type: "string", enum: ["x"] }] },
  });
});
