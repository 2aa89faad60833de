import { assert, assertEquals, assertMatch, assertThrows } from "@std/assert";
import { type } from "npm:arktype@2.2.9";
import * as v from "npm:valibot@1.5.0";
import { toStandardJsonSchema } from "npm:@valibot/to-json-schema@1.8.0";
import * as z from "npm:zod@4.6.7";
import {
  defineTool,
  type JsonSchema,
  pending,
  pendingOf,
  type StandardJsonSchema,
  type ToolContext,
  type ToolResult,
} from "../mod.ts";
import { stubLlm } from "../src/testing/mod.ts";
import { clientOf } from "./client_kit.ts";

/** One schema in three libraries. */
const ORDER: Record<string, StandardJsonSchema<unknown, { city: string; items: { n: number }[] }>> =
  {
    zod: z.object({
      city: z.string(),
      items: z.array(z.object({ n: z.number().default(1) })),
    }),
    arktype: type({ city: "string", items: type({ n: "number = 1" }).array() }),
    valibot: toStandardJsonSchema(
      v.object({ city: v.string(), items: v.array(v.object({ n: v.optional(v.number(), 1) })) }),
    ),
  };

for (const [library, inputSchema] of Object.entries(ORDER)) {
  const order = () =>
    defineTool({
      name: "order",
      description: "Orders",
      inputSchema,
      run: ({ city, items }) => ({ city, total: items.reduce((sum, { n }) => sum + n, 0) }),
    });

  Deno.test(`${library}: a schema is declared as JSON Schema`, () => {
    const { properties, required, type, $schema } = order().inputSchema as Record<string, unknown>;
    assertEquals([type, $schema], ["object", undefined]);
    assertEquals((required as string[]).toSorted(), ["city", "items"]);
    const { items } = (properties as { items: { items: JsonSchema } }).items;
    assertEquals((items.properties as { n: JsonSchema }).n.type, "number");
    // Its default lets the model leave it out.
    assertEquals(items.required ?? [], []);
  });

  Deno.test(`${library}: a schema applies its defaults before run()`, async () => {
    const result = await order().execute({ city: "Paris", items: [{ n: 4 }, {}] });
    assertEquals(result, { output: '{"city":"Paris","total":5}', isError: false });
  });

  Deno.test(`${library}: a refused call is an error result with the places`, async () => {
    const { output, isError } = await order().execute({ items: [{ n: 1 }, { n: "2" }] });
    assertEquals(isError, true);
    assertMatch(output, /^invalid arguments for order: /);
    const problems = output.slice("invalid arguments for order: ".length).split("; ");
    assertEquals(problems.length, 2, output);
    assert(problems.some((problem) => problem.startsWith("city")), output);
    assert(problems.some((problem) => problem.startsWith("items[1].n")), output);
    assert(problems.every((problem) => !/^(\S+): \1/.test(problem)), `said twice: ${output}`);
  });
}

Deno.test("the model mends a call by what the error result says", async () => {
  await using server = stubLlm([
    { toolCalls: [{ name: "weather", args: { city: 7 } }] },
    ({ body }) => {
      assertMatch(String(body.messages.at(-1)?.content), /^invalid arguments for weather: city: /);
      return { toolCalls: [{ name: "weather", args: { city: "Paris" } }] };
    },
    "Sunny",
  ]);
  const weather = defineTool({
    name: "weather",
    description: "The weather",
    inputSchema: z.object({ city: z.string() }),
    run: ({ city }) => `Sunny in ${city}`,
  });
  const { toolCalls } = await clientOf(server, { toolkit: [weather] }).run("Weather?");
  assertEquals(toolCalls.map(({ isError }) => isError), [true, false]);
  assertEquals(toolCalls[1]?.output, "Sunny in Paris");
});

Deno.test("a schema may transform the arguments", async () => {
  const tool = defineTool({
    name: "t",
    description: "",
    inputSchema: z.object({ when: z.string().transform((text) => new Date(text)) }),
    run: ({ when }) => when.getUTCFullYear(),
  });
  assertEquals((await tool.execute({ when: "2026-11-30" })).output, "2026");
});

Deno.test("a schema may validate asynchronously", async () => {
  const known = new Set(["ann"]);
  const tool = defineTool({
    name: "greet",
    description: "",
    inputSchema: z.object({
      user: z.string().refine(async (name) => await Promise.resolve(known.has(name)), "unknown"),
    }),
    run: ({ user }) => `hi ${user}`,
  });
  assertEquals((await tool.execute({ user: "ann" })).output, "hi ann");
  const refused = await tool.execute({ user: "bob" });
  assertEquals(refused, { output: "invalid arguments for greet: user: unknown", isError: true });
});

Deno.test("a schema that throws is an error result", async () => {
  const { jsonSchema } = z.object({})["~standard"];
  const validate = () => Promise.reject(new Error("no database"));
  const inputSchema = { "~standard": { version: 1, vendor: "t", validate, jsonSchema } } as const;
  const tool = defineTool({ name: "t", description: "", inputSchema, run: () => "ran" });
  assertEquals(await tool.execute({}), { output: "no database", isError: true });
});

Deno.test("JSON Schema is made once, at definition, with the newest draft", async () => {
  const targets: string[] = [];
  const { validate } = z.object({})["~standard"];
  const input = ({ target }: { target: string }) => {
    targets.push(target);
    return { type: "object", properties: {} };
  };
  const inputSchema: StandardJsonSchema = {
    "~standard": { version: 1, vendor: "t", validate, jsonSchema: { input } },
  };
  const tool = defineTool({ name: "t", description: "", inputSchema, run: () => "ran" });
  assertEquals(tool.inputSchema, tool.inputSchema);
  await tool.execute({});
  await tool.execute({});
  assertEquals(targets, ["draft-2020-12"]);
});

Deno.test("a union of objects is declared as an object", () => {
  const inputSchema = z.union([z.object({ a: z.string() }), z.object({ b: z.string() })]);
  const tool = defineTool({ name: "t", description: "", inputSchema, run: () => "" });
  assertEquals(tool.inputSchema.type, "object");
  assertEquals((tool.inputSchema.anyOf as unknown[]).length, 2);
});

Deno.test("without a schema there are no arguments", () => {
  const { inputSchema } = defineTool({ name: "t", description: "", run: () => "" });
  assertEquals(inputSchema, { type: "object", properties: {}, additionalProperties: false });
});

Deno.test("a plain JSON Schema is declared as it is, and checks nothing", async () => {
  const inputSchema = { type: "object", properties: { n: { type: "number" } } } as const;
  const tool = defineTool({ name: "t", description: "", inputSchema, run: (args) => args });
  assertEquals(tool.inputSchema, inputSchema);
  assertEquals((await tool.execute({ n: "no number" })).output, '{"n":"no number"}');
});

Deno.test("a schema that does not describe arguments is a TypeError at definition", () => {
  const { "~standard": zod } = z.object({});
  const wrong: [unknown, string][] = [
    // Only validates: an older library.
    [{ "~standard": { version: 1, vendor: "t", validate: zod.validate } }, "no JSON Schema form"],
    [z.object({ when: z.date() }), "no JSON Schema form: Date cannot be represented"],
    [toStandardJsonSchema(v.object({ when: v.date() })), "no JSON Schema form"],
    [z.string(), 'must be of type "object": "string"'],
    [{ type: "array" }, 'must be of type "object": "array"'],
    ["object", 'must be an object: "object"'],
    [[], "must be an object: []"],
    [() => {}, "must be an object: a function"],
  ];
  for (const [inputSchema, message] of wrong) {
    const define = () =>
      defineTool({
        name: "t",
        description: "",
        inputSchema: inputSchema as JsonSchema,
        run: () => "",
      });
    const error = assertThrows(define, TypeError, message);
    assertMatch(error.message, /^inputSchema of tool t /);
  }
});

Deno.test("a wrong definition is told at once, by the tool's name", () => {
  const right = { name: "t", description: "d", run: () => "" };
  const wrong: [Record<string, unknown>, typeof TypeError | typeof RangeError, string][] = [
    [{ name: "" }, TypeError, 'tool name must be a non-empty string: ""'],
    [{ name: 7 }, TypeError, "tool name must be a non-empty string: 7"],
    [{ description: undefined }, TypeError, "description of tool t must be a string"],
    [{ run: "echo" }, TypeError, "run of tool t must be a function"],
    [{ timeoutMs: 0 }, RangeError, "timeoutMs of tool t must be above 0: 0"],
    [{ timeoutMs: NaN }, RangeError, "timeoutMs of tool t must be above 0"],
  ];
  for (const [change, kind, message] of wrong) {
    assertThrows(() => defineTool({ ...right, ...change } as typeof right), kind, message);
  }
});

Deno.test("what run() returns becomes the result", async () => {
  const cycle: unknown[] = [];
  cycle.push(cycle);
  const cases: [unknown, ToolResult][] = [
    ["text", { output: "text", isError: false }],
    [{ sky: "sunny" }, { output: '{"sky":"sunny"}', isError: false }],
    [[1, null], { output: "[1,null]", isError: false }],
    [0, { output: "0", isError: false }],
    [null, { output: "null", isError: false }],
    [undefined, { output: "", isError: false }],
    [{ output: "no", isError: true }, { output: "no", isError: true }],
    [
      { output: "yes", isError: false, metadata: { n: 1 } },
      { output: "yes", isError: false, metadata: { n: 1 } },
    ],
    [{ output: "a field of mine" }, { output: '{"output":"a field of mine"}', isError: false }],
    [Promise.resolve("later"), { output: "later", isError: false }],
  ];
  for (const [value, result] of cases) {
    const tool = defineTool({ name: "t", description: "", run: () => value });
    assertEquals(await tool.execute({}), result);
  }
  for (const value of [cycle, 1n]) {
    const { isError } = await defineTool({ name: "t", description: "", run: () => value })
      .execute({});
    assertEquals(isError, true, "what JSON cannot hold");
  }
});

Deno.test("a throw becomes an error result, whatever is thrown", async () => {
  for (
    const [thrown, output] of [
      [new Error("no such city"), "no such city"],
      ["a string", "a string"],
      [new Error(""), "t failed"],
    ]
  ) {
    const tool = defineTool({ name: "t", description: "", run: () => Promise.reject(thrown) });
    assertEquals(await tool.execute({}), { output: String(output), isError: true });
  }
});

Deno.test("a tool can be called without a context", async () => {
  let seen: ToolContext | undefined;
  const tool = defineTool({
    name: "t",
    description: "",
    run: (_, context) => void (seen = context),
  });
  await tool.execute({});
  assertEquals([seen?.signal.aborted, seen?.turn], [false, 1]);
  assertMatch(seen?.callId ?? "", /^call_/);
});

Deno.test("needsApproval is asked with checked arguments, and its text is the question", async () => {
  let runs = 0;
  const pay = defineTool({
    name: "pay",
    description: "Pays",
    inputSchema: z.object({ euro: z.number() }),
    needsApproval: ({ euro }) => euro > 10 && `Pay ${euro} EUR?`,
    run: ({ euro }) => `paid ${euro}, run ${++runs}`,
  });
  assertEquals((await pay.execute({ euro: 5 })).output, "paid 5, run 1");
  const asked = await pay.execute({ euro: 20 });
  assertEquals(pendingOf(asked)?.prompt, "Pay 20 EUR?");
  assertEquals(pendingOf(asked)?.data, { tool: "pay", args: { euro: 20 } });
  const bad = await pay.execute({ euro: "20" });
  assertEquals([bad.isError, pendingOf(bad)], [true, undefined]);
  const answer = { id: pendingOf(asked)!.id, ok: true };
  const context = { signal: new AbortController().signal, callId: "c", turn: 1, answer };
  assertEquals((await pay.execute({ euro: 20 }, context)).output, "paid 20, run 2");
  assertEquals(runs, 2);
});

Deno.test("run() may suspend by itself", async () => {
  const request = { id: "pnd-1", kind: "input", prompt: "Which one?" };
  const tool = defineTool({ name: "t", description: "", run: () => pending(request) });
  assertEquals(pendingOf(await tool.execute({})), request);
});

Deno.test("execute() never rejects", async () => {
  const tool = defineTool({
    name: "t",
    description: "",
    needsApproval: () => Promise.reject(new Error("no policy")),
    run: () => "ran",
  });
  assertEquals(await tool.execute({}), { output: "no policy", isError: true });
});
