/** A suspended run travels: between stores' clients, from style to style; and stores may fail. */
import { assertEquals, assertRejects, assertStringIncludes } from "@std/assert";
import {
  ConversationConflictError,
  convertTranscript,
  InMemoryConversationStore,
  RunAbortedError,
  StaleAnswerError,
  StoreError,
} from "../mod.ts";
import { flakyStore, stubLlm } from "../src/testing/mod.ts";
import {
  asking,
  assertNoMarkWasSent,
  callIdsOf,
  INTERRUPTED,
  requestOf,
  resultsOf,
  STORES,
  STYLES,
  WAYS,
  yesTo,
} from "./approval_kit.ts";
import { calling, clientOf, LedgerStore, plainStore, toolOf } from "./client_kit.ts";

for (const [kind, create] of Object.entries(STORES)) {
  for (const first of STYLES) {
    for (const second of STYLES) {
      for (const [way, { ask, resume }] of Object.entries(WAYS)) {
        Deno.test(`suspended in ${first} style, resumed in ${second} style (${kind}, ${way})`, async () => {
          await using shared = await create();
          await using server = stubLlm([
            "Hello.",
            {
              text: "One moment.",
              reasoning: "I need both.",
              toolCalls: [
                { id: "c-pay", name: "pay", args: { euro: 20 } },
                { id: "c-mail", name: "mail", args: {} },
                { id: "c-login", name: "login", args: {} },
              ],
            },
            "All done.",
            "You are welcome.",
          ]);
          let mails = 0;
          const pay = asking("pay", { data: { euro: 20 } }), login = asking("login");
          const toolkit = [pay, toolOf("mail", () => `mail ${++mails}`), login];
          const clientOn = async (style: typeof first) =>
            clientOf(server, { style, toolkit, store: await shared.open(), retries: 0 });
          const id = "hr/Vacation #7";

          const asker = await clientOn(first);
          await ask(asker, "hi", { id });
          const suspended = await ask(asker, "go", { id });
          assertEquals(requestOf(suspended).data, { euro: 20, toolCallId: "c-pay" });

          const resumer = await clientOn(second);
          assertEquals((await resume(resumer, { id })).pending, suspended.pending);
          const again = await resume(resumer, { id, answer: yesTo(suspended) });
          assertEquals(requestOf(again).prompt, "login?");

          const last = await resume(await clientOn(second), { id, answer: yesTo(again) });
          assertEquals([last.status, last.text], ["done", "All done."]);
          const ids = ["c-pay", "c-mail", "c-login"];
          assertEquals(callIdsOf(last.messages), ids);
          const results = ["c-pay: pay done", "c-mail: mail 1", "c-login: login done"];
          assertEquals(resultsOf(last.messages), results);
          assertEquals(resultsOf(server.requests[2]!.body.messages), results);
          assertEquals(
            [pay, login].map(({ runs }) => runs.map(({ callId, answer }) => [callId, answer?.ok])),
            [[["c-pay", true]], [["c-login", true]]],
          );
          assertEquals(mails, 1);

          // And back, over the whole of it.
          await ask(asker, "thanks", { id });
          assertEquals((await (await shared.open()).get(id))?.length, last.messages.length + 2);
          assertNoMarkWasSent(server);
        });
      }
    }
  }
}

Deno.test("a store of two closures without base will do", async () => {
  await using server = stubLlm([calling("pay"), "Paid."]);
  const pay = asking("pay");
  const store = plainStore();
  const client = clientOf(server, { store, toolkit: [pay] });
  const answer = yesTo(await client.ask("go", { id: "a" }));
  assertEquals((await client.resume({ id: "a", answer })).text, "Paid.");
  await assertRejects(() => client.resume({ id: "a", answer }), StaleAnswerError);
  assertEquals(pay.runs.length, 1);
});

Deno.test("a store that cannot be read: a StoreError, and nothing is spent", async () => {
  await using server = stubLlm([calling("pay"), "Paid."]);
  const store = flakyStore(new InMemoryConversationStore(), {
    get: ["ok", new Error("connection refused")],
  });
  const pay = asking("pay");
  const client = clientOf(server, { store, toolkit: [pay] });
  const answer = yesTo(await client.ask("go", { id: "a" }));
  const error = await assertRejects(() => client.resume({ id: "a", answer }), StoreError);
  assertEquals([error.operation, error.id, pay.runs.length], ["get", "a", 0]);
  const { text } = await client.resume({ id: "a", answer });
  assertEquals([text, pay.runs.length], ["Paid.", 1]);
});

Deno.test("a claim that was not written: a StoreError, no run, and the request stays open", async () => {
  await using server = stubLlm([calling("pay"), "Paid."]);
  const store = flakyStore(new InMemoryConversationStore(), {
    save: ["ok", new Error("disk full")],
  });
  const pay = asking("pay");
  const client = clientOf(server, { store, toolkit: [pay] });
  const suspended = await client.ask("go", { id: "a" });
  const answer = yesTo(suspended);
  const error = await assertRejects(() => client.resume({ id: "a", answer }), StoreError);
  assertEquals([error.operation, error.id, pay.runs.length], ["save", "a", 0]);
  assertStringIncludes(error.message, "disk full");
  assertEquals(server.requests.length, 1);
  assertEquals((await client.resume({ id: "a" })).pending, suspended.pending);
  assertEquals((await client.resume({ id: "a", answer })).text, "Paid.");
  assertEquals(pay.runs.length, 1);
});

Deno.test("a claim that was written but not confirmed: no run, the answer is spent, the run can go on", async () => {
  await using server = stubLlm([calling("pay"), "I am not sure."]);
  const store = flakyStore(new InMemoryConversationStore(), {
    save: ["ok", { error: new Error("connection reset"), after: true }],
  });
  const pay = asking("pay");
  const client = clientOf(server, { store, toolkit: [pay] });
  const answer = yesTo(await client.ask("go", { id: "a" }));
  await assertRejects(() => client.resume({ id: "a", answer }), StoreError, "connection reset");
  await assertRejects(() => client.resume({ id: "a", answer }), StaleAnswerError);
  const { status, text } = await client.resume({ id: "a" });
  assertEquals([status, text, pay.runs.length], ["done", "I am not sure.", 0]);
});

for (const checkpoint of ["run", "round"] as const) {
  Deno.test(`a save that fails after the tool ran: its result is on the error (checkpoint ${checkpoint})`, async () => {
    await using server = stubLlm(({ body }) =>
      resultsOf(body.messages).length > 0 ? "Paid." : calling("mail", "pay")
    );
    const memory = new InMemoryConversationStore();
    const pay = asking("pay");
    const toolkit = [toolOf("mail"), pay];
    const client = clientOf(server, { store: memory, toolkit, checkpoint });
    const answer = yesTo(await client.ask("go", { id: "a" }));

    // The claim is the first save; all after it fail.
    const down = Array(5).fill(new Error("disk full"));
    const store = flakyStore(memory, { save: ["ok", ...down] });
    const failing = clientOf(server, { store, toolkit, checkpoint });
    const error = await assertRejects(() => failing.resume({ id: "a", answer }), StoreError);
    assertEquals([error.operation, pay.runs.length], ["save", 1]);
    assertEquals(error.result?.toolCalls.map(({ id, output }) => [id, output]), [
      ["c-pay", "pay done"],
    ]);
    if (checkpoint === "run") assertEquals(error.result?.text, "Paid.");

    // Whatever comes next, the tool is not run again.
    await assertRejects(() => client.resume({ id: "a", answer }), StaleAnswerError);
    // What the error carries is the transcript: saving it is all that was left to do.
    memory.save("a", error.result!.messages);
    const { status, text, messages } = await client.resume({ id: "a" });
    assertEquals([status, text, pay.runs.length], ["done", "Paid.", 1]);
    assertEquals(resultsOf(messages), ["c-mail: mail ran", "c-pay: pay done"]);
  });
}

Deno.test("a save that fails at a second suspension: what the first tool gave is on the error", async () => {
  await using server = stubLlm([calling("pay", "login")]);
  const store = flakyStore(new InMemoryConversationStore(), {
    save: ["ok", "ok", new Error("disk full")],
  });
  const pay = asking("pay"), login = asking("login");
  const client = clientOf(server, { store, toolkit: [pay, login] });
  const answer = yesTo(await client.ask("go", { id: "a" }));
  const error = await assertRejects(() => client.resume({ id: "a", answer }), StoreError);
  assertEquals(error.result?.status, "pending");
  assertEquals(error.result?.pending?.prompt, "login?");
  assertEquals(error.result?.toolCalls[0]?.output, "pay done");
  assertEquals(pay.runs.length, 1);
});

Deno.test("a conversation that changed during the claim is read again: still open", async () => {
  await using server = stubLlm([
    "Hello.",
    calling("pay"),
    "Paid.",
  ]);
  const store = new LedgerStore();
  const pay = asking("pay");
  const client = clientOf(server, { store, toolkit: [pay] });
  await client.ask("hi", { id: "a" });
  const answer = yesTo(await client.ask("go", { id: "a" }));
  // Somebody trims the old turn away.
  store.beforeSave[3] = () => store.put("a", store.get("a")!.slice(2));
  const { text, messages } = await client.resume({ id: "a", answer });
  assertEquals([text, pay.runs.length, messages.length], ["Paid.", 1, 4]);
  assertEquals(store.get("a"), messages);
});

Deno.test("a conversation that changed during the claim is read again: answered by someone else", async () => {
  await using server = stubLlm([calling("pay")]);
  const store = new LedgerStore();
  const pay = asking("pay");
  const client = clientOf(server, { store, toolkit: [pay] });
  const answer = yesTo(await client.ask("go", { id: "a" }));
  store.beforeSave[2] = () => store.append("a", { role: "user", content: "forget it" });
  await assertRejects(() => client.resume({ id: "a", answer }), StaleAnswerError);
  assertEquals([pay.runs.length, server.requests.length], [0, 1]);
});

Deno.test("a claim that is refused for ever ends as a conflict, without a run", async () => {
  await using server = stubLlm([calling("pay")]);
  const memory = new InMemoryConversationStore();
  const pay = asking("pay");
  const answer = yesTo(
    await clientOf(server, { store: memory, toolkit: [pay] }).ask("go", { id: "a" }),
  );
  const store = flakyStore(
    memory,
    (operation) => operation === "get" ? "ok" : new ConversationConflictError("a"),
  );
  const client = clientOf(server, { store, toolkit: [pay] });
  await assertRejects(() => client.resume({ id: "a", answer }), ConversationConflictError);
  assertEquals([pay.runs.length, server.requests.length], [0, 1]);
});

Deno.test("an abort ends a resume whose store does not answer, and nothing is spent", async () => {
  await using server = stubLlm([calling("pay"), "Paid."]);
  const memory = new InMemoryConversationStore();
  const pay = asking("pay");
  const client = clientOf(server, { store: memory, toolkit: [pay] });
  const answer = yesTo(await client.ask("go", { id: "a" }));
  const controller = new AbortController();
  const store = flakyStore(memory, () => {
    controller.abort();
    return new Promise(() => {});
  });
  const hanging = clientOf(server, { store, toolkit: [pay] });
  const { signal } = controller;
  await assertRejects(() => hanging.resume({ id: "a", answer, signal }), RunAbortedError);
  assertEquals((await client.resume({ id: "a", answer })).text, "Paid.");
  assertEquals(pay.runs.length, 1);
});

Deno.test("two resumes without an answer: the turn is finished once", async () => {
  await using shared = await STORES.fs();
  await using server = stubLlm(() => "Well.");
  const open = [
    { role: "user", content: "go" },
    {
      role: "assistant",
      content: null,
      tool_calls: [{ id: "c1", type: "function", function: { name: "pay", arguments: "{}" } }],
    },
  ];
  const store = await shared.open();
  await store.save("a", open);
  const clients = [clientOf(server, { store }), clientOf(server, { store: await shared.open() })];
  const outcomes = await Promise.allSettled(clients.map((client) => client.resume({ id: "a" })));
  for (const outcome of outcomes) {
    if (outcome.status === "fulfilled") assertEquals(outcome.value.text, "Well.");
    else assertEquals(outcome.reason.code, "store_conflict");
  }
  const messages = await store.get("a");
  assertEquals(messages?.length, 4);
  assertEquals(resultsOf(messages), [`c1: ${INTERRUPTED}`]);
});

for (const name of ["plain", "streamed"] as const) {
  Deno.test(`a resume reads and writes the client's store, whatever else it is given (${name})`, async () => {
    await using server = stubLlm([calling("pay"), "Paid."]);
    const client = clientOf(server, { toolkit: [asking("pay")] });
    const suspended = await client.ask("pay", { id: "a" });
    const store = new InMemoryConversationStore();
    const options = { id: "a", answer: yesTo(suspended), store };
    assertEquals((await WAYS[name].resume(client, options)).text, "Paid.");
    assertEquals(await store.get("a"), null);
    assertEquals((await client.conversationStore().get("a"))?.length, 4);
  });
}

for (const [from, to] of [["openai", "anthropic"], ["anthropic", "openai"]] as const) {
  Deno.test(`a result that begins like a claim stays one when it is converted from ${from} to ${to} style`, async () => {
    await using server = stubLlm([calling("load"), "Loaded."]);
    const toolkit = [toolOf("load", () => "resuming: part 3 of 7")];
    const { messages } = await clientOf(server, { style: from, toolkit, maxTurns: 1 }).run("go");
    const history = convertTranscript(messages, to);
    const resumed = await clientOf(server, { style: to, toolkit }).resume({ history });
    assertEquals(resultsOf(resumed.messages), ["c-load: resuming: part 3 of 7"]);
  });

  Deno.test(`a suspended transcript that was converted from ${from} to ${to} style is resumed`, async () => {
    await using server = stubLlm([calling("mail", "pay"), "Paid."]);
    const pay = asking("pay");
    const toolkit = [toolOf("mail"), pay];
    const suspended = await clientOf(server, { style: from, toolkit }).run("go");
    const history = convertTranscript(suspended.messages, to);
    const client = clientOf(server, { style: to, toolkit });
    const { text, messages } = await client.resume({ history, answer: yesTo(suspended) });
    assertEquals([text, pay.runs.length], ["Paid.", 1]);
    assertEquals(resultsOf(messages), ["c-mail: mail ran", "c-pay: pay done"]);
    assertNoMarkWasSent(server);
  });
}
