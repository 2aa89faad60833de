/** The default store: in memory, deep copies both ways, stale writes refused. */
import { assertEquals, assertThrows } from "@std/assert";
import { ConversationConflictError, InMemoryConversationStore, type Message } from "../mod.ts";
import { conversationStoreContract } from "../src/testing/mod.ts";

const TURN: Message[] = [
  { role: "user", content: [{ type: "text", text: "hi" }] },
  { role: "assistant", content: "hello" },
];

const contract = conversationStoreContract(
  () => ({ store: new InMemoryConversationStore() }),
  { abilities: ["base", "delete", "list"] },
);
for (const { name, run } of contract) Deno.test(`memory store: ${name}`, run);

Deno.test("memory store: it answers at once, without a promise", () => {
  const store = new InMemoryConversationStore();
  assertEquals(store.save("a", TURN), undefined);
  assertEquals(store.get("a"), TURN);
  assertEquals([store.delete("a"), store.delete("a"), store.get("a")], [true, false, undefined]);
});

Deno.test("memory store: two stores share nothing", () => {
  const [one, two] = [new InMemoryConversationStore(), new InMemoryConversationStore()];
  one.save("a", TURN);
  assertEquals(two.get("a"), undefined);
});

Deno.test("memory store: an append keeps what was changed in neither base nor messages", () => {
  const store = new InMemoryConversationStore();
  store.save("a", TURN, []);
  const base = store.get("a")!;
  const more: Message = { role: "user", content: [{ type: "text", text: "more" }] };
  store.save("a", [...base, more], base);
  (more.content as { text: string }[])[0]!.text = "EVIL";
  (base[0]!.content as { text: string }[])[0]!.text = "EVIL";
  const kept = store.get("a")!;
  assertEquals(kept.length, 3);
  assertEquals(JSON.stringify(kept).includes("EVIL"), false);
});

Deno.test("memory store: a base that was changed after it was read is stale", () => {
  const store = new InMemoryConversationStore();
  store.save("a", TURN, []);
  const base = store.get("a")!;
  base[1]!.content = "EVIL";
  assertThrows(() => store.save("a", [...base, TURN[0]!], base), ConversationConflictError);
  assertEquals(store.get("a"), TURN);
});

Deno.test("memory store: a save that fails leaves the conversation as it was", () => {
  const store = new InMemoryConversationStore();
  store.save("a", TURN, []);
  const wrong = { role: "user", content: () => {} };
  assertThrows(() => store.save("a", [...TURN, wrong], TURN), TypeError, "messages[2]");
  assertThrows(() => store.save("a", [...TURN, wrong]), TypeError, "messages[2]");
  assertEquals(store.get("a"), TURN);
  store.save("a", [], TURN);
  assertEquals(store.get("a"), []);
});

Deno.test("memory store: list tells ids, times and counts, by prefix and limit", async () => {
  const store = new InMemoryConversationStore();
  const before = Date.now();
  for (const id of ["b/2", "a", "b/1", "b"]) store.save(id, TURN);
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
