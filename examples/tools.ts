// Tools: functions that the model may call. The calls of one answer run side by side.
//
//   deno run --allow-net=127.0.0.1 examples/tools.ts

import { createClient, defineTool } from "@toolnexus/client";
import { stubLlm } from "@toolnexus/client/testing";

await using server = stubLlm([
  {
    toolCalls: [
      { name: "weather", args: { city: "Paris" } },
      { name: "weather", args: { city: "Atlantis" } },
      { name: "add", args: { a: 2, b: 3 } },
    ],
  },
  "Paris is sunny, I do not know about Atlantis, and 2 + 3 is 5.",
]);

const weather = defineTool({
  name: "weather",
  description: "The weather in a city",
  inputSchema: {
    type: "object",
    properties: { city: { type: "string" } },
    required: ["city"],
  },
  timeoutMs: 5_000,
  // `city` is a string here: the type comes from the schema.
  run: ({ city }, { signal }) => {
    signal.throwIfAborted(); // hand the signal on to fetch() and the like
    if (city !== "Paris") throw new Error(`no such city: ${city}`); // the model is told
    return { city, sky: "sunny" }; // becomes JSON
  },
});
const add = defineTool({
  name: "add",
  description: "Adds two numbers",
  inputSchema: {
    type: "object",
    properties: { a: { type: "number" }, b: { type: "number" } },
    required: ["a", "b"],
  },
  run: ({ a, b }) => String(a + b),
});

const { baseUrl } = server;
const client = createClient({ baseUrl, style: "openai", model: "test", toolkit: [weather, add] });
const { text, toolCalls, turns } = await client.run("Paris? Atlantis? 2 + 3?");

for (const { name, args, output, isError } of toolCalls) {
  console.log(`${name}(${JSON.stringify(args)}) ${isError ? "failed" : "gave"}: ${output}`);
}
console.log(`${text} (${turns} answers)`);
