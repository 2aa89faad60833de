/** The default store: in memory, deep copies both ways, stale writes refused. */
import { assertEquals, assertRejects } from "@std/assert";
import { ConversationConflictError, InMemoryConversationStore, type Message } from "../mod.ts";
import { conversationStoreContract } from "../src/testing/mod.ts";

const TURN: Message[] = [
  { role: "user", content: [{ type: "text", text: "hi" }] },
  { role: "assistant", content: "hello" },
];

const contract = conversationStoreContract(
  () => ({ store: new InMemoryConversationStore() }),
  { abilities: ["base", "delete", "list"], validates: true },
);
for (const { name, run } of contract) Deno.test(`memory store: ${name}`, run);

Deno.test("memory store: two stores share nothing", async () => {
  const [one, two] = [new InMemoryConversationStore(), new InMemoryConversationStore()];
  await one.save("a", TURN);
  assertEquals(await two.get("a"), null);
});

Deno.test("memory store: an append keeps what was changed in neither base nor messages", async () => {
  const store = new InMemoryConversationStore();
  await store.save("a", TURN, []);
  const base = (await store.get("a"))!;
  const more: Message = { role: "user", content: [{ type: "text", text: "more" }] };
  await store.save("a", [...base, more], base);
  (more.content as { text: string }[])[0]!.text = "EVIL";
  (base[0]!.content as { text: string }[])[0]!.text = "EVIL";
  const kept = (await store.get("a"))!;
  assertEquals(kept.length, 3);
  assertEquals(JSON.stringify(kept).includes("EVIL"), false);
});

Deno.test("memory store: a base that was changed after it was read is stale", async () => {
  const store = new InMemoryConversationStore();
  await store.save("a", TURN, []);
  const base = (await store.get("a"))!;
  base[1]!.content = "EVIL";
  await assertRejects(() => store.save("a", [...base, TURN[0]!], base), ConversationConflictError);
  assertEquals(await store.get("a"), TURN);
});

Deno.test("memory store: a save that fails leaves the conversation as it was", async () => {
  const store = new InMemoryConversationStore();
  await store.save("a", TURN, []);
  const wrong = { role: "user", content: () => {} };
  await assertRejects(() => store.save("a", [...TURN, wrong], TURN), TypeError, "messages[2]");
  await assertRejects(() => store.save("a", [...TURN, wrong]), TypeError, "messages[2]");
  assertEquals(await store.get("a"), TURN);
  await store.save("a", [], TURN);
  assertEquals(await store.get("a"), []);
});

Deno.test("memory store: list tells ids, times and counts, by prefix and limit", async () => {
  const store = new InMemoryConversationStore();
  const before = Date.now();
  for (const id of ["b/2", "a", "b/1", "b"]) await store.save(id, TURN);
  const ids = async (options?: { prefix?: string; limit?: number }) =>
    (await Array.fromAsync(store.list(options))).map(({ id }) => id);
  assertEquals(await ids(), ["a", "b", "b/1", "b/2"]);
  assertEquals(await ids({ prefix: "b/" }), ["b/1", "b/2"]);
  assertEquals(await ids({ limit: 2 }), ["a", "b"]);
  assertEquals(await ids({ limit: 0 }), []);
  const [first] = await Array.fromAsync(store.list());
  assertEquals(first!.messageCount, 2);
  assertEquals(first!.updatedAt.getTime() >= before, true);
});
