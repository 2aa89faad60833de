/** Turns of several processes, some of which wait for a human: each is kept, and each can be answered. */
import { assertEquals, assertRejects } from "@std/assert";
import {
  ConversationConflictError,
  type DefinedTool,
  InMemoryConversationStore,
  type Message,
  StaleAnswerError,
} from "../mod.ts";
import { stubLlm } from "../src/testing/mod.ts";
import { asking, requestOf, resultsOf, STYLES, yesTo } from "./approval_kit.ts";
import { calling, clientOf, held, heldTool, lines, opened, toolOf } from "./client_kit.ts";

for (const style of STYLES) {
  Deno.test(`the same prompt twice at once, by a model that counts its calls anew: both are kept (${style})`, async () => {
    const store = new InMemoryConversationStore();
    const asked = async (name: string, tool: DefinedTool) => {
      await using server = stubLlm([calling("work"), `done by ${name}`]);
      const options = {
        style,
        checkpoint: "round",
        store: opened(store),
        toolkit: [tool],
      } as const;
      return await clientOf(server, options).ask("status?", { id: "a" });
    };
    const early = heldTool("work", "work of first"), late = heldTool("work", "work of second");
    const first = asked("first", early.tool), second = asked("second", late.tool);
    await Promise.all([early.runs, late.runs]);
    early.letGo();
    assertEquals((await first).text, "done by first");
    late.letGo();
    assertEquals((await second).text, "done by second");
    assertEquals(resultsOf(await store.get("a")), [
      "c-work: work of first",
      "c-work: work of second",
    ]);
  });

  Deno.test(`a turn that was asked before saves behind no open request (${style})`, async () => {
    const store = new InMemoryConversationStore();
    const sunny = held("sunny");
    await using slow = stubLlm([sunny.reply]);
    const weather = clientOf(slow, { style, store: opened(store) }).ask("weather?", { id: "a" });
    await sunny.asked;
    await using quick = stubLlm([calling("pay"), "Paid."]);
    const pay = asking("pay");
    const client = clientOf(quick, { style, store: opened(store), toolkit: [pay] });
    const suspended = await client.ask("pay", { id: "a" });
    sunny.letGo();
    const { text, messages } = await weather;
    assertEquals([text, lines(messages).slice(0, 3)], [
      "sunny",
      ["user: weather?", "assistant: sunny", "user: pay"],
    ]);
    const paid = await client.resume({ id: "a", answer: yesTo(suspended) });
    assertEquals([paid.text, pay.runs.length], ["Paid.", 1]);
    assertEquals(lines(paid.messages).slice(0, 3), lines(messages).slice(0, 3));
  });

  Deno.test(`of two turns that wait at once, the one that is saved last can be answered (${style})`, async () => {
    const store = new InMemoryConversationStore();
    const asksToMail = held(calling("mail"));
    await using slow = stubLlm([calling("work"), asksToMail.reply, "Mailed."]);
    const mail = asking("mail"), pay = asking("pay");
    const toolkit = [toolOf("work"), mail];
    const late = clientOf(slow, { style, store: opened(store), checkpoint: "round", toolkit });
    const mailing = late.ask("mail", { id: "a" });
    await asksToMail.asked;
    await using quick = stubLlm([calling("pay")]);
    const client = clientOf(quick, { style, store: opened(store), toolkit: [pay] });
    const first = await client.ask("pay", { id: "a" });
    asksToMail.letGo();
    const second = await mailing;
    assertEquals(requestOf(second).prompt, "mail?");
    assertEquals(resultsOf(await store.get("a"))[0], "c-pay: declined/expired: pay?");
    const answer = yesTo(first);
    await assertRejects(() => client.resume({ id: "a", answer }), StaleAnswerError);
    const mailed = await late.resume({ id: "a", answer: yesTo(second) });
    assertEquals([mailed.text, mail.runs.length, pay.runs.length], ["Mailed.", 1, 0]);
    assertEquals(resultsOf(mailed.messages), [
      "c-pay: declined/expired: pay?",
      "c-work: work ran",
      "c-mail: mail done",
    ]);
  });

  for (const first of ["the turn before it", "the answered turn"]) {
    Deno.test(`a request that is answered while a tool of the turn before it runs: each turn once, ${first} saved first (${style})`, async () => {
      const store = new InMemoryConversationStore();
      const asksToWork = held(calling("work")), paid = held("Paid.");
      const work = heldTool("work");
      await using slow = stubLlm([asksToWork.reply, "Worked."]);
      const options = { checkpoint: "round", store: opened(store), toolkit: [work.tool] } as const;
      const working = clientOf(slow, { style, ...options }).ask("do work", { id: "a" });
      await asksToWork.asked;
      await using quick = stubLlm([calling("pay"), paid.reply]);
      const client = clientOf(quick, { style, store: opened(store), toolkit: [asking("pay")] });
      const suspended = await client.ask("pay", { id: "a" });
      asksToWork.letGo();
      await work.runs; // its call is in the store, in front of the request
      const paying = client.resume({ id: "a", answer: yesTo(suspended) });
      await paid.asked;
      const ends = [() => (work.letGo(), working), () => (paid.letGo(), paying)];
      for (const end of first === "the answered turn" ? ends.reverse() : ends) await end();
      const kept = await store.get("a");
      assertEquals(lines(kept).filter((line) => line.startsWith("assistant:")).sort(), [
        "assistant: Paid.",
        "assistant: Worked.",
        "assistant: [pay]",
        "assistant: [work]",
      ]);
      assertEquals(resultsOf(kept).sort(), ["c-pay: pay done", "c-work: work ran"]);
    });
  }

  Deno.test(`a turn that rewrites history leaves a request that was made meanwhile alone (${style})`, async () => {
    const store = new InMemoryConversationStore();
    await store.save("a", [{ role: "user", content: "hi" }, {
      role: "assistant",
      content: "hello",
    }]);
    const asksToWork = held(calling("work"));
    await using slow = stubLlm([asksToWork.reply, "Worked."]);
    const working = clientOf(slow, {
      style,
      store: opened(store),
      checkpoint: "round",
      toolkit: [toolOf("work")],
      hooks: {
        beforeLLM: ({ messages, turn }) =>
          turn === 2
            ? { messages: [{ role: "user", content: "in short" }, ...messages.slice(2)] }
            : undefined,
      },
    }).ask("do work", { id: "a" });
    await asksToWork.asked;
    await using quick = stubLlm([calling("pay"), "Paid."]);
    const client = clientOf(quick, { style, store: opened(store), toolkit: [asking("pay")] });
    const suspended = await client.ask("pay", { id: "a" });
    asksToWork.letGo();
    const error = await assertRejects(() => working, ConversationConflictError);
    assertEquals(error.result?.text, "Worked.");
    assertEquals((await client.resume({ id: "a", answer: yesTo(suspended) })).text, "Paid.");
  });

  Deno.test(`an ask closes the request that it has read, whatever others save meanwhile (${style})`, async () => {
    const store = new InMemoryConversationStore();
    await using quick = stubLlm([calling("pay")]);
    const client = clientOf(quick, { style, store: opened(store), toolkit: [asking("pay")] });
    const suspended = await client.ask("pay", { id: "a" });
    const answer = held("Never mind.");
    await using slow = stubLlm([answer.reply]);
    const asked = clientOf(slow, { style, store: opened(store) }).ask("forget it", { id: "a" });
    await answer.asked;
    // A turn that had begun before saves in front of the request, which stays open.
    await store.save("a", [
      { role: "user", content: "hi" },
      { role: "assistant", content: "hello" },
      ...suspended.messages,
    ]);
    answer.letGo();
    assertEquals(lines((await asked).messages).slice(-2), [
      "user: forget it",
      "assistant: Never mind.",
    ]);
    assertEquals(resultsOf(await store.get("a")), ["c-pay: declined/expired: pay?"]);
  });

  Deno.test(`a turn that is gone on with, in a transcript that was mended, stands there once (${style})`, async () => {
    await using model = stubLlm([calling("work")]);
    const { messages } = await clientOf(model, { style, toolkit: [toolOf("work")], maxTurns: 1 })
      .run("first");
    const store = new InMemoryConversationStore();
    await store.save("a", [...messages.slice(0, 2), { role: "user", content: "second" }]);
    const answer = held("done");
    await using slow = stubLlm([answer.reply]);
    const resumed = clientOf(slow, { style, store: opened(store) }).resume({ id: "a" });
    await answer.asked;
    await using quick = stubLlm(["meanwhile"]);
    await clientOf(quick, { style, store: opened(store) }).ask("third", { id: "a" });
    answer.letGo();
    await resumed;
    const kept = lines(await store.get("a")).join("\n");
    for (const prompt of ["first", "second", "third"]) {
      assertEquals(kept.split(prompt).length, 2, `${prompt} in\n${kept}`);
    }
  });

  Deno.test(`a store that loses the claim loses no result, and the tool does not run again (${style})`, async () => {
    await using server = stubLlm([calling("pay"), "Paid."]);
    const store = new InMemoryConversationStore();
    let before: readonly Message[] = [];
    let runs = 0;
    const pay = {
      ...asking("pay"),
      async execute(args: Record<string, unknown>, context?: Parameters<typeof ask.execute>[1]) {
        if (context?.answer === undefined) return await ask.execute(args, context);
        runs++;
        await store.save("a", before); // a replica takes over, without the last save
        return { output: "pay done", isError: false };
      },
    };
    const ask = asking("pay");
    const client = clientOf(server, { style, store, toolkit: [pay] });
    const suspended = await client.ask("pay", { id: "a" });
    before = suspended.messages;
    const answer = yesTo(suspended);
    assertEquals((await client.resume({ id: "a", answer })).text, "Paid.");
    await assertRejects(() => client.resume({ id: "a", answer }), StaleAnswerError);
    assertEquals([resultsOf(await store.get("a")), runs], [["c-pay: pay done"], 1]);
  });
}
