/** A resumed run goes on with the rounds that stand in the transcript: mended, and as they were. */
import { assertEquals } from "@std/assert";
import { balanceTranscript } from "../mod.ts";
import { stubLlm } from "../src/testing/mod.ts";
import { asking, STYLES, yesTo } from "./approval_kit.ts";
import { calling, clientOf, LedgerStore, toolOf } from "./client_kit.ts";

for (const style of STYLES) {
  for (const [what, message] of [["result", 2], ["call", 1]] as const) {
    Deno.test(`an earlier round that lost its ${what} is mended before the tool runs (${style})`, async () => {
      await using server = stubLlm([calling("mail"), calling("pay"), "Paid."]);
      const pay = asking("pay");
      const store = new LedgerStore();
      const client = clientOf(server, { style, store, toolkit: [toolOf("mail"), pay] });
      const suspended = await client.ask("go", { id: "a" });
      store.put("a", suspended.messages.toSpliced(message, 1));
      const { text, messages, repaired } = await client.resume({
        id: "a",
        answer: yesTo(suspended),
      });
      assertEquals([text, pay.runs.length], ["Paid.", 1]);
      assertEquals(repaired, {
        closedCalls: what === "result" ? ["c-mail"] : [],
        droppedResults: what === "result" ? [] : ["c-mail"],
      });
      assertEquals(balanceTranscript(messages, style).messages, messages);
    });
  }
}

Deno.test("a sibling that failed is an error still when the call beside it was approved", async () => {
  await using server = stubLlm([calling("mail", "pay"), "Paid."]);
  const mail = toolOf("mail", () => {
    throw new Error("no post today");
  });
  const client = clientOf(server, { style: "anthropic", toolkit: [mail, asking("pay")] });
  const suspended = await client.ask("go", { id: "a" });
  const { messages } = await client.resume({ id: "a", answer: yesTo(suspended) });
  const blocks = messages[2]!.content as { content: string; is_error?: boolean }[];
  assertEquals(blocks.map(({ content, is_error }) => [content, is_error]), [
    ["no post today", true],
    ["pay done", undefined],
  ]);
});
