/** Hooks are shown copies: what they do to them changes nothing, unless they give it back. */
import { assertEquals } from "@std/assert";
import { InMemoryConversationStore, type Message } from "../mod.ts";
import { stubLlm } from "../src/testing/mod.ts";
import { calling, clientOf, clientOfFetch, lines, toolOf } from "./client_kit.ts";

Deno.test("a transcript that beforeLLM rewrites in place is what is sent and what is saved", async () => {
  const store = new InMemoryConversationStore();
  await store.save("a", [
    { role: "user", content: "My card is 4111" },
    { role: "assistant", content: "Thanks for 4111" },
  ]);
  await using server = stubLlm(["ok"]);
  const client = clientOf(server, {
    store,
    hooks: {
      beforeLLM({ messages }) {
        for (const message of messages) {
          message.content = String(message.content).replace("4111", "[card]");
        }
        return { messages };
      },
    },
  });
  const { messages } = await client.ask("Again: 4111", { id: "a" });
  const redacted = ["My card is [card]", "Thanks for [card]", "Again: [card]"];
  assertEquals(server.requests[0]!.body.messages.map(({ content }) => content), redacted);
  assertEquals(messages.map(({ content }) => content), [...redacted, "ok"]);
  assertEquals(await store.get("a"), messages);
});

Deno.test("what a hook does to what it is shown changes no transcript", async () => {
  await using server = stubLlm([calling("pay"), "done"]);
  const client = clientOf(server, {
    toolkit: [toolOf("pay")],
    hooks: {
      beforeLLM({ messages }) {
        for (const message of messages) message.content = "[masked]";
      },
      afterLLM({ response }) {
        const [{ message }] = (response as { choices: { message: Message }[] }).choices as [
          { message: Message },
        ];
        for (const key of Object.keys(message)) message[key] = "[masked]";
      },
    },
  });
  const { messages } = await client.run("go");
  assertEquals(lines(messages), [
    "user: go",
    "assistant: [pay]",
    "tool: pay ran",
    "assistant: done",
  ]);
});

Deno.test("an answer that is nested deeper than the stack is shown to hooks, and kept", async () => {
  const deep = "[".repeat(20_000) + "]".repeat(20_000);
  const message = `{"role":"assistant","content":"hi","deep":${deep}}`;
  const body = `{"choices":[{"message":${message},"finish_reason":"stop"}]}`;
  const client = clientOfFetch(() => new Response(body), {
    hooks: { beforeLLM() {}, afterLLM() {} },
  });
  const { messages } = await client.run("go");
  assertEquals((await client.run("on", { history: messages.slice(0, 1) })).text, "hi");
  assertEquals(lines(messages), ["user: go", "assistant: hi"]);
});
