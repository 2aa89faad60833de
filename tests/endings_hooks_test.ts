/** Hooks that end a run: what was completed is saved or handed back. */
import { assertEquals, assertRejects, assertStrictEquals } from "@std/assert";

import { type Client, HookError, type Hooks, RunAbortedError } from "../mod.ts";
import { stubLlm } from "../src/testing/mod.ts";
import { calling, clientOf, clientOfFetch, lines, toolOf } from "./client_kit.ts";

/** What is stored. */
async function stored(client: Client): Promise<string[]> {
  return lines(await client.conversationStore().get("a"));
}

/** An answer that calls the tool `pay`. */
function callOfPay(): Response {
  const call = { id: "c1", type: "function", function: { name: "pay", arguments: "{}" } };
  return Response.json({ choices: [{ message: { role: "assistant", tool_calls: [call] } }] });
}

for (const hook of ["beforeLLM", "afterLLM", "beforeTool", "afterTool"] as const) {
  Deno.test(`${hook} throws in the second round: the first one is kept`, async () => {
    await using server = stubLlm(({ body }) => calling(`t${body.messages.length}`));
    const cause = new Error("no more");
    const toolkit = [toolOf("t1"), toolOf("t3")];
    const hooks: Hooks = {
      [hook]: ({ turn }: { turn: number }) => {
        if (turn === 2) throw cause;
      },
    };
    const client = clientOf(server, { hooks, toolkit });
    const error = await assertRejects(() => client.ask("go", { id: "a" }), HookError, "no more");
    assertEquals([error.code, error.message], ["hook_failed", `hook ${hook} failed: no more`]);
    assertStrictEquals(error.cause, cause);
    // A tool that has run leaves a trace, also where nobody may see what it gave.
    const hasRun = hook === "afterTool"
      ? ["assistant: [t3]", "tool: interrupted: may or may not have run"]
      : [];
    const first = ["user: go", "assistant: [t1]", "tool: t1 ran"];
    assertEquals(await stored(client), [...first, ...hasRun]);
    assertEquals(error.result?.toolCallCount, hook === "afterTool" ? 2 : 1);
  });
}

Deno.test("a hook that throws for one call loses no sibling's result", async () => {
  await using server = stubLlm([calling("pay", "mail"), "fine"]);
  const hooks: Hooks = {
    afterTool: ({ name }) => {
      if (name === "pay") throw new Error("not that");
    },
  };
  const client = clientOf(server, { hooks, toolkit: [toolOf("pay"), toolOf("mail")] });
  const { result } = await assertRejects(() => client.ask("go", { id: "a" }), HookError);
  // The host gets what the tool gave; the model and the transcript do not, for the hook has not passed it.
  assertEquals(result?.toolCalls.map(({ output }) => output), ["pay ran", "mail ran"]);
  assertEquals(lines(result?.messages), await stored(client));
  assertEquals(await stored(client), [
    "user: go",
    "assistant: [pay] [mail]",
    "tool: interrupted: may or may not have run",
    "tool: mail ran",
  ]);
  await client.ask("well?", { id: "a" });
});

Deno.test("what a tool gave is handed back when the run is ended while afterTool looks at it", async () => {
  await using server = stubLlm([calling("pay")]);
  const controller = new AbortController();
  const hooks: Hooks = {
    afterTool: () => (controller.abort(), new Promise(() => {})),
  };
  const client = clientOf(server, { hooks, toolkit: [toolOf("pay")] });
  const asked = client.ask("go", { id: "a", signal: controller.signal });
  const { result } = await assertRejects(() => asked, RunAbortedError);
  assertEquals(result?.toolCalls.map(({ output }) => output), ["pay ran"]);
  assertEquals((await stored(client)).at(-1), "tool: interrupted: may or may not have run");
});

Deno.test("an answer that afterLLM vetoes is handed back and not stored", async () => {
  await using server = stubLlm(["rude", "kind"]);
  let vetoes = 0;
  const hooks: Hooks = {
    afterLLM: () => {
      if (vetoes++ === 0) throw new Error("too rude");
    },
  };
  const client = clientOf(server, { hooks });
  const error = await assertRejects(() => client.ask("go", { id: "a" }), HookError);
  assertEquals([error.result?.text, error.result?.status], ["rude", "incomplete"]);
  assertEquals(lines(error.result?.messages), ["user: go", "assistant: rude"]);
  assertEquals(await stored(client), []);
  await client.ask("go", { id: "a" });
  assertEquals(await stored(client), ["user: go", "assistant: kind"]);
});

for (const style of ["openai", "anthropic"] as const) {
  Deno.test(`calls that afterLLM vetoes are handed back as ones that nobody ran (${style})`, async () => {
    await using server = stubLlm([{ text: "Paying.", ...calling("pay") }]);
    const hooks: Hooks = {
      afterLLM: () => {
        throw new Error("not that");
      },
    };
    let runs = 0;
    const client = clientOf(server, { style, hooks, toolkit: [toolOf("pay", () => ++runs)] });
    const { result } = await assertRejects(() => client.ask("go", { id: "a" }), HookError);
    assertEquals(lines(result?.messages), [
      "user: go",
      "assistant: Paying. [pay]",
      `${style === "openai" ? "tool" : "user"}: not executed`,
    ]);
    assertEquals([result?.text, runs, await stored(client)], ["Paying.", 0, []]);
  });
}

for (const name of ["onError", "bodyTransform"] as const) {
  Deno.test(`${name} throws: a hook error, and the round before it is kept`, async () => {
    const cause = new Error("broken");
    let calls = 0;
    const broken = (given: Record<string, unknown>) => {
      if (name === "onError" || ++calls === 2) throw cause;
      return given;
    };
    const client = clientOfFetch(
      (_, number) => number === 1 ? callOfPay() : new Response("", { status: 500 }),
      { toolkit: [toolOf("pay")], [name]: broken },
    );
    const error = await assertRejects(() => client.ask("go", { id: "a" }), HookError, name);
    assertStrictEquals(error.cause, cause);
    assertEquals(error.result?.toolCallCount, 1);
    assertEquals(await stored(client), ["user: go", "assistant: [pay]", "tool: pay ran"]);
  });
}
