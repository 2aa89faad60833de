/** A tool that needs a human stops the run: nothing is held, the request travels as data. */
import { assert, assertEquals, assertMatch, assertNotEquals } from "@std/assert";
import {
  authRequired,
  type MetricEvent,
  pending,
  type PendingRequest,
  type RunResult,
  type ToolResult,
} from "../mod.ts";
import { stubLlm } from "../src/testing/mod.ts";
import {
  asking,
  assertNoMarkWasSent,
  requestOf,
  resultsOf,
  STYLES,
  WAYS,
  yesTo,
} from "./approval_kit.ts";
import { calling, clientOf, eventsOf, lines, readUntil, toolOf } from "./client_kit.ts";

for (const style of STYLES) {
  for (const [way, { ask }] of Object.entries(WAYS)) {
    const name = `${style}, ${way}`;

    Deno.test(`a run that needs a human ends as pending, its request in the transcript (${name})`, async () => {
      await using server = stubLlm([{
        text: "Let me pay.",
        toolCalls: [{ id: "c1", name: "pay", args: { euro: 20 } }],
      }]);
      const request = {
        id: "pnd-7",
        kind: "approval",
        prompt: "Pay 20 EUR?",
        url: "https://pay.test/7",
        data: { order: 7 },
        expiresAt: "2999-01-01T00:00:00Z",
      };
      const pay = toolOf("pay", () => pending(request));
      const client = clientOf(server, { style, toolkit: [pay] });
      const result = await ask(client, "pay the rent", { id: "a" });

      const stamped = { ...request, data: { order: 7, toolCallId: "c1" } };
      const output = "Pay 20 EUR?\nhttps://pay.test/7";
      assertEquals([result.status, result.pending], ["pending", stamped]);
      assertEquals([result.text, result.turns], ["Let me pay.", 1]);
      assertEquals(result.toolCalls, [
        { id: "c1", name: "pay", args: { euro: 20 }, output, isError: false },
      ]);
      const placeholder = style === "openai"
        ? { role: "tool", tool_call_id: "c1", content: output, pending: stamped }
        : {
          role: "user",
          content: [
            { type: "tool_result", tool_use_id: "c1", content: output, pending: stamped },
          ],
        };
      assertEquals(result.messages.at(-1), placeholder);
      assertEquals(await client.conversationStore().get("a"), result.messages);
      assertNoMarkWasSent(server);
    });

    Deno.test(`it ends on the first suspension in call order, and what finished is kept (${name})`, async () => {
      await using server = stubLlm([calling("mail", "pay", "log", "login", "note")]);
      const paying = Promise.withResolvers<void>();
      const pay = toolOf("pay", async () => {
        // Suspends after the login, and is the first all the same.
        await paying.promise;
        return pending({ kind: "approval", prompt: "Pay?" });
      });
      const login = toolOf("login", () => {
        paying.resolve();
        return authRequired("https://login.test");
      });
      const toolkit = [toolOf("mail"), pay, toolOf("log"), login, toolOf("note")];
      const client = clientOf(server, { style, toolkit });
      const { messages, pending: request, toolCalls } = await ask(client, "go", { id: "a" });

      assertEquals([request?.prompt, request?.data], ["Pay?", { toolCallId: "c-pay" }]);
      const kept = ["c-mail: mail ran", "c-pay: Pay?", "c-log: log ran", "c-note: note ran"];
      assertEquals(resultsOf(messages), kept);
      assertEquals(toolCalls.map(({ id, output }) => `${id}: ${output}`), kept);
      assertEquals(await client.conversationStore().get("a"), messages);
    });

    Deno.test(`checkpoints change nothing about a suspension (${name})`, async () => {
      const transcripts = [];
      for (const checkpoint of ["run", "round"] as const) {
        await using server = stubLlm([calling("pay", "mail")]);
        const toolkit = [asking("pay", { id: "pnd-1" }), toolOf("mail")];
        const client = clientOf(server, { style, toolkit, checkpoint });
        const { messages } = await ask(client, "go", { id: "a" });
        assertEquals(await client.conversationStore().get("a"), messages);
        transcripts.push(messages);
      }
      assertEquals(transcripts[0], transcripts[1]);
    });
  }

  Deno.test(`a stream tells the suspension once, after the results, before its end (${style})`, async () => {
    await using server = stubLlm([calling("login", "mail", "pay")]);
    const toolkit = [asking("login"), toolOf("mail"), asking("pay")];
    const client = clientOf(server, { style, toolkit });
    const events = await eventsOf(client.stream("go", { id: "a" }));
    assertEquals(events.map((event) => "id" in event ? `${event.type} ${event.id}` : event.type), [
      "usage",
      "tool_call c-login",
      "tool_call c-mail",
      "tool_call c-pay",
      "tool_result c-mail",
      "pending",
      "done",
    ]);
    const [told] = events.filter((event) => event.type === "pending");
    const { result } = events.at(-1) as { result: RunResult };
    assertEquals([result.status, told?.request], ["pending", result.pending]);
    assertEquals(result.pending?.data, { toolCallId: "c-login" });
  });

  Deno.test(`a stream that is left at its pending event can be resumed (${style})`, async () => {
    await using server = stubLlm([calling("pay"), "Paid."]);
    const pay = asking("pay");
    const client = clientOf(server, { style, toolkit: [pay] });
    const events = await readUntil(
      client.stream("go", { id: "a" }),
      (event) => event.type === "pending",
    );
    const { request } = events.at(-1) as { request: PendingRequest };
    const result = await client.resume({ id: "a", answer: { id: request.id, ok: true } });
    assertEquals([result.text, pay.runs.length], ["Paid.", 1]);
  });

  Deno.test(`without an id the transcript is the caller's, and nothing is remembered (${style})`, async () => {
    await using server = stubLlm([calling("pay"), "Paid."]);
    const pay = asking("pay");
    const client = clientOf(server, { style, toolkit: [pay] });
    const suspended = await client.run("go");
    // As far as another machine: as text.
    const sent = JSON.stringify(suspended.messages);
    const history = JSON.parse(sent);
    const result = await client.resume({ history, answer: yesTo(suspended) });
    assertEquals([result.status, result.text, pay.runs.length], ["done", "Paid.", 1]);
    assertEquals(history, JSON.parse(sent));
  });

  Deno.test(`the mark is taken out of everything that is sent (${style})`, async () => {
    await using server = stubLlm([calling("pay"), "1", "2", "3", "4"]);
    const client = clientOf(server, { style, toolkit: [asking("pay")] });
    const { messages: history } = await client.ask("go", { id: "a" });
    await client.run("well?", { history });
    await client.ask("well?", { id: "a" });
    const plain = clientOf(server, { style });
    await plain.translate({ messages: history });
    await plain.run("and?", {
      // What is no request is no mark that anyone could answer.
      history: JSON.parse(JSON.stringify(history).replaceAll('"prompt"', '"question"')),
    });
    assertEquals(server.requests.length, 5);
    assertNoMarkWasSent(server);
  });

  Deno.test(`a mark that a hook brings back is not sent, either (${style})`, async () => {
    await using server = stubLlm([calling("pay"), "Hello."]);
    const client = clientOf(server, { style, toolkit: [asking("pay")] });
    const { messages } = await client.run("go");
    const restoring = clientOf(server, { style, hooks: { beforeLLM: () => ({ messages }) } });
    await restoring.run("hi");
    assertEquals(resultsOf(server.requests[1]!.body.messages), ["c-pay: pay?"]);
    assertNoMarkWasSent(server);
  });
}

Deno.test("requests of parallel calls have ids of their own", async () => {
  await using server = stubLlm([
    { toolCalls: [1, 2, 3].map((n) => ({ id: `c${n}`, name: "pay" })) },
    "done",
  ]);
  const ids: string[] = [];
  const client = clientOf(server, {
    toolkit: [asking("pay")],
    waitFor: ({ id }) => {
      ids.push(id);
      return { id, ok: true };
    },
  });
  await client.run("pay three times");
  assertEquals(new Set(ids).size, 3);
  for (const id of ids) assertMatch(id, /^pnd-.{8,}$/);
});

Deno.test("the requests of two runs have ids of their own", async () => {
  await using server = stubLlm([calling("pay"), calling("pay")]);
  const client = clientOf(server, { toolkit: [asking("pay")] });
  const ids = [requestOf(await client.run("go")).id, requestOf(await client.run("go")).id];
  assertNotEquals(ids[0], ids[1]);
});

Deno.test("authRequired asks for a login at a URL", async () => {
  await using server = stubLlm([calling("login")]);
  const login = toolOf("login", () => authRequired("https://login.test/a?b=1"));
  const { pending: request, toolCalls } = await clientOf(server, { toolkit: [login] }).run("go");
  assertEquals([request?.kind, request?.url], ["authorization", "https://login.test/a?b=1"]);
  assertEquals(toolCalls[0]?.output, `${request?.prompt}\nhttps://login.test/a?b=1`);
});

Deno.test("a tool's other data stays with its call; the request is told apart", async () => {
  await using server = stubLlm([calling("pay")]);
  const pay = toolOf("pay", () => {
    const result = pending({ kind: "approval", prompt: "Pay?" });
    return { ...result, metadata: { ...result.metadata, trace: 7 } };
  });
  const { toolCalls } = await clientOf(server, { toolkit: [pay] }).run("go");
  assertEquals(toolCalls[0]?.metadata, { trace: 7 });
});

Deno.test("a suspension is no error in the metrics, and afterTool does not see it", async () => {
  await using server = stubLlm([calling("pay", "mail"), "Paid."]);
  const events: MetricEvent[] = [];
  const seen: string[] = [];
  const client = clientOf(server, {
    toolkit: [asking("pay"), toolOf("mail")],
    onMetric: (event) => events.push(event),
    hooks: { afterTool: ({ name, result }) => void seen.push(`${name}: ${result.output}`) },
  });
  const tools = () =>
    events.splice(0).flatMap((event): Record<string, unknown>[] => {
      if (event.event === "run") return [{ run: event.error ?? "ok", calls: event.toolCalls }];
      if (event.event === "llm") return [];
      const { tool, isError, pending } = event;
      return [{ tool, isError, pending }];
    });

  const suspended = await client.ask("go", { id: "a" });
  assertEquals(tools(), [
    { tool: "pay", isError: false, pending: true },
    { tool: "mail", isError: false, pending: undefined },
    { run: "ok", calls: 2 },
  ]);
  assertEquals(seen, ["mail: mail ran"]);

  await client.resume({ id: "a", answer: yesTo(suspended) });
  assertEquals(tools(), [
    { tool: "pay", isError: false, pending: undefined },
    { run: "ok", calls: 1 },
  ]);
  assertEquals(seen, ["mail: mail ran", "pay: pay done"]);
  const text = client.metrics();
  assert(!text.includes('is_error="true"') && !/run_errors_total\{.*\} [1-9]/.test(text), text);
});

const cycle: Record<string, unknown> = {};
cycle.self = cycle;
const NOT_JSON: [string, unknown][] = [
  ["a BigInt in the data", { id: "r", kind: "k", prompt: "p", data: { amount: 20n } }],
  ["a function in the data", { id: "r", kind: "k", prompt: "p", data: { then: () => {} } }],
  ["a cycle in the data", { id: "r", kind: "k", prompt: "p", data: cycle }],
  ["a date in the data", { id: "r", kind: "k", prompt: "p", data: { due: new Date(0) } }],
  ["NaN in the data", { id: "r", kind: "k", prompt: "p", data: { amount: NaN } }],
  ["data that is a list", { id: "r", kind: "k", prompt: "p", data: [1, 2] }],
  ["data that is a Map", { id: "r", kind: "k", prompt: "p", data: new Map([["a", 1]]) }],
  ["a URL object", { id: "r", kind: "k", prompt: "p", url: new URL("https://a.test") }],
  ["a Date as expiresAt", { id: "r", kind: "k", prompt: "p", expiresAt: new Date(0) }],
  ["no id", { kind: "k", prompt: "p" }],
  ["no prompt", { id: "r", kind: "k" }],
  ["a text", "please"],
  ["null", null],
];
for (const [what, request] of NOT_JSON) {
  Deno.test(`a request that cannot travel is an error result (${what})`, async () => {
    await using server = stubLlm([calling("pay", "mail"), "I could not ask."]);
    const pay = toolOf("pay", (): ToolResult => ({
      output: "?",
      isError: false,
      metadata: { pending: request },
    }));
    const client = clientOf(server, { toolkit: [pay, toolOf("mail")] });
    const { status, toolCalls, messages } = await client.ask("go", { id: "a" });
    assertEquals(status, "done");
    assertEquals(toolCalls.map(({ isError }) => isError), [true, false]);
    assertMatch(toolCalls[0]!.output, /^invalid pending request: ./);
    assertEquals(lines(messages).at(-1), "assistant: I could not ask.");
    assertNoMarkWasSent(server);
  });
}
