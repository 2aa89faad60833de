/** A transcript is cut only where no call is parted from its result. */
import { assertEquals, assertThrows } from "@std/assert";
import { balanceTranscript, type Message, trimTurns } from "../mod.ts";
import { turnStarts } from "../src/transcript/turns.ts";
import { assertSame, damage, forTranscripts, freeze, makeTranscript, SEED } from "./transcripts.ts";

const STYLES = ["openai", "anthropic"] as const;
const hi: Message = { role: "user", content: "hi" };
const hello: Message = { role: "assistant", content: "hello" };
const seeded: Message = { role: "system", content: "Be brief" };

/** What each style makes of a call and its result. */
const ROUNDS = {
  openai: {
    call: (id: string): Message => ({
      role: "assistant",
      content: null,
      tool_calls: [{ id, type: "function", function: { name: "clock", arguments: "{}" } }],
    }),
    result: (id: string, mark = {}): Message => ({
      role: "tool",
      tool_call_id: id,
      content: "noon",
      ...mark,
    }),
  },
  anthropic: {
    call: (id: string): Message => ({
      role: "assistant",
      content: [{ type: "tool_use", id, name: "clock", input: {} }],
    }),
    result: (id: string, mark = {}): Message => ({
      role: "user",
      content: [{ type: "tool_result", tool_use_id: id, content: "noon", ...mark }],
    }),
  },
};

for (const style of STYLES) {
  const { call, result } = ROUNDS[style];
  const turn = [hi, call("c1"), result("c1"), hello];

  Deno.test(`trimTurns() keeps the last turns and a leading system message (${style})`, () => {
    const transcript = freeze([seeded, ...turn, ...turn, hi, hello]);
    assertSame(trimTurns(transcript, 1), [seeded, hi, hello]);
    assertSame(trimTurns(transcript, 2), [seeded, ...turn, hi, hello]);
    assertSame(trimTurns(transcript, 3), transcript);
    assertSame(trimTurns(transcript, Infinity), transcript);
  });

  Deno.test(`trimTurns() does not take an interruption for a turn (${style})`, () => {
    // The user spoke while the tool ran: its result stands behind.
    const interrupted = [hi, call("c1"), hi, result("c1"), hello];
    assertEquals(turnStarts([...interrupted, hi]), [0, 5]);
    assertSame(trimTurns([hi, hello, ...interrupted], 1), interrupted);
    // It runs still.
    const running = [hi, call("c1"), hi];
    assertSame(trimTurns([hi, hello, ...running], 1), running);
  });

  Deno.test(`trimTurns() keeps a turn that waits for a human whole (${style})`, () => {
    const mark = { pending: { id: "pnd-1", kind: "approval", prompt: "Pay?" } };
    const waiting = [hi, call("c1"), result("c1", mark)];
    const suspended = [hi, call("c1"), result("c1", mark), hi];
    assertSame(trimTurns([hi, hello, ...waiting], 1), waiting);
    assertSame(trimTurns([hi, hello, ...suspended], 1), suspended);
    // Where the model has spoken since, nobody waits any more.
    assertSame(trimTurns([...suspended, hello, hi, hello], 1), [hi, hello]);
  });

  Deno.test(`trimTurns() passes a call that was never answered (${style})`, () => {
    assertSame(trimTurns([hi, call("c1"), hi, hello, hi, hello], 2), [hi, hello, hi, hello]);
  });

  Deno.test(`trimTurns() begins no turn with a result, also not with one of no call (${style})`, () => {
    const transcript = [hi, hello, hi, result("ghost"), hello];
    assertSame(trimTurns(transcript, 1), transcript.slice(2));
  });

  Deno.test(`trimTurns() tells apart ids that come again in each round (${style})`, () => {
    const transcript = [...turn, ...turn, ...turn];
    assertEquals(turnStarts(transcript), [0, 4, 8]);
    assertSame(trimTurns(transcript, 2), [...turn, ...turn]);
  });
}

Deno.test("trimTurns() knows a user message with results and a question from a turn", () => {
  const { call } = ROUNDS.anthropic;
  const content = [
    { type: "tool_result", tool_use_id: "c1", content: "noon" },
    { type: "text", text: "And in Rome?" },
  ];
  const transcript = [hi, hello, hi, call("c1"), { role: "user", content }, hello];
  assertSame(trimTurns(transcript, 1), transcript.slice(2));
});

Deno.test("trimTurns() keeps what stands before the first turn while nothing is cut", () => {
  assertSame(trimTurns([seeded, hello, hi, hello], 1), [seeded, hello, hi, hello]);
  assertSame(trimTurns([seeded, hello, hi, hello, hi], 1), [seeded, hi]);
  assertSame(trimTurns([seeded, hello], 1), [seeded, hello]);
  assertSame(trimTurns([], 1), []);
});

Deno.test("trimTurns() refuses what is no transcript and no count", () => {
  const trim = trimTurns as (messages: unknown, count: unknown) => Message[];
  for (const messages of [undefined, "hi", {}, [hi, null], ["hi"]]) {
    assertThrows(() => trim(messages, 1), TypeError, "messages must be an array of objects");
  }
  for (const count of [0, -1, 1.5, NaN, -Infinity]) {
    assertThrows(() => trim([hi], count), RangeError, "count must be a whole number from 1");
  }
  for (const count of ["2", null, undefined]) {
    assertThrows(() => trim([hi], count), TypeError, "count must be a number");
  }
});

Deno.test(`trimTurns() parts no pair of any transcript (2,000, seed ${SEED})`, () => {
  forTranscripts(2000, (dice, ids) => {
    const styles = dice.pick([["openai"], ["anthropic"], STYLES] as const);
    const transcript = freeze(makeTranscript(dice, { styles, ids }));
    const turns = transcript.filter((message) => isPrompt(message)).length;
    assertEquals(turnStarts(transcript).length, turns);
    for (let count = 1; count <= turns + 1; count++) {
      const trimmed = trimTurns(transcript, count);
      const { messages, report } = balanceTranscript(trimmed, dice.pick(STYLES));
      assertEquals(report, { closedCalls: [], droppedResults: [] });
      assertSame(messages, trimmed);
      assertEquals(trimmed.filter(isPrompt).length, Math.min(count, turns));
    }
  });
});

Deno.test(`trimTurns() makes no damage worse (2,000, seed ${SEED})`, () => {
  forTranscripts(2000, (dice) => {
    const plan = { styles: STYLES, ids: "unique" } as const;
    const damaged = freeze(damage(dice, makeTranscript(dice, plan)));
    const before = balanceTranscript(damaged, "openai").report;
    const trimmed = trimTurns(damaged, dice.roll(4) + 1);
    const after = balanceTranscript(trimmed, "openai").report;
    const missing = (ids: readonly string[], among: readonly string[]) =>
      ids.filter((id) => !among.includes(id));
    assertEquals(missing(after.closedCalls, before.closedCalls), []);
    assertEquals(missing(after.droppedResults, before.droppedResults), []);
  });
});

function isPrompt({ role, content }: Message): boolean {
  return role === "user" &&
    !(Array.isArray(content) && content.some(({ type }) => type === "tool_result"));
}
