/** A resume and an ask of two processes on one conversation: each turn is kept, whole and once. */
import { assertEquals, assertRejects } from "@std/assert";
import { defineTool, StaleAnswerError } from "../mod.ts";
import { refusalsOf, stubLlm } from "../src/testing/mod.ts";
import { asking, callIdsOf, requestOf, resultsOf, STORES, STYLES, yesTo } from "./approval_kit.ts";
import { clientOf, lines, toolOf } from "./client_kit.ts";

for (const [kind, create] of Object.entries(STORES)) {
  // In memory the two are in one process, and wait for each other.
  if (kind === "memory") continue;
  for (const style of STYLES) {
    for (const otherStyle of STYLES) {
      for (const others of [["pay"], ["pay", "log"], ["pay", "login"], ["pay", "login", "log"]]) {
        Deno.test(`an ask while the approved tool runs (${kind}, ${style} beside ${otherStyle}: ${others})`, async () => {
          await using shared = await create();
          await using server = stubLlm(({ body }) => {
            if (lines(body.messages).at(-1)?.endsWith("meanwhile")) return "I am on it.";
            return resultsOf(body.messages).length > 0
              ? "Paid."
              : { toolCalls: others.map((name) => ({ id: `c-${name}`, name })) };
          });
          const other = clientOf(server, { style: otherStyle, store: await shared.open() });
          let paid = 0;
          const pay = defineTool({
            name: "pay",
            description: "pays",
            needsApproval: () => "Pay?",
            async run() {
              paid++;
              await other.ask("meanwhile", { id: "a" });
              return "paid";
            },
          });
          const store = await shared.open();
          const login = asking("login", { id: "pnd-login" });
          const client = clientOf(server, { style, store, toolkit: [pay, toolOf("log"), login] });
          let result = await client.ask("go", { id: "a" });
          result = await client.resume({ id: "a", answer: yesTo(result) });
          if (others.includes("login")) {
            result = await client.resume({ id: "a", answer: yesTo(result) });
          }
          assertEquals([result.status, result.text, paid], ["done", "Paid.", 1]);

          const messages = await store.get("a") ?? [];
          assertEquals(result.messages, messages);
          assertEquals(callIdsOf(messages), others.map((name) => `c-${name}`));
          assertEquals(resultsOf(messages).map((line) => line.split(":")[1]!.trim()), [
            "paid",
            ...others.slice(1).map((name) => name === "log" ? "log ran" : "login done"),
          ]);
          const texts = lines(messages).filter((line) => !/\[|ran|done|: paid/.test(line));
          assertEquals(texts.toSorted(), [
            "assistant: I am on it.",
            "assistant: Paid.",
            "user: go",
            "user: meanwhile",
          ]);
          const body = { model: "m", max_tokens: 9, messages };
          if (style === otherStyle) assertEquals(refusalsOf(style, body), []);
        });
      }
    }
  }
}

for (const style of STYLES) {
  Deno.test(`a new ask supersedes the request: later answers are stale (${style})`, async () => {
    await using server = stubLlm(({ body }) =>
      body.messages.length > 1 ? "I did not pay." : { toolCalls: [{ id: "c1", name: "pay" }] }
    );
    const pay = asking("pay");
    const client = clientOf(server, { style, toolkit: [pay] });
    const suspended = await client.ask("go", { id: "a" });
    const { status, messages } = await client.ask("forget it", { id: "a" });
    assertEquals(status, "done");
    assertEquals(resultsOf(messages), ["c1: declined/expired: pay?"]);
    const closed = JSON.stringify(messages);
    assertEquals(/"pending"/.test(closed), false);
    if (style === "anthropic") assertEquals(/"is_error":true/.test(closed), true);
    const answer = yesTo(suspended);
    await assertRejects(() => client.resume({ id: "a", answer }), StaleAnswerError);
    assertEquals(pay.runs.length, 0);
  });

  Deno.test(`a request that ran out strands nothing: the next ask goes on (${style})`, async () => {
    await using server = stubLlm(({ body }) =>
      body.messages.length > 1 ? "Too late." : { toolCalls: [{ id: "c1", name: "pay" }] }
    );
    const pay = asking("pay", { expiresAt: "2000-01-01T00:00:00Z" });
    const client = clientOf(server, { style, toolkit: [pay] });
    await client.ask("go", { id: "a" });
    const { text, messages } = await client.ask("well?", { id: "a" });
    assertEquals([text, pay.runs.length], ["Too late.", 0]);
    assertEquals(resultsOf(messages), ["c1: declined/expired: pay?"]);
  });

  Deno.test(`a new ask that suspends again makes a request of its own (${style})`, async () => {
    let call = 0;
    await using server = stubLlm(({ body }) => {
      const answered = resultsOf(body.messages).some((line) => line.endsWith("pay done"));
      return answered ? "Paid." : { toolCalls: [{ id: `c${++call}`, name: "pay" }] };
    });
    const pay = asking("pay");
    const client = clientOf(server, { style, toolkit: [pay] });
    const first = await client.ask("go", { id: "a" });
    const second = await client.ask("go on", { id: "a" });
    await assertRejects(() => client.resume({ id: "a", answer: yesTo(first) }), StaleAnswerError);
    const { text, messages } = await client.resume({ id: "a", answer: yesTo(second) });
    assertEquals([text, pay.runs.map(({ callId }) => callId)], ["Paid.", ["c2"]]);
    assertEquals(resultsOf(messages), ["c1: declined/expired: pay?", "c2: pay done"]);
  });
}

Deno.test("an ask that fails leaves the request open", async () => {
  await using server = stubLlm(({ body }) => {
    if (body.messages.length === 1) return { toolCalls: [{ id: "c1", name: "pay" }] };
    return body.messages.length === 3 ? "Paid." : { status: 500 };
  });
  const pay = asking("pay");
  const client = clientOf(server, { toolkit: [pay] });
  const suspended = await client.ask("go", { id: "a" });
  await assertRejects(() => client.ask("and?", { id: "a" }), Error, "500");
  // Nothing was completed, so nothing was saved.
  assertEquals((await client.resume({ id: "a" })).pending, requestOf(suspended));
  const { text } = await client.resume({ id: "a", answer: yesTo(suspended) });
  assertEquals([text, pay.runs.length], ["Paid.", 1]);
});

Deno.test("a tool that resumes its own conversation is told, and does not wait for ever", async () => {
  await using server = stubLlm([
    { toolCalls: [{ id: "c-pay", name: "pay" }] },
    "I could not.",
  ]);
  const client = clientOf(server);
  const pay = toolOf("pay", () => client.resume({ id: "a" }));
  const { toolCalls } = await client.ask("go", { id: "a", toolkit: [pay] });
  assertEquals(toolCalls.map(({ isError, output }) => [isError, output]), [
    [true, 'conversation "a" is waiting for the caller of this ask'],
  ]);
});
