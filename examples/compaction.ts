// A conversation that runs for months: what is old is summarized, by the model itself, so that the
// request stays within a budget. What is sent is also what is kept.
//
//   deno run --allow-net=127.0.0.1 examples/compaction.ts

import { compactor, createClient, type Message } from "@toolnexus/client";
import { stubLlm } from "@toolnexus/client/testing";

const INSTRUCTION = "Summarize this conversation. Keep names, numbers and decisions.";

// The stand-in for a model: asked to summarize, it keeps what the user likes.
await using server = stubLlm(({ body }) => {
  const prompt = String(body.messages.at(-1)?.content);
  if (!prompt.startsWith(INSTRUCTION)) return `Noted. I was sent ${body.messages.length} messages.`;
  const likes = [...prompt.matchAll(/I like (\w+)|likes (.*?)\./g)].map(([, one, many]) =>
    one ?? many
  );
  return `The user likes ${likes.join(", ")}.`;
});

const client = createClient({
  baseUrl: server.baseUrl,
  style: "openai",
  model: "test",
  hooks: {
    beforeLLM: compactor({
      maxTokens: 120, // a real budget is some tens of thousands, below what the model takes
      async summarize(messages: readonly Message[]): Promise<string> {
        // As text: a request without tools must not hold tool calls, some providers say.
        const { text } = await client.run(`${INSTRUCTION}\n${JSON.stringify(messages)}`);
        console.log(`(${messages.length} messages are now: ${text})`);
        return text;
      },
    }),
  },
});

for (const thing of ["apples", "bread", "cheese", "dates", "eggs", "figs", "grapes"]) {
  const { text } = await client.ask(`I like ${thing}, by the way.`, { id: "me" });
  console.log(`${thing}: ${text}`);
}
for (const { role, content } of await client.conversationStore().get("me") ?? []) {
  console.log(`${role}: ${JSON.stringify(content)}`);
}
