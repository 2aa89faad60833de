/** Answers that come to nothing: typed errors, and never a second run of the tool. */
import { assertEquals, assertRejects, assertStringIncludes } from "@std/assert";
import {
  type Answer,
  type Message,
  type ResumeOptions,
  StaleAnswerError,
  type StyleName,
} from "../mod.ts";
import { type StubLlm, stubLlm } from "../src/testing/mod.ts";
import {
  asking,
  assertNoMarkWasSent,
  requestOf,
  resultsOf,
  STORES,
  STYLES,
  WAYS,
  yesTo,
} from "./approval_kit.ts";
import { calling, clientOf, LedgerStore, toolOf } from "./client_kit.ts";

/** A conversation that waits, and a model that answers anything after it with "Well." */
async function suspendedClient(server: StubLlm, style: StyleName) {
  const store = new LedgerStore();
  const pay = asking("pay");
  const client = clientOf(server, { style, store, toolkit: [toolOf("mail"), pay] });
  const suspended = await client.ask("go", { id: "a" });
  return { client, store, pay, suspended, answer: yesTo(suspended) };
}

/** Calls two tools, then says "Well." */
function model(): StubLlm {
  return stubLlm(({ body }) => body.messages.length === 1 ? calling("mail", "pay") : "Well.");
}

for (const style of STYLES) {
  for (const [way, { resume }] of Object.entries(WAYS)) {
    Deno.test(`an answer to another request is stale, and spends nothing (${style}, ${way})`, async () => {
      await using server = model();
      const { client, store, pay, answer } = await suspendedClient(server, style);
      const before = store.get("a");
      for (const id of ["pnd-other", "", "c-pay", "__proto__"]) {
        const wrong = { id: "a", answer: { id, ok: true } };
        const error = await assertRejects(() => resume(client, wrong), StaleAnswerError);
        assertEquals(error.code, "stale_answer");
        assertStringIncludes(error.message, JSON.stringify(id));
        assertStringIncludes(error.message, '"a"');
      }
      const elsewhere = { id: "b", answer };
      const error = await assertRejects(() => resume(client, elsewhere), StaleAnswerError);
      assertStringIncludes(error.message, '"b"');
      assertEquals([store.get("a"), store.saves.length], [before, 1]);
      assertEquals((await resume(client, { id: "a", answer })).text, "Well.");
      assertEquals(pay.runs.length, 1);
    });

    Deno.test(`the same answer twice is stale the second time (${style}, ${way})`, async () => {
      await using server = model();
      const { client, pay, answer } = await suspendedClient(server, style);
      await resume(client, { id: "a", answer });
      await assertRejects(() => resume(client, { id: "a", answer }), StaleAnswerError);
      await assertRejects(
        () => resume(client, { id: "a", answer: { ...answer, ok: false } }),
        StaleAnswerError,
      );
      await client.ask("more", { id: "a" });
      await assertRejects(() => resume(client, { id: "a", answer }), StaleAnswerError);
      assertEquals(pay.runs.length, 1);
    });

    Deno.test(`a no is spent, too (${style}, ${way})`, async () => {
      await using server = model();
      const { client, pay, answer } = await suspendedClient(server, style);
      await resume(client, { id: "a", answer: { ...answer, ok: false } });
      await assertRejects(() => resume(client, { id: "a", answer }), StaleAnswerError);
      assertEquals(pay.runs.length, 0);
    });

    for (const [kind, create] of Object.entries(STORES)) {
      Deno.test(`the same answer six times at once: one runs the tool (${style}, ${way}, ${kind})`, async () => {
        await using shared = await create();
        await using server = model();
        const pay = asking("pay");
        const options = { style, toolkit: [toolOf("mail"), pay] };
        const first = clientOf(server, { ...options, store: await shared.open() });
        const answer = yesTo(await first.ask("go", { id: "a" }));
        const clients = await Promise.all(
          Array.from({ length: 5 }, async (_, index) =>
            // Two of them share a store, the others are as in processes of their own.
            index === 0 ? first : clientOf(server, { ...options, store: await shared.open() })),
        );
        const outcomes = await Promise.allSettled(
          [first, ...clients].map((client) => resume(client, { id: "a", answer })),
        );
        const won = outcomes.filter((outcome) => outcome.status === "fulfilled");
        const lost = outcomes.filter((outcome) => outcome.status === "rejected");
        assertEquals([won.map(({ value }) => value.text), pay.runs.length], [["Well."], 1]);
        assertEquals(lost.map(({ reason }) => reason.code), Array(5).fill("stale_answer"));
      });
    }
  }

  const EDITS: Record<string, (messages: Message[]) => Message[]> = {
    "its mark is gone": (messages) => edited(messages, ({ pending: _, ...part }) => part),
    "its mark is a word": (messages) => edited(messages, (part) => ({ ...part, pending: "yes" })),
    "its mark has no id": (messages) =>
      edited(messages, (part) => ({ ...part, pending: { prompt: "pay?", kind: "approval" } })),
    "its mark has another id": (messages) =>
      edited(messages, (part) => {
        const request = part.pending as Record<string, unknown>;
        return { ...part, pending: { ...request, id: "pnd-other" } };
      }),
    "the placeholder is gone": (messages) => messages.slice(0, 2),
    "the calls are gone": ([prompt, _calls, ...results]) => [prompt!, ...results],
    "only the placeholder is left": (messages) => messages.slice(-1),
    "something was said after it": (messages) => [
      ...messages,
      { role: "assistant", content: "Well." },
    ],
    "the user spoke after it": (messages) => [...messages, { role: "user", content: "Hello?" }],
    "the placeholder answers a call that is none": (messages) =>
      edited(messages, (part) => ({
        ...part,
        ...(style === "openai" ? { tool_call_id: "c-other" } : { tool_use_id: "c-other" }),
      })),
  };
  for (const [what, edit] of Object.entries(EDITS)) {
    Deno.test(`an edited transcript: ${what} (${style})`, async () => {
      await using server = stubLlm(({ body }) =>
        body.messages.length === 1 && body.messages[0]?.content === "go"
          ? calling("mail", "pay")
          : "Well."
      );
      const { client, store, pay, answer } = await suspendedClient(server, style);
      store.put("a", edit(store.get("a")!));
      const history = store.get("a")!;
      await assertRejects(() => client.resume({ id: "a", answer }), StaleAnswerError);
      await assertRejects(() => client.resume({ history, answer }), StaleAnswerError);
      assertEquals(store.get("a"), history);
      // It can be gone on with all the same; the strict stub takes what is sent.
      const { status } = await client.ask("well?", { id: "a" });
      assertEquals([status, pay.runs.length], ["done", 0]);
      assertNoMarkWasSent(server);
    });
  }

  Deno.test(`a trimmed transcript that still has the round is resumed (${style})`, async () => {
    await using server = stubLlm(({ body }) => {
      const hasResult = resultsOf(body.messages).length > 0;
      return hasResult ? "Paid." : body.messages.length === 3 ? calling("pay") : "Hello.";
    });
    const store = new LedgerStore();
    const pay = asking("pay");
    const client = clientOf(server, { style, store, toolkit: [pay] });
    await client.ask("hi", { id: "a" });
    const answer = yesTo(await client.ask("go", { id: "a" }));
    store.put("a", store.get("a")!.slice(2));
    const { text, messages } = await client.resume({ id: "a", answer });
    assertEquals([text, pay.runs.length, messages.length], ["Paid.", 1, 4]);
  });

  Deno.test(`a transcript without its prompt is resumed, too (${style})`, async () => {
    await using server = stubLlm([calling("pay"), "Paid."], { strict: false });
    const store = new LedgerStore();
    const pay = asking("pay");
    const client = clientOf(server, { style, store, toolkit: [pay] });
    const answer = yesTo(await client.ask("go", { id: "a" }));
    store.put("a", store.get("a")!.slice(1));
    const { text } = await client.resume({ id: "a", answer });
    assertEquals([text, pay.runs.length], ["Paid.", 1]);
  });
}

Deno.test("what is no answer, or says not what to resume, is a TypeError before any work", async () => {
  await using server = model();
  const { client, store, pay, suspended } = await suspendedClient(server, "openai");
  const { id } = requestOf(suspended);
  const reads: string[] = [];
  const { get } = store;
  store.get = (id) => (reads.push(id), get.call(store, id));
  const cases: [unknown, string][] = [
    [undefined, "options"],
    [{}, "resume needs an id or a history"],
    [{ answer: { id, ok: true } }, "resume needs an id or a history"],
    [{ id: "a", history: [], answer: { id, ok: true } }, "history and id exclude each other"],
    [{ id: "" }, "conversation id must not be empty"],
    [{ id: 7 }, "conversation id must be a string: 7"],
    [{ history: "go" }, "messages must be an array"],
    [{ history: [7] }, "messages[0] must be a plain object"],
    [{ id: "a", answer: "yes" }, "answer"],
    [{ id: "a", answer: null }, "answer"],
    [{ id: "a", answer: true }, "answer"],
    [{ id: "a", answer: { ok: true } }, "answer must have the id"],
    [{ id: "a", answer: { id: 7, ok: true } }, "answer must have the id"],
    [{ id: "a", answer: { id } }, "answer must have the id"],
    [{ id: "a", answer: { id, ok: "yes" } }, "answer must have the id"],
    [{ id: "a", answer: { id, ok: true, data: { amount: 20n } } }, "answer.data.amount"],
    [{ id: "a", answer: { id, ok: true, data: { then: () => {} } } }, "answer.data.then"],
    [{ id: "a", answer: { id, ok: true }, signal: 7 }, "signal"],
    [{ id: "a", answer: { id, ok: true }, toolkit: 7 }, "toolkit"],
    [{ id: "a", answer: { id, ok: true }, onText: 7 }, "onText"],
  ];
  for (const [options, told] of cases) {
    const error = await assertRejects(() => client.resume(options as ResumeOptions), TypeError);
    assertStringIncludes(error.message, told);
  }
  assertEquals([reads, store.saves.length, pay.runs.length], [[], 1, 0]);
});

Deno.test("an answer travels as a copy: changing it later changes nothing", async () => {
  await using server = model();
  const { client, pay, answer } = await suspendedClient(server, "openai");
  const given: Answer = { ...answer, data: { pin: "1" } };
  const running = client.resume({ id: "a", answer: given });
  given.data!.pin = "2";
  await running;
  assertEquals(pay.runs[0]?.answer?.data, { pin: "1" });
});

/** A transcript with each placeholder, in either style, changed. */
function edited(
  messages: Message[],
  change: (part: Record<string, unknown>) => Record<string, unknown>,
): Message[] {
  return messages.map((message) => {
    if (message.pending !== undefined) return change(message) as Message;
    if (!Array.isArray(message.content)) return message;
    const content = message.content.map((part) => part.pending ? change(part) : part);
    return { ...message, content };
  });
}
