import { assertEquals, assertRejects } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import { type ConversationStore, InMemoryConversationStore, type Message } from "../mod.ts";
import { flakyStore } from "../src/testing/mod.ts";

const HELLO: Message[] = [{ role: "user", content: "hello" }];

/** A store that writes down how it was called. */
function recorder(): { store: ConversationStore; calls: unknown[][]; map: Map<string, unknown> } {
  const calls: unknown[][] = [];
  const map = new Map<string, readonly Message[]>();
  const store: ConversationStore = {
    get(...args) {
      calls.push(["get", ...args]);
      return map.get(args[0]);
    },
    save(...args) {
      calls.push(["save", ...args]);
      map.set(args[0], args[1]);
    },
  };
  return { store, calls, map };
}

Deno.test("flakyStore does what it wraps does, with the arguments as they came", async () => {
  const { store, calls } = recorder();
  const flaky = flakyStore(store, {});
  await flaky.save("a", HELLO);
  await flaky.save("a", HELLO, []);
  assertEquals(await flaky.get("a"), HELLO);
  assertEquals(calls, [["save", "a", HELLO], ["save", "a", HELLO, []], ["get", "a"]]);
});

Deno.test("flakyStore fails before or after the write, then recovers", async () => {
  const { store, map } = recorder();
  const flaky = flakyStore(store, {
    save: [new Error("refused"), "ok", { error: new Error("unconfirmed"), after: true }],
  });
  await assertRejects(async () => await flaky.save("a", HELLO), Error, "refused");
  assertEquals(map.has("a"), false);
  await flaky.save("b", HELLO);
  await assertRejects(async () => await flaky.save("c", HELLO), Error, "unconfirmed");
  assertEquals([...map.keys()], ["b", "c"]);
  await flaky.save("d", HELLO);
  assertEquals(await flaky.get("d"), HELLO);
});

Deno.test("flakyStore fails reads apart from writes", async () => {
  const { store } = recorder();
  const flaky = flakyStore(store, { get: ["ok", { error: new Error("gone") }] });
  await flaky.save("a", HELLO);
  assertEquals(await flaky.get("a"), HELLO);
  await assertRejects(async () => await flaky.get("a"), Error, "gone");
  assertEquals(await flaky.get("a"), HELLO);
});

Deno.test("flakyStore delays an operation, and fails late where told", async () => {
  using time = new FakeTime();
  const { store, map } = recorder();
  const flaky = flakyStore(store, {
    save: [{ delay: 500 }, { delay: 500, error: new Error("late") }],
  });
  const first = flaky.save("a", HELLO);
  await time.tickAsync(499);
  assertEquals(map.size, 0);
  await time.tickAsync(1);
  await first;
  assertEquals(map.size, 1);
  const second = assertRejects(async () => await flaky.save("b", HELLO), Error, "late");
  await time.tickAsync(500);
  await second;
  assertEquals(map.size, 1);
});

Deno.test("flakyStore asks a function call by call, which may hold an operation up", async () => {
  const { store, map } = recorder();
  const gate = Promise.withResolvers<"ok">();
  const asked: string[] = [];
  const flaky = flakyStore(store, (operation, id) => {
    asked.push(`${operation} ${id}`);
    return operation === "save" ? gate.promise : new Error("no reads");
  });
  const save = flaky.save("a", HELLO);
  await assertRejects(async () => await flaky.get("a"), Error, "no reads");
  assertEquals(map.size, 0);
  gate.resolve("ok");
  await save;
  assertEquals(map.size, 1);
  assertEquals(asked, ["save a", "get a"]);
});

Deno.test("flakyStore leaves the failures of what it wraps as they are", async () => {
  const flaky = flakyStore({
    get: () => {
      throw new Error("its own");
    },
    save: () => Promise.reject(new Error("its own, too")),
  }, {});
  await assertRejects(async () => await flaky.get("a"), Error, "its own");
  await assertRejects(async () => await flaky.save("a", HELLO), Error, "its own, too");
});

Deno.test("what else the store offers is there", async () => {
  const store = flakyStore(new InMemoryConversationStore(), { save: ["ok", new Error("full")] });
  await store.save("a", []);
  const ids = await Array.fromAsync(store.list!({ prefix: "a" }), ({ id }) => id);
  await store.delete!("a");
  assertEquals([ids, await store.get("a")], [["a"], null]);
});
