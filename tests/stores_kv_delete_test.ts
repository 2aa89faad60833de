/** What the KV store leaves of a deleted conversation: nothing, whatever went wrong. */
import { assertEquals, assertRejects } from "@std/assert";
import { ConversationConflictError, StoreError } from "../mod.ts";
import type { Message } from "../mod.ts";
import { KvConversationStore } from "../stores/kv.ts";
import { rowsOf, wrapKv } from "./fixtures/kv_wrapper.ts";

const user = (content: string): Message => ({ role: "user", content });
const large = (letter: string): Message => user(letter.repeat(300_000));

Deno.test("delete removes every row, and deleting nothing is fine", async () => {
  using kv = await Deno.openKv(":memory:");
  const store = new KvConversationStore(kv);
  await store.delete("a");
  await store.save("a", Array.from({ length: 30 }, () => large("1")), []);
  await store.save("b", [user("1")], []);
  const base = await store.get("a") ?? [];
  await store.delete("a");
  assertEquals(await store.get("a"), null);
  assertEquals((await rowsOf(kv)).length, 2);
  await assertRejects(() => store.save("a", [...base, user("2")], base), ConversationConflictError);
});

Deno.test("a delete beside a save removes the old or the new conversation, never half", async () => {
  using kv = await Deno.openKv(":memory:");
  const other = new KvConversationStore(kv);
  await other.save("a", [large("1")], []);
  let isFirst = true;
  const store = new KvConversationStore(wrapKv(kv, {
    commit: async (_commit, next) => {
      if (isFirst) {
        isFirst = false;
        await other.save("a", [large("2")]);
      }
      return await next();
    },
  }));
  await store.delete("a");
  assertEquals(await rowsOf(kv), []);
});

Deno.test("a delete that is refused by itself, since its answer was lost, removes every row", async () => {
  for (const lost of [1, 2, 3]) {
    using kv = await Deno.openKv(":memory:");
    await new KvConversationStore(kv).save("a", [large("1")], []);
    let commits = 0;
    const store = new KvConversationStore(wrapKv(kv, {
      commit: async (_commit, next) => {
        const outcome = await next();
        return ++commits === lost ? await next() : outcome;
      },
    }));
    await store.delete("a");
    assertEquals(await rowsOf(kv), [], `commit ${lost} was made twice`);
  }
});

Deno.test("a delete that failed half-way is finished by the next one", async () => {
  for (const failing of [1, 2, 3]) {
    using kv = await Deno.openKv(":memory:");
    await new KvConversationStore(kv).save("a", [large("1")], []);
    let commits = 0;
    const store = new KvConversationStore(wrapKv(kv, {
      commit: (_commit, next) =>
        ++commits === failing ? Promise.reject(new Error("connection reset")) : next(),
    }));
    const error = await assertRejects(() => store.delete("a"), StoreError, "connection reset");
    assertEquals([error.operation, error.id], ["delete", "a"]);
    await store.delete("a");
    assertEquals(await rowsOf(kv), [], `commit ${failing} failed`);
  }
});

Deno.test("delete removes what killed saves left, however young, and another id's rows are kept", async () => {
  using kv = await Deno.openKv(":memory:");
  const killed = new KvConversationStore(wrapKv(kv, {
    commit: ({ sets }, next) =>
      sets.some(({ key }) => key.includes("head")) ? Promise.reject(new Error("killed")) : next(),
  }));
  const messages = Array.from({ length: 8 }, () => large("1"));
  for (const id of ["a", "ab"]) {
    await assertRejects(() => killed.save(id, messages, []), StoreError, "killed");
  }
  const staged = (await rowsOf(kv, ["toolnexus", "chunk", "ab"])).length;
  const store = new KvConversationStore(kv);
  await store.save("a", [user("1")], []);
  await store.delete("a");
  assertEquals(await rowsOf(kv, ["toolnexus", "chunk", "a"]), []);
  assertEquals((await rowsOf(kv)).length, staged);
});

Deno.test("saves and deletes of one conversation take effect in the order of the calls", async () => {
  using kv = await Deno.openKv(":memory:");
  const store = new KvConversationStore(kv);
  await Promise.all([store.save("a", [user("1")], []), store.delete("a")]);
  assertEquals(await rowsOf(kv), []);
  const texts = Array.from({ length: 10 }, (_, index) => `${index}`);
  await Promise.all(texts.flatMap((text) => [store.delete("a"), store.save("a", [user(text)])]));
  assertEquals(await store.get("a"), [user("9")]);
  // Each turn builds on the one before, which is still being saved.
  const first = [user("1")], second = [...first, user("2")];
  await Promise.all([store.save("b", first, []), store.save("b", second, first)]);
  assertEquals(await store.get("b"), second);
});

Deno.test("no caller reaches a transcript or a base while it is saved", async () => {
  using kv = await Deno.openKv(":memory:");
  const store = new KvConversationStore(kv);
  await store.save("a", [user("1")]);
  const base = [user("1")], messages = [...base, user("2")];
  const saving = store.save("a", messages, base);
  for (const array of [base, messages]) array.splice(0, 2, user("changed"));
  await saving;
  assertEquals(await store.get("a"), [user("1"), user("2")]);
});

Deno.test("a delete takes no row of a conversation that is saved while it removes", async () => {
  using kv = await Deno.openKv(":memory:");
  const messages = Array.from({ length: 8 }, () => large("1"));
  const staged = Promise.withResolvers<void>(), looked = Promise.withResolvers<void>();
  const writer = new KvConversationStore(wrapKv(kv, {
    commit: async ({ sets }, next) => {
      if (sets.some(({ key }) => key.includes("head"))) {
        staged.resolve();
        await looked.promise;
      }
      return await next();
    },
  }));
  const saving = writer.save("a", messages, []);
  await staged.promise;
  let commits = 0;
  const store = new KvConversationStore(wrapKv(kv, {
    commit: async (_commit, next) => {
      // The head was looked for, and was not there.
      if (++commits === 2) {
        looked.resolve();
        await saving;
      }
      return await next();
    },
  }));
  await store.delete("a");
  assertEquals(await store.get("a"), messages);
});
