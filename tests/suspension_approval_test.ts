/** Who asks for the human: `needsApproval` of a tool, or a `beforeTool` hook. */
import { assertEquals, assertMatch } from "@std/assert";
import { createClient, defineTool, pending, type ToolContext } from "../mod.ts";
import { type StubLlm, stubLlm } from "../src/testing/mod.ts";
import { asking, requestOf, resultsOf, yesTo } from "./approval_kit.ts";
import { calling, clientOf, toolOf } from "./client_kit.ts";

/** The payments that were made, and the tool that makes them. */
function payTool(
  needsApproval?: boolean | ((args: { euro: number }) => boolean | string | Promise<boolean>),
) {
  const paid: { euro: number; context: ToolContext }[] = [];
  const tool = defineTool({
    name: "pay",
    description: "Pays",
    inputSchema: {
      type: "object",
      properties: { euro: { type: "number" } },
      required: ["euro"],
    },
    needsApproval,
    run({ euro }, context) {
      paid.push({ euro, context });
      return `paid ${euro} EUR`;
    },
  });
  return { paid, tool };
}

/** A model that pays these sums and says thanks. */
function payingModel(...sums: number[]): StubLlm {
  const toolCalls = sums.map((euro) => ({ id: `c${euro}`, name: "pay", args: { euro } }));
  return stubLlm([{ toolCalls }, "Thanks."]);
}

Deno.test("needsApproval: true asks before every call, and tells which", async () => {
  await using server = payingModel(20);
  const { tool, paid } = payTool(true);
  const client = clientOf(server, { toolkit: [tool] });
  const suspended = await client.ask("pay", { id: "a" });
  const request = requestOf(suspended);
  assertEquals([request.kind, paid.length], ["approval", 0]);
  assertMatch(request.prompt, /pay.*\{"euro":20\}/);
  assertEquals(request.data, { tool: "pay", args: { euro: 20 }, toolCallId: "c20" });

  const { toolCalls } = await client.resume({ id: "a", answer: yesTo(suspended) });
  assertEquals(toolCalls.map(({ output }) => output), ["paid 20 EUR"]);
  assertEquals(paid.map(({ euro, context }) => [euro, context.callId]), [[20, "c20"]]);
});

Deno.test("needsApproval: a no is told to the model, and nothing is paid", async () => {
  await using server = payingModel(20);
  const { tool, paid } = payTool(true);
  const client = clientOf(server, { toolkit: [tool] });
  const suspended = await client.ask("pay", { id: "a" });
  const answer = { id: requestOf(suspended).id, ok: false, reason: "too much" };
  const { status, toolCalls } = await client.resume({ id: "a", answer });
  assertEquals([status, paid.length], ["done", 0]);
  assertEquals(toolCalls[0]?.output, `declined/expired: ${requestOf(suspended).prompt}`);
});

Deno.test("needsApproval: a function decides by the arguments, and puts the question", async () => {
  await using server = payingModel(5, 50, 500);
  const { tool, paid } = payTool(({ euro }) => euro < 10 ? false : `Really pay ${euro} EUR?`);
  const client = clientOf(server, { toolkit: [tool] });
  const first = await client.ask("pay", { id: "a" });
  assertEquals(requestOf(first).prompt, "Really pay 50 EUR?");
  assertEquals(paid.map(({ euro }) => euro), [5]);

  const second = await client.resume({ id: "a", answer: yesTo(first) });
  assertEquals(requestOf(second).prompt, "Really pay 500 EUR?");
  assertEquals(paid.map(({ euro }) => euro), [5, 50]);

  const third = await client.resume({ id: "a", answer: yesTo(second) });
  assertEquals(third.status, "done");
  assertEquals(resultsOf(third.messages), [
    "c5: paid 5 EUR",
    "c50: paid 50 EUR",
    "c500: paid 500 EUR",
  ]);
  assertEquals(paid.map(({ euro }) => euro), [5, 50, 500]);
});

Deno.test("needsApproval: a function may take its time", async () => {
  await using server = payingModel(5, 50);
  const { tool, paid } = payTool(async ({ euro }) => await Promise.resolve(euro > 10));
  const result = await clientOf(server, {
    toolkit: [tool],
    waitFor: ({ id }) => ({ id, ok: true }),
  })
    .run("pay");
  assertEquals([result.status, paid.length], ["done", 2]);
});

Deno.test("needsApproval: a function that fails is no permission", async () => {
  await using server = payingModel(20);
  const { tool, paid } = payTool(() => {
    throw new Error("the limits are not known");
  });
  const { toolCalls } = await clientOf(server, { toolkit: [tool] }).run("pay");
  assertEquals(toolCalls.map(({ output, isError }) => [output, isError]), [
    ["the limits are not known", true],
  ]);
  assertEquals(paid.length, 0);
});

Deno.test("a beforeTool hook suspends a call, and is not asked again when it is approved", async () => {
  await using server = stubLlm([calling("mail", "delete", "drop"), "Deleted."]);
  const seen: string[] = [];
  const ran: string[] = [];
  const tool = (name: string) =>
    defineTool({
      name,
      description: name,
      run: (_args, { callId, answer }) => {
        ran.push(`${callId} ${answer?.data?.by ?? "unasked"}`);
        return `${name} ran`;
      },
    });
  const client = clientOf(server, {
    toolkit: [tool("mail"), tool("delete"), tool("drop")],
    hooks: {
      beforeTool: ({ name, id }) => {
        seen.push(id);
        if (name === "mail") return;
        return { result: pending({ kind: "approval", prompt: `${name}?` }) };
      },
    },
  });
  const first = await client.ask("clean up", { id: "a" });
  assertEquals(requestOf(first).prompt, "delete?");
  assertEquals(seen.splice(0), ["c-mail", "c-delete", "c-drop"]);

  const answer = { ...yesTo(first), data: { by: "Ann" } };
  const second = await client.resume({ id: "a", answer });
  // The call that was left without a result has not been approved by anyone.
  assertEquals([requestOf(second).prompt, seen.splice(0)], ["drop?", ["c-drop"]]);

  const third = await client.resume({ id: "a", answer: yesTo(second) });
  assertEquals([third.text, seen], ["Deleted.", []]);
  // The answer is for the hook: the tools have asked nothing.
  assertEquals(ran, ["c-mail unasked", "c-delete unasked", "c-drop unasked"]);
  assertEquals(resultsOf(third.messages), [
    "c-mail: mail ran",
    "c-delete: delete ran",
    "c-drop: drop ran",
  ]);
});

Deno.test("a beforeTool hook suspends under waitFor, too", async () => {
  await using server = stubLlm([calling("delete"), "Deleted."]);
  let asked = 0;
  const client = clientOf(server, {
    toolkit: [toolOf("delete")],
    waitFor: ({ id }) => ({ id, ok: true }),
    hooks: {
      beforeTool: () => {
        asked++;
        return { result: pending({ kind: "approval", prompt: "Delete?" }) };
      },
    },
  });
  assertEquals((await client.run("go")).toolCalls.map(({ output }) => output), ["delete ran"]);
  assertEquals(asked, 1);
});

for (const way of ["waitFor", "resume"] as const) {
  Deno.test(`what runs is what was approved: arguments that a hook had changed (${way})`, async () => {
    await using server = payingModel(900);
    const { tool, paid } = payTool(true);
    const asked: unknown[] = [];
    const after: unknown[] = [];
    const client = createClient({
      baseUrl: server.baseUrl,
      style: "openai",
      model: "test",
      toolkit: [tool],
      hooks: {
        beforeTool: ({ args }) => ({ args: { euro: Math.min(Number(args.euro), 100) } }),
        afterTool: ({ args }) => void after.push(args),
      },
      waitFor: way === "resume" ? undefined : (request) => {
        asked.push(request.data?.args);
        return { id: request.id, ok: true };
      },
    });
    let result = await client.ask("pay", { id: "a" });
    if (way === "resume") {
      asked.push(requestOf(result).data?.args);
      result = await client.resume({ id: "a", answer: yesTo(result) });
    }
    assertEquals(asked, [{ euro: 100 }]);
    assertEquals(paid.map(({ euro }) => euro), [100]);
    assertEquals(result.toolCalls.map(({ args }) => args), [{ euro: 100 }]);
    assertEquals(after, [{ euro: 100 }]);
  });
}

Deno.test("what runs is what was approved, whatever a hook does to the arguments in place", async () => {
  await using server = payingModel(900);
  const { tool, paid } = payTool(true);
  const client = clientOf(server, {
    toolkit: [tool],
    hooks: { beforeTool: ({ args }) => void (args.euro = 100) },
  });
  const suspended = await client.ask("pay", { id: "a" });
  const { args } = requestOf(suspended).data as { args: { euro: number } };
  const { toolCalls } = await client.resume({ id: "a", answer: yesTo(suspended) });
  assertEquals(paid.map(({ euro }) => euro), [args.euro]);
  assertEquals(toolCalls.map((call) => call.args), [args]);
});

Deno.test("what a tool shows to the human is never taken for its arguments", async () => {
  await using server = stubLlm([
    { toolCalls: [{ id: "c1", name: "pay", args: { euro: 20 } }] },
    "Paid.",
  ]);
  const pay = asking("pay", { data: { toolArgs: { euro: "twenty" }, shown: "twenty" } });
  const client = clientOf(server, { toolkit: [pay] });
  const suspended = await client.ask("pay", { id: "a" });
  assertEquals(requestOf(suspended).data, { shown: "twenty", toolCallId: "c1" });
  const { toolCalls } = await client.resume({ id: "a", answer: yesTo(suspended) });
  assertEquals(toolCalls.map(({ args }) => args), [{ euro: 20 }]);
});

Deno.test("an answer is seen by the one call that it is for", async () => {
  await using server = stubLlm([
    { toolCalls: [{ id: "c1", name: "pay" }, { id: "c2", name: "pay" }] },
    { toolCalls: [{ id: "c3", name: "pay" }] },
  ]);
  const pay = asking("pay");
  const client = clientOf(server, { toolkit: [pay] });
  const first = await client.ask("pay thrice", { id: "a" });
  const second = await client.resume({ id: "a", answer: yesTo(first) });
  const third = await client.resume({ id: "a", answer: yesTo(second) });
  assertEquals(requestOf(third).data, { toolCallId: "c3" });
  assertEquals(pay.runs.map(({ callId }) => callId), ["c1", "c2"]);
});

for (const way of ["waitFor", "resume"] as const) {
  Deno.test(`a yes to a hook's question is none to the tool's own (${way})`, async () => {
    const login = { kind: "authorization", prompt: "Log in first" };
    const { tool: pay, paid } = payTool(true);
    const book = asking("book");
    for (
      const [tool, question] of [[pay, 'Allow pay with {"euro":900}?'], [book, "book?"]] as const
    ) {
      const call = { id: "c1", name: tool.name, args: { euro: 900 } };
      await using server = stubLlm([{ toolCalls: [call] }, "Done."]);
      const asked: string[] = [];
      const client = clientOf(server, {
        toolkit: [tool],
        hooks: { beforeTool: () => ({ result: pending(login) }) },
        waitFor: way === "resume" ? undefined : ({ id, prompt }) => {
          asked.push(prompt);
          return { id, ok: prompt === login.prompt };
        },
      });
      let result = await client.ask("go", { id: "a" });
      if (way === "resume") {
        asked.push(requestOf(result).prompt);
        result = await client.resume({ id: "a", answer: yesTo(result) });
        asked.push(requestOf(result).prompt);
        const answer = { id: requestOf(result).id, ok: false };
        result = await client.resume({ id: "a", answer });
      }
      assertEquals(asked, [login.prompt, question]);
      assertEquals(result.toolCalls.map(({ output }) => output), [`declined/expired: ${question}`]);
      assertEquals([paid.length, book.runs.length], [0, 0]);
    }
  });
}

Deno.test("under waitFor a hook asks, and then the tool, once each", async () => {
  await using server = stubLlm([calling("pay"), "Paid."]);
  const asked: string[] = [];
  const client = clientOf(server, {
    toolkit: [asking("pay")],
    hooks: { beforeTool: () => ({ result: pending({ kind: "approval", prompt: "hook?" }) }) },
    waitFor: ({ id, prompt }) => ({ id, ok: asked.push(prompt) < 3 }),
  });
  const { toolCalls } = await client.run("go");
  assertEquals([asked, toolCalls[0]?.output], [["hook?", "pay?"], "pay done"]);
});

Deno.test("what a tool shows to the human is never taken for a hook's mark", async () => {
  await using server = stubLlm([calling("pay"), "Paid."]);
  const pay = asking("pay", { data: { askedBy: "beforeTool" } });
  const client = clientOf(server, { toolkit: [pay] });
  const suspended = await client.ask("pay", { id: "a" });
  assertEquals(requestOf(suspended).data, { toolCallId: "c-pay" });
  assertEquals((await client.resume({ id: "a", answer: yesTo(suspended) })).status, "done");
});

Deno.test("only false needs no approval: an empty question is an error, and nothing is paid", async () => {
  for (const question of ["", undefined, null, 0] as unknown as string[]) {
    await using server = payingModel(20);
    const { tool, paid } = payTool(() => question);
    const { toolCalls } = await clientOf(server, { toolkit: [tool] }).run("pay");
    assertEquals([toolCalls[0]?.isError, paid.length], [true, 0]);
    assertMatch(toolCalls[0]!.output, /^prompt of a pending request must be a non-empty string/);
  }
});
