import { assertEquals, assertStrictEquals } from "@std/assert";
import * as z from "npm:zod@4.6.7";
import { defineTool, type JsonSchema, toAnthropic, toGemini, toOpenAI } from "../mod.ts";
import { objectSchema } from "../src/tools/object_schema.ts";
import { toolOf } from "./client_kit.ts";

/** A schema as each provider is told of it. */
function declared(inputSchema: JsonSchema): unknown[] {
  const tools = [{ ...toolOf("move"), inputSchema }];
  return [
    toOpenAI(tools)[0]?.function.parameters,
    toAnthropic(tools)[0]?.input_schema,
    toGemini(tools)[0]?.functionDeclarations[0]?.parameters,
  ];
}

const text = { type: "string" };
const place = { type: "object", properties: { to: text }, required: ["to"] };

Deno.test("a schema that all providers take is declared as the object that it is", () => {
  const inputSchema = { ...place, $defs: { a: { anyOf: [text, { type: "null" }] } } };
  assertStrictEquals(objectSchema(inputSchema), inputSchema);
  assertEquals(declared(inputSchema), [inputSchema, inputSchema, inputSchema]);
});

Deno.test("a schema without a type is declared as that of an object", () => {
  const none = { type: "object" };
  assertEquals(declared({}), [{ ...none, properties: {} }, none, none]);
  const untyped = { properties: { to: text } };
  assertEquals(objectSchema(untyped), { type: "object", ...untyped });
  assertEquals(objectSchema({ ...place, type: ["object", "null"] }), place);
});

Deno.test("a union at the top is declared as one object: what all need is needed, what differs is either", () => {
  const walk = {
    type: "object",
    properties: { by: { const: "foot" }, to: text, pace: { type: "number" } },
    required: ["by", "to"],
    additionalProperties: false,
  };
  const fly = {
    type: "object",
    properties: { by: { const: "air" }, to: text, seat: text },
    required: ["by", "to", "seat"],
  };
  const wanted = {
    description: "How to go",
    type: "object",
    properties: {
      by: { anyOf: [{ const: "foot" }, { const: "air" }] },
      to: text,
      pace: { type: "number" },
      seat: text,
    },
    required: ["by", "to"],
  };
  for (const keyword of ["anyOf", "oneOf"]) {
    const inputSchema = { description: "How to go", [keyword]: [walk, fly, { type: "null" }] };
    assertEquals(declared(inputSchema), [wanted, wanted, wanted]);
    assertEquals(Object.keys(inputSchema), ["description", keyword]);
  }
});

Deno.test("what must hold together is declared as one object that needs all", () => {
  assertEquals(
    objectSchema({
      type: "object",
      properties: { to: text, by: {} },
      required: ["by"],
      allOf: [{ properties: { to: { minLength: 1 } }, required: ["to"] }, {
        not: { required: [] },
      }],
      oneOf: [{ required: ["a"] }, { required: ["b"] }],
      not: { required: ["c"] },
    }),
    {
      type: "object",
      properties: { to: { allOf: [text, { minLength: 1 }] }, by: {} },
      required: ["by", "to"],
    },
  );
  assertEquals(objectSchema({ enum: [{ to: "Rome" }] }), { type: "object" });
  assertEquals(objectSchema({ anyOf: [place, true] }), {
    type: "object",
    properties: { to: text },
  });
});

Deno.test("references at the top are followed, round in a circle too", () => {
  const $defs = {
    "a/b": { anyOf: [place, { $ref: "#/$defs/a~1b" }, { $ref: "#" }] },
    tree: { ...place, properties: { to: text, next: { $ref: "#/$defs/tree" } } },
  };
  assertEquals(objectSchema({ $ref: "#/$defs/tree", $defs }), { ...$defs.tree, $defs });
  assertEquals(objectSchema({ $ref: "#/$defs/a~1b", $defs }), {
    $defs,
    type: "object",
    properties: { to: text },
  });
  for (const $ref of ["#/$defs/none", "https://example.com/schema", "#/toString"]) {
    assertEquals(objectSchema({ $ref }), { type: "object" });
  }
});

Deno.test("a schema whose references double at each step is folded in good time", () => {
  const $defs: Record<string, unknown> = { step0: place };
  for (let step = 1; step <= 60; step++) {
    const $ref = `#/$defs/step${step - 1}`;
    $defs[`step${step}`] = { anyOf: [{ $ref }, { $ref }] };
  }
  assertEquals(objectSchema({ $ref: "#/$defs/step60", $defs }), { ...place, $defs });
});

Deno.test("a union of a schema library is declared as one object, and checked as a union", async () => {
  const inputSchema = z.discriminatedUnion("by", [
    z.object({ by: z.literal("foot"), pace: z.number() }),
    z.object({ by: z.literal("air"), seat: z.string() }),
  ]);
  const move = defineTool({ name: "move", description: "", inputSchema, run: ({ by }) => by });
  const { type, required, ...others } = toAnthropic([move])[0]!.input_schema;
  assertEquals([type, required], ["object", ["by"]]);
  assertEquals(Object.keys(others.properties as object).sort(), ["by", "pace", "seat"]);
  assertEquals(["anyOf" in others, "oneOf" in others], [false, false]);
  assertEquals((await move.execute({ by: "air", seat: "1A" })).output, "air");
  assertEquals((await move.execute({ by: "air", pace: 3 })).isError, true);
});
