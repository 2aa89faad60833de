/** The KV store when the database is overtaken, locked, silent or damaged. */
import { assert, assertEquals, assertRejects } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import { ConversationConflictError, StoreError, ToolnexusError } from "../mod.ts";
import type { Message } from "../mod.ts";
import { KvConversationStore } from "../stores/kv.ts";
import type { KvDatabase, KvKey } from "../stores/kv.ts";
import { rowsOf, textsOf, withFile, wrapKv } from "./fixtures/kv_wrapper.ts";
import type { Commit } from "./fixtures/kv_wrapper.ts";

const user = (content: string): Message => ({ role: "user", content });
const large = (letter: string): Message => user(letter.repeat(300_000));

Deno.test("a reader overtaken by rewrites reads again, never half of one", async () => {
  using kv = await Deno.openKv(":memory:");
  const writer = new KvConversationStore(kv);
  await writer.save("a", [large("0")], []);
  let rewrites = 0;
  const rewrite = () => writer.save("a", [large(String(++rewrites))]);
  const reader = new KvConversationStore(wrapKv(kv, {
    list: async function* (selector) {
      // Once before the chunks, once between them.
      if (rewrites === 0) await rewrite();
      for await (const row of kv.list(selector, { batchSize: 1 })) {
        yield row;
        if (rewrites === 1) await rewrite();
      }
    },
  }));
  const [message] = await reader.get("a") ?? [];
  assertEquals(rewrites, 2);
  assert(message?.content === large("2").content);
});

Deno.test("a reader overtaken by a turn reads what was there before it", async () => {
  using kv = await Deno.openKv(":memory:");
  const writer = new KvConversationStore(kv);
  const base = [user("1")];
  await writer.save("a", base, []);
  const reader = new KvConversationStore(wrapKv(kv, {
    list: async function* (_selector, next) {
      await writer.save("a", [...base, user("2")], base);
      yield* next();
    },
  }));
  assertEquals(await reader.get("a"), [user("1")]);
});

Deno.test("a database that is locked for a while is waited for", async () => {
  using kv = await Deno.openKv(":memory:");
  let refusals = 0;
  const store = new KvConversationStore(wrapKv(kv, {
    commit: (_commit, next) => {
      if (refusals++ % 4 !== 3) throw new TypeError("database is locked");
      return next();
    },
  }));
  const base = [user("1")];
  await store.save("a", base, []);
  await store.save("a", [...base, user("x".repeat(2_000_000))], base);
  assertEquals((await store.get("a"))?.length, 2);
  await store.delete("a");
  assertEquals(refusals % 4, 0);
  assertEquals(await rowsOf(kv), []);
});

Deno.test("another failure of the database is a StoreError with the cause, and nothing is changed", async () => {
  using kv = await Deno.openKv(":memory:");
  await new KvConversationStore(kv).save("a", [user("1")], []);
  const rows = await textsOf(kv);
  const store = new KvConversationStore(wrapKv(kv, {
    commit: () => Promise.reject(new TypeError("disk I/O error")),
  }));
  const error = await assertRejects(() => store.save("a", [user("2")], [user("1")]), StoreError);
  assertEquals([error.operation, error.id, error.code], ["save", "a", "store_failed"]);
  assertEquals((error.cause as Error).message, "disk I/O error");
  assertEquals(await textsOf(kv), rows);
});

Deno.test("every operation tells a failure of the database the same way", async () => {
  const fail = () => Promise.reject(new TypeError("connection refused"));
  const store = new KvConversationStore({
    get: fail,
    // deno-lint-ignore require-yield
    async *list() {
      throw new TypeError("connection refused");
    },
    atomic: () => {
      throw new TypeError("connection refused");
    },
  });
  const operations = {
    get: () => store.get("a"),
    save: () => store.save("a", [user("1")]),
    delete: () => store.delete("a"),
    list: () => Array.fromAsync(store.list({ prefix: "a" })),
  };
  for (const [operation, work] of Object.entries(operations)) {
    const message = `store ${operation} of "a" failed: connection refused`;
    const error = await assertRejects<StoreError>(work, StoreError, message);
    assertEquals([error.operation, error.id, error.code], [operation, "a", "store_failed"]);
  }
  const error = await assertRejects(() => store.sweep(), ToolnexusError, "store sweep failed");
  assertEquals(error.code, "store_failed");
});

Deno.test("a damaged head hides no other conversation from list", async () => {
  using kv = await Deno.openKv(":memory:");
  const store = new KvConversationStore(kv);
  for (const id of ["a", "b", "c"]) await store.save(id, [user(id)], []);
  await kv.set(["toolnexus", "head", "a"], bytes("{}"));
  await kv.set(["toolnexus", "head", "b"], "text");
  const listed: string[] = [];
  const error = await assertRejects(
    async () => {
      for await (const { id } of store.list()) listed.push(id);
    },
    StoreError,
    `["toolnexus", "head", "a"]`,
  );
  assert(error.message.includes(`["toolnexus", "head", "b"]`), error.message);
  assertEquals([error.operation, error.id, listed.join()], ["list", "", "c"]);
});

Deno.test("a rewrite that was staged in vain is taken back when an append will do after all", async () => {
  using kv = await Deno.openKv(":memory:");
  using time = new FakeTime();
  const old = Array.from({ length: 8 }, () => large("o"));
  const options = { expireIn: 3_600_000 };
  const other = new KvConversationStore(kv, options);
  await other.save("a", old, []);
  time.tick(3_000_000);
  const kept = [...old, user("keeps it alive")];
  await other.save("a", kept, old);
  time.tick(3_000_000);
  let isFirst = true;
  const store = new KvConversationStore(
    wrapKv(kv, {
      commit: async (commit, next) => {
        if (setsHead(commit) && isFirst) {
          isFirst = false;
          await other.save("a", kept); // with chunks that live long enough
        }
        return await next();
      },
    }),
    options,
  );
  await store.save("a", [...kept, user("more")], kept);
  assertEquals((await store.get("a"))?.length, 10);
  assertEquals(await store.sweep({ graceMs: 0 }), 0);
});

Deno.test("two handles on one file append side by side without losing a message", async () => {
  await withFile(async (path) => {
    using one = await Deno.openKv(path);
    using two = await Deno.openKv(path);
    const append = async (kv: KvDatabase, name: string) => {
      const store = new KvConversationStore(kv);
      for (let n = 0; n < 40; n++) {
        for (;;) {
          const base = await store.get("a") ?? [];
          try {
            await store.save("a", [...base, user(`${name} ${n}`)], base);
            break;
          } catch (error) {
            if (!(error instanceof ConversationConflictError)) throw error;
          }
        }
      }
    };
    await Promise.all([append(one, "one"), append(two, "two"), append(two, "three")]);
    const contents = (await new KvConversationStore(one).get("a"))?.map((message) =>
      message.content
    );
    assertEquals(new Set(contents).size, 120);
    assertEquals(contents?.length, 120);
  });
});

/** A database whose commits are done, but whose answers to some of them are lost. */
function forgetful(
  kv: KvDatabase,
  isLost: (commit: Commit) => boolean,
  answer: "refused" | "error",
) {
  return wrapKv(kv, {
    commit: async (commit, next) => {
      const outcome = await next();
      if (!isLost(commit) || !outcome.ok) return outcome;
      if (answer === "error") throw new TypeError("connection reset by peer");
      return { ok: false };
    },
  });
}

const setsHead = ({ sets }: Commit) => sets.some(({ key }) => key.includes("head"));

for (const answer of ["refused", "error"] as const) {
  Deno.test(`a commit that was done and then answered with ${answer} is known as done`, async () => {
    using kv = await Deno.openKv(":memory:");
    const store = new KvConversationStore(forgetful(kv, setsHead, answer));
    const first = [user("1")];
    await store.save("a", first, []);
    const second = [...first, user("2")];
    await store.save("a", second, first);
    const third = [...second, large("3")];
    await store.save("a", third, second);
    const fourth = [large("x"), large("y"), large("z")];
    await store.save("a", fourth, third);
    await store.save("a", [...fourth, user("5")], fourth);
    const contents = (await store.get("a"))?.map((message) => String(message.content).slice(0, 2));
    assertEquals(contents, ["xx", "yy", "zz", "5"]);
    // And nothing was written twice: one head and the chunks of one generation.
    assertEquals(await new KvConversationStore(kv).sweep({ graceMs: 0 }), 0);
  });
}

Deno.test("a lost answer is known as done although others have written since", async () => {
  using kv = await Deno.openKv(":memory:");
  const other = new KvConversationStore(kv);
  const others = async () => {
    for (let n = 0; n < 50; n++) {
      const base = await other.get("a") ?? [];
      await other.save("a", [...base, user(`other ${n}`)], base);
    }
  };
  let isFirst = true;
  const store = new KvConversationStore(wrapKv(kv, {
    commit: async (_commit, next) => {
      const outcome = await next();
      if (!isFirst) return outcome;
      isFirst = false;
      await others();
      return { ok: false };
    },
  }));
  const mine = [user("mine")];
  await store.save("a", mine, []);
  const contents = (await store.get("a"))?.map((message) => message.content);
  assertEquals(contents?.slice(0, 2), ["mine", "other 0"]);
  assertEquals(contents?.length, 51);
  // What was saved is no base any more.
  await assertRejects(() => store.save("a", [...mine, user("2")], mine), ConversationConflictError);
});

Deno.test("a save refused for good is a conflict, whatever was lost", async () => {
  using kv = await Deno.openKv(":memory:");
  const base = [user("1")];
  const store = new KvConversationStore(wrapKv(kv, {
    commit: async (_commit, next) => {
      await other.save("a", [...base, user("theirs")], base);
      return next();
    },
  }));
  const other = new KvConversationStore(kv);
  await other.save("a", base, []);
  await assertRejects(
    () => store.save("a", [...base, user("mine")], base),
    ConversationConflictError,
  );
  assertEquals(await other.get("a"), [...base, user("theirs")]);
});

Deno.test("a save that loses after it staged its rows takes them back", async () => {
  using kv = await Deno.openKv(":memory:");
  const base = [user("1")];
  const other = new KvConversationStore(kv);
  await other.save("a", base, []);
  let staged = 0;
  const store = new KvConversationStore(wrapKv(kv, {
    commit: async (commit, next) => {
      if (commit.checks.length === 0 && commit.sets.length > 0 && ++staged === 2) {
        await other.save("a", [...base, user("theirs")], base);
      }
      return await next();
    },
  }));
  const mine = [...base, ...Array.from({ length: 8 }, () => large("m"))];
  await assertRejects(() => store.save("a", mine, base), ConversationConflictError);
  assert(staged >= 2);
  assertEquals((await rowsOf(kv)).length, 1 + 2);
});

Deno.test("a save whose end nobody knows leaves its rows for a sweep", async () => {
  using kv = await Deno.openKv(":memory:");
  const store = new KvConversationStore(wrapKv(kv, {
    commit: (commit, next) => setsHead(commit) ? Promise.reject(new Error("gone")) : next(),
  }));
  const messages = Array.from({ length: 8 }, () => large("m"));
  await assertRejects(() => store.save("a", messages, []), StoreError, "gone");
  const left = (await rowsOf(kv)).length;
  assert(left > 11);
  assertEquals(await store.get("a"), null);
  assertEquals(await store.sweep(), 0);
  assertEquals(await store.sweep({ graceMs: 0 }), left);
  assertEquals(await rowsOf(kv), []);
});

Deno.test("a save whose staged rows are swept away begins anew", async () => {
  using kv = await Deno.openKv(":memory:");
  const other = new KvConversationStore(kv);
  await other.save("a", [user("1")], []);
  let swept = 0;
  const store = new KvConversationStore(wrapKv(kv, {
    commit: async (commit, next) => {
      if (swept === 0 && setsHead(commit)) swept = await other.sweep({ graceMs: 0 });
      return await next();
    },
  }));
  const messages = [user("1"), ...Array.from({ length: 8 }, () => large("m"))];
  await store.save("a", messages, [user("1")]);
  assert(swept > 11);
  assert(JSON.stringify(await other.get("a")) === JSON.stringify(messages));
  assertEquals(await other.sweep({ graceMs: 0 }), 0);
});

Deno.test("rows that cannot be removed do not fail a save that is done", async () => {
  using kv = await Deno.openKv(":memory:");
  const store = new KvConversationStore(wrapKv(kv, {
    commit: (commit, next) =>
      commit.deletes.length > 0 ? Promise.reject(new Error("disk full")) : next(),
  }));
  await store.save("a", [large("1")]);
  await store.save("a", [large("2")]);
  assertEquals((await store.get("a"))?.[0]?.content, large("2").content);
  assertEquals(await new KvConversationStore(kv).sweep({ graceMs: 0 }), 6);
});

/** Each of these is done to a conversation of one chunk row and its head. */
const damages: Record<string, { at: "head" | "chunk"; value: unknown; says: string }> = {
  "a head that is no bytes": {
    at: "head",
    value: { version: 1 },
    says: "holds object, not bytes",
  },
  "a head that is no JSON": { at: "head", value: bytes("{"), says: "is not JSON" },
  "a head that is null": { at: "head", value: bytes("null"), says: "unknown format undefined" },
  "a head of a later layout": {
    at: "head",
    value: bytes(`{"format":2}`),
    says: "unknown format 2",
  },
  "a head without its numbers": { at: "head", value: bytes(`{"format":1}`), says: "is incomplete" },
  "a chunk that is missing": { at: "chunk", value: undefined, says: "is missing" },
  "a chunk that is a text": { at: "chunk", value: "text", says: "holds string, not bytes" },
  "a chunk cut short": {
    at: "chunk",
    value: bytes(`{"role":"us`),
    says: "hold 11 bytes in place of",
  },
  "a chunk of no JSON": {
    at: "chunk",
    value: bytes("x".repeat(33) + "\n"),
    says: "no message at byte 0",
  },
  "a chunk of broken UTF-8": {
    at: "chunk",
    value: bytes(`{"role":"user","content":"Hello"}\n`).map((byte) => byte === 72 ? 0xff : byte),
    says: "no message at byte 0",
  },
  "a chunk of one endless line": {
    at: "chunk",
    value: bytes("x".repeat(34)),
    says: "ends inside a",
  },
  "a chunk of too many messages": {
    at: "chunk",
    value: bytes(`{"role":"user" }\n`.repeat(2)),
    says: "2 messages in place of 1",
  },
};

for (const [name, { at, value, says }] of Object.entries(damages)) {
  Deno.test(`${name} is an error that names the key, never an empty conversation`, async () => {
    using kv = await Deno.openKv(":memory:");
    const store = new KvConversationStore(kv);
    await store.save("a/b", [user("Hello")], []);
    const [row] = await rowsOf(kv, ["toolnexus", at]);
    const key = row?.key as KvKey;
    if (value === undefined) await kv.delete(key);
    else await kv.set(key, value);

    const error = await assertRejects(() => store.get("a/b"), StoreError, says);
    assert(error.message.includes(`["toolnexus", "${at}", "a/b"`), error.message);
    assertEquals([error.operation, error.id], ["get", "a/b"]);
    await assertRejects(() => store.save("a/b", [user("2")], [user("Hello")]), StoreError, says);
    assertEquals(await store.sweep({ graceMs: 0 }), 0);
    // It can be overwritten and given up.
    await store.save("a/b", [user("new")]);
    assertEquals(await store.get("a/b"), [user("new")]);
    if (value === undefined) await kv.delete(key);
    else await kv.set(key, value);
    await store.delete("a/b");
    assertEquals(await store.get("a/b"), null);
    assertEquals(await rowsOf(kv), []);
  });
}

Deno.test("damage in the middle of a long conversation is found and named", async () => {
  using kv = await Deno.openKv(":memory:");
  const store = new KvConversationStore(kv);
  await store.save("a", [large("1"), large("2"), large("3")], []);
  const rows = await rowsOf(kv, ["toolnexus", "chunk"]);
  const whole = rows[7]?.value as Uint8Array;
  await kv.set(rows[7]?.key as KvKey, whole.slice(1));
  const short = await assertRejects(() => store.get("a"), StoreError, "hold");
  assert(short.message.includes("bytes in place of"), short.message);
  await kv.set(rows[7]?.key as KvKey, whole.map((byte) => byte ^ 0x80));
  await assertRejects(() => store.get("a"), StoreError, "no message at byte 300029, in chunk");
  await kv.delete(rows[7]?.key as KvKey);
  await assertRejects(() => store.get("a"), StoreError, ", 7] is missing");
});

function bytes(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}
