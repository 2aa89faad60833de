// Stopping an answer: the request is cancelled, and what was said is kept.
//
//   deno run --allow-net=127.0.0.1 examples/abort.ts

import { createClient, ToolnexusError } from "@toolnexus/client";
import { stubLlm } from "@toolnexus/client/testing";

await using server = stubLlm(
  ({ body }) => body.messages.length > 2 ? "Where was I?" : "one two three four five six seven",
  { delayMs: 20 },
);
const client = createClient({ baseUrl: server.baseUrl, style: "openai", model: "test" });
const kept = async (id: string) => (await client.conversationStore().get(id))?.at(-1)?.content;

// By a signal: the run rejects, with the part that had come.
const stop = new AbortController();
let heard = "";
try {
  await client.ask("Count.", {
    id: "counting",
    signal: stop.signal,
    onText(delta) {
      heard += delta;
      if (heard.includes("three")) stop.abort();
    },
  });
} catch (error) {
  if (!(error instanceof ToolnexusError)) throw error;
  console.log(`${error.name} (${error.code}) after ${JSON.stringify(error.partialText)}`);
}
console.log(`kept: ${JSON.stringify(await kept("counting"))}`);
console.log((await client.ask("Go on.", { id: "counting" })).text);

// By leaving the loop.
for await (const event of client.stream("Count.", { id: "again" })) {
  if (event.type === "text" && event.delta.includes("w")) break;
}
console.log(`kept: ${JSON.stringify(await kept("again"))}`);

// By the clock: `signal: AbortSignal.timeout(30_000)`, or the client's `timeoutMs`.
