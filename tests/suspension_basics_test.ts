/** A tool that needs a human: with `waitFor` the run goes on, without it ends as pending. */
import { assert, assertEquals, assertRejects, assertStringIncludes } from "@std/assert";
import {
  type Answer,
  authRequired,
  type Awaitable,
  HookError,
  pending,
  type PendingRequest,
  RunAbortedError,
  type ToolResult,
} from "../mod.ts";
import { stubLlm } from "../src/testing/mod.ts";
import { calling, clientOf, eventsOf, lines, readUntil, toolOf } from "./client_kit.ts";

const PROMPT = "Pay 20 EUR?";

/** A tool that asks once, then counts what it did. */
function paying() {
  const seen: (Answer | undefined)[] = [];
  const tool = toolOf("pay");
  return {
    seen,
    tool: {
      ...tool,
      execute: (_: unknown, { answer }: { answer?: Answer | undefined } = {}): ToolResult => {
        seen.push(answer);
        if (answer?.ok) return { output: "paid", isError: false };
        return pending({
          id: "r1",
          kind: "approval",
          prompt: PROMPT,
          expiresAt: "2999-01-01T00:00:00Z",
        });
      },
    },
  };
}

for (const style of ["openai", "anthropic"] as const) {
  Deno.test(`without waitFor the run ends as pending, on a sendable transcript (${style})`, async () => {
    await using server = stubLlm([calling("mail", "pay", "late"), "never mind"]);
    const { tool } = paying();
    const late = toolOf("late", () => authRequired("https://login.test"));
    const client = clientOf(server, { style, toolkit: [toolOf("mail"), tool, late] });
    const events = await eventsOf(client.stream("go", { id: "a" }));
    const done = events.at(-1)!;
    assert(done.type === "done");
    const { status, pending, toolCalls, messages } = done.result;
    assertEquals([status, done.result.limit], ["pending", undefined]);
    assertEquals(pending, {
      id: "r1",
      kind: "approval",
      prompt: PROMPT,
      expiresAt: "2999-01-01T00:00:00Z",
      data: { toolCallId: "c-pay" },
    });
    assertEquals(toolCalls.map(({ name, output }) => [name, output]), [
      ["mail", "mail ran"],
      ["pay", PROMPT],
    ]);
    assertEquals(toolCalls[1]!.metadata, undefined);
    assertEquals(events.find(({ type }) => type === "pending"), {
      type: "pending",
      request: pending!,
    });
    assertEquals(await client.conversationStore().get("a"), messages);
    // A new ask goes on: the stub refuses what is not sendable, and our mark must not be sent.
    await client.ask("then not", { id: "a" });
    assertEquals(server.requests[1]!.text.includes('"pending"'), false);
    assertStringIncludes(lines(server.requests[1]!.body.messages).join("\n"), "declined/expired");
  });
}

Deno.test("leaving a stream when it tells of a suspension keeps the suspension", async () => {
  await using server = stubLlm([calling("mail", "pay")]);
  const client = clientOf(server, { toolkit: [toolOf("mail"), paying().tool] });
  await readUntil(client.stream("go", { id: "a" }), ({ type }) => type === "pending");
  const kept = (await client.conversationStore().get("a"))!;
  assertEquals(lines(kept).slice(2), ["tool: mail ran", `tool: ${PROMPT}`]);
  assertEquals((kept.at(-1)!.pending as PendingRequest).id, "r1");
});

Deno.test("the placeholder shows the url on a line of its own", async () => {
  await using server = stubLlm([calling("login")]);
  const login = toolOf("login", () => authRequired("https://login.test/x", "Log in"));
  const { toolCalls, pending } = await clientOf(server, { toolkit: [login] }).run("go");
  assertEquals(toolCalls[0]!.output, "Log in\nhttps://login.test/x");
  assertEquals([pending?.kind, pending?.url], ["authorization", "https://login.test/x"]);
  assert(pending!.id.startsWith("pnd-"));
});

const ANSWERS: Record<string, [(request: PendingRequest) => Awaitable<Answer>, string, number]> = {
  "ok": [({ id }) => ({ id, ok: true, data: { pin: 1 } }), "paid", 2],
  "declined": [({ id }) => Promise.resolve({ id, ok: false }), `declined/expired: ${PROMPT}`, 1],
  "for another request": [() => ({ id: "r2", ok: true }), `declined/expired: ${PROMPT}`, 1],
  "no answer": [() => undefined as unknown as Answer, `declined/expired: ${PROMPT}`, 1],
  "only truthy": [({ id }) => ({ id, ok: 1 as unknown as true }), `declined/expired: ${PROMPT}`, 1],
};
for (const [name, [waitFor, output, runs]] of Object.entries(ANSWERS)) {
  Deno.test(`waitFor gives an answer that is ${name}`, async () => {
    await using server = stubLlm([calling("pay", "mail"), "done"]);
    const { tool, seen } = paying();
    const toolkit = [tool, toolOf("mail")];
    const { toolCalls, status } = await clientOf(server, { toolkit, waitFor }).run("go");
    assertEquals(toolCalls.map((call) => call.output), [output, "mail ran"]);
    assertEquals([status, seen.length, toolCalls[0]!.isError], ["done", runs, output !== "paid"]);
    if (runs === 2) assertEquals(seen[1], { id: "r1", ok: true, data: { pin: 1 } });
  });
}

Deno.test("a tool that suspends again after its answer is unresolved", async () => {
  await using server = stubLlm([calling("pay"), "done"]);
  let runs = 0;
  const tool = toolOf("pay", () => (runs++, pending({ kind: "approval", prompt: PROMPT })));
  const waitFor = ({ id }: PendingRequest) => ({ id, ok: true });
  const { toolCalls } = await clientOf(server, { toolkit: [tool], waitFor }).run("go");
  assertEquals([toolCalls[0]!.output, runs], [`unresolved: ${PROMPT}`, 2]);
});

for (const expiresAt of ["2001-01-01T00:00:00Z", "2999-01-01T00:00:00", "2999", "tomorrow"]) {
  Deno.test(`an answer to a request that ran out (${expiresAt}) counts for nothing`, async () => {
    await using server = stubLlm([calling("pay"), "done"]);
    // As a tool of another language would suspend: pending() refuses what is no time.
    const request = { id: "r1", kind: "approval", prompt: PROMPT, expiresAt };
    const tool = toolOf("pay", () => ({
      output: PROMPT,
      isError: false,
      metadata: { pending: request },
    }));
    const waitFor = ({ id }: PendingRequest) => ({ id, ok: true });
    const { toolCalls } = await clientOf(server, { toolkit: [tool], waitFor }).run("go");
    assertEquals(toolCalls[0]!.output, `declined/expired: ${PROMPT}`);
  });
}

Deno.test("suspensions of one round are asked side by side, each by its own id", async () => {
  await using server = stubLlm([calling("a", "b"), "done"]);
  const tool = (name: string) => ({
    ...toolOf(name),
    execute: (_: unknown, context?: { answer?: Answer | undefined }) =>
      context?.answer?.ok
        ? { output: `${name} ${context.answer.data?.who}`, isError: false }
        : pending({ kind: "approval", prompt: name }),
  });
  const both = Promise.withResolvers<void>();
  const ids = new Set<string>();
  const { toolCalls } = await clientOf(server, {
    toolkit: [tool("a"), tool("b")],
    waitFor: async ({ id, prompt, data }) => {
      if (ids.add(id).size === 2) both.resolve();
      await both.promise;
      return { id, ok: true, data: { who: `${prompt} ${data?.toolCallId}` } };
    },
  }).run("go");
  assertEquals(toolCalls.map(({ output }) => output), ["a a c-a", "b b c-b"]);
});

Deno.test("afterTool and the metric see the resolved result, beforeTool is asked once", async () => {
  await using server = stubLlm([calling("pay"), "done", calling("pay")]);
  const seen: string[] = [];
  const options = {
    hooks: {
      beforeTool: () => void seen.push("before"),
      afterTool: ({ result }: { result: ToolResult }) => void seen.push(`after ${result.output}`),
    },
    onMetric: (event: { event: string; isError?: boolean; pending?: boolean }) => {
      if (event.event === "tool") seen.push(`error ${event.isError} pending ${event.pending}`);
    },
  };
  const waitFor = ({ id }: PendingRequest) => ({ id, ok: true });
  await clientOf(server, { ...options, toolkit: [paying().tool], waitFor }).run("go");
  assertEquals(seen.splice(0), ["before", "after paid", "error false pending undefined"]);
  await clientOf(server, { ...options, toolkit: [paying().tool] }).run("go");
  assertEquals(seen, ["before", "error false pending true"]);
});

Deno.test("a beforeTool hook can suspend a call; approved, it runs", async () => {
  await using server = stubLlm([calling("pay"), "done", calling("pay")]);
  let runs = 0;
  const toolkit = [toolOf("pay", () => ++runs)];
  const hooks = { beforeTool: () => ({ result: pending({ kind: "approval", prompt: PROMPT }) }) };
  const waitFor = ({ id }: PendingRequest) => ({ id, ok: true });
  const { toolCalls } = await clientOf(server, { toolkit, hooks, waitFor }).run("go");
  assertEquals([toolCalls[0]!.output, runs], ["1", 1]);
  assertEquals((await clientOf(server, { toolkit, hooks }).run("go")).status, "pending");
  assertEquals(runs, 1);
});

Deno.test("waitFor that throws fails the run; one that waits is ended by an abort", async () => {
  await using server = stubLlm([calling("pay", "mail"), calling("pay", "mail")]);
  const toolkit = [paying().tool, toolOf("mail")];
  const failing = clientOf(server, {
    toolkit,
    waitFor: () => Promise.reject(new Error("no screen")),
  });
  const error = await assertRejects(() => failing.ask("go", { id: "a" }), HookError, "no screen");
  assertEquals(error.result?.toolCalls[1]?.output, "mail ran");
  const controller = new AbortController();
  const waiting = clientOf(server, {
    toolkit,
    waitFor: () => (controller.abort(), new Promise<never>(() => {})),
  });
  await assertRejects(() => waiting.run("go", { signal: controller.signal }), RunAbortedError);
});

Deno.test("a request that is none is an error result, not a suspension", async () => {
  for (
    const request of [{}, { id: 5, prompt: "x" }, { id: "x" }, "x", {
      id: "x",
      prompt: "y",
      data: { f() {} },
    }]
  ) {
    await using server = stubLlm([calling("t"), "ok"]);
    const tool = toolOf(
      "t",
      () => ({ output: "", isError: false, metadata: { pending: request } }),
    );
    const { status, toolCalls } = await clientOf(server, { toolkit: [tool] }).run("go");
    assertEquals([status, toolCalls[0]!.isError], ["done", true]);
    assertStringIncludes(toolCalls[0]!.output, "invalid pending request");
  }
});
