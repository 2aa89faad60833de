// A minimal handler for the edge: a prompt comes in, an answer goes out, with one tool.

import { createClient, defineTool } from "../../mod.ts";

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

export default {
  async fetch(request: Request, env: { URL: string; KEY: string }): Promise<Response> {
    const client = createClient({
      baseUrl: env.URL,
      style: "openai",
      model: "m",
      apiKey: env.KEY,
      toolkit: [add],
    });
    return new Response((await client.run(await request.text())).text);
  },
};
