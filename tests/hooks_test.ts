/** Hooks look in on a run and change it: what is sent, what runs, what is kept. */
import { assert, assertEquals, assertRejects, assertStringIncludes } from "@std/assert";
import {
  type BeforeLLMEvent,
  type Client,
  type ClientOptions,
  HookError,
  type Hooks,
  InMemoryConversationStore,
  type Message,
} from "../mod.ts";
import { type StubLlm, stubLlm } from "../src/testing/mod.ts";
import { calling, clientOf, eventsOf, lines, toolOf } from "./client_kit.ts";

/** The system prompt and the names of the tools of a request. */
function declared(server: StubLlm, request: number): [unknown, string[]] {
  const { messages, tools = [] } = server.requests[request]!.body;
  const names = (tools as { function: { name: string } }[]).map((tool) => tool.function.name);
  return [messages[0]?.role === "system" ? messages[0].content : undefined, names];
}

Deno.test("each hook is told what happens, in order, in both ways to ask", async () => {
  const script = [calling("pay"), "done"];
  await using server = stubLlm([...script, ...script]);
  const seen: string[] = [];
  const client = clientOf(server, {
    systemPrompt: "Be brief",
    toolkit: [toolOf("pay")],
    hooks: {
      beforeLLM: ({ system, messages, tools, model, turn }) =>
        void seen.push(`before ${turn} ${model}: ${system}, ${messages.length}, ${tools[0]!.name}`),
      afterLLM: async ({ response, model, turn }) => {
        await Promise.resolve();
        const { choices } = response as { choices: { message: Message }[] };
        seen.push(`after ${turn} ${model}: ${lines([choices[0]!.message])}`);
      },
      beforeTool: ({ name, args, id, turn }) =>
        void seen.push(`tool ${turn}: ${name} ${id} ${JSON.stringify(args)}`),
      afterTool: ({ name, result, id, turn }) =>
        void seen.push(`result ${turn}: ${name} ${id} ${result.output}`),
    },
  });
  const expected = [
    "before 1 test: Be brief, 1, pay",
    "after 1 test: assistant: [pay]",
    "tool 1: pay c-pay {}",
    "result 1: pay c-pay pay ran",
    "before 2 test: Be brief, 3, pay",
    "after 2 test: assistant: done",
  ];
  await client.run("go");
  assertEquals(seen.splice(0), expected);
  await eventsOf(client.stream("go"));
  assertEquals(seen, expected);
});

Deno.test("beforeLLM changes system and tools for that request only", async () => {
  await using server = stubLlm([calling("pay"), "done"]);
  const client = clientOf(server, {
    systemPrompt: "Be brief",
    toolkit: [toolOf("pay"), toolOf("mail")],
    hooks: {
      beforeLLM: ({ turn, tools }) =>
        turn === 1 ? { system: "Be rich", tools: tools.slice(0, 1) } : undefined,
    },
  });
  await client.run("go");
  assertEquals(declared(server, 0), ["Be rich", ["pay"]]);
  assertEquals(declared(server, 1), ["Be brief", ["pay", "mail"]]);
});

Deno.test("beforeLLM takes prompt and tools away", async () => {
  await using server = stubLlm(["ok"]);
  const client = clientOf(server, {
    systemPrompt: "Be brief",
    toolkit: [toolOf("pay")],
    hooks: { beforeLLM: () => ({ system: "", tools: [] }) },
  });
  await client.run("go");
  assertEquals(Object.keys(server.requests[0]!.body).sort(), ["messages", "model"]);
  assertEquals(declared(server, 0), [undefined, []]);
});

Deno.test("a rewritten transcript is sent, goes on, and is what is saved", async () => {
  await using server = stubLlm([calling("pay"), "done", "more"]);
  const store = new InMemoryConversationStore();
  await store.save("a", [{ role: "user", content: "old" }, {
    role: "assistant",
    content: "older",
  }]);
  const summary: Message = { role: "user", content: "[summary]" };
  const client = clientOf(server, {
    store,
    toolkit: [toolOf("pay")],
    hooks: {
      beforeLLM: ({ messages }) =>
        messages[0]?.content === "old" ? { messages: [summary, ...messages.slice(2)] } : undefined,
    },
  });
  const { messages } = await client.ask("my card is 1234", { id: "a" });
  const told = [
    "user: [summary]",
    "user: my card is 1234",
    "assistant: [pay]",
    "tool: pay ran",
    "assistant: done",
  ];
  assertEquals(lines(server.requests[1]!.body.messages), told.slice(0, 4));
  assertEquals([lines(messages), lines(await store.get("a"))], [told, told]);
  await client.ask("more", { id: "a" });
  assertEquals(lines(await store.get("a")), [...told, "user: more", "assistant: more"]);
});

for (const style of ["openai", "anthropic"] as const) {
  Deno.test(`a hook that trims anywhere leaves a transcript that can be sent (${style})`, async () => {
    await using server = stubLlm([calling("pay"), "done", "more", "again"]);
    const trim = ({ messages }: BeforeLLMEvent) => ({ messages: messages.slice(-3) });
    const client = clientOf(server, {
      style,
      toolkit: [toolOf("pay")],
      hooks: { beforeLLM: trim },
    });
    await client.ask("go", { id: "a" });
    // The last three begin with a result whose call was cut off.
    await client.ask("more", { id: "a" });
    await client.ask("again", { id: "a" });
  });
}

Deno.test("a hook that works on what it is given, in place, loses no turn", async () => {
  await using server = stubLlm(() => "ok");
  const store = new InMemoryConversationStore();
  const client = clientOf(server, {
    store,
    hooks: {
      beforeLLM: ({ messages }) => {
        (messages as Message[]).push({ role: "user", content: "EVIL" });
        (messages as Message[]).shift();
      },
    },
  });
  for (const prompt of ["1", "2", "3"]) await client.ask(prompt, { id: "a" });
  const told = lines(await store.get("a"));
  assertEquals(told.filter((line) => line.startsWith("user")), ["user: 1", "user: 2", "user: 3"]);
});

Deno.test("a hook that gives what is no transcript fails the run by its name", async () => {
  await using server = stubLlm(() => "ok");
  for (const messages of ["hi", "", null, 5, {}, [null], ["hi"], [{ role: "user", content: 1n }]]) {
    const hooks = { beforeLLM: () => ({ messages }) } as unknown as Hooks;
    const client = clientOf(server, { hooks });
    const error = await assertRejects(() => client.ask("go", { id: "a" }), HookError, "beforeLLM");
    assertEquals(error.code, "hook_failed");
    assertEquals(await client.conversationStore().get("a"), null);
  }
  assertEquals(server.requests.length, 0);
});

Deno.test("what a hook gave is its own again: changing it later changes nothing", async () => {
  await using server = stubLlm(["one", "two"]);
  const kept: Message[] = [{ role: "user", content: "kept" }];
  const client = clientOf(server, { hooks: { beforeLLM: () => ({ messages: kept }) } });
  const { messages } = await client.run("go");
  kept[0]!.content = "EVIL";
  kept.push({ role: "user", content: "EVIL" });
  assertEquals(lines(messages), ["user: kept", "assistant: one"]);
  assertEquals(lines((await client.run("go")).messages).length, 3);
});

Deno.test("beforeTool changes the arguments: the tool and the record have them", async () => {
  await using server = stubLlm([{ toolCalls: [{ name: "pay", args: { amount: 900 } }] }, "done"]);
  let paid: unknown;
  const client = clientOf(server, {
    toolkit: [toolOf("pay", (args) => paid = args)],
    hooks: { beforeTool: ({ args }) => ({ args: { ...args, amount: 9 } }) },
  });
  const { toolCalls } = await client.run("go");
  assertEquals([paid, toolCalls[0]!.args], [{ amount: 9 }, { amount: 9 }]);
});

Deno.test("beforeTool answers a call: the tool does not run, the model is told", async () => {
  await using server = stubLlm([calling("pay", "mail"), "done"]);
  let runs = 0;
  const client = clientOf(server, {
    toolkit: [toolOf("pay", () => ++runs), toolOf("mail")],
    hooks: {
      beforeTool: ({ name }) =>
        name === "pay" ? { result: { output: "denied by policy", isError: true } } : undefined,
    },
  });
  const { toolCalls } = await client.run("go");
  assertEquals(runs, 0);
  assertEquals(toolCalls.map(({ output, isError }) => [output, isError]), [
    ["denied by policy", true],
    ["mail ran", false],
  ]);
});

Deno.test("afterTool redacts: the model, the transcript and the record have the new result", async () => {
  await using server = stubLlm([calling("read"), "done"]);
  const client = clientOf(server, {
    toolkit: [toolOf("read", () => "secret 1234")],
    hooks: {
      afterTool: ({ result }) => ({
        result: { ...result, output: result.output.replace("1234", "****") },
      }),
    },
  });
  const { toolCalls, messages } = await client.ask("go", { id: "a" });
  assertEquals(toolCalls[0]!.output, "secret ****");
  const everywhere = JSON.stringify([server.requests.map(({ text }) => text), messages]);
  assert(!everywhere.includes("1234"));
  assertStringIncludes(everywhere, "****");
});

Deno.test("a hook's result is taken like a tool's: the model always gets a text", async () => {
  const rows: [unknown, string, boolean][] = [
    ["denied", "denied", false],
    [{ denied: true }, '{"denied":true}', false],
    [{ output: "denied", isError: true }, "denied", true],
  ];
  for (const hook of ["beforeTool", "afterTool"] as const) {
    for (const [result, output, isError] of rows) {
      await using server = stubLlm([calling("pay"), "done"]);
      const hooks = { [hook]: () => ({ result }) } as unknown as Hooks;
      const { toolCalls } = await clientOf(server, { toolkit: [toolOf("pay")], hooks }).run("go");
      assertEquals([toolCalls[0]!.output, toolCalls[0]!.isError], [output, isError]);
    }
  }
});

Deno.test("afterTool throws for a call that has run: the model is told, so nothing is paid twice", async () => {
  await using server = stubLlm([calling("pay"), "Let me check first"]);
  let paid = 0;
  const hooks: Hooks = {
    afterTool: () => {
      throw new Error("the log server is down");
    },
  };
  const client = clientOf(server, { toolkit: [toolOf("pay", () => ++paid)], hooks });
  const error = await assertRejects(() => client.ask("pay", { id: "a" }), HookError);
  assertEquals([paid, error.result?.toolCalls.length], [1, 1]);
  await client.ask("well?", { id: "a" });
  assertEquals(lines(server.requests[1]!.body.messages), [
    "user: pay",
    "assistant: [pay]",
    "tool: interrupted: may or may not have run",
    "user: well?",
  ]);
});

Deno.test("hooks see errors of tools too, and may mend them", async () => {
  await using server = stubLlm([calling("broken"), "done"]);
  const client = clientOf(server, {
    toolkit: [toolOf("broken", () => Promise.reject(new Error("no")))],
    hooks: {
      afterTool: ({ result }) => {
        assertEquals(result, { output: "no", isError: true });
        return { result: { output: "mended", isError: false } };
      },
    },
  });
  const { toolCalls } = await client.run("go");
  assertEquals([toolCalls[0]!.output, toolCalls[0]!.isError], ["mended", false]);
});

Deno.test("the body: own keys, then beforeLLM, requestParams, bodyTransform", async () => {
  await using server = stubLlm(["ok"]);
  const client = clientOf(server, {
    maxTokens: 100,
    requestParams: { max_tokens: 7, temperature: 0, metadata: { a: [1] } },
    bodyTransform: (body) => {
      assertEquals([body.max_tokens, body.temperature], [7, 0]);
      delete body.metadata;
      return { ...body, seed: 1 };
    },
  });
  await client.run("go");
  const { messages: _, ...rest } = server.requests[0]!.body;
  assertEquals(rest, { model: "test", max_tokens: 7, temperature: 0, seed: 1 } as typeof rest);
});

Deno.test("requestParams are copied: changing them later, or the body, changes nothing", async () => {
  await using server = stubLlm(() => "ok");
  const requestParams = { metadata: { user: "ann" } };
  const client = clientOf(server, {
    requestParams,
    bodyTransform: (body) => {
      const { metadata } = body as { metadata: { user: string; seen?: number } };
      assertEquals(metadata, { user: "ann" });
      metadata.seen = 1;
      return body;
    },
  });
  requestParams.metadata.user = "EVIL";
  await client.run("1");
  await client.run("2");
});

for (const style of ["openai", "anthropic"] as const) {
  Deno.test(`bodyTransform works on a copy: what it marks is sent and not stored (${style})`, async () => {
    await using server = stubLlm(() => "ok");
    const client = clientOf(server, {
      style,
      bodyTransform: (body) => {
        const [part] = (body.messages as Message[]).at(-1)!.content as Record<string, unknown>[];
        part!.cache_control = { type: "ephemeral" };
        return body;
      },
    });
    const ask = (text: string) => client.ask([{ type: "text", text }], { id: "a" });
    await ask("1");
    const { messages } = await ask("2");
    const marks = server.requests.map(({ text }) => text.split("cache_control").length - 1);
    assertEquals([marks, JSON.stringify(messages).includes("cache_control")], [[1, 1], false]);
  });
}

Deno.test("whoever watches by onMetric cannot end a run", async () => {
  await using server = stubLlm([calling("pay"), "done"]);
  const seen: string[] = [];
  const client = clientOf(server, {
    toolkit: [toolOf("pay")],
    onMetric: ({ event }) => {
      seen.push(event);
      throw new Error("broken");
    },
  });
  assertEquals((await client.run("go")).text, "done");
  assertEquals(seen, ["llm", "tool", "llm", "run"]);
});

/** Things that hooks and sources get wrong in the second round, each with who is named for it. */
const mistakes: Record<string, Partial<ClientOptions>> = {
  "hook beforeLLM failed: toolkit must be a Toolkit or an array of tools: {}": wrongHooks(
    "beforeLLM",
    { tools: {} },
  ),
  'hook beforeLLM failed: toolkit must be a Toolkit or an array of tools: ""': wrongHooks(
    "beforeLLM",
    { tools: "" },
  ),
  "hook beforeLLM failed: system must be a string": wrongHooks("beforeLLM", { system: 5 }),
  "hook beforeTool failed": wrongHooks("beforeTool", { result: { money: 5n } }),
  "hook afterTool failed": wrongHooks("afterTool", { result: { money: 5n } }),
  "hook bodyTransform failed": {
    bodyTransform: (body) => isSecond(body.messages as Message[]) ? { ...body, seed: 5n } : body,
  },
};

function wrongHooks(name: keyof Hooks, wrong: unknown): Partial<ClientOptions> {
  return { hooks: { [name]: ({ turn }: { turn: number }) => turn === 2 ? wrong : undefined } };
}

function isSecond(messages: readonly Message[]): boolean {
  return messages.some(({ role }) => role === "tool");
}

for (const [says, options] of Object.entries(mistakes)) {
  Deno.test(`${says}: what was paid for before is kept and handed back`, async () => {
    await using server = stubLlm(() => calling("pay"));
    const client = clientOf(server, { toolkit: [toolOf("pay")], ...options });
    await assertRoundIsKept(client, says);
  });
}

/** Fails unless the second round of an ask fails as told, and the first one is kept. */
async function assertRoundIsKept(client: Client, says: string): Promise<void> {
  const error = await assertRejects(() => client.ask("go", { id: "a" }), HookError, says);
  const round = ["user: go", "assistant: [pay]", "tool: pay ran"];
  assertEquals(lines(error.result?.messages).slice(0, 3), round);
  assertEquals(lines(await client.conversationStore().get("a")).slice(0, 3), round);
}

Deno.test("hooks may be a class", async () => {
  class Audit implements Hooks {
    readonly seen: string[] = [];
    beforeLLM() {
      this.seen.push("beforeLLM");
    }
    afterLLM() {
      this.seen.push("afterLLM");
    }
    beforeTool() {
      this.seen.push("beforeTool");
    }
    afterTool() {
      this.seen.push("afterTool");
    }
  }
  const hooks = new Audit();
  await using server = stubLlm([calling("pay"), "done"]);
  await clientOf(server, { toolkit: [toolOf("pay")], hooks }).run("go");
  const round = ["beforeLLM", "afterLLM"];
  assertEquals(hooks.seen, [...round, "beforeTool", "afterTool", ...round]);
});
