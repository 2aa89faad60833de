/** `resume({ id })` goes on where a conversation stands, without a new user turn: whatever that is. */
import { assertEquals, assertRejects } from "@std/assert";
import { type Message, ProviderError, StaleAnswerError } from "../mod.ts";
import { stubLlm } from "../src/testing/mod.ts";
import { asking, INTERRUPTED, requestOf, resultsOf, STYLES, WAYS, yesTo } from "./approval_kit.ts";
import {
  calling,
  clientOf,
  clientOfFetch,
  LedgerStore,
  lines,
  readUntil,
  toolOf,
} from "./client_kit.ts";

/** An answer that calls tools, as a run leaves it. */
function callMessage(style: "openai" | "anthropic", ...names: string[]): Message {
  if (style === "anthropic") {
    const content = names.map((name) => ({ type: "tool_use", id: `c-${name}`, name, input: {} }));
    return { role: "assistant", content };
  }
  const tool_calls = names.map((name) => {
    return { id: `c-${name}`, type: "function", function: { name, arguments: "{}" } };
  });
  return { role: "assistant", content: null, tool_calls };
}

/** The result of a call, as a run leaves it. */
function resultMessage(style: "openai" | "anthropic", name: string): Message {
  const id = `c-${name}`, content = `${name} ran`;
  return style === "openai"
    ? { role: "tool", tool_call_id: id, content }
    : { role: "user", content: [{ type: "tool_result", tool_use_id: id, content }] };
}

for (const style of STYLES) {
  for (const [way, { ask, resume }] of Object.entries(WAYS)) {
    const name = `${style}, ${way}`;

    Deno.test(`suspended: its request again, and nothing happens (${name})`, async () => {
      await using server = stubLlm([calling("mail", "pay"), "Paid."]);
      const store = new LedgerStore();
      const pay = asking("pay");
      let mails = 0;
      const toolkit = [toolOf("mail", () => ++mails), pay];
      const client = clientOf(server, { style, store, toolkit });
      const suspended = await ask(client, "go", { id: "a" });
      const shown = await Array.fromAsync(client.resumeStream({ id: "a" }), ({ type }) => type);
      assertEquals(shown, ["pending", "done"]);
      for (let time = 0; time < 2; time++) {
        const result = await resume(client, { id: "a" });
        assertEquals([result.status, result.turns], ["pending", 0]);
        assertEquals(result.pending, suspended.pending);
        assertEquals([result.toolCalls, result.toolCallCount], [[], 0]);
        assertEquals(result.messages, suspended.messages);
      }
      assertEquals([store.saves.length, server.requests.length], [1, 1]);
      assertEquals([mails, pay.asked], [1, 1]);
      assertEquals((await resume(client, { id: "a", answer: yesTo(suspended) })).text, "Paid.");
    });

    Deno.test(`finished: its last answer, and nothing happens (${name})`, async () => {
      await using server = stubLlm([calling("mail"), "Done."]);
      const store = new LedgerStore();
      const client = clientOf(server, { style, store, toolkit: [toolOf("mail")] });
      const finished = await ask(client, "go", { id: "a" });
      const result = await resume(client, { id: "a" });
      assertEquals([result.status, result.text, result.turns], ["done", "Done.", 0]);
      assertEquals([result.messages, result.toolCalls], [finished.messages, []]);
      assertEquals(result.usage, { promptTokens: 0, completionTokens: 0, totalTokens: 0 });
      assertEquals([store.saves.length, server.requests.length], [1, 2]);
    });

    Deno.test(`a partial answer is the last answer (${name})`, async () => {
      await using server = stubLlm([{ text: "It is a long story." }], { delayMs: 5 });
      const client = clientOf(server, { style });
      await readUntil(client.stream("go", { id: "a" }), ({ type }) => type === "text");
      const { status, text, turns } = await resume(client, { id: "a" });
      assertEquals([status, text, turns], ["done", "It i", 0]);
    });

    Deno.test(`interrupted in its tools: open calls are told, never run (${name})`, async () => {
      await using server = stubLlm(["I am not sure."]);
      const store = new LedgerStore();
      store.put("a", [
        { role: "user", content: "earlier" },
        { role: "assistant", content: "yes" },
        { role: "user", content: "go" },
        callMessage(style, "mail", "pay"),
        resultMessage(style, "mail"),
      ]);
      let runs = 0;
      const toolkit = [toolOf("pay", () => ++runs), toolOf("mail", () => ++runs)];
      const client = clientOf(server, { style, store, toolkit });
      const result = await resume(client, { id: "a" });
      assertEquals([result.status, result.text, runs], ["done", "I am not sure.", 0]);
      assertEquals(result.repaired, { closedCalls: ["c-pay"], droppedResults: [] });
      assertEquals(resultsOf(server.requests[0]!.body.messages), [
        "c-mail: mail ran",
        `c-pay: ${INTERRUPTED}`,
      ]);
      assertEquals(lines(result.messages).filter((line) => /go|earlier/.test(line)), [
        "user: earlier",
        "user: go",
      ]);
      assertEquals(store.get("a"), result.messages);
    });

    Deno.test(`interrupted after its tools: the model is asked again (${name})`, async () => {
      await using server = stubLlm([calling("pay"), { status: 500 }, "Paid."]);
      let runs = 0;
      const toolkit = [toolOf("pay", () => `paid ${++runs}`)];
      const client = clientOf(server, { style, toolkit });
      await assertRejects(() => ask(client, "go", { id: "a" }), ProviderError);
      const result = await resume(client, { id: "a" });
      assertEquals([result.status, result.text, result.turns, runs], ["done", "Paid.", 1, 1]);
      assertEquals(lines(result.messages), [
        "user: go",
        "assistant: [pay]",
        style === "openai" ? "tool: paid 1" : "user: paid 1",
        "assistant: Paid.",
      ]);
    });
  }

  Deno.test(`out of turns: the run gets as many again (${style})`, async () => {
    await using server = stubLlm([calling("mail"), calling("pay"), "Done."]);
    const toolkit = [toolOf("mail"), toolOf("pay")];
    const client = clientOf(server, { style, toolkit, maxTurns: 1 });
    assertEquals((await client.ask("go", { id: "a" })).limit, "maxTurns");
    const second = await client.resume({ id: "a" });
    assertEquals([second.status, second.limit], ["incomplete", "maxTurns"]);
    assertEquals(second.toolCalls.map(({ name }) => name), ["pay"]);
    const third = await client.resume({ id: "a" });
    assertEquals([third.status, third.text], ["done", "Done."]);
  });

  Deno.test(`a prompt that nobody has answered is answered (${style})`, async () => {
    await using server = stubLlm(["Hello."]);
    const client = clientOf(server, { style });
    const prompt: Message = { role: "user", content: "Hi" };
    await client.conversationStore().save("a", [prompt]);
    const { messages } = await client.resume({ id: "a" });
    assertEquals(lines(messages), ["user: Hi", "assistant: Hello."]);
    assertEquals(server.requests[0]!.body.messages.length, 1);
  });

  Deno.test(`a history goes on in the same way, and is not remembered (${style})`, async () => {
    await using server = stubLlm([calling("pay"), "Well."]);
    const pay = asking("pay");
    const client = clientOf(server, { style, toolkit: [pay] });
    const { messages } = await client.run("go");
    const again = await client.resume({ history: messages });
    assertEquals([again.status, again.turns, again.messages], ["pending", 0, messages]);
    assertEquals(requestOf(again).prompt, "pay?");

    const open = [{ role: "user", content: "go" }, callMessage(style, "pay")];
    const goneOn = await client.resume({ history: open });
    assertEquals(resultsOf(goneOn.messages), [`c-pay: ${INTERRUPTED}`]);
    assertEquals([open.length, pay.runs.length], [2, 0]);

    const done = await client.resume({ history: goneOn.messages });
    assertEquals([done.status, done.text, done.turns], ["done", "Well.", 0]);
  });

  Deno.test(`after a crash behind the claim: the tool is not run, the model is told (${style})`, async () => {
    await using server = stubLlm([calling("mail", "pay", "login"), "I shall ask the bank."]);
    const store = new LedgerStore();
    const pay = asking("pay"), login = asking("login");
    const client = clientOf(server, { style, store, toolkit: [toolOf("mail"), pay, login] });
    const answer = yesTo(await client.ask("go", { id: "a" }));
    // The claim is stored, and the process dies: nothing after it takes effect.
    store.beforeSave[3] = () => {
      throw new Error("killed");
    };
    await assertRejects(() => client.resume({ id: "a", answer }), Error, "killed");
    assertEquals([pay.runs.length, server.requests.length], [1, 1]);

    await assertRejects(() => client.resume({ id: "a", answer }), StaleAnswerError);
    const { text, messages } = await client.resume({ id: "a" });
    assertEquals([text, pay.runs.length, login.runs.length], ["I shall ask the bank.", 1, 0]);
    const [mail, ...open] = resultsOf(messages);
    assertEquals([mail, open[1]], ["c-mail: mail ran", `c-login: ${INTERRUPTED}`]);
    // The model must read that the payment may or may not have been made.
    assertEquals(open[0], `c-pay: ${INTERRUPTED}`);
  });
}

for (const style of STYLES) {
  Deno.test(`a result that begins like a claim is a result (${style})`, async () => {
    await using server = stubLlm([calling("load"), { status: 400 }, "Loaded.", "Well."]);
    const toolkit = [toolOf("load", () => "resuming: part 3 of 7")];
    const client = clientOf(server, { style, toolkit });
    await assertRejects(() => client.ask("go", { id: "a" }), ProviderError);
    assertEquals((await client.resume({ id: "a" })).text, "Loaded.");
    const { messages } = await client.ask("and?", { id: "a" });
    assertEquals(resultsOf(messages), ["c-load: resuming: part 3 of 7"]);
    for (const { text } of server.requests) assertEquals(text.includes(INTERRUPTED), false);
  });
}

Deno.test("paused: the model is asked again, and the text is all that it said", async () => {
  const content = [
    { type: "text", text: "Searching. " },
    { type: "server_tool_use", id: "srvtoolu_1", name: "web_search", input: { query: "x" } },
  ];
  const found = { type: "web_search_tool_result", tool_use_id: "srvtoolu_1", content: [] };
  const answers = [
    { content, stop_reason: "pause_turn" },
    { content: [found, { type: "text", text: "42" }], stop_reason: "end_turn" },
  ];
  const client = clientOfFetch(
    (_, call) => Response.json({ type: "message", role: "assistant", ...answers[call - 1] }),
    { style: "anthropic", maxTurns: 1 },
  );
  const paused = await client.ask("search", { id: "a" });
  assertEquals([paused.status, paused.limit, paused.text], [
    "incomplete",
    "maxTurns",
    "Searching. ",
  ]);
  const { status, turns, text } = await client.resume({ id: "a" });
  assertEquals([status, turns, text], ["done", 1, "Searching. 42"]);
  const finished = await client.resume({ id: "a" });
  assertEquals([finished.status, finished.turns, finished.text], ["done", 0, "Searching. 42"]);
});

Deno.test("an unknown conversation is a StaleAnswerError that names it", async () => {
  await using server = stubLlm([]);
  const client = clientOf(server);
  for (const { resume } of Object.values(WAYS)) {
    const error = await assertRejects(() => resume(client, { id: "nobody" }), StaleAnswerError);
    assertEquals(error.code, "stale_answer");
    assertEquals(error.message.includes('"nobody"'), true);
    await assertRejects(() => resume(client, { history: [] }), StaleAnswerError);
  }
});

Deno.test("a system message alone is no conversation to go on with", async () => {
  await using server = stubLlm([]);
  const client = clientOf(server);
  await client.conversationStore().save("a", [{ role: "system", content: "Be brief." }]);
  await assertRejects(() => client.resume({ id: "a" }), StaleAnswerError);
});

Deno.test("a result that stands behind a later prompt belongs to its call", async () => {
  await using server = stubLlm(["Mailed."]);
  const history = [
    { role: "user", content: "mail" },
    callMessage("openai", "mail"),
    { role: "user", content: "and?" },
    resultMessage("openai", "mail"),
  ];
  const { text, messages } = await clientOf(server).resume({ history });
  assertEquals([text, resultsOf(messages)], ["Mailed.", ["c-mail: mail ran"]]);
});

Deno.test("paused after the provider's own tool has run: the model is asked again", async () => {
  const content = [
    { type: "text", text: "Searching. " },
    { type: "server_tool_use", id: "srvtoolu_1", name: "web_search", input: { query: "x" } },
    { type: "web_search_tool_result", tool_use_id: "srvtoolu_1", content: [] },
  ];
  const answers = [
    { content, stop_reason: "pause_turn" },
    { content: [{ type: "text", text: "42" }], stop_reason: "end_turn" },
  ];
  const client = clientOfFetch(
    (_, call) => Response.json({ type: "message", role: "assistant", ...answers[call - 1] }),
    { style: "anthropic", maxTurns: 1 },
  );
  await client.ask("search", { id: "a" });
  const { status, turns, text } = await client.resume({ id: "a" });
  assertEquals([status, turns, text], ["done", 1, "Searching. 42"]);
});
