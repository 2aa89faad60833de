/** Turns of several processes, some of which wait for a human: each is kept, and each can be answered. */
import { assertEquals, assertRejects } from "@std/assert";
import {
  type ConversationStore,
  InMemoryConversationStore,
  type Message,
  StaleAnswerError,
} from "../mod.ts";
import { stubLlm } from "../src/testing/mod.ts";
import { asking, requestOf, resultsOf, STYLES, yesTo } from "./approval_kit.ts";
import { calling, clientOf, lines, toolOf } from "./client_kit.ts";

/** The store as another process opens it: asks through it do not wait for those of this one. */
function opened(store: ConversationStore): ConversationStore {
  return {
    get: (id) => store.get(id),
    save: (id, messages, base) => store.save(id, messages, base),
  };
}

for (const style of STYLES) {
  Deno.test(`the same prompt twice at once, by a model that counts its calls anew: both are kept (${style})`, async () => {
    const store = new InMemoryConversationStore();
    const started = Promise.withResolvers<void>();
    const gates = { first: Promise.withResolvers<void>(), second: Promise.withResolvers<void>() };
    let runs = 0;
    const asked = async (name: "first" | "second") => {
      await using server = stubLlm([calling("work"), `done by ${name}`]);
      const work = toolOf("work", async () => {
        if (++runs === 2) started.resolve();
        await gates[name].promise;
        return `work of ${name}`;
      });
      const options = {
        style,
        store: opened(store),
        checkpoint: "round",
        toolkit: [work],
      } as const;
      return await clientOf(server, options).ask("status?", { id: "a" });
    };
    const first = asked("first"), second = asked("second");
    await started.promise;
    gates.first.resolve();
    assertEquals((await first).text, "done by first");
    gates.second.resolve();
    assertEquals((await second).text, "done by second");
    assertEquals(resultsOf(await store.get("a")), [
      "c-work: work of first",
      "c-work: work of second",
    ]);
  });

  Deno.test(`a turn that was asked before saves behind no open request (${style})`, async () => {
    const store = new InMemoryConversationStore();
    const gate = Promise.withResolvers<void>();
    const isAsked = Promise.withResolvers<void>();
    await using slow = stubLlm([async () => {
      isAsked.resolve();
      await gate.promise;
      return "sunny";
    }]);
    const weather = clientOf(slow, { style, store: opened(store) }).ask("weather?", { id: "a" });
    await isAsked.promise;
    await using quick = stubLlm([calling("pay"), "Paid."]);
    const pay = asking("pay");
    const client = clientOf(quick, { style, store: opened(store), toolkit: [pay] });
    const suspended = await client.ask("pay", { id: "a" });
    gate.resolve();
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
    const gate = Promise.withResolvers<void>();
    const isAsked = Promise.withResolvers<void>();
    await using slow = stubLlm([calling("work"), async () => {
      isAsked.resolve();
      await gate.promise;
      return calling("mail");
    }, "Mailed."]);
    const mail = asking("mail"), pay = asking("pay");
    const toolkit = [toolOf("work"), mail];
    const late = clientOf(slow, { style, store: opened(store), checkpoint: "round", toolkit });
    const mailing = late.ask("mail", { id: "a" });
    await isAsked.promise;
    await using quick = stubLlm([calling("pay")]);
    const client = clientOf(quick, { style, store: opened(store), toolkit: [pay] });
    const first = await client.ask("pay", { id: "a" });
    gate.resolve();
    const second = await mailing;
    assertEquals(requestOf(second).prompt, "mail?");
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
