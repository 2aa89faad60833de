// Hooks look in on a run and change it: veto a tool call, redact what the model sees, keep an audit.
//
//   deno run --allow-net=127.0.0.1 examples/hooks.ts

import { createClient, defineTool, type Hooks, type Message } from "@toolnexus/client";
import { stubLlm } from "@toolnexus/client/testing";

await using server = stubLlm([
  {
    toolCalls: [
      { name: "read_customer", args: { id: 7 } },
      { name: "delete_customer", args: { id: 7 } },
    ],
  },
  ({ body }) => `I read: ${JSON.stringify(body.messages.at(-2)?.content)}`,
]);
const id = { type: "object", properties: { id: { type: "number" } }, required: ["id"] } as const;
const toolkit = [
  defineTool({
    name: "read_customer",
    description: "Reads a customer",
    inputSchema: id,
    run: () => "Ann, card 4111 1111 1111 1111",
  }),
  defineTool({
    name: "delete_customer",
    description: "Deletes a customer",
    inputSchema: id,
    run: () => "deleted",
  }),
];

const redact = (text: string) => text.replace(/\b(?:\d{4} ?){4}\b/g, "[card]");
const redactPrompt = (message: Message): Message =>
  typeof message.content === "string" ? { ...message, content: redact(message.content) } : message;

const hooks: Hooks = {
  // A rewrite of the messages is what is sent, and what is kept.
  beforeLLM: ({ messages }) => ({ messages: messages.map(redactPrompt) }),
  // A result instead of the call: the tool does not run.
  beforeTool: ({ name }) =>
    name.startsWith("delete_") ? { result: { output: "denied by policy", isError: true } } : {},
  afterTool: ({ name, args, result }) => {
    console.log(`audit: ${name}(${JSON.stringify(args)}) ${result.isError ? "failed" : "ran"}`);
    return { result: { ...result, output: redact(result.output) } };
  },
  afterLLM: ({ model, turn }) => console.log(`audit: answer ${turn} of ${model}`),
};

const client = createClient({
  baseUrl: server.baseUrl,
  style: "openai",
  model: "test",
  toolkit,
  hooks,
});
await client.ask("Delete customer 7 with card 4111 1111 1111 1111", { id: "case-1" });

for (const { role, content } of await client.conversationStore().get("case-1") ?? []) {
  console.log(`${role}: ${content || "(tool calls)"}`);
}
