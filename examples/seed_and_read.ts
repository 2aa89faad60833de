// A store can be used without the client: seed a conversation, read it, move it elsewhere.
//
//   deno run --allow-net=127.0.0.1 examples/seed_and_read.ts

import { createClient, InMemoryConversationStore } from "@toolnexus/client";
import { stubLlm } from "@toolnexus/client/testing";

await using server = stubLlm(({ body }) =>
  `I was sent: ${body.messages.map(({ role }) => role).join(", ")}.`
);

// Seed: a conversation that no ask() has begun.
const store = new InMemoryConversationStore();
await store.save("seeded", [
  { role: "system", content: "You are an agent." },
  { role: "user", content: "earlier turn" },
  { role: "assistant", content: "earlier reply" },
]);
const client = createClient({ baseUrl: server.baseUrl, style: "openai", model: "test", store });
console.log((await client.ask("Go on.", { id: "seeded" })).text);
console.log(`The client uses that very store: ${client.conversationStore() === store}`);

// Read: get() gives a copy, so changing it changes nothing that is kept.
const copy = (await store.get("seeded")) ?? [];
copy.push({ role: "user", content: "not kept" });
console.log(
  `${copy.length} messages in the copy, ${(await store.get("seeded"))?.length} in the store`,
);

// Migrate: any store to any other. The base `[]` means "only if nothing is there".
const target = new InMemoryConversationStore();
for await (const { id } of store.list()) await target.save(id, (await store.get(id)) ?? [], []);
for await (const { id, messageCount } of target.list()) {
  console.log(`moved ${id} with ${messageCount} messages`);
}
