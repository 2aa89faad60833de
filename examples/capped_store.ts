// A store that keeps only the last turns of each conversation. It trims whole turns: a tool call is
// never parted from its result, which a provider would refuse.
//
//   deno run --allow-net=127.0.0.1 examples/capped_store.ts

import type { ConversationStore } from "@toolnexus/client";
import { createClient, defineTool, InMemoryConversationStore, trimTurns } from "@toolnexus/client";
import { stubLlm } from "@toolnexus/client/testing";

/** Keeps the last `turns` turns, and a system message at the start. */
export function cappedStore(turns: number): ConversationStore & { dump(): Promise<string[]> } {
  const memory = new InMemoryConversationStore();
  return {
    get: (id) => memory.get(id),
    save: (id, messages) => memory.save(id, trimTurns(messages, turns)),
    // More keys are ignored by the client; this one is for your own use.
    dump: () => Array.fromAsync(memory.list(), ({ id, messageCount }) => `${id}: ${messageCount}`),
  };
}

if (import.meta.main) {
  const look = { toolCalls: [{ name: "clock" }] };
  await using server = stubLlm([look, "It is noon.", look, "Still noon.", look, "Noon it is."]);
  const clock = defineTool({ name: "clock", description: "The time", run: () => "12:00" });
  const store = cappedStore(2); // a turn here has 4 messages
  const { baseUrl } = server;
  const client = createClient({ baseUrl, style: "openai", model: "test", toolkit: [clock], store });
  for (const prompt of ["What time is it?", "And now?", "And now?"]) {
    await client.ask(prompt, { id: "audit-1" });
  }
  console.log(await store.dump());
  console.log((await store.get("audit-1"))?.map(({ role }) => role).join(", "));
}
