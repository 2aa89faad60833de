/** With `waitFor` the run itself waits for the human, and goes on with the answer. */
import { assertEquals, assertInstanceOf, assertRejects, assertStrictEquals } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import {
  type Answer,
  HookError,
  type MetricEvent,
  pending,
  type PendingRequest,
  RunAbortedError,
  type ToolContext,
} from "../mod.ts";
import { stubLlm } from "../src/testing/mod.ts";
import {
  asking,
  assertNoMarkWasSent,
  INTERRUPTED,
  resultsOf,
  STYLES,
  WAYS,
} from "./approval_kit.ts";
import { calling, clientOf, toolOf } from "./client_kit.ts";

for (const style of STYLES) {
  for (const [way, { ask }] of Object.entries(WAYS)) {
    Deno.test(`yes: the tool runs again with the answer, and the loop goes on (${style}, ${way})`, async () => {
      await using server = stubLlm([calling("mail", "pay"), "Paid."]);
      const requests: PendingRequest[] = [];
      const pay = asking("pay", { data: { euro: 20 } });
      const client = clientOf(server, {
        style,
        toolkit: [toolOf("mail"), pay],
        waitFor: (request) => {
          requests.push(request);
          return { id: request.id, ok: true, data: { code: "1234" } };
        },
      });
      const { status, text, messages, toolCalls } = await ask(client, "go", { id: "a" });
      assertEquals([status, text], ["done", "Paid."]);
      assertEquals(requests.map(({ data }) => data), [{ euro: 20, toolCallId: "c-pay" }]);
      assertEquals([pay.asked, pay.runs.length], [1, 1]);
      const [context] = pay.runs as [ToolContext];
      assertEquals([context.callId, context.turn, context.conversationId], ["c-pay", 1, "a"]);
      assertEquals(context.answer, { id: requests[0]!.id, ok: true, data: { code: "1234" } });
      assertEquals(resultsOf(messages), ["c-mail: mail ran", "c-pay: pay done"]);
      assertEquals(toolCalls.map(({ output }) => output), ["mail ran", "pay done"]);
      assertNoMarkWasSent(server);
    });
  }
}

/** Answers that do not allow the tool to run. */
const REFUSALS: Record<string, (request: PendingRequest) => Answer | undefined> = {
  "a no": ({ id }) => ({ id, ok: false, reason: "too much" }),
  "an answer to another request": () => ({ id: "pnd-other", ok: true }),
  "a word that is no yes": ({ id }) => ({ id, ok: "yes" as unknown as boolean }),
  "no answer at all": () => undefined,
};
for (const [what, answer] of Object.entries(REFUSALS)) {
  Deno.test(`${what}: the model is told, and the tool does not run`, async () => {
    await using server = stubLlm([calling("pay", "mail"), "I could not pay."]);
    const pay = asking("pay");
    const waitFor = (request: PendingRequest) => answer(request) as Answer;
    const client = clientOf(server, { toolkit: [pay, toolOf("mail")], waitFor });
    const { status, text, toolCalls } = await client.run("go");
    assertEquals([status, text, pay.runs.length], ["done", "I could not pay.", 0]);
    assertEquals(toolCalls.map(({ output, isError }) => [output, isError]), [
      ["declined/expired: pay?", true],
      ["mail ran", false],
    ]);
  });
}

Deno.test("an answer that comes after the request ran out is none", async () => {
  await using server = stubLlm([calling("pay", "mail"), "Too late."]);
  using time = new FakeTime("2026-03-01T12:00:00Z");
  const pay = asking("pay", { expiresAt: "2026-03-01T13:00:00+01:00" });
  const mail = asking("mail", { expiresAt: "2026-03-01T13:00:01.5+01:00" });
  const client = clientOf(server, {
    toolkit: [pay, mail],
    waitFor: ({ id }) => {
      time.tick(500);
      return { id, ok: true };
    },
  });
  const { toolCalls } = await client.run("go");
  assertEquals(toolCalls.map(({ output }) => output), ["declined/expired: pay?", "mail done"]);
  assertEquals([pay.runs.length, mail.runs.length], [0, 1]);
});

Deno.test("a request whose end cannot be read is an error result", async () => {
  await using server = stubLlm([calling("pay"), "Too late."]);
  const pay = asking("pay", { expiresAt: "next tuesday" });
  const client = clientOf(server, { toolkit: [pay], waitFor: ({ id }) => ({ id, ok: true }) });
  assertEquals(
    (await client.run("go")).toolCalls[0]?.output,
    'expiresAt of a pending request must be an RFC 3339 date-time: "next tuesday"',
  );
  assertEquals(pay.runs.length, 0);
});

Deno.test("a tool that still waits after the answer is an error result", async () => {
  await using server = stubLlm([calling("login"), "I could not log in."]);
  let runs = 0;
  const questions = ["User?", "Password?"];
  const login = toolOf("login", () => pending({ kind: "input", prompt: questions[runs++]! }));
  const client = clientOf(server, { toolkit: [login], waitFor: ({ id }) => ({ id, ok: true }) });
  const { status, toolCalls } = await client.run("go");
  assertEquals([status, runs], ["done", 2]);
  assertEquals([toolCalls[0]?.output, toolCalls[0]?.isError], ["unresolved: User?", true]);
});

Deno.test("two tools wait side by side, and each gets its own answer", async () => {
  await using server = stubLlm([calling("pay", "mail", "login"), "Done."]);
  const asked: PendingRequest[] = [];
  const bothAsked = Promise.withResolvers<void>();
  const pay = asking("pay"), mail = asking("mail"), login = asking("login");
  const client = clientOf(server, {
    toolkit: [pay, mail, login],
    waitFor: async (request) => {
      // Would hang if they were asked for one after the other.
      if (asked.push(request) === 3) bothAsked.resolve();
      await bothAsked.promise;
      const tool = request.prompt.slice(0, -1);
      return { id: request.id, ok: tool !== "mail", data: { for: tool } };
    },
  });
  const { messages } = await client.run("go");
  assertEquals(resultsOf(messages), [
    "c-pay: pay done",
    "c-mail: declined/expired: mail?",
    "c-login: login done",
  ]);
  assertEquals([pay, mail, login].map(({ runs }) => runs.map(({ answer }) => answer?.data)), [
    [{ for: "pay" }],
    [],
    [{ for: "login" }],
  ]);
});

Deno.test("a waitFor that throws fails the run; what finished is kept, and nothing ran unasked", async () => {
  await using server = stubLlm([calling("mail", "pay")]);
  const pay = asking("pay");
  const cause = new Error("nobody is at the desk");
  const client = clientOf(server, {
    toolkit: [toolOf("mail"), pay],
    waitFor: () => Promise.reject(cause),
  });
  const error = await assertRejects(() => client.ask("go", { id: "a" }), HookError);
  assertEquals(error.code, "hook_failed");
  assertStrictEquals(error.cause, cause);
  assertEquals(resultsOf(await client.conversationStore().get("a")), [
    "c-mail: mail ran",
    `c-pay: ${INTERRUPTED}`,
  ]);
  assertEquals(pay.runs.length, 0);
});

for (const [code, what] of [["aborted", "an abort"], ["timeout", "timeoutMs"]] as const) {
  Deno.test(`${what} ends a run that waits for a human who never comes`, async () => {
    await using server = stubLlm([calling("mail", "pay")]);
    const controller = new AbortController();
    const pay = asking("pay");
    const client = clientOf(server, {
      toolkit: [toolOf("mail"), pay],
      timeoutMs: code === "timeout" ? 300 : undefined,
      waitFor: () => {
        if (code === "aborted") controller.abort();
        return new Promise(() => {});
      },
    });
    const { signal } = controller;
    const error = await assertRejects(() => client.ask("go", { id: "a", signal }));
    assertInstanceOf(error, RunAbortedError);
    assertEquals(error.code, code);
    assertEquals(resultsOf(await client.conversationStore().get("a")), [
      "c-mail: mail ran",
      `c-pay: ${INTERRUPTED}`,
    ]);
    assertEquals(pay.runs.length, 0);
  });
}

Deno.test("hooks and metrics see the resolved call, once", async () => {
  await using server = stubLlm([calling("pay", "mail"), "Done."]);
  const events: MetricEvent[] = [];
  const seen: string[] = [];
  const client = clientOf(server, {
    toolkit: [asking("pay"), asking("mail")],
    waitFor: ({ id, prompt }) => ({ id, ok: prompt === "pay?" }),
    onMetric: (event) => events.push(event),
    hooks: {
      beforeTool: ({ name }) => void seen.push(`before ${name}`),
      afterTool: ({ name, result }) => {
        seen.push(`after ${name}: ${result.output}`);
        return { result: { ...result, output: result.output.toUpperCase() } };
      },
    },
  });
  const { toolCalls } = await client.run("go");
  assertEquals(seen.toSorted(), [
    "after mail: declined/expired: mail?",
    "after pay: pay done",
    "before mail",
    "before pay",
  ]);
  assertEquals(toolCalls.map(({ output }) => output), ["PAY DONE", "DECLINED/EXPIRED: MAIL?"]);
  const tools = events.filter((event) => event.event === "tool");
  assertEquals(
    new Map(tools.map(({ tool, isError, pending }) => [tool, [isError, pending]])),
    new Map([["pay", [false, undefined]], ["mail", [true, undefined]]]),
  );
  assertEquals(tools.length, 2);
});

Deno.test("a stream tells of each request before waitFor is asked", async () => {
  await using server = stubLlm([calling("pay"), "Paid."]);
  const told: string[] = [];
  const client = clientOf(server, {
    toolkit: [asking("pay")],
    waitFor: ({ id, prompt }) => {
      told.push(`asked: ${prompt}`);
      return { id, ok: true };
    },
  });
  for await (const event of client.stream("go")) {
    if (event.type === "pending") told.push(`shown: ${event.request.prompt}`);
    if (event.type === "tool_result") told.push(`result: ${event.output}`);
  }
  assertEquals(told, ["shown: pay?", "asked: pay?", "result: pay done"]);
});
