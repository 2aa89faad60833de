// Typed tools: the arguments get their type from a schema, and a bad call never reaches your code.
// zod, arktype, valibot and plain JSON Schema do the same job; take the one you have.
//
//   deno run --allow-net=127.0.0.1 examples/typed_tools.ts

import { createClient, defineTool } from "@toolnexus/client";
import { jsonSchema } from "@toolnexus/client/json-schema";
import { stubLlm } from "@toolnexus/client/testing";
import { type } from "npm:arktype@2";
import * as v from "npm:valibot@1";
import { toStandardJsonSchema } from "npm:@valibot/to-json-schema@1";
import * as z from "npm:zod@4";

await using server = stubLlm([
  {
    toolCalls: [
      { name: "weather", args: { city: "Paris" } },
      { name: "convert", args: { celsius: "warm" } },
      { name: "remind", args: { on: "2026-12-24", who: ["Ann"] } },
      { name: "roll", args: { sides: 1 } },
    ],
  },
  // The model is told what was wrong with two of its calls, and mends them.
  {
    toolCalls: [
      { name: "convert", args: { celsius: 21 } },
      { name: "roll", args: { sides: 6 } },
    ],
  },
  "Done.",
]);

const weather = defineTool({
  name: "weather",
  description: "The weather in a city",
  inputSchema: z.object({ city: z.string(), days: z.number().int().default(3) }),
  run: ({ city, days }) => `${days} sunny days in ${city}`, // days: number, 3 where left out
});
const convert = defineTool({
  name: "convert",
  description: "Celsius to Fahrenheit",
  inputSchema: type({ celsius: "number" }),
  run: ({ celsius }) => `${Math.round(celsius * 1.8 + 32)} °F`,
});
const remind = defineTool({
  name: "remind",
  description: "Reminds people of a day",
  inputSchema: toStandardJsonSchema(
    v.object({ on: v.pipe(v.string(), v.isoDate()), who: v.array(v.string()) }),
  ),
  run: ({ on, who }) => `${who.join(" and ")} will be reminded on ${on}`,
});
const roll = defineTool({
  name: "roll",
  description: "Rolls a die",
  inputSchema: jsonSchema({
    type: "object",
    properties: { sides: { type: "integer", minimum: 2 } },
    required: ["sides"],
  }),
  run: ({ sides }) => `${sides} of ${sides}`,
});

const client = createClient({
  baseUrl: server.baseUrl,
  style: "openai",
  model: "test",
  toolkit: [weather, convert, remind, roll],
});
const { text, toolCalls } = await client.run("Weather, 21 °C, Christmas, and a roll");

for (const { name, output, isError } of toolCalls) {
  console.log(`${isError ? "refused" : "ran"} ${name}: ${output}`);
}
console.log(text);
