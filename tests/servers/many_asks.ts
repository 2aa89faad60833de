/** Several clients that ask one conversation at once, each through a store object of its own. */
import { type ConversationStore, createInProcessClient } from "../../mod.ts";

/** How many of the turns that every client was promised are in the conversation, whole. */
export async function manyAsks(stores: ConversationStore[], each: number): Promise<number> {
  const promised: string[] = [];
  await Promise.all(stores.map(async (store, writer) => {
    const client = createInProcessClient({
      model: "echo",
      store,
      generate: ({ messages }) => ({ content: `answer to ${messages.at(-1)?.content}` }),
    });
    for (let turn = 0; turn < each; turn++) {
      const prompt = `${writer}/${turn}`;
      await client.ask(prompt, { id: "shared" });
      promised.push(prompt);
    }
  }));
  const messages = await stores[0]!.get("shared") ?? [];
  const kept = new Set<unknown>();
  for (let index = 0; index + 1 < messages.length; index += 2) {
    const [user, answer] = [messages[index]!.content, messages[index + 1]!.content];
    if (answer === `answer to ${user}`) kept.add(user);
  }
  return promised.filter((prompt) => kept.has(prompt)).length;
}
