/** `resume` with an answer: the approved tool runs once, and the run goes on as if it had never stopped. */
import { assert, assertEquals, assertRejects } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import { defineTool, InMemoryConversationStore, pending, ProviderError } from "../mod.ts";
import { stubLlm } from "../src/testing/mod.ts";
import {
  asking,
  assertNoMarkWasSent,
  callIdsOf,
  INTERRUPTED,
  requestOf,
  resultsOf,
  STYLES,
  WAYS,
  yesTo,
} from "./approval_kit.ts";
import {
  calling,
  clientOf,
  eventsOf,
  LedgerStore,
  lines,
  readUntil,
  toolOf,
} from "./client_kit.ts";

for (const style of STYLES) {
  for (const [way, { ask, resume }] of Object.entries(WAYS)) {
    const name = `${style}, ${way}`;

    Deno.test(`yes: the tool runs once, and the model is asked as if it had never stopped (${name})`, async () => {
      // The same run twice: suspended and resumed, and without a break.
      const bodies: unknown[] = [];
      for (const waitFor of [undefined, ({ id }: { id: string }) => ({ id, ok: true })]) {
        await using server = stubLlm([calling("mail", "pay", "log"), "Paid."]);
        const mail = toolOf("mail"), pay = asking("pay"), log = toolOf("log");
        const client = clientOf(server, { style, toolkit: [mail, pay, log], waitFor });
        let result = await ask(client, "go", { id: "a" });
        if (waitFor === undefined) {
          result = await resume(client, {
            id: "a",
            answer: { ...yesTo(result), data: { pin: 7 } },
          });
          assertEquals(result.toolCalls, [
            { id: "c-pay", name: "pay", args: {}, output: "pay done", isError: false },
          ]);
          assertEquals([result.turns, result.usage.totalTokens], [1, 15]);
          const [{ callId, conversationId, answer }] = pay.runs as [typeof pay.runs[0]];
          assertEquals([callId, conversationId, answer?.data], ["c-pay", "a", { pin: 7 }]);
        }
        assertEquals([result.status, result.text, pay.runs.length], ["done", "Paid.", 1]);
        assertEquals(result.pending, undefined);
        assertEquals(await client.conversationStore().get("a"), result.messages);
        assertEquals(callIdsOf(result.messages), ["c-mail", "c-pay", "c-log"]);
        assertNoMarkWasSent(server);
        bodies.push(server.requests.map(({ body }) => body.messages));
      }
      assertEquals(bodies[0], bodies[1]);
    });

    Deno.test(`no: the model is told, and the tool does not run (${name})`, async () => {
      await using server = stubLlm([calling("pay"), "I may not pay."]);
      const pay = asking("pay");
      const client = clientOf(server, { style, toolkit: [pay] });
      const { id } = requestOf(await ask(client, "go", { id: "a" }));
      const result = await resume(client, { id: "a", answer: { id, ok: false } });
      assertEquals([result.status, result.text, pay.runs.length], ["done", "I may not pay.", 0]);
      assertEquals(result.toolCalls.map(({ output, isError }) => [output, isError]), [
        ["declined/expired: pay?", true],
      ]);
      assertEquals(resultsOf(result.messages), ["c-pay: declined/expired: pay?"]);
    });

    Deno.test(`two suspensions and a finished call, resumed one after the other (${name})`, async () => {
      await using server = stubLlm([calling("pay", "mail", "login"), "All done."]);
      let mails = 0;
      const pay = asking("pay"), login = asking("login");
      const toolkit = [pay, toolOf("mail", () => `mail ${++mails}`), login];
      const client = clientOf(server, { style, toolkit });

      const first = await ask(client, "go", { id: "a" });
      assertEquals(resultsOf(first.messages), ["c-pay: pay?", "c-mail: mail 1"]);

      const second = await resume(client, { id: "a", answer: yesTo(first) });
      assertEquals(requestOf(second).data, { toolCallId: "c-login" });
      assertEquals(second.toolCalls.map(({ id }) => id), ["c-pay", "c-login"]);
      assertEquals(resultsOf(second.messages), [
        "c-pay: pay done",
        "c-mail: mail 1",
        "c-login: login?",
      ]);
      assertEquals([second.turns, server.requests.length], [0, 1]);

      const third = await resume(client, { id: "a", answer: yesTo(second) });
      assertEquals([third.status, third.text], ["done", "All done."]);
      // The strict stub has taken it: three results, in call order.
      assertEquals(resultsOf(server.requests[1]!.body.messages), [
        "c-pay: pay done",
        "c-mail: mail 1",
        "c-login: login done",
      ]);
      assertEquals([pay.runs.length, mails, login.runs.length], [1, 1, 1]);
      assertNoMarkWasSent(server);
    });

    Deno.test(`a resumed run that fails keeps what the tool gave, and goes on without it (${name})`, async () => {
      await using server = stubLlm([calling("pay"), { status: 500 }, "Paid."]);
      const pay = asking("pay");
      const client = clientOf(server, { style, toolkit: [pay] });
      const answer = yesTo(await ask(client, "go", { id: "a" }));
      const error = await assertRejects(() => resume(client, { id: "a", answer }), ProviderError);
      assertEquals(resultsOf(await client.conversationStore().get("a")), ["c-pay: pay done"]);
      assertEquals(error.result?.toolCalls.map(({ output }) => output), ["pay done"]);

      const result = await resume(client, { id: "a" });
      assertEquals([result.status, result.text, pay.runs.length], ["done", "Paid.", 1]);
      assertEquals(lines(result.messages), [
        "user: go",
        "assistant: [pay]",
        style === "openai" ? "tool: pay done" : "user: pay done",
        "assistant: Paid.",
      ]);
    });
  }

  Deno.test(`before the tool runs the request is taken out of the store (${style})`, async () => {
    await using server = stubLlm([calling("mail", "pay", "login"), "Paid."]);
    const store = new LedgerStore();
    const stored: unknown[] = [];
    const pay = defineTool({
      name: "pay",
      description: "pays",
      needsApproval: () => "Pay?",
      run: () => void stored.push(...store.get("a")!.slice(2)),
    });
    const toolkit = [toolOf("mail"), pay, asking("login")];
    const client = clientOf(server, { style, store, toolkit });
    const suspended = await client.ask("go", { id: "a" });
    const result = await client.resume({ id: "a", answer: yesTo(suspended) });
    assertEquals(requestOf(result).prompt, "login?");
    assertEquals(
      stored,
      style === "openai"
        ? [
          { role: "tool", tool_call_id: "c-mail", content: "mail ran" },
          { role: "tool", tool_call_id: "c-pay", content: "resuming: Pay?" },
        ]
        : [{
          role: "user",
          content: [
            { type: "tool_result", tool_use_id: "c-mail", content: "mail ran" },
            { type: "tool_result", tool_use_id: "c-pay", content: "resuming: Pay?" },
          ],
        }],
    );
    // The claim was a save over what had been read, not over whatever is there.
    assertEquals(store.saves[1]!.base, store.saves[0]!.messages);
    await client.resume({ id: "a", answer: yesTo(result) });
  });

  Deno.test(`a tool that still waits after the answer is an error result (${style})`, async () => {
    await using server = stubLlm([calling("login"), "I could not log in."]);
    let runs = 0;
    const login = toolOf("login", () => {
      runs++;
      return pending({ kind: "input", prompt: "Password?" });
    });
    const client = clientOf(server, { style, toolkit: [login] });
    const suspended = await client.ask("go", { id: "a" });
    const result = await client.resume({ id: "a", answer: yesTo(suspended) });
    assertEquals([result.status, runs], ["done", 2]);
    assertEquals(resultsOf(result.messages), ["c-login: unresolved: Password?"]);
    assertEquals(result.toolCalls[0]?.isError, true);
  });

  Deno.test(`a resumed stream tells what happens now, and nothing twice (${style})`, async () => {
    await using server = stubLlm([calling("mail", "pay"), {
      text: "Paid.",
      toolCalls: [{ id: "c-2", name: "pay" }],
    }]);
    const client = clientOf(server, { style, toolkit: [toolOf("mail"), asking("pay")] });
    const suspended = await client.ask("go", { id: "a" });
    const stream = client.resumeStream({ id: "a", answer: yesTo(suspended) });
    const types = (await eventsOf(stream)).map((event) =>
      "id" in event ? `${event.type} ${event.id}` : event.type
    );
    assertEquals(types.filter((type) => type !== "text"), [
      "tool_call c-pay",
      "tool_result c-pay",
      "usage",
      "tool_call c-2",
      "pending",
      "done",
    ]);
    assertEquals(requestOf(await stream.result).data, { toolCallId: "c-2" });
  });

  Deno.test(`leaving a resumed stream while the tool runs: it is not run again (${style})`, async () => {
    await using server = stubLlm([calling("pay"), "I am not sure."]);
    let runs = 0;
    const pay = toolOf("pay", async (_args, signal) => {
      if (runs++ === 0) return pending({ kind: "approval", prompt: "Pay?" });
      return await new Promise((resolve) => signal.addEventListener("abort", resolve));
    });
    const client = clientOf(server, { style, toolkit: [pay] });
    const answer = yesTo(await client.ask("go", { id: "a" }));
    const stream = client.resumeStream({ id: "a", answer });
    await readUntil(stream, (event) => event.type === "tool_call");
    await assertRejects(() => stream.result, Error, "stream was left before its end");
    assertEquals(resultsOf(await client.conversationStore().get("a")), [`c-pay: ${INTERRUPTED}`]);

    await assertRejects(() => client.resume({ id: "a", answer }), Error, "no request");
    const { text } = await client.resume({ id: "a" });
    assertEquals([text, runs <= 2], ["I am not sure.", true]);
  });
}

Deno.test("a resumed stream that nobody reads claims nothing", async () => {
  await using server = stubLlm([calling("pay"), "Paid."]);
  const pay = asking("pay");
  const client = clientOf(server, { toolkit: [pay] });
  const answer = yesTo(await client.ask("go", { id: "a" }));
  client.resumeStream({ id: "a", answer });
  const { text } = await client.resume({ id: "a", answer });
  assertEquals([text, pay.runs.length], ["Paid.", 1]);
});

Deno.test("an answer that comes after the request ran out is a no, however late", async () => {
  for (const [late, outcome] of [[0, "pay done"], [3_600_000, "declined/expired: pay?"]] as const) {
    await using server = stubLlm([calling("pay"), "Well."]);
    using time = new FakeTime("2026-03-01T12:00:00Z");
    const pay = asking("pay", { expiresAt: "2026-03-01T13:00:00Z" });
    const client = clientOf(server, { toolkit: [pay] });
    const answer = yesTo(await client.ask("go", { id: "a" }));
    time.tick(late);
    const { status, messages } = await client.resume({ id: "a", answer });
    assertEquals([status, pay.runs.length], ["done", late === 0 ? 1 : 0]);
    assertEquals(resultsOf(messages), [`c-pay: ${outcome}`]);
    // It is spent, too.
    await assertRejects(() => client.resume({ id: "a", answer }), Error, "no request");
  }
});

Deno.test("the stored request counts, not what the caller remembers of it", async () => {
  await using server = stubLlm([calling("pay"), "Well."]);
  const pay = asking("pay", { expiresAt: "2000-01-01T00:00:00Z" });
  const client = clientOf(server, { toolkit: [pay] });
  const suspended = await client.ask("go", { id: "a" });
  const { messages } = await client.resume({
    id: "a",
    answer: yesTo(suspended),
    pending: { ...requestOf(suspended), expiresAt: "2999-01-01T00:00:00Z", prompt: "Lunch?" },
  });
  assertEquals(resultsOf(messages), ["c-pay: declined/expired: pay?"]);
  assertEquals(pay.runs.length, 0);
});

Deno.test("the tools are those of the resume", async () => {
  await using server = stubLlm([calling("pay"), "Paid."]);
  const old = asking("pay"), renewed = asking("pay");
  const client = clientOf(server);
  const answer = yesTo(await client.ask("go", { id: "a", toolkit: [old] }));
  const { text } = await client.resume({ id: "a", answer, toolkit: [renewed] });
  assertEquals([text, old.runs.length, renewed.runs.length], ["Paid.", 0, 1]);
});

Deno.test("a tool that is no more is an error result, and the model goes on", async () => {
  await using server = stubLlm([calling("pay", "mail"), "I cannot pay any more."]);
  const client = clientOf(server);
  const toolkit = [asking("pay"), toolOf("mail")];
  const answer = yesTo(await client.ask("go", { id: "a", toolkit }));
  const result = await client.resume({ id: "a", answer });
  assertEquals([result.status, result.text], ["done", "I cannot pay any more."]);
  assertEquals(result.toolCalls.map(({ output, isError }) => [output, isError]), [
    ["unknown tool: pay", true],
  ]);
  assertEquals(resultsOf(result.messages), ["c-pay: unknown tool: pay", "c-mail: mail ran"]);
});

Deno.test("an answer is spent on its own request, not on the next one of the run", async () => {
  await using server = stubLlm([calling("pay"), calling("mail"), "Done."]);
  const pay = asking("pay"), mail = asking("mail");
  const client = clientOf(server, { toolkit: [pay, mail] });
  const first = await client.ask("go", { id: "a" });
  const second = await client.resume({ id: "a", answer: yesTo(first) });
  assertEquals(requestOf(second).prompt, "mail?");
  await assertRejects(() => client.resume({ id: "a", answer: yesTo(first) }), Error, "no request");
  // Nor does going on without an answer spend it.
  assertEquals(requestOf(await client.resume({ id: "a" })), requestOf(second));
  assertEquals([pay.runs.length, mail.runs.length], [1, 0]);
  const third = await client.resume({ id: "a", answer: yesTo(second) });
  assertEquals([third.text, pay.runs.length, mail.runs.length], ["Done.", 1, 1]);
});

Deno.test("a call without an id keeps its idempotency key over a resume", async () => {
  for (const legacy of [false, true]) {
    const call = { name: "pay", arguments: "{}" };
    const message = legacy
      ? { role: "assistant", content: null, function_call: call }
      : { role: "assistant", content: null, tool_calls: [{ type: "function", function: call }] };
    const body = { choices: [{ index: 0, message, finish_reason: "tool_calls" }] };
    await using server = stubLlm([{ body }, "Paid."]);
    const callIds: string[] = [];
    const pay = defineTool({
      name: "pay",
      description: "pays",
      run: (_args, { callId, answer }) => {
        callIds.push(callId);
        return answer === undefined ? pending({ kind: "approval", prompt: "Pay?" }) : "paid";
      },
    });
    const client = clientOf(server, { toolkit: [pay] });
    const suspended = await client.ask("go", { id: "a" });
    const { text } = await client.resume({ id: "a", answer: yesTo(suspended) });
    assertEquals(text, "Paid.");
    assertEquals(callIds.length, 2);
    assert(callIds[0] !== "" && callIds[0] === callIds[1], `legacy ${legacy}: ${callIds}`);
  }
});

Deno.test("onText shows the answer of a resumed run as it comes", async () => {
  await using server = stubLlm([calling("pay"), "Paid it all."]);
  const client = clientOf(server, { toolkit: [asking("pay")] });
  const suspended = await client.ask("go", { id: "a" });
  let shown = "";
  await client.resume({ id: "a", answer: yesTo(suspended), onText: (delta) => shown += delta });
  assertEquals(shown, "Paid it all.");
});

for (const when of ["claim", "checkpoint"] as const) {
  Deno.test(`an abort that comes during the ${when} starts no tool`, async () => {
    await using server = stubLlm([calling("pay")]);
    const memory = new InMemoryConversationStore();
    const controller = new AbortController();
    const { signal } = controller;
    const aborting = {
      get: (id: string) => memory.get(id),
      save: (...save: Parameters<typeof memory.save>) => {
        controller.abort();
        return memory.save(...save);
      },
    };
    let asked = 0;
    const pay = asking("pay");
    const options = {
      toolkit: [pay],
      checkpoint: "round",
      hooks: { beforeTool: () => void asked++ },
    } as const;
    const patient = clientOf(server, { ...options, store: memory });
    const impatient = clientOf(server, { ...options, store: aborting });
    const run = when === "checkpoint"
      ? impatient.ask("go", { id: "a", signal })
      : impatient.resume({
        id: "a",
        answer: yesTo(await patient.ask("go", { id: "a" })),
        signal,
      });
    const error = await assertRejects(() => run, Error);
    assertEquals([error.name, signal.aborted, pay.runs.length], ["AbortError", true, 0]);
    assertEquals([pay.asked, asked], when === "claim" ? [1, 1] : [0, 0]);
    assertEquals(resultsOf(await memory.get("a")), [`c-pay: ${INTERRUPTED}`]);
  });
}
