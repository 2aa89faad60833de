/** examples/redis_store.ts against a real Redis. */
import { assertEquals } from "@std/assert";
import { createClient as connect } from "npm:redis@^6.3.1";
import { type Redis, redisStore } from "../../examples/redis_store.ts";
import { conversationStoreContract, stubLlm } from "../../src/testing/mod.ts";
import { manyAsks } from "./many_asks.ts";
import { startRedis } from "./database_server.ts";

const server = await startRedis();
const url = `redis://127.0.0.1:${server.port}`;

Deno.test.afterAll(async () => await server[Symbol.asyncDispose]());

// The server outlives each test.
const options = { sanitizeOps: false, sanitizeResources: false };

async function open() {
  const redis = await connect({ url }).connect();
  return { redis, store: redisStore(redis as unknown as Redis) };
}

const contract = conversationStoreContract(async () => {
  const { redis, store } = await open();
  await redis.flushAll();
  const opened = [redis];
  return {
    store,
    reopen: async () => {
      const other = await open();
      opened.push(other.redis);
      return other.store;
    },
    close: () => Promise.all(opened.map((each) => each.close())),
  };
}, { abilities: ["base", "reopen"], validates: true });

for (const { name, run } of contract) Deno.test({ name: `Redis: ${name}`, fn: run, ...options });

Deno.test({
  name: "Redis: 1,000 asks of four clients on one id are all kept",
  ...options,
  async fn() {
    const opened = await Promise.all(Array.from({ length: 4 }, open));
    const kept = await manyAsks(opened.map(({ store }) => store), 250);
    assertEquals(kept, 1_000);
    for (const { redis } of opened) await redis.close();
  },
});

Deno.test({
  name: "Redis: the program of the example goes on where it was",
  ...options,
  async fn() {
    const { redis, store } = await open();
    await using llm = stubLlm(["One.", "Two."]);
    const { createClient } = await import("../../mod.ts");
    const client = () =>
      createClient({ baseUrl: llm.baseUrl, style: "openai", model: "test", store });
    await client().ask("First", { id: "thread-1" });
    const { messages } = await client().ask("Second", { id: "thread-1" });
    assertEquals(messages.map(({ content }) => content), ["First", "One.", "Second", "Two."]);
    await redis.close();
  },
});
