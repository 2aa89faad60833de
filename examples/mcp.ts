// MCP: the tools of other programs, here of the protocol's own demonstration server from npm.
//
//   deno run --allow-net=127.0.0.1 --allow-run=deno examples/mcp.ts
//
// A program needs --allow-run of its command, a remote server --allow-net of its host.

import { createClient, createToolkit } from "@toolnexus/client";
import { connectMcp } from "@toolnexus/client/mcp";
import { stubLlm } from "@toolnexus/client/testing";

const mcp = await connectMcp({
  mcpServers: {
    demo: {
      command: "deno",
      args: ["run", "-A", "--quiet", "npm:@modelcontextprotocol/server-everything@2026.8.31"],
      tools: ["get-sum", "trigger-elicitation-request"],
    },
    // One bad server never breaks the rest: this one is reported, and left out.
    broken: { command: "deno", args: ["eval", "Deno.exit(1)"] },
  },
}, {
  // A server may ask a human something while its tool runs.
  waitFor: ({ id, prompt }) => {
    console.log(`The server asks: ${prompt}`);
    return { id, ok: true, data: { name: "Ann" } };
  },
});
await using toolkit = createToolkit({ sources: [mcp] }); // closing it ends the program too
console.log(mcp.status());

await using server = stubLlm([
  {
    toolCalls: [
      { name: "demo_get-sum", args: { a: 2, b: 3 } },
      { name: "demo_trigger-elicitation-request", args: {} },
    ],
  },
  "2 + 3 is 5, and you are Ann.",
]);
const { baseUrl } = server;
const client = createClient({ baseUrl, style: "openai", model: "test", toolkit });
const { text, toolCalls } = await client.run("What is 2 + 3, and who am I?");
for (const { name, output } of toolCalls) console.log(`${name}: ${output.split("\n")[0]}`);
console.log(text);
