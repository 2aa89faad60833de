/** Whose time runs in an MCP call, and while its server asks a human. */
import { assertEquals } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import { type Answer, createClient, type PendingRequest } from "@toolnexus/client";
import { connectMcp } from "@toolnexus/client/mcp";
import { stubLlm } from "@toolnexus/client/testing";
import { call, ourServer } from "./fixtures/mcp/kit.ts";

const timeout = 20_000;
const server = { ...ourServer("misbehaving_server.ts"), timeout };
const day = 86_400_000;

/** A human who is asked, and answers when the test does. */
function human() {
  const asked = Promise.withResolvers<PendingRequest>();
  const answer = Promise.withResolvers<Answer>();
  const waitFor = (request: PendingRequest) => {
    asked.resolve(request);
    return answer.promise;
  };
  return {
    waitFor,
    asked: asked.promise,
    async answer() {
      const { id } = await asked.promise;
      answer.resolve({ id, ok: true, data: { name: "Ann" } });
    },
  };
}

for (const toolTimeoutMs of [undefined, 1_000, timeout * 2, 30 * day]) {
  Deno.test(`a call has its server's time, and a human any: toolTimeoutMs ${toolTimeoutMs}`, async () => {
    const { waitFor, asked, answer } = human();
    await using mcp = await connectMcp({ it: server }, { waitFor });
    await using llm = stubLlm([
      { toolCalls: [{ name: "it_ask" }] },
      { toolCalls: [{ name: "it_wait" }] },
      "done",
    ]);
    using time = new FakeTime();
    const called = Promise.withResolvers<void>();
    const client = createClient({
      baseUrl: llm.baseUrl,
      style: "openai",
      model: "m",
      toolkit: mcp.tools(),
      toolTimeoutMs,
      hooks: { beforeTool: ({ name }) => name === "it_wait" ? called.resolve() : undefined },
    });
    const running = client.run("Who?");
    await asked;
    await call(mcp, "it_work"); // the progress that it reported meanwhile has been read
    await time.tickAsync(day);
    await answer();
    await called.promise;
    await time.tickAsync(timeout);
    const { toolCalls } = await running;
    assertEquals(toolCalls.map(({ output }) => output), [
      '{"action":"accept","content":{"name":"Ann"}}',
      "MCP server it, tool wait: no answer within 20000 ms",
    ]);
  });
}

Deno.test("progress that is reported while a human is asked does not let the time run", async () => {
  const { waitFor, asked, answer } = human();
  await using mcp = await connectMcp({ it: server }, { waitFor });
  using time = new FakeTime();
  const asking = call(mcp, "it_ask");
  await asked;
  await call(mcp, "it_work");
  await time.tickAsync(timeout * 2);
  await answer();
  assertEquals((await asking).isError, false);
});

Deno.test("every call that runs while a human is asked has its time afterwards", async () => {
  const { waitFor, asked, answer } = human();
  await using mcp = await connectMcp({ it: server }, { waitFor });
  using time = new FakeTime();
  const calls = [call(mcp, "it_wait"), call(mcp, "it_ask")];
  await asked;
  await time.tickAsync(timeout * 2);
  await answer();
  assertEquals((await calls[1]!).isError, false);
  await time.tickAsync(timeout);
  assertEquals((await calls[0]!).output, "MCP server it, tool wait: no answer within 20000 ms");
});

Deno.test("a question whose call was aborted is cancelled, and keeps no later call from its limit", async () => {
  const { waitFor, asked } = human();
  await using mcp = await connectMcp({ it: server }, { waitFor });
  using time = new FakeTime();
  const controller = new AbortController();
  const asking = call(mcp, "it_ask", {}, { signal: controller.signal });
  await asked;
  controller.abort(new Error("the user left"));
  assertEquals((await asking).output, "MCP server it, tool ask: the user left");
  await call(mcp, "it_work"); // the answer to the question has been sent
  assertEquals((await call(mcp, "it_answers")).output, "cancel");
  const waiting = call(mcp, "it_wait");
  await time.tickAsync(timeout);
  assertEquals((await waiting).output, "MCP server it, tool wait: no answer within 20000 ms");
});

Deno.test("a question that the server takes back keeps no call from its limit", async () => {
  const { waitFor } = human();
  await using mcp = await connectMcp({ it: server }, { waitFor });
  using time = new FakeTime();
  const waiting = [call(mcp, "it_wait")];
  assertEquals((await call(mcp, "it_withdraw")).output, "nobody answered");
  waiting.push(call(mcp, "it_wait"));
  await time.tickAsync(timeout);
  for (const { output } of await Promise.all(waiting)) {
    assertEquals(output, "MCP server it, tool wait: no answer within 20000 ms");
  }
});

Deno.test("a call that begins while a human is asked has its time", async () => {
  const { waitFor, asked, answer } = human();
  await using mcp = await connectMcp({ it: server }, { waitFor });
  using time = new FakeTime();
  const asking = call(mcp, "it_ask");
  await asked;
  const waiting = call(mcp, "it_wait");
  await time.tickAsync(timeout);
  assertEquals((await waiting).output, "MCP server it, tool wait: no answer within 20000 ms");
  await answer();
  assertEquals((await asking).isError, false);
});
