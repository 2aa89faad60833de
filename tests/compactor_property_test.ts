/** A compactor keeps calls and results together in whatever transcript it is given. */
import { assert, assertEquals, fail } from "@std/assert";
import { balanceTranscript, compactor, type Message } from "../mod.ts";
import { refusals } from "./strict.ts";
import {
  assertSame,
  forTranscripts,
  freeze,
  makeTranscript,
  SEED,
  withoutLeadingSystem,
} from "./transcripts.ts";

const STYLES = ["openai", "anthropic"] as const;
const SUMMARY = "[Summary of earlier conversation]";

/** Counts each message as one token. */
const countTokens = (messages: readonly Message[]) => messages.length;

Deno.test(`compactor() does nothing under the budget (500, seed ${SEED})`, async () => {
  const never = compactor({
    maxTokens: 1000,
    countTokens,
    summarize: () => fail("it is summarized"),
  });
  await forTranscriptsAsync(500, async (transcript) => {
    assertEquals(await never({ messages: transcript }), undefined);
  });
});

Deno.test(`compactor() orphans no call and no result of any transcript (2,000, seed ${SEED})`, async () => {
  let compacted = 0;
  await forTranscriptsAsync(2000, async (transcript, style, { ids, mixed }, keepTail) => {
    const older: Message[] = [];
    const beforeLLM = compactor({
      countTokens,
      maxTokens: Math.max(keepTail, 1),
      keepTail,
      summarize: (messages) => `${older.push(...messages.filter(isNoSummary))} messages`,
    });
    const result = await beforeLLM({ messages: transcript });
    if (result === undefined) return;
    compacted++;
    const { messages } = result;
    const system = transcript[0]!.role === "system" ? 1 : 0;
    const tail = messages.slice(system + 1);
    // Nothing is lost and nothing is touched: head, older part and tail are the transcript.
    assertSame([...messages.slice(0, system), ...older, ...tail], transcript);
    assertEquals(tail[0]!.role, "user");
    for (const part of [messages, older]) {
      const balanced = balanceTranscript(part, style);
      assertEquals(balanced.report, { closedCalls: [], droppedResults: [] });
      assertSame(balanced.messages, part);
      // Foreign messages and odd ids are put right when a request is written.
      if (mixed || ids !== "unique") continue;
      assertEquals(refusals(style, withoutLeadingSystem(style, part)), []);
    }
  });
  assert(compacted > 500, `only ${compacted} transcripts were long enough`);
});

function isNoSummary({ content }: Message): boolean {
  return typeof content !== "string" || !content.startsWith(SUMMARY);
}

/** Runs a check on transcripts of both styles, and on mixed ones. */
async function forTranscriptsAsync(
  count: number,
  check: (
    transcript: readonly Message[],
    style: (typeof STYLES)[number],
    plan: { ids: string; mixed: boolean },
    keepTail: number,
  ) => Promise<void>,
): Promise<void> {
  const checks: (() => Promise<void>)[] = [];
  forTranscripts(count, (dice, ids) => {
    const style = dice.pick(STYLES);
    const mixed = dice.once(3);
    const transcript = freeze(makeTranscript(dice, { styles: mixed ? STYLES : [style], ids }));
    const keepTail = dice.roll(12);
    checks.push(() => check(transcript, style, { ids, mixed }, keepTail));
  });
  for (const run of checks) await run();
}
