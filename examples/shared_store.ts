// Two clients share a store: a cheap model takes the first turn, a strong one of another provider
// continues the same conversation.
//
//   deno run --allow-net=127.0.0.1 examples/shared_store.ts

import { createClient, InMemoryConversationStore } from "@toolnexus/client";
import { stubLlm } from "@toolnexus/client/testing";

await using server = stubLlm(({ body, style }) =>
  `${body.model} (${style} style) was sent ${body.messages.length} message(s).`
);
const store = new InMemoryConversationStore();
const { baseUrl } = server;
const cheap = createClient({ baseUrl, style: "openai", model: "cheap-model", store });
const strong = createClient({ baseUrl, style: "anthropic", model: "strong-model", store });

console.log((await cheap.ask("Triage this stack trace.", { id: "ticket-9" })).text);
console.log((await strong.ask("Now write the fix.", { id: "ticket-9" })).text);

// Asks on one id wait for each other, also when two clients make them at once: no turn is lost.
await Promise.all([
  cheap.ask("Summarise it.", { id: "ticket-9" }),
  strong.ask("Review it.", { id: "ticket-9" }),
]);
console.log(`ticket-9 has ${(await store.get("ticket-9"))?.length} messages.`);
