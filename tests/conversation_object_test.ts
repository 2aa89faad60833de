/** `client.conversation()`: a conversation that lives on an object. */
import { assertEquals, assertRejects, assertThrows } from "@std/assert";
import { type Message, ProviderError, RunAbortedError, StaleAnswerError } from "../mod.ts";
import { stubLlm } from "../src/testing/mod.ts";
import { asking, yesTo } from "./approval_kit.ts";
import { calling, clientOf, eventsOf, lines, readUntil, textOf, toolOf } from "./client_kit.ts";

Deno.test("send() and stream() go on from each other, and nothing is in the client's store", async () => {
  await using server = stubLlm(["Hello", "Fine"]);
  const client = clientOf(server);
  const conversation = client.conversation();
  assertEquals((await conversation.send("hi")).text, "Hello");
  assertEquals(textOf(await eventsOf(conversation.stream("how are you?"))), "Fine");
  assertEquals(lines(conversation.messages), [
    "user: hi",
    "assistant: Hello",
    "user: how are you?",
    "assistant: Fine",
  ]);
  const store = client.conversationStore() as unknown as { list(): AsyncIterable<unknown> };
  assertEquals(await Array.fromAsync(store.list()), []);
});

Deno.test("messages is a copy, and so is what it was begun with", async () => {
  await using server = stubLlm(["ok"]);
  const history: Message[] = [
    { role: "user", content: [{ type: "text", text: "hi" }] },
    { role: "assistant", content: "hello" },
  ];
  const conversation = clientOf(server).conversation({ history });
  const begun = structuredClone(history);
  (history[0]!.content as { text: string }[])[0]!.text = "EVIL";
  history.push({ role: "user", content: "EVIL" });
  conversation.messages.push({ role: "user", content: "EVIL" });
  conversation.messages[0]!.content = "EVIL";
  assertEquals(conversation.messages, begun);
  await conversation.send("more");
  assertEquals(conversation.messages.length, 4);
  assertEquals(lines(server.requests[0]!.body.messages), [
    "user: hi",
    "assistant: hello",
    "user: more",
  ]);
});

Deno.test("sends at once wait for each other and keep whole turns", async () => {
  await using server = stubLlm(({ body }) => `re ${body.messages.at(-1)?.content}`);
  const conversation = clientOf(server).conversation();
  const prompts = Array.from({ length: 20 }, (_, index) => `p${index}`);
  await Promise.all(
    prompts.map((prompt, index) =>
      index % 2 === 0 ? conversation.send(prompt) : eventsOf(conversation.stream(prompt))
    ),
  );
  const told = lines(conversation.messages);
  assertEquals(told.length, 40);
  for (let index = 0; index < 40; index += 2) {
    assertEquals(told[index + 1], told[index]!.replace("user: ", "assistant: re "));
  }
  assertEquals(
    told.filter((line) => line.startsWith("user")).sort(),
    prompts.map((p) => `user: ${p}`).sort(),
  );
});

Deno.test("conversations do not hear each other", async () => {
  await using server = stubLlm(() => "ok");
  const client = clientOf(server);
  const [one, two] = [client.conversation(), client.conversation()];
  await Promise.all([one.send("1"), two.send("2")]);
  assertEquals([lines(one.messages)[0], lines(two.messages)[0]], ["user: 1", "user: 2"]);
});

Deno.test("a failed send leaves no half turn, so sending again is safe", async () => {
  await using server = stubLlm([{ status: 500 }, "ok"]);
  const conversation = clientOf(server).conversation();
  await assertRejects(() => conversation.send("hi"), ProviderError);
  assertEquals(conversation.messages, []);
  await conversation.send("hi");
  assertEquals(lines(conversation.messages), ["user: hi", "assistant: ok"]);
});

Deno.test("a failed send keeps the tools that ran", async () => {
  await using server = stubLlm([calling("pay"), { status: 500 }, "Paid"]);
  const conversation = clientOf(server).conversation({ toolkit: [toolOf("pay")] });
  await assertRejects(() => conversation.send("pay"), ProviderError);
  assertEquals(lines(conversation.messages), ["user: pay", "assistant: [pay]", "tool: pay ran"]);
  await conversation.send("and?");
  assertEquals(lines(conversation.messages).slice(3), ["user: and?", "assistant: Paid"]);
});

Deno.test("leaving a stream keeps what was said", async () => {
  await using server = stubLlm(["Hello there"]);
  const conversation = clientOf(server).conversation();
  await readUntil(conversation.stream("hi"), (event) => event.type === "text");
  assertEquals(lines(conversation.messages), ["user: hi", "assistant: Hell"]);
});

for (const way of ["resume", "resumeStream"] as const) {
  Deno.test(`${way}() goes on with the answer that a tool waits for, and the object keeps it`, async () => {
    await using server = stubLlm([calling("pay"), "Paid.", "Bye."]);
    const pay = asking("pay");
    const conversation = clientOf(server).conversation({ toolkit: [pay] });
    const suspended = await conversation.send("pay");
    const answer = yesTo(suspended);
    const { text } = way === "resume"
      ? await conversation.resume({ answer })
      : await conversation.resumeStream({ answer }).result;
    assertEquals([text, pay.runs.length], ["Paid.", 1]);
    await conversation.send("thanks");
    assertEquals(lines(conversation.messages), [
      "user: pay",
      "assistant: [pay]",
      "tool: pay done",
      "assistant: Paid.",
      "user: thanks",
      "assistant: Bye.",
    ]);
  });

  Deno.test(`${way}() goes on where a turn was interrupted, and says when there is nothing`, async () => {
    await using server = stubLlm([calling("pay"), { status: 500 }, "Paid."]);
    const conversation = clientOf(server).conversation({ toolkit: [toolOf("pay")] });
    const go = () => way === "resume" ? conversation.resume() : conversation.resumeStream().result;
    await assertRejects(go, StaleAnswerError);
    await assertRejects(() => conversation.send("pay"), ProviderError);
    assertEquals((await go()).text, "Paid.");
    assertEquals(lines(conversation.messages).at(-1), "assistant: Paid.");
    // A turn that is finished gives its answer again, and nobody is asked.
    assertEquals([(await go()).text, server.requests.length], ["Paid.", 3]);
  });
}

Deno.test("resume() tells onText, hears its signal, and refuses an answer that is none", async () => {
  await using server = stubLlm([calling("pay"), "Paid."]);
  const conversation = clientOf(server).conversation({ toolkit: [asking("pay")] });
  const answer = yesTo(await conversation.send("pay"));
  const signal = AbortSignal.abort();
  await assertRejects(() => conversation.resume({ answer, signal }), RunAbortedError);
  await assertRejects(() => conversation.resume({ answer: "yes" as never }), TypeError, "answer");
  let text = "";
  await conversation.resume({ answer, onText: (delta) => text += delta });
  assertEquals(text, "Paid.");
});

Deno.test("onText, and a signal of the call or of the conversation", async () => {
  await using server = stubLlm(["Hello there"]);
  const controller = new AbortController();
  const conversation = clientOf(server).conversation({ signal: controller.signal });
  let text = "";
  const result = await conversation.send("hi", { onText: (delta) => text += delta });
  assertEquals([text, result.text], ["Hello there", "Hello there"]);
  const signal = AbortSignal.abort(new Error("not now"));
  await assertRejects(() => conversation.send("more", { signal }), RunAbortedError);
  controller.abort();
  await assertRejects(() => conversation.send("more"), RunAbortedError);
  assertEquals(conversation.messages.length, 2);
});

Deno.test("reset() forgets, and the next send begins anew", async () => {
  await using server = stubLlm(() => "ok");
  const conversation = clientOf(server).conversation({ history: [{ role: "user", content: "x" }] });
  conversation.reset();
  assertEquals(conversation.messages, []);
  await conversation.send("hi");
  assertEquals(lines(conversation.messages), ["user: hi", "assistant: ok"]);
});

Deno.test("a history that is none is refused at once", () => {
  const client = clientOf({ baseUrl: "http://model.test" });
  for (const history of ["hi", {}, [null], [["a"]], [{ role: "user", content: 1n }]]) {
    assertThrows(
      () => client.conversation({ history: history as Message[] }),
      TypeError,
      "messages",
    );
  }
});
