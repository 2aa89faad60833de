/** The KV store on real databases: what it writes, what a turn costs, who wins, what is refused. */
import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import { ConversationConflictError } from "../mod.ts";
import type { Message } from "../mod.ts";
import { KvConversationStore } from "../stores/kv.ts";
import type { KvDatabase } from "../stores/kv.ts";
import { Counter, rowsOf, textsOf, withFile } from "./fixtures/kv_wrapper.ts";

const user = (content: string): Message => ({ role: "user", content });
const assistant = (content: string): Message => ({ role: "assistant", content });

Deno.test("a conversation is a head and chunks of JSON lines, all of them plain bytes", async () => {
  using kv = await Deno.openKv(":memory:");
  const prefix: Deno.KvKey = ["app", 7];
  const store = new KvConversationStore(kv, { prefix });
  await store.save("a/b", [user("Hello"), assistant("Hi, 世界 👋")], []);

  const rows = await rowsOf(kv);
  assertEquals(rows.map((row) => row.key.slice(0, 4)), [
    ["app", 7, "chunk", "a/b"],
    ["app", 7, "head", "a/b"],
  ]);
  assert(rows.every((row) => row.value instanceof Uint8Array));
  const [chunk = "", headText = ""] = await textsOf(kv);
  assertEquals(chunk.split("\n"), [
    `{"role":"user","content":"Hello"}`,
    `{"role":"assistant","content":"Hi, 世界 👋"}`,
    "",
  ]);
  const head = JSON.parse(headText);
  assertEquals(
    { version: head.version, chunks: head.chunks, count: head.count, bytes: head.bytes },
    { version: 1, chunks: 1, count: 2, bytes: new TextEncoder().encode(chunk).length },
  );
  assertEquals(rows[0]?.key[4], head.generation);
});

Deno.test("what get returns is the caller's own, and so is what was saved", async () => {
  using kv = await Deno.openKv(":memory:");
  const store = new KvConversationStore(kv);
  assertEquals(await store.get("a"), null);
  const saved = [{ role: "user", content: [{ type: "text", text: "Hello" }] }];
  await store.save("a", saved);
  (saved[0]?.content[0] as { text: string }).text = "changed";
  const read = await store.get("a");
  assertEquals(read, [{ role: "user", content: [{ type: "text", text: "Hello" }] }]);
  read?.push(user("more"));
  assertEquals((await store.get("a"))?.length, 1);
});

Deno.test("messages around KV's 64 KiB and around a chunk's size come back whole", async () => {
  using kv = await Deno.openKv(":memory:");
  const store = new KvConversationStore(kv);
  const frame = JSON.stringify(user("")).length;
  for (const edge of [60_000, 65_536, 120_000]) {
    for (const size of [edge - 2, edge - 1, edge, edge + 1]) {
      for (const filling of ["x", "é", "👋"]) {
        const bytes = new TextEncoder().encode(filling).length;
        const messages = [
          user(filling.repeat((size - frame) / bytes) + "x".repeat((size - frame) % bytes)),
          assistant("end"),
        ];
        await store.save("edge", messages);
        assertEquals(await store.get("edge"), messages);
      }
    }
  }
  const sizes = (await rowsOf(kv)).map((row) => (row.value as Uint8Array).length);
  assertEquals(sizes.filter((size) => size > 60_000), []);
});

for (const megabytes of [5, 20]) {
  Deno.test(`a conversation of ${megabytes} MB is saved, read and continued`, async () => {
    await withFile(async (path) => {
      using kv = await Deno.openKv(path);
      const store = new KvConversationStore(kv);
      const messages = Array.from(
        { length: megabytes * 10 },
        (_, index) => user(`${index} `.padEnd(100_000, "Größe ")),
      );
      messages.push({ role: "user", content: "one message of 1 MB ".repeat(50_000) });
      const times = [performance.now()];
      await store.save("large", messages, []);
      times.push(performance.now());
      const read = await store.get("large") ?? [];
      times.push(performance.now());
      await store.save("large", [...read, assistant("Done")], read);
      times.push(performance.now());
      assertEquals(read, messages);
      assertEquals((await store.get("large"))?.length, messages.length + 1);

      const { bytes } = JSON.parse((await textsOf(kv, ["toolnexus", "head"]))[0] ?? "");
      assert(bytes > megabytes * 1_000_000);
      const took = times.slice(1).map((time, index) => Math.round(time - (times[index] ?? 0)));
      console.log(
        `${(bytes / 1e6).toFixed(1)} MB: save ${took[0]} ms, get ${took[1]} ms, next turn ${
          took[2]
        } ms`,
      );
    });
  });
}

Deno.test("a turn costs the same at 10, 100 and 1,000 turns", async () => {
  using kv = await Deno.openKv(":memory:");
  const counter = new Counter(kv);
  const store = new KvConversationStore(counter.kv);
  const turn = (n: number) => [
    user(`question ${String(n).padStart(4, "0")} `.padEnd(200, "?")),
    assistant(`answer ${String(n).padStart(4, "0")} `.padEnd(800, "!")),
  ];
  const costs = new Map<number, ReturnType<Counter["take"]>>();
  let messages: Message[] = [];
  for (let n = 1; n <= 1000; n++) {
    const next = [...messages, ...turn(n)];
    counter.take();
    await store.save("chat", next, messages);
    costs.set(n, counter.take());
    messages = next;
  }
  assertEquals(await store.get("chat"), messages);

  // A store that keeps the whole transcript in one value, as most do.
  let naiveBytes = 0, naiveEnd = "";
  const naive: number[] = [];
  const transcript: Message[] = [];
  for (let n = 1; n <= 1000 && naiveEnd === ""; n++) {
    transcript.push(...turn(n));
    const value = new TextEncoder().encode(JSON.stringify(transcript));
    naiveBytes = value.length;
    try {
      await kv.set(["naive"], value);
      naive[n] = naiveBytes;
    } catch (error) {
      naiveEnd = `fails at turn ${n} with ${naiveBytes} bytes: ${(error as Error).message}`;
    }
  }
  const newBytes = new TextEncoder().encode(
    turn(1).map((message) => JSON.stringify(message) + "\n").join(""),
  ).length;
  for (const n of [10, 100, 1000]) {
    const cost = costs.get(n);
    console.log(
      `turn ${n}: ${cost?.bytes} bytes (${newBytes} of them new messages), ${cost?.mutations} mutations, ` +
        `${cost?.commits} commit, ${cost?.reads} reads; whole transcript in one value: ${
          naive[n] ?? naiveEnd
        }`,
    );
    assertEquals([cost?.commits, cost?.mutations, cost?.reads], [1, 2, 0]);
    assert((cost?.bytes ?? 0) - newBytes < 1024, "the head stays below one write unit");
  }
  // Between turn 100 and turn 1,000 only counters in the head get longer.
  assert((costs.get(1000)?.bytes ?? 0) - (costs.get(100)?.bytes ?? 0) <= 8);
  assertEquals(naiveEnd.startsWith("fails at turn"), true);
});

Deno.test("a base is accepted by identity, as a copy, and from another store object", async () => {
  using kv = await Deno.openKv(":memory:");
  const counter = new Counter(kv);
  const store = new KvConversationStore(counter.kv);
  const first = [user("1")];
  await store.save("a", first, []);
  const second = [...first, assistant("2")];
  await store.save("a", second, first);
  assertEquals(counter.take().commits, 2);

  // The keys of a copy may stand in another order; and only the new message is written.
  const copy = [{ content: "1", role: "user" }, assistant("2")];
  await store.save("a", [...second, user("3")], copy);
  const cost = counter.take();
  assertEquals([cost.commits, cost.mutations], [1, 2]);

  const elsewhere = new KvConversationStore(kv);
  await elsewhere.save("a", [...second, user("3"), assistant("4")], [...second, user("3")]);
  assertEquals((await store.get("a"))?.map((message) => message.content), ["1", "2", "3", "4"]);
});

Deno.test("a stale base is refused and nothing is written", async () => {
  using kv = await Deno.openKv(":memory:");
  const store = new KvConversationStore(kv);
  await store.save("a", [user("1")], []);
  const mine = await store.get("a") ?? [];
  const theirs = await store.get("a") ?? [];
  await store.save("a", [...theirs, user("theirs")], theirs);
  const rows = await textsOf(kv);
  const error = await assertRejects(
    () => store.save("a", [...mine, user("mine")], mine),
    ConversationConflictError,
  );
  assertEquals(error.id, "a");
  await assertRejects(() => store.save("a", [user("new")], []), ConversationConflictError);
  await assertRejects(() => store.save("b", [user("new")], mine), ConversationConflictError);
  await assertRejects(
    () => store.save("a", [user("x".repeat(2_000_000))], mine),
    ConversationConflictError,
  );
  assertEquals(await textsOf(kv), rows);
});

Deno.test("a base under one id is none under another", async () => {
  using kv = await Deno.openKv(":memory:");
  const counter = new Counter(kv);
  const store = new KvConversationStore(counter.kv);
  const messages = [user("1")];
  await store.save("a", messages, []);
  await store.save("b", [user("other")], []);
  counter.take();
  await assertRejects(() => store.save("b", [user("2")], messages), ConversationConflictError);
  assertEquals(counter.take().commits, 0);
});

Deno.test("someone else writing the same again leaves a base as it is", async () => {
  using kv = await Deno.openKv(":memory:");
  const store = new KvConversationStore(kv);
  const base = [user("1")];
  await store.save("a", base, []);
  await new KvConversationStore(kv).save("a", [user("1")]);
  await store.save("a", [...base, user("2")], base);
  assertEquals(await store.get("a"), [user("1"), user("2")]);
});

Deno.test("without a base the conversation is overwritten, and [] is only for a new one", async () => {
  using kv = await Deno.openKv(":memory:");
  const store = new KvConversationStore(kv);
  await store.save("a", [user("1"), user("2")]);
  await store.save("a", [user("3")]);
  assertEquals(await store.get("a"), [user("3")]);
  await store.save("a", []);
  assertEquals(await store.get("a"), []);
  await store.save("a", [user("4")], []);
  assertEquals(await store.get("a"), [user("4")]);
  await store.delete("a");
  await store.save("a", [user("5")], []);
  assertEquals(await store.get("a"), [user("5")]);
  assertEquals((await rowsOf(kv)).length, 2);
});

Deno.test("a rewritten history replaces the old one and leaves no rows of it", async () => {
  using kv = await Deno.openKv(":memory:");
  const store = new KvConversationStore(kv);
  const long = Array.from({ length: 40 }, (_, index) => user(`${index}`.padEnd(50_000, ".")));
  await store.save("a", long, []);
  const base = await store.get("a") ?? [];
  const short = [user("[Summary] all of it"), ...base.slice(-2)];
  await store.save("a", short, base);
  assertEquals(await store.get("a"), short);
  assertEquals((await rowsOf(kv)).length, 1 + 2);
});

Deno.test("messages changed in place are noticed, not passed over", async () => {
  using kv = await Deno.openKv(":memory:");
  const store = new KvConversationStore(kv);
  await store.save("a", [user("1"), user("2")], []);
  const base = await store.get("a") ?? [];
  if (base[0]) base[0].content = "one";
  await store.save("a", [...base, user("3")], base);
  assertEquals((await store.get("a"))?.map((message) => message.content), ["one", "2", "3"]);

  // An array that its owner goes on pushing to still stands for what it was when it was saved.
  const growing = await store.get("a") ?? [];
  growing.push(user("4"));
  await store.save("a", growing, growing);
  assertEquals((await store.get("a"))?.map((message) => message.content), ["one", "2", "3", "4"]);
});

Deno.test("an addition too large for one commit is staged and appears at once", async () => {
  using kv = await Deno.openKv(":memory:");
  const counter = new Counter(kv);
  const store = new KvConversationStore(counter.kv);
  const base = [user("1")];
  await store.save("a", base, []);
  counter.take();
  await store.save("a", [...base, user("x".repeat(3_000_000))], base);
  const { commits } = counter;
  assert(commits.length > 5);
  assert(
    commits.every(({ sets }) => sets.reduce((sum, set) => sum + set.value.length, 0) < 750_000),
  );
  const flips = commits.filter(({ sets }) => sets.some((set) => set.key.includes("head")));
  assertEquals(flips.length, 1);
  assertEquals((await store.get("a"))?.length, 2);
});

Deno.test("what just fits into one commit is one, a byte more is staged", async () => {
  using kv = await Deno.openKv(":memory:");
  const counter = new Counter(kv);
  const store = new KvConversationStore(counter.kv);
  const sized = (bytes: number) => user("x".repeat(bytes - JSON.stringify(user("")).length - 1));
  for (const [bytes, firstSave, addition] of [[720_000, 1, 1], [720_001, 2, 3]] as const) {
    const id = `${bytes} bytes`;
    await store.save(id, [sized(bytes)], []);
    assertEquals(counter.take().commits, firstSave);
    assertEquals(await store.get(id), [sized(bytes)]);

    const base = [user("1")];
    await store.save(id + " more", base, []);
    counter.take();
    await store.save(id + " more", [...base, sized(bytes)], base);
    // The third one removes the rows of before.
    assertEquals(counter.take().commits, addition);
    assertEquals(await store.get(id + " more"), [...base, sized(bytes)]);
  }
  assertEquals(await store.sweep({ graceMs: 0 }), 0);
});

Deno.test("a commit ends with the head: what KV keeps of a failed one is never counted", async () => {
  using kv = await Deno.openKv(":memory:");
  const counter = new Counter(kv);
  const store = new KvConversationStore(counter.kv);
  const base = [user("1")];
  await store.save("a", base, []);
  await store.save("a", [...base, user("x".repeat(200_000))], base);
  for (const { checks, sets } of counter.commits) {
    assertEquals(checks.length, 1);
    assertEquals(sets.findIndex((set) => set.key.includes("head")), sets.length - 1);
  }
});

Deno.test("the store is made with what it needs, or not at all", async () => {
  using kv = await Deno.openKv(":memory:");
  for (const wrong of [undefined, null, {}, ":memory:", { get() {} }]) {
    assertThrows(
      () => new KvConversationStore(wrong as unknown as KvDatabase),
      TypeError,
      "kv must be",
    );
  }
  for (
    const prefix of ["a", [null], [{}], [Symbol("a")], ["x".repeat(900)], [new Uint8Array(500)]]
  ) {
    const options = { prefix: prefix as unknown as string[] };
    assertThrows(() => new KvConversationStore(kv, options), TypeError, "prefix");
  }
  for (const expireIn of [0, -1, 1.5, NaN, Infinity, 1e15]) {
    assertThrows(() => new KvConversationStore(kv, { expireIn }), RangeError, "expireIn");
  }
  const store = new KvConversationStore(kv);
  for (const id of ["", "\ud800", "x".repeat(1025), 7]) {
    await assertRejects(() => store.get(id as string), TypeError);
    await assertRejects(() => store.save(id as string, []), TypeError);
    await assertRejects(() => store.delete(id as string), TypeError);
  }
  await assertRejects(() => store.save("a", [{ role: "user", n: 1n }]), TypeError, "bigint");
  await assertRejects(() => store.save("a", [], {} as Message[]), TypeError, "base");
  assertEquals(await rowsOf(kv), []);
});
