/** Writers that do not wait for each other: no turn is lost, and no model is asked twice. */
import { assert, assertEquals, assertRejects, assertStringIncludes } from "@std/assert";
import {
  ConversationConflictError,
  type ConversationStore,
  InMemoryConversationStore,
  type Message,
  ProviderError,
  StoreError,
} from "../mod.ts";
import { FakeTime } from "@std/testing/time";
import { flakyStore, stubLlm } from "../src/testing/mod.ts";
import {
  answerOf,
  calling,
  clientOf,
  clientOfFetch,
  LedgerStore,
  lines,
  plainStore,
  readUntil,
  throughTime,
  toolOf,
} from "./client_kit.ts";

const user = (content: string): Message => ({ role: "user", content });
const assistant = (content: string): Message => ({ role: "assistant", content });
const NOTE = [user("a note"), assistant("noted")];
const NOTED = ["user: a note", "assistant: noted"];
const INTERRUPTED = "interrupted: may or may not have run";

/** A conversation to which another process adds a note before the first save. */
function noteBeforeSave(): LedgerStore {
  const store = new LedgerStore();
  store.put("a", [user("old"), assistant("older")]);
  store.beforeSave[1] = () => store.append("a", ...NOTE);
  return store;
}

Deno.test("save() is told what the transcript was built on", async () => {
  await using server = stubLlm(() => "ok");
  const store = new LedgerStore();
  const client = clientOf(server, { store });
  await client.ask("1", { id: "a" });
  await client.ask("2", { id: "a" });
  assertEquals(store.saves.map(({ base }) => base), [[], ["user: 1", "assistant: ok"]]);
});

Deno.test("base is the very array that get() gave, or that was last saved", async () => {
  await using server = stubLlm([calling("pay"), "Paid"]);
  const given: unknown[] = [];
  const read: Message[] = [];
  const client = clientOf(server, {
    checkpoint: "round",
    toolkit: [toolOf("pay")],
    store: { get: () => read, save: (_, messages, base) => void given.push(base, messages) },
  });
  await client.ask("go", { id: "a" });
  assertEquals(given.length, 6);
  assert(given[0] === read && given[2] === given[1] && given[4] === given[3]);
});

Deno.test("new messages come after the very messages of base, so a store can tell what is new", async () => {
  await using server = stubLlm(() => "ok");
  const read = [user("hi"), assistant("hello")];
  let isAppend = false;
  const client = clientOf(server, {
    store: {
      get: () => read,
      save: (_, messages) => void (isAppend = read.every((m, index) => messages[index] === m)),
    },
  });
  await client.ask("go", { id: "a" });
  assert(isAppend);
});

Deno.test("a turn of someone else's meanwhile: both are kept, the model is asked once", async () => {
  await using server = stubLlm(["ok"]);
  const store = noteBeforeSave();
  const { messages, text } = await clientOf(server, { store }).ask("go", { id: "a" });
  const told = ["user: old", "assistant: older", ...NOTED, "user: go", "assistant: ok"];
  assertEquals([text, lines(store.get("a"))], ["ok", told]);
  assertEquals(lines(messages), told);
  assertEquals([server.requests.length, store.saves.length], [1, 2]);
});

Deno.test("a first turn of someone else's on a new id is kept too", async () => {
  await using server = stubLlm(["ok"]);
  const store = new LedgerStore();
  store.beforeSave[1] = () => store.append("a", ...NOTE);
  await clientOf(server, { store }).ask("go", { id: "a" });
  assertEquals(lines(store.get("a")), [...NOTED, "user: go", "assistant: ok"]);
});

Deno.test("a conversation that was deleted meanwhile begins with this turn", async () => {
  await using server = stubLlm(["ok"]);
  const store = new InMemoryConversationStore();
  await store.save("a", NOTE);
  const contested = flakyStore(store, (operation) => {
    if (operation === "save" && server.requests.length === 1) store.delete("a");
    return "ok";
  });
  await clientOf(server, { store: contested }).ask("go", { id: "a" });
  assertEquals(lines(await store.get("a")), ["user: go", "assistant: ok"]);
});

Deno.test("many writers of one store that do not know of each other lose nothing", async () => {
  await using server = stubLlm(({ body }) => `re ${body.messages.at(-1)?.content}`);
  const kept = new InMemoryConversationStore();
  const prompts = Array.from({ length: 16 }, (_, index) => `p${index}`);
  // Each has a store object of its own, as each process would.
  await Promise.all(prompts.map((prompt) => {
    const store = flakyStore(kept, () => ({ delay: Math.random() * 3 }));
    return clientOf(server, { store }).ask(prompt, { id: "a" });
  }));
  const told = lines(await kept.get("a"));
  assertEquals(told.length, 32);
  for (let index = 0; index < 32; index += 2) {
    assertEquals(told[index + 1], told[index]!.replace("user: ", "assistant: re "));
  }
  assertEquals(server.requests.length, 16);
});

Deno.test("what a failed or left run has completed is kept beside someone else's turn", async () => {
  await using server = stubLlm([calling("pay"), { status: 400 }, "Hello"]);
  for (
    const [expected, go] of [
      [["user: go", "assistant: [pay]", "tool: pay ran"], async (client) => {
        const error = await assertRejects(() => client.ask("go", { id: "a" }), ProviderError);
        assertEquals(error.suppressed, undefined);
      }],
      [["user: go", "assistant: Hell"], async (client) => {
        await readUntil(client.stream("go", { id: "a" }), ({ type }) => type === "text");
      }],
    ] as [string[], (client: ReturnType<typeof clientOf>) => Promise<void>][]
  ) {
    const store = new LedgerStore();
    store.beforeSave[1] = () => store.append("a", ...NOTE);
    await go(clientOf(server, { store, toolkit: [toolOf("pay")] }));
    assertEquals(lines(store.get("a")), [...NOTED, ...expected]);
  }
});

Deno.test("a store that never agrees: bounded tries, the conflict, and the result on it", async () => {
  using time = new FakeTime();
  let saves = 0;
  const client = clientOfFetch(() => answerOf("ok"), {
    store: {
      get: () => [],
      save: (id) => {
        saves++;
        throw new ConversationConflictError(id);
      },
    },
  });
  const asking = throughTime(time, client.ask("go", { id: "a" }));
  const error = await assertRejects(() => asking, ConversationConflictError);
  assertEquals([error.code, error.result?.text], ["store_conflict", "ok"]);
  assert(saves > 3 && saves < 100, `${saves} saves`);
});

Deno.test("a conflict of another copy of this package is one too", async () => {
  using time = new FakeTime();
  const kept = new InMemoryConversationStore();
  const conflict = () => Object.assign(new Error("changed"), { code: "store_conflict" });
  const ask = (store: ConversationStore) =>
    throughTime(time, clientOfFetch(() => answerOf("ok"), { store }).ask("go", { id: "a" }));
  await ask(flakyStore(kept, { save: [conflict(), "ok"] }));
  assertEquals(lines(await kept.get("a")), ["user: go", "assistant: ok"]);
  // One that lasts has the result on it all the same.
  const stubborn = flakyStore(kept, (operation) => operation === "save" ? conflict() : "ok");
  const error = await assertRejects(() => ask(stubborn));
  const { code, result } = error as ConversationConflictError;
  assertEquals([code, result?.text], ["store_conflict", "ok"]);
});

Deno.test("a conversation that cannot be read again: the store's error, and the result on it", async () => {
  await using server = stubLlm(["ok"]);
  const store = flakyStore(new InMemoryConversationStore(), {
    get: ["ok", new Error("gone")],
    save: [new ConversationConflictError("a")],
  });
  const error = await assertRejects(
    () => clientOf(server, { store }).ask("go", { id: "a" }),
    StoreError,
    "gone",
  );
  assertEquals([error.operation, error.result?.text], ["get", "ok"]);
});

Deno.test("a hook that rewrote history: the conflict is thrown, the result on it", async () => {
  await using server = stubLlm(["ok"]);
  const store = noteBeforeSave();
  const client = clientOf(server, {
    store,
    hooks: { beforeLLM: ({ messages }) => ({ messages: [user("summary"), ...messages.slice(2)] }) },
  });
  const error = await assertRejects(() => client.ask("go", { id: "a" }), ConversationConflictError);
  const told = ["user: summary", "user: go", "assistant: ok"];
  assertEquals(lines(error.result?.messages), told);
  assertEquals(lines(store.get("a")), ["user: old", "assistant: older", ...NOTED]);
});

Deno.test("a hook that rewrites history after a checkpoint went behind someone else's turn: nothing is lost", async () => {
  await using server = stubLlm([calling("ping"), calling("ping"), "ok"]);
  const store = noteBeforeSave();
  const client = clientOf(server, {
    store,
    checkpoint: "round",
    toolkit: [toolOf("ping")],
    hooks: {
      beforeLLM: ({ messages, turn }) =>
        turn === 3 ? { messages: [user("summary"), ...messages.slice(2)] } : undefined,
    },
  });
  const error = await assertRejects(() => client.ask("go", { id: "a" }), ConversationConflictError);
  assertEquals([error.result?.text, error.result?.toolCallCount], ["ok", 2]);
  const round = ["assistant: [ping]", "tool: ping ran"];
  const told = ["user: old", "assistant: older", ...NOTED, "user: go", ...round, ...round];
  assertEquals(lines(store.get("a")), told);
});

Deno.test("a hook that changed only this turn can still go behind someone else's", async () => {
  await using server = stubLlm(["ok"]);
  const store = noteBeforeSave();
  const client = clientOf(server, {
    store,
    hooks: {
      beforeLLM: ({ messages }) => ({
        // As a hook that goes through JSON would: copies of the same messages.
        messages: [...structuredClone(messages.slice(0, -1)), user("redacted")],
      }),
    },
  });
  await client.ask("secret", { id: "a" });
  const told = ["user: old", "assistant: older", ...NOTED, "user: redacted", "assistant: ok"];
  assertEquals(lines(store.get("a")), told);
});

Deno.test("a store of two closures ignores base", async () => {
  await using server = stubLlm(() => "ok");
  const store = plainStore();
  const client = clientOf(server, { store });
  await client.ask("1", { id: "a" });
  await client.ask("2", { id: "a" });
  assertEquals(lines(await store.get("a")).length, 4);
});

// ---- checkpoints ----

Deno.test(`checkpoint "round" saves before and after each round, and at the end`, async () => {
  await using server = stubLlm([calling("pay"), calling("mail"), "Done"]);
  const store = new LedgerStore();
  const toolkit = [toolOf("pay"), toolOf("mail")];
  await clientOf(server, { store, toolkit, checkpoint: "round" }).ask("go", { id: "a" });
  const one = ["user: go", "assistant: [pay]"], two = [...one, "tool: pay ran"];
  const three = [...two, "assistant: [mail]"], four = [...three, "tool: mail ran"];
  const saves = [one, two, three, four, [...four, "assistant: Done"]];
  assertEquals(store.saves.map(({ messages }) => messages), saves);
  assertEquals(store.saves.map(({ base }) => base), [[], ...saves.slice(0, -1)]);
});

Deno.test(`checkpoint "run" saves once`, async () => {
  await using server = stubLlm([calling("pay"), "Done"]);
  const store = new LedgerStore();
  await clientOf(server, { store, toolkit: [toolOf("pay")] }).ask("go", { id: "a" });
  assertEquals(store.saves.length, 1);
});

Deno.test("a tool does not run when the checkpoint before it fails", async () => {
  await using server = stubLlm([calling("pay")]);
  let runs = 0;
  const store = flakyStore(
    plainStore(),
    (operation) => operation === "save" ? new Error("no") : "ok",
  );
  const toolkit = [toolOf("pay", () => ++runs)];
  const client = clientOf(server, { store, toolkit, checkpoint: "round" });
  const error = await assertRejects(() => client.ask("go", { id: "a" }), StoreError);
  assertEquals([runs, error.operation], [0, "save"]);
});

Deno.test("a failure keeps a round that was recorded, with its open calls closed", async () => {
  await using server = stubLlm([calling("hang"), "ok"]);
  const controller = new AbortController();
  const hang = toolOf("hang", () => {
    controller.abort();
    return new Promise(() => {});
  });
  const store = new LedgerStore();
  const client = clientOf(server, { store, toolkit: [hang], checkpoint: "round" });
  await assertRejects(() => client.ask("go", { id: "a", signal: controller.signal }));
  const told = ["user: go", "assistant: [hang]", `tool: ${INTERRUPTED}`];
  assertEquals(lines(store.get("a")), told);
  await client.ask("well?", { id: "a" });
});

Deno.test("a writer in the middle of its turn takes its checkpoint out and goes behind the other", async () => {
  await using server = stubLlm([calling("pay"), "Paid"]);
  const store = new LedgerStore();
  store.put("a", [user("old"), assistant("older")]);
  const front = ["user: old", "assistant: older"];
  // Another process reads the open round, closes it as it must, and adds its own turn.
  const other = toolOf("pay", async () => {
    await clientOf(second, { store: sameData(store) }).ask("meanwhile", { id: "a" });
    return "pay ran";
  });
  await using second = stubLlm(["Sure"]);
  const client = clientOf(server, { store, toolkit: [other], checkpoint: "round" });
  const { messages } = await client.ask("go", { id: "a" });
  const told = [
    ...front,
    "user: meanwhile",
    "assistant: Sure",
    "user: go",
    "assistant: [pay]",
    "tool: pay ran",
    "assistant: Paid",
  ];
  assertEquals(lines(store.get("a")), told);
  assertEquals(lines(messages), told);
  // What the other one saw, and saved, was closed.
  assertStringIncludes(lines(second.requests[0]!.body.messages).join(), INTERRUPTED);
  // No call twice, and nothing is open: the stub refuses what is not sendable.
  assertEquals([server.requests.length, second.requests.length], [2, 1]);
});

Deno.test("turns of others, two before each of a run's saves, stay in front, once each", async () => {
  await using server = stubLlm([calling("pay"), calling("mail"), "Done"]);
  const store = new LedgerStore();
  let notes = 0;
  for (const save of [1, 2, 4, 5, 7, 8, 10, 11, 13, 14]) {
    store.beforeSave[save] = () => store.append("a", user(`n${++notes}`), assistant("noted"));
  }
  const toolkit = [toolOf("pay"), toolOf("mail")];
  await clientOf(server, { store, toolkit, checkpoint: "round" }).ask("go", { id: "a" });
  const told = lines(store.get("a"));
  const own = ["user: go", "assistant: [pay]", "tool: pay ran", "assistant: [mail]"];
  own.push("tool: mail ran", "assistant: Done");
  assertEquals(told.slice(-6), own);
  assertEquals(told.filter((line) => line.startsWith("user: n")).length, notes);
  assertEquals(told.length, 6 + notes * 2);
  assertEquals(notes, 10);
});

for (const ids of ["ids of their own", "the same ids"]) {
  Deno.test(`many writers in the middle of their turns at once, calls with ${ids}`, async () => {
    await using server = stubLlm(({ body }) => {
      const asked = body.messages.findLast(({ role }) => role === "user")!.content;
      if (body.messages.at(-1)!.role !== "user") return `re ${asked}`;
      return ids === "the same ids" ? calling("pay") : { toolCalls: [{ name: "pay" }] };
    });
    const kept = new InMemoryConversationStore();
    const prompts = Array.from({ length: 8 }, (_, index) => `p${index}`);
    await Promise.all(prompts.map((prompt) => {
      const store = flakyStore(kept, () => ({ delay: Math.random() * 3 }));
      const toolkit = [toolOf("pay", () => `${prompt} paid`)];
      return clientOf(server, { store, toolkit, checkpoint: "round" }).ask(prompt, { id: "a" });
    }));
    const told = lines(await kept.get("a"));
    const turn = (prompt: string) => [
      `user: ${prompt}`,
      "assistant: [pay]",
      `tool: ${prompt} paid`,
      `assistant: re ${prompt}`,
    ];
    const order = told.filter((line) => line.startsWith("user: ")).map((line) => line.slice(6));
    assertEquals(told, order.flatMap(turn));
    assertEquals(order.sort(), prompts);
    assertEquals(server.requests.length, 16);
  });
}

Deno.test("a checkpoint of someone else's with the same words is not taken for one's own", async () => {
  await using server = stubLlm([calling("pay"), "Paid"]);
  const store = new LedgerStore();
  // The same turn is in the conversation already, word for word, and finished.
  const turn = [user("go"), assistant("ok")];
  store.put("a", turn);
  store.beforeSave[2] = () => store.append("a", ...turn);
  const client = clientOf(server, { store, toolkit: [toolOf("pay")], checkpoint: "round" });
  await client.ask("go", { id: "a" });
  assertEquals(lines(store.get("a")), [
    "user: go",
    "assistant: ok",
    "user: go",
    "assistant: ok",
    "user: go",
    "assistant: [pay]",
    "tool: pay ran",
    "assistant: Paid",
  ]);
});

/** Another store object on the same data, as another process would have. */
function sameData(store: LedgerStore): ReturnType<typeof flakyStore> {
  return flakyStore(store, {});
}
