/** What others say is kept, however much it looks like one's own turn, and whatever comes after it. */
import { assertEquals, assertRejects } from "@std/assert";
import { ConversationConflictError, type DefinedTool, InMemoryConversationStore } from "../mod.ts";
import { stubLlm } from "../src/testing/mod.ts";
import {
  calling,
  clientOf,
  held,
  heldTool,
  LedgerStore,
  lines,
  opened,
  toolOf,
} from "./client_kit.ts";

Deno.test("the same question twice, each with a tool: no turn is taken for the other", async () => {
  const store = new InMemoryConversationStore();
  const answer = held("Noon, says the first."), clock = heldTool("clock", "2");
  await using early = stubLlm([calling("clock"), answer.reply]);
  await using late = stubLlm([calling("clock"), "Noon, says the second."]);
  const asked = (server: { baseUrl: string }, tool: DefinedTool) =>
    clientOf(server, { checkpoint: "round", store: opened(store), toolkit: [tool] })
      .ask("What time is it?", { id: "a" });
  const first = asked(early, toolOf("clock", () => "1"));
  await answer.asked; // its round is in the store
  const second = asked(late, clock.tool);
  await clock.runs; // and behind it, the same call once more
  answer.letGo();
  assertEquals((await first).text, "Noon, says the first.");
  clock.letGo();
  assertEquals((await second).text, "Noon, says the second.");
  const turn = (result: number, who: string) => [
    "user: What time is it?",
    "assistant: [clock]",
    `tool: ${result}`,
    `assistant: Noon, says the ${who}.`,
  ];
  assertEquals(lines(await store.get("a")), [...turn(1, "first"), ...turn(2, "second")]);
});

Deno.test("a rewrite after two conflicts, the second of which brought nothing new, deletes no turn", async () => {
  await using server = stubLlm([calling("work"), "done"]);
  const store = new LedgerStore();
  const said = (text: string) => [
    { role: "user", content: text },
    { role: "assistant", content: `re ${text}` },
  ];
  store.put("a", said("old"));
  store.beforeSave[1] = () => store.append("a", ...said("a note of another"));
  store.beforeSave[2] = () => {
    throw new ConversationConflictError("a"); // for whatever reason
  };
  const client = clientOf(server, {
    store,
    checkpoint: "round",
    toolkit: [toolOf("work")],
    hooks: {
      beforeLLM: ({ messages, turn }) => turn === 2 ? { messages: messages.slice(2) } : undefined,
    },
  });
  const error = await assertRejects(() => client.ask("go", { id: "a" }), ConversationConflictError);
  assertEquals(error.result?.text, "done");
  assertEquals(lines(store.get("a")).slice(0, 3), [
    "user: old",
    "assistant: re old",
    "user: a note of another",
  ]);
});
