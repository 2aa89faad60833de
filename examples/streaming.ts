// The answer as it comes: event by event, or with a callback for its text.
//
//   deno run --allow-net=127.0.0.1 examples/streaming.ts

import { createClient, defineTool } from "@toolnexus/client";
import { stubLlm } from "@toolnexus/client/testing";

await using server = stubLlm(
  [{ toolCalls: [{ name: "clock" }] }, "It is noon in Greenwich.", "You are welcome."],
  { delayMs: 20 },
);
const clock = defineTool({ name: "clock", description: "The time", run: () => "12:00 UTC" });
const { baseUrl } = server;
const client = createClient({ baseUrl, style: "openai", model: "test", toolkit: [clock] });
const write = (text: string) => Deno.stdout.writeSync(new TextEncoder().encode(text));

for await (const event of client.stream("What time is it?", { id: "thread-1" })) {
  if (event.type === "text") write(event.delta);
  if (event.type === "tool_call") console.log(`[${event.name} is called]`);
  if (event.type === "tool_result") console.log(`[${event.name} gave ${event.output}]`);
  // `done` comes last, when the conversation is saved.
  if (event.type === "done") console.log(`\n[${event.result.usage.totalTokens} tokens]`);
}

// The same for who wants the result in the end and the text on the way.
const { messages } = await client.ask("Thanks.", { id: "thread-1", onText: write });
console.log(`\n[${messages.length} messages in the conversation]`);
