// Conversations in Redis: a store of your own that loses no turn, however many machines share it.
//
//   deno run --allow-net=127.0.0.1 --allow-env examples/redis_store.ts
//
// It wants a Redis on 127.0.0.1:6379. `npm:redis` reads the environment.

import {
  checkConversationId,
  ConversationConflictError,
  type ConversationStore,
  createClient,
  encodeMessages,
  equalMessages,
  type Message,
} from "@toolnexus/client";
import { stubLlm } from "@toolnexus/client/testing";
import { createClient as connect } from "npm:redis@^6.3.1";

/** What the store needs of a Redis client. */
export interface Redis {
  get(key: string): Promise<string | null>;
  eval(script: string, options: { keys: string[]; arguments: string[] }): Promise<unknown>;
}

/** Compares and sets in one step: nobody comes in between. */
const SAVE = `
  local kept = redis.call("GET", KEYS[1]) or "[]"
  if ARGV[2] and kept ~= ARGV[2] then return 0 end
  redis.call("SET", KEYS[1], ARGV[1])
  return 1`;

/** One key per conversation: `prefix` and the id, which Redis takes as bytes. */
export function redisStore(redis: Redis, prefix = "conversation:"): ConversationStore {
  const text = (messages: readonly Message[]) => `[${encodeMessages(messages).join(",")}]`;
  return {
    async get(id) {
      checkConversationId(id);
      const kept = await redis.get(prefix + id);
      return kept === null ? null : JSON.parse(kept);
    },
    async save(id, messages, base?: readonly Message[]) {
      checkConversationId(id);
      const next = text(messages);
      let expected = base && text(base);
      const write = () =>
        redis.eval(SAVE, {
          keys: [prefix + id],
          arguments: expected === undefined ? [next] : [next, expected],
        });
      while (await write() !== 1) {
        // The same messages can be written in another way, such as with other spaces.
        expected = await redis.get(prefix + id) ?? "[]";
        if (!equalMessages(JSON.parse(expected), base!)) throw new ConversationConflictError(id);
      }
    },
  };
}

if (import.meta.main) {
  await using server = stubLlm(({ body }) => `I was sent ${body.messages.length} message(s).`);
  const redis = await connect({ url: "redis://127.0.0.1:6379" }).connect();
  const store = redisStore(redis as unknown as Redis);
  const client = createClient({ baseUrl: server.baseUrl, style: "openai", model: "test", store });
  const { text, messages } = await client.ask("Hello again.", { id: "thread-1" });
  console.log(text);
  console.log(`Redis keeps ${messages.length} messages: run me again.`);
  await redis.close();
}
