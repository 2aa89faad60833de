// The types of a tool's arguments, from literal JSON Schema and from the schemas of other libraries.
// They are proven by `deno check`, which the test runner does first: a wrong type is a red line here.
import { assertEquals } from "@std/assert";
import { type } from "npm:arktype@2.2.9";
import * as v from "npm:valibot@1.5.0";
import { toStandardJsonSchema } from "npm:@valibot/to-json-schema@1.8.0";
import * as z from "npm:zod@4.6.7";
import { type ArgumentsOf, defineTool, type FromSchema, type JsonSchema } from "../mod.ts";
import { jsonSchema } from "../src/sources/json_schema.ts";

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends (<T>() => T extends B ? 1 : 2) ? true
  : false;

/** Does not compile unless the two types are the same. */
function assertType<_Claim extends true>(): void {}

/** The type of a schema given as a literal. */
function typed<const Schema>(_schema: Schema): FromSchema<Schema> {
  return undefined as FromSchema<Schema>;
}

Deno.test("the helper of these tests tells types apart", () => {
  assertType<Same<{ a: string }, { a: string }>>();
  // @ts-expect-error they differ
  assertType<Same<{ a: string }, { a?: string }>>();
  // @ts-expect-error `any` is no string
  // deno-lint-ignore no-explicit-any
  assertType<Same<string, any>>();
});

Deno.test("properties are optional unless they are required", () => {
  const value = typed({
    type: "object",
    properties: { city: { type: "string" }, days: { type: "integer" }, wind: { type: "boolean" } },
    required: ["city"],
  });
  assertType<Same<typeof value, { city: string; days?: number; wind?: boolean }>>();
});

Deno.test("objects and arrays nest", () => {
  const value = typed({
    type: "object",
    properties: {
      orders: {
        type: "array",
        items: {
          type: "object",
          properties: {
            sku: { type: "string" },
            tags: { type: "array", items: { type: "string" } },
          },
          required: ["sku"],
        },
      },
      anything: { type: "array" },
      pair: { type: "array", prefixItems: [{ type: "string" }, { type: "number" }], items: false },
    },
    required: ["orders", "anything", "pair"],
  });
  assertType<
    Same<
      typeof value,
      {
        orders: { sku: string; tags?: string[] }[];
        anything: unknown[];
        pair: (string | number)[];
      }
    >
  >();
});

Deno.test("enum, const and null are literal", () => {
  const value = typed({
    type: "object",
    properties: {
      unit: { type: "string", enum: ["C", "F"] },
      version: { const: 2 },
      note: { type: ["string", "null"] },
      choice: { enum: [1, "two", null] },
    },
    required: ["unit", "version", "note", "choice"],
  });
  assertType<
    Same<
      typeof value,
      { unit: "C" | "F"; version: 2; note: string | null; choice: 1 | "two" | null }
    >
  >();
});

Deno.test("anyOf and oneOf are unions, allOf is all of them", () => {
  const either = typed({ anyOf: [{ type: "string" }, { type: "number" }, { type: "null" }] });
  assertType<Same<typeof either, string | number | null>>();
  const shape = typed({
    oneOf: [
      { type: "object", properties: { circle: { type: "number" } }, required: ["circle"] },
      { type: "object", properties: { side: { type: "number" } }, required: ["side"] },
    ],
  });
  assertType<Same<typeof shape, { circle: number } | { side: number }>>();
  const both = typed({
    allOf: [
      { type: "object", properties: { a: { type: "string" } }, required: ["a"] },
      { type: "object", properties: { b: { type: "number" } } },
    ],
  });
  const fits: typeof both = { a: "x", b: 1 };
  // @ts-expect-error `a` is required by the first
  const missing: typeof both = { b: 1 };
  assertEquals([fits.a, missing.b], ["x", 1]);
  const narrowed = typed({
    type: "object",
    properties: { a: { type: "string" }, b: { type: "string" } },
    anyOf: [{ required: ["a"] }, { required: ["b"] }],
  });
  assertType<Same<typeof narrowed, { a?: string; b?: string }>>();
});

Deno.test("additionalProperties says what else there may be", () => {
  const closed = typed({ type: "object", additionalProperties: false });
  assertType<Same<typeof closed, Record<string, never>>>();
  const counts = typed({ type: "object", additionalProperties: { type: "number" } });
  assertType<Same<typeof counts, Record<string, number>>>();
  const open = typed({
    type: "object",
    properties: { id: { type: "string" } },
    required: ["id"],
    additionalProperties: true,
  });
  assertType<Same<typeof open.id, string>>();
  assertType<Same<(typeof open)[string], unknown>>();
  const free = typed({ type: "object" });
  assertType<Same<typeof free, Record<string, unknown>>>();
});

Deno.test("what is not said is unknown, never any", () => {
  const nothing = typed({ description: "whatever" });
  assertType<Same<typeof nothing, unknown>>();
  assertType<Same<FromSchema<JsonSchema>, unknown>>();
  assertType<Same<ArgumentsOf<JsonSchema>, Record<string, unknown>>>();
  assertType<Same<FromSchema<true>, unknown>>();
  assertType<Same<FromSchema<false>, never>>();
});

Deno.test("run() gets the type of a literal schema", async () => {
  const tool = defineTool({
    name: "t",
    description: "",
    inputSchema: {
      type: "object",
      properties: { city: { type: "string" }, days: { type: "number" } },
      required: ["city"],
    },
    needsApproval: (args) => {
      assertType<Same<typeof args, { city: string; days?: number }>>();
      return false;
    },
    run: (args) => {
      assertType<Same<typeof args, { city: string; days?: number }>>();
      // @ts-expect-error there is no such property
      args.town;
      return args.city;
    },
  });
  assertEquals((await tool.execute({ city: "Paris" })).output, "Paris");
});

Deno.test("run() gets an object of unknowns where the schema does not say more", async () => {
  const schema: JsonSchema = { type: "object" };
  const tools = [
    defineTool({
      name: "a",
      description: "",
      run: (args) => {
        assertType<Same<typeof args, Record<string, unknown>>>();
        return Object.keys(args).join();
      },
    }),
    defineTool({
      name: "b",
      description: "",
      inputSchema: schema,
      run: (args) => {
        assertType<Same<typeof args, Record<string, unknown>>>();
        return Object.keys(args).join();
      },
    }),
  ];
  assertEquals(await Promise.all(tools.map(async (t) => (await t.execute({ x: 1 })).output)), [
    "x",
    "x",
  ]);
});

Deno.test("run() gets the output type of a zod schema", async () => {
  const tool = defineTool({
    name: "t",
    description: "",
    inputSchema: z.object({
      city: z.string(),
      days: z.number().default(3),
      length: z.string().transform((text) => text.length),
      unit: z.enum(["C", "F"]).optional(),
    }),
    run: (args) => {
      assertType<
        Same<
          typeof args,
          { city: string; days: number; length: number; unit?: "C" | "F" | undefined }
        >
      >();
      return args;
    },
  });
  const { output } = await tool.execute({ city: "Paris", length: "four" });
  assertEquals(JSON.parse(output), { city: "Paris", days: 3, length: 4 });
});

Deno.test("a zod schema of a generic type is one too", async () => {
  const schema: z.ZodType<{ city: string }> = z.object({ city: z.string() });
  const tool = defineTool({
    name: "t",
    description: "",
    inputSchema: schema,
    run: (args) => {
      assertType<Same<typeof args, { city: string }>>();
      return args.city;
    },
  });
  assertEquals((await tool.execute({ city: "Paris" })).output, "Paris");
});

Deno.test("run() gets the output type of an arktype schema", async () => {
  const tool = defineTool({
    name: "t",
    description: "",
    inputSchema: type({ city: "string", "days?": "number", unit: "'C' | 'F'" }),
    run: (args) => {
      assertType<Same<typeof args, { city: string; unit: "C" | "F"; days?: number }>>();
      return args;
    },
  });
  const { output } = await tool.execute({ city: "Paris", unit: "C" });
  assertEquals(JSON.parse(output), { city: "Paris", unit: "C" });
});

Deno.test("run() gets the output type of a valibot schema", async () => {
  const tool = defineTool({
    name: "t",
    description: "",
    inputSchema: toStandardJsonSchema(
      v.object({ city: v.string(), days: v.optional(v.number(), 3), note: v.nullable(v.string()) }),
    ),
    run: (args) => {
      assertType<Same<typeof args, { city: string; days: number; note: string | null }>>();
      return args;
    },
  });
  const { output } = await tool.execute({ city: "Paris", note: null });
  assertEquals(JSON.parse(output), { city: "Paris", days: 3, note: null });
});

Deno.test("run() gets the type of a wrapped JSON Schema", async () => {
  const tool = defineTool({
    name: "t",
    description: "",
    inputSchema: jsonSchema({
      type: "object",
      properties: { city: { type: "string" }, unit: { enum: ["C", "F"] } },
      required: ["city"],
    }),
    run: (args) => {
      assertType<Same<typeof args, { city: string; unit?: "C" | "F" }>>();
      return args.city;
    },
  });
  assertEquals((await tool.execute({ city: "Paris" })).output, "Paris");
});
