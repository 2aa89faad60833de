// Conversations in PostgreSQL: a store of your own that loses no turn, however many machines share it.
//
//   deno run --allow-net=127.0.0.1 --allow-env --allow-sys examples/postgres_store.ts
//
// It wants a PostgreSQL on 127.0.0.1:5432, or where PGHOST, PGPORT, PGUSER and so on say, which
// `npm:postgres` reads.

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
import postgres from "npm:postgres@^3.4.9";

/**
 * The id is kept as bytes and the transcript as text: PostgreSQL's own text and jsonb hold no NUL,
 * and jsonb would forget the order of keys.
 */
export const TABLE =
  "create table if not exists conversations (id bytea primary key, messages text)";

function key(id: string): Uint8Array {
  checkConversationId(id);
  return new TextEncoder().encode(id);
}

function text(messages: readonly Message[]): string {
  return `[${encodeMessages(messages).join(",")}]`;
}

/** A table with a row per conversation. */
export function postgresStore(sql: postgres.Sql): ConversationStore {
  const read = async (id: string): Promise<string | undefined> => {
    const [row] = await sql`select messages from conversations where id = ${key(id)}`;
    return row?.messages;
  };
  return {
    async get(id) {
      const kept = await read(id);
      return kept === undefined ? null : JSON.parse(kept);
    },
    async save(id, messages, base?: readonly Message[]) {
      const next = text(messages);
      let expected = base && text(base);
      // One statement compares and writes: nobody comes in between.
      const write = () =>
        expected === undefined || expected === "[]"
          ? sql`insert into conversations values (${key(id)}, ${next})
              on conflict (id) do update set messages = excluded.messages
              where ${expected === undefined} or conversations.messages = '[]'`
          : sql`update conversations set messages = ${next}
              where id = ${key(id)} and messages = ${expected}`;
      while ((await write()).count !== 1) {
        // The same messages can be written in another way, such as with other spaces.
        expected = await read(id) ?? "[]";
        if (!equalMessages(JSON.parse(expected), base!)) throw new ConversationConflictError(id);
      }
    },
  };
}

if (import.meta.main) {
  await using server = stubLlm(({ body }) => `I was sent ${body.messages.length} message(s).`);
  const sql = postgres({ onnotice: () => {} });
  await sql.unsafe(TABLE);
  const store = postgresStore(sql);
  const client = createClient({ baseUrl: server.baseUrl, style: "openai", model: "test", store });
  const { text, messages } = await client.ask("Hello again.", { id: "thread-1" });
  console.log(text);
  console.log(`PostgreSQL keeps ${messages.length} messages: run me again.`);
  await sql.end();
}
