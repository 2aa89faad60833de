/** The KV store's conversations from their first save to the last of their rows: expiry, sweep, list. */
import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import { ConversationConflictError, StoreError } from "../mod.ts";
import type { ConversationInfo, Message } from "../mod.ts";
import { KvConversationStore } from "../stores/kv.ts";
import type { KvDatabase } from "../stores/kv.ts";
import { Counter, rowsOf, textsOf, wrapKv } from "./fixtures/kv_wrapper.ts";

const MINUTE = 60_000, HOUR = 60 * MINUTE, DAY = 24 * HOUR;
const user = (content: string): Message => ({ role: "user", content });
const large = (letter: string): Message => user(letter.repeat(300_000));

Deno.test("an expired conversation is absent, although KV still has its rows", async () => {
  using time = new FakeTime();
  using kv = await Deno.openKv(":memory:");
  const store = new KvConversationStore(kv, { expireIn: HOUR });
  const first = [user("1")];
  await store.save("a", first, []);
  time.tick(HOUR - 1);
  assertEquals(await store.get("a"), first);
  assertEquals((await idsOf(store)).length, 1);
  time.tick(1);
  assertEquals(await store.get("a"), null);
  assertEquals(await idsOf(store), []);
  assertEquals((await rowsOf(kv)).length, 2);

  // It is no base any more, and a new one may begin in its place.
  await assertRejects(
    () => store.save("a", [...first, user("2")], first),
    ConversationConflictError,
  );
  await store.save("a", [user("new")], []);
  assertEquals(await store.get("a"), [user("new")]);
  assertEquals((await rowsOf(kv)).length, 2);
});

Deno.test("each save prolongs a conversation, reading does not", async () => {
  using time = new FakeTime();
  using kv = await Deno.openKv(":memory:");
  const store = new KvConversationStore(kv, { expireIn: HOUR });
  let messages: Message[] = [];
  for (let n = 0; n < 10; n++) {
    const next = [...messages, user(String(n))];
    await store.save("a", next, messages);
    messages = next;
    time.tick(50 * MINUTE);
  }
  assertEquals((await store.get("a"))?.length, 10);
  time.tick(10 * MINUTE);
  assertEquals(await store.get("a"), null);
});

Deno.test("chunks outlive every head that needs them, and are refreshed before they run out", async () => {
  using time = new FakeTime();
  using kv = await Deno.openKv(":memory:");
  const lives = new ChunkLives(kv);
  const store = new KvConversationStore(lives.kv, { expireIn: DAY });
  let messages: Message[] = [];
  for (let n = 0; n < 100; n++) {
    const next = [...messages, user(String(n))];
    await store.save("a", next, messages);
    messages = next;
    await lives.check(DAY, `at turn ${n}`);
    time.tick(6 * HOUR);
  }
  // Once a day, not once a turn.
  assert(lives.rewrites >= 19 && lives.rewrites <= 25, `${lives.rewrites} refreshes`);
  assertEquals((await store.get("a"))?.length, 100);
});

Deno.test("a conversation goes on whole in a store that keeps it for a shorter time", async () => {
  using time = new FakeTime();
  using kv = await Deno.openKv(":memory:");
  const lives = new ChunkLives(kv);
  await new KvConversationStore(lives.kv, { expireIn: 30 * DAY }).save("a", [user("0")], []);
  await lives.check(30 * DAY, "at the first turn");
  const store = new KvConversationStore(lives.kv, { expireIn: DAY });
  for (let n = 1; n < 20; n++) {
    const messages = await store.get("a") ?? [];
    await store.save("a", [...messages, user(String(n))], messages);
    await lives.check(DAY, `at turn ${n}`);
    time.tick(12 * HOUR);
  }
  assertEquals((await store.get("a"))?.length, 20);
});

Deno.test("a conversation takes on the lifetime of the store that saves it", async () => {
  using kv = await Deno.openKv(":memory:");
  const counter = new Counter(kv);
  const ends = () =>
    counter.commits.flatMap(({ sets }) => sets.map(({ key, expireIn }) => [key[1], expireIn]));
  await new KvConversationStore(kv).save("a", [user("1")], []);
  await new KvConversationStore(counter.kv, { expireIn: DAY })
    .save("a", [user("1"), user("2")], [user("1")]);
  assertEquals(ends(), [["chunk", 2 * DAY + MINUTE], ["head", DAY]]);
  counter.take();
  await new KvConversationStore(counter.kv)
    .save("a", [user("1"), user("2"), user("3")], [user("1"), user("2")]);
  assertEquals(ends(), [["chunk", undefined], ["head", undefined]]);
  assertEquals((await rowsOf(kv)).length, 2);
});

Deno.test("sweep removes what a killed save left, and nothing younger than its grace", async () => {
  using time = new FakeTime();
  using kv = await Deno.openKv(":memory:");
  const store = new KvConversationStore(kv);
  for (const id of ["a", "b", "c"]) await store.save(id, [user("1"), large(id)], []);
  const before = await textsOf(kv);
  // Killed while it stages, and killed before it could remove the old rows.
  await assertRejects(
    () => dying(kv, 3).save("a", Array.from({ length: 20 }, () => large("x"))),
    StoreError,
  );
  await dying(kv, 1, "deletes").save("b", [user("short")]);
  const all = (await rowsOf(kv)).length;
  const other = new KvConversationStore(kv, { prefix: ["toolnexus", "chunk"] });
  await other.save("a", [user("below the first store's rows")], []);

  // The rows of b are as old as the staged ones of a, so both are left alone at first.
  assertEquals(await store.sweep(), 0);
  time.tick(HOUR);
  assertEquals(await store.sweep(), all - before.length + 5);
  assertEquals(await store.sweep({ graceMs: 0 }), 0);
  assertEquals(await store.get("b"), [user("short")]);
  assertEquals((await store.get("a"))?.length, 2);
  assertEquals((await store.get("c"))?.length, 2);
  assertEquals((await other.get("a"))?.length, 1);
});

Deno.test("sweep removes what is left of deleted and of expired conversations", async () => {
  using time = new FakeTime();
  using kv = await Deno.openKv(":memory:");
  const store = new KvConversationStore(kv, { expireIn: DAY });
  await store.save("expired", [large("1")], []);
  await store.save("deleted", [large("2")], []);
  await kv.delete(["toolnexus", "head", "deleted"]);
  time.tick(DAY);
  await store.save("alive", [large("3")], []);
  assertEquals(await store.sweep(), 12);
  assertEquals(await idsOf(store), ["alive"]);
  assertEquals((await rowsOf(kv)).length, 7);
});

Deno.test("sweep reads two rows a conversation, however long it is", async () => {
  using kv = await Deno.openKv(":memory:");
  const store = new KvConversationStore(kv);
  for (const id of ["a", "b"]) {
    await store.save(id, Array.from({ length: 20 }, () => large(id)), []);
  }
  let rows = 0;
  const counted = new KvConversationStore(wrapKv(kv, {
    get: (_key, next) => (rows++, next()),
    list: async function* (_selector, next) {
      for await (const row of next()) {
        rows++;
        yield row;
      }
    },
  }));
  assertEquals(await counted.sweep({ graceMs: 0 }), 0);
  assertEquals(rows, 4);
});

Deno.test("list tells id, time and number of messages, in the order of UTF-8", async () => {
  using time = new FakeTime(Date.UTC(2026, 0, 2, 3, 4, 5));
  using kv = await Deno.openKv(":memory:");
  const store = new KvConversationStore(kv);
  await store.save("user/2", [user("1")], []);
  time.tick(1000);
  await store.save("user/1", [user("1"), user("2")], []);
  await store.save("👋", [], []);
  await store.save("USER/1", [user("1")], []);
  const all = await infosOf(store);
  assertEquals(all.map(({ id }) => id), ["USER/1", "user/1", "user/2", "👋"]);
  assertEquals(all[1], {
    id: "user/1",
    updatedAt: new Date("2026-01-02T03:04:06.000Z"),
    messageCount: 2,
  });
  assertEquals(all[3]?.messageCount, 0);
  assertEquals(await idsOf(store, { prefix: "user/" }), ["user/1", "user/2"]);
  assertEquals(await idsOf(store, { prefix: "user/2" }), ["user/2"]);
  assertEquals(await idsOf(store, { prefix: "x" }), []);
  assertEquals(await idsOf(store, { prefix: "\0".repeat(5000) }), []);
  assertEquals(await idsOf(store, { limit: 2 }), ["USER/1", "user/1"]);
  assertEquals(await idsOf(store, { prefix: "user/", limit: 1 }), ["user/1"]);
  assertEquals(await idsOf(store, { limit: 0 }), []);
  for (const limit of [-1, 1.5, NaN]) {
    assertThrows(() => store.list({ limit }), RangeError, "limit");
  }
  assertThrows(() => store.list({ limit: "1" as never }), TypeError, "limit");
  for (const prefix of [7, "\ud800"]) {
    assertThrows(() => store.list({ prefix: prefix as string }), TypeError, "prefix");
  }
});

Deno.test("list shows nothing of a store whose prefix begins with its own", async () => {
  using kv = await Deno.openKv(":memory:");
  const store = new KvConversationStore(kv, { prefix: ["app"] });
  await store.save("mine", [user("1")], []);
  for (const part of ["head", "chunk", "mine"]) {
    const other = new KvConversationStore(kv, { prefix: ["app", part] });
    await other.save("theirs", [user("2")], []);
    await other.save("head", [user("3")], []);
    assertEquals(await idsOf(other), ["head", "theirs"]);
  }
  for (const prefix of ["", "m"]) assertEquals(await idsOf(store, { prefix }), ["mine"]);
  for (const prefix of ["head", "th"]) assertEquals(await idsOf(store, { prefix }), []);
});

Deno.test("list goes through more conversations than one batch holds", async () => {
  using kv = await Deno.openKv(":memory:");
  const store = new KvConversationStore(kv);
  const ids = Array.from({ length: 1100 }, (_, index) => `c${String(index).padStart(5, "0")}`);
  await Promise.all(ids.map((id) => store.save(id, [user(id)], [])));
  assertEquals(await idsOf(store), ids);
  assertEquals((await idsOf(store, { prefix: "c01" })).length, 100);
});

Deno.test("an id never chooses a key, and no two ids share one", async () => {
  using kv = await Deno.openKv(":memory:");
  const store = new KvConversationStore(kv);
  const ids = [
    ..."head chunk toolnexus ../a a/b a\\b A a __proto__ %00 CON".split(" "),
    " ",
    "é",
    "e\u0301",
    "\0",
    "a\0",
    "a\0b",
    "x".repeat(1024),
    "👋".repeat(256),
    "\0".repeat(1024),
    "\0".repeat(1023),
    "\0".repeat(1023) + "a",
  ];
  for (const id of ids) await store.save(id, [user(id)], []);
  for (const id of ids) assertEquals(await store.get(id), [user(id)]);
  assertEquals(new Set(await idsOf(store)), new Set(ids));
  assertEquals((await idsOf(store, { prefix: "\0".repeat(300) })).length, 3);
  assertEquals(await idsOf(store, { prefix: "a\0" }), ["a\0", "a\0b"]);
  assertEquals(await store.sweep({ graceMs: 0 }), 0);
  for (const id of ids) await store.delete(id);
  assertEquals(await rowsOf(kv), []);
});

Deno.test("the longest id fits below the longest prefix, in every commit", async () => {
  using kv = await Deno.openKv(":memory:");
  const store = new KvConversationStore(kv, { prefix: ["p".repeat(898)], expireIn: DAY });
  const id = "👋".repeat(256);
  await store.save(id, Array.from({ length: 50 }, () => large("1")), []);
  await store.save(id, [large("2"), large("3")]);
  assertEquals((await store.get(id))?.length, 2);
  await store.delete(id);
  assertEquals(await rowsOf(kv), []);
});

/** Keeps an eye on when the chunks that are written in a database end. */
class ChunkLives {
  readonly #kv: Deno.Kv;
  readonly #ends = new Map<string, number>();
  /** How often rows were removed. */
  rewrites = 0;
  readonly kv: KvDatabase;

  constructor(kv: Deno.Kv) {
    this.#kv = kv;
    this.kv = wrapKv(kv, {
      commit: (commit, next) => {
        if (commit.deletes.length > 0) this.rewrites++;
        for (const { key, expireIn = Infinity } of commit.sets) {
          this.#ends.set(key.join("/"), Date.now() + expireIn);
        }
        return next();
      },
    });
  }

  /** All chunks must live longer than a head that is written now. */
  async check(expireIn: number, when: string): Promise<void> {
    const rows = await rowsOf(this.#kv);
    for (const { key } of rows) {
      const left = (this.#ends.get(key.join("/")) ?? 0) - Date.now();
      if (key.includes("head")) assertEquals(left, expireIn);
      else assert(left >= expireIn + MINUTE, `a chunk ends before the head does ${when}`);
    }
    assert(rows.length >= 2);
  }
}

/** A store whose process is killed at the `count`-th of its commits, or of those that delete. */
function dying(kv: KvDatabase, count: number, kind?: "deletes"): KvConversationStore {
  let done = 0;
  return new KvConversationStore(wrapKv(kv, {
    commit: (commit, next) => {
      if (kind !== "deletes" || commit.deletes.length > 0) done++;
      return done < count ? next() : Promise.reject(new Error("killed"));
    },
  }));
}

async function infosOf(
  store: KvConversationStore,
  options?: { prefix?: string; limit?: number },
): Promise<ConversationInfo[]> {
  const infos: ConversationInfo[] = [];
  for await (const info of store.list(options)) infos.push(info);
  return infos;
}

async function idsOf(
  store: KvConversationStore,
  options?: { prefix?: string; limit?: number },
): Promise<string[]> {
  return (await infosOf(store, options)).map(({ id }) => id);
}
