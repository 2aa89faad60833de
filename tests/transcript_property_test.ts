// What holds for any transcript: made up ones, damaged ones, and hostile JSON.

import { assert, assertEquals } from "@std/assert";
import { balanceTranscript, INTERRUPTED } from "../src/transcript/balance.ts";
import { convertTranscript } from "../src/transcript/convert.ts";
import type { Message } from "../src/types.ts";
import { refusals } from "./strict.ts";
import {
  assertSame,
  damage,
  forTranscripts,
  freeze,
  makeTranscript,
  type Plan,
  SEED,
  story,
  withoutLeadingSystem,
} from "./transcripts.ts";

const STYLES = ["openai", "anthropic"] as const;
const user: Message = { role: "user", content: "hello" };

Deno.test("balanceTranscript() survives any JSON", () => {
  const hostile: unknown[] = [null, 0, "", [], {}, [null, 7, "x", [], {}], { toString: 1 }];
  const fields = ["content", "tool_calls", "function_call", "tool_call_id", "name"];
  for (const role of ["assistant", "user", "tool", "function", "system", "ghost"]) {
    for (const field of fields) {
      for (const value of hostile) {
        const inner = { type: "tool_use", id: value, name: value, input: value, function: value };
        const outer = { type: "tool_result", tool_use_id: value, content: value, is_error: value };
        for (const filling of [value, [inner], [outer], [inner, outer]]) {
          const message: Message = freeze({ role, [field]: filling });
          for (const style of STYLES) {
            const { messages } = balanceTranscript([message, user, message], style);
            assertSame(balanceTranscript(messages, style).messages, messages);
          }
        }
      }
    }
  }
});

Deno.test(`balanceTranscript() changes no valid transcript (2,000, seed ${SEED})`, () => {
  forTranscripts(2000, (dice, ids) => {
    const styles = dice.pick([["openai"], ["anthropic"], STYLES] as const);
    const transcript = freeze(makeTranscript(dice, { styles, ids }));
    const { messages, report } = balanceTranscript(transcript, dice.pick(STYLES));
    assertSame(messages, transcript);
    assertEquals(report, { closedCalls: [], droppedResults: [] });
  });
});

Deno.test(`balanceTranscript() makes damaged transcripts acceptable (2,000, seed ${SEED})`, () => {
  let mended = 0;
  forTranscripts(2000, (dice, ids) => {
    const style = dice.pick(STYLES);
    const plan = { styles: [style], ids: ids === "odd" ? "unique" : ids };
    const damaged = freeze(damage(dice, makeTranscript(dice, plan)));
    const { messages } = balanceTranscript(damaged, style);
    const refused = refusals(style, withoutLeadingSystem(style, messages))
      // Numbering ids anew in each round is for the conversion to put right.
      .filter((what) => ids !== "each round anew" || !what.includes("call id"));
    assertEquals(refused, []);
    assertSame(balanceTranscript(messages, style).messages, messages);
    if (messages.length !== damaged.length) mended++;
  });
  assert(mended > 200, `only ${mended} transcripts were damaged at all`);
});

Deno.test(`balanceTranscript() gives each call its own result (2,000, seed ${SEED})`, () => {
  forTranscripts(2000, (dice) => {
    const given = freeze(damage(dice, makeTranscript(dice, { styles: STYLES, ids: "unique" })));
    const { messages, report } = balanceTranscript(given, dice.pick(STYLES));
    const before = results(given), after = results(messages);
    const closed = new Set(report.closedCalls);
    for (const [id, texts] of after) {
      assertEquals(texts, closed.has(id) ? [INTERRUPTED] : [before.get(id)![0]]);
    }
    // A result that was there after its call is still there.
    for (const id of calledBeforeAnswered(given)) assert(!closed.has(id), `${id} lost its result`);
    // Mixed and damaged: after the conversion either provider accepts it.
    for (const style of STYLES) {
      const converted = convertTranscript(messages, style);
      assertEquals(refusals(style, withoutLeadingSystem(style, converted)), []);
      assertSame(balanceTranscript(converted, style).messages, converted);
    }
  });
});

/** The texts of the results under each id. */
function results(messages: readonly Message[]): Map<string, string[]> {
  const found = new Map<string, string[]>();
  const add = (id: unknown, content: unknown) =>
    found.set(id as string, [...found.get(id as string) ?? [], content as string]);
  for (const message of messages) {
    if (message.role === "tool") add(message.tool_call_id, message.content);
    for (const block of Array.isArray(message.content) ? message.content : []) {
      if (block.type === "tool_result") add(block.tool_use_id, block.content);
    }
  }
  return found;
}

function calledBeforeAnswered(messages: readonly Message[]): string[] {
  return [...results(messages).keys()].filter((id) => {
    const calls = messages.findIndex((message) =>
      message.role === "assistant" && JSON.stringify(message).includes(`"${id}"`)
    );
    return calls >= 0 && results(messages.slice(calls)).has(id);
  });
}

Deno.test("convertTranscript() survives any JSON and never makes an empty content", () => {
  const hostile: unknown[] = [null, 0, "", "x", [], {}, [null, 7, "x", [], {}], { toString: 1 }];
  const types = ["text", "image", "image_url", "file", "document", "tool_use", "tool_result"];
  const PAIRING = /call id|arguments|was due|no result|answered/;
  const more = ["thinking", "refusal", "reasoning", "x_tool_result", "new_kind", 5, undefined];
  for (const role of ["assistant", "user", "tool", "function", "system", "ghost"]) {
    for (const value of hostile) {
      const parts = [...types, ...more].map((type) => ({
        ...{ type, text: value, source: value, image_url: value, file: value, content: value },
        ...{ id: value, name: value, input: value, thinking: value, refusal: value },
      }));
      const extra = { tool_calls: value, function_call: value, refusal: value, audio: value };
      for (const content of [value, parts, ...parts.map((part) => [part])]) {
        for (const message of [{ role, content }, { role, content, ...extra }]) {
          for (const style of STYLES) {
            const converted = convertTranscript([user, freeze(message)], style);
            assertSame(convertTranscript(converted, style), converted);
            const paired = balanceTranscript(converted, style).messages;
            assertEquals(refusals(style, paired).filter((what) => PAIRING.test(what)), []);
            assert(
              style === "openai" ||
                converted.every(({ content }) => !Array.isArray(content) || content.length > 0),
            );
          }
        }
      }
    }
  }
});

Deno.test(`convertTranscript() keeps what is told (1,000 transcripts, seed ${SEED})`, () => {
  forTranscripts(1000, (dice, ids) => {
    const styles = dice.pick([["openai"], ["anthropic"], STYLES] as const);
    const given = freeze(makeTranscript(dice, { styles, ids }));
    const told = story(given).join("\n");
    for (const style of STYLES) {
      const converted = freeze(convertTranscript(given, style));
      assertEquals(refusals(style, withoutLeadingSystem(style, converted)), []);
      assertEquals(story(converted).join("\n"), told);
      assertSame(convertTranscript(converted, style), converted);
      assertSame(balanceTranscript(converted, style).messages, converted);
      // There and back.
      const other = style === "openai" ? "anthropic" : "openai";
      const back = convertTranscript(convertTranscript(converted, other), style);
      assertEquals(story(back).join("\n"), told);
      assertEquals(refusals(style, withoutLeadingSystem(style, back)), []);
    }
  });
});

Deno.test(`convertTranscript() changes nothing of its own style (1,000, seed ${SEED})`, () => {
  forTranscripts(1000, (dice, ids) => {
    const style = dice.pick(STYLES);
    const own = { styles: [style], ids: style === "openai" && ids !== "odd" ? ids : "unique" };
    const given = freeze(makeTranscript(dice, own as Plan));
    assertSame(convertTranscript(given, style), given);
  });
});

Deno.test(`convertTranscript() writes the start of a longer transcript the same (1,000, seed ${SEED})`, () => {
  forTranscripts(1000, (dice, ids) => {
    const given = makeTranscript(dice, { styles: STYLES, ids });
    const start = given.slice(
      0,
      given.findLastIndex(({ role, content }) =>
        role === "user" && JSON.stringify(content).includes("question")
      ),
    );
    for (const style of STYLES) {
      const shorter = convertTranscript(start, style), longer = convertTranscript(given, style);
      assertEquals(longer.slice(0, shorter.length), shorter);
    }
  });
});
