// A conversation is remembered by its id, as long as the process lives. Nothing to set up.
//
//   deno run --allow-net=127.0.0.1 examples/default_store.ts

import { createClient } from "@toolnexus/client";
import { stubLlm } from "@toolnexus/client/testing";

// A model server on this machine: its answers tell what it was sent. For a real one, set `baseUrl`
// to "https://api.openai.com/v1", name a model, and run with
// --allow-net=api.openai.com --allow-env=OPENAI_API_KEY
await using server = stubLlm(({ body }) => `I was sent ${body.messages.length} message(s).`);
const client = createClient({ baseUrl: server.baseUrl, style: "openai", model: "test" });

console.log((await client.ask("I am Ann.", { id: "thread-1" })).text);
console.log((await client.ask("Who am I?", { id: "thread-1" })).text);
console.log((await client.ask("Who am I?", { id: "thread-2" })).text); // another conversation
console.log((await client.ask("Who am I?")).text); // no id: nothing is remembered

console.log("Kept as thread-1:");
for (const { role, content } of await client.conversationStore().get("thread-1") ?? []) {
  console.log(`  ${role}: ${content}`);
}
