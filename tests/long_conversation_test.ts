/** A conversation that runs for months: 2,000 turns on a budget of 8,000 tokens, request by request. */
import { assert, assertEquals } from "@std/assert";
import { compactor, InMemoryConversationStore, type Message } from "../mod.ts";
import { stubLlm } from "../src/testing/mod.ts";
import { calling, clientOf, toolOf } from "./client_kit.ts";

const TURNS = 2_000;
const BUDGET = 8_000;

/** What one turn adds at most, in tokens: a prompt, a tool round, an answer; see below. */
const ONE_TURN = 500;

const PADDING = "and this is what makes it long ".repeat(10);

/** Keeps the facts, as a good summary does, and drops what was said around them. */
function summarize(messages: readonly Message[]): string {
  return [...new Set(JSON.stringify(messages).match(/FACT \d+ is \w+/g))].join(", ");
}

for (const style of ["openai", "anthropic"] as const) {
  Deno.test(`a conversation of ${TURNS} turns stays within its budget (${style})`, async () => {
    let largest = 0;
    let calls = 0;
    await using server = stubLlm(({ body, text }) => {
      largest = Math.max(largest, text.length / 4);
      const { content } = body.messages.at(-1)!;
      const isAsked = JSON.stringify(content).includes("look it up");
      calls++;
      return isAsked ? calling("lookup", "clock") : `Answer: ${PADDING}`;
    });
    let summaries = 0;
    const store = new InMemoryConversationStore();
    const beforeLLM = compactor({
      maxTokens: BUDGET,
      summarize: (messages) => (summaries++, summarize(messages)),
    });
    const toolkit = [toolOf("lookup", () => PADDING), toolOf("clock")];
    const client = clientOf(server, { style, store, toolkit, hooks: { beforeLLM } });
    const facts: string[] = [];
    for (let turn = 1; turn <= TURNS; turn++) {
      let prompt = `${PADDING} ${turn}`;
      if (turn % 5 === 0) prompt = `look it up: ${prompt}`;
      if (turn % 100 === 1) prompt += `: ${facts[facts.push(`FACT ${turn} is value${turn}`) - 1]}`;
      const { status, repaired } = await client.ask(prompt, { id: "months" });
      assertEquals([status, repaired], ["done", undefined]);
    }
    assertEquals(calls, TURNS + TURNS / 5);
    assert(largest > BUDGET / 2, `the largest request has ${largest} tokens: nothing was tested`);
    assert(largest <= BUDGET + ONE_TURN, `a request of ${largest} tokens`);
    // About half of the budget makes room each time.
    assert(summaries > 10 && summaries < TURNS / 10, `${summaries} summaries`);
    const kept = JSON.stringify(await store.get("months"));
    assertEquals(facts.filter((fact) => !kept.includes(fact)), []);
    assertEquals(facts.length, TURNS / 100);
    const sent = server.requests.at(-1)!.text;
    assertEquals(facts.filter((fact) => !sent.includes(fact)), []);
  });
}
