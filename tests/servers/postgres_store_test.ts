/** examples/postgres_store.ts against a real PostgreSQL. */
import { assertEquals } from "@std/assert";
import postgres from "npm:postgres@^3.4.9";
import { postgresStore, TABLE } from "../../examples/postgres_store.ts";
import { conversationStoreContract } from "../../src/testing/mod.ts";
import { manyAsks } from "./many_asks.ts";
import { startPostgres } from "./database_server.ts";

const server = await startPostgres();

Deno.test.afterAll(async () => await server[Symbol.asyncDispose]());

// The server outlives each test.
const options = { sanitizeOps: false, sanitizeResources: false };

async function open() {
  const sql = postgres({
    host: "127.0.0.1",
    port: server.port,
    username: "postgres",
    database: "postgres",
    max: 4,
    onnotice: () => {},
  });
  await sql.unsafe(TABLE);
  return { sql, store: postgresStore(sql) };
}

const contract = conversationStoreContract(async () => {
  const { sql, store } = await open();
  await sql`truncate conversations`;
  const opened = [sql];
  return {
    store,
    reopen: async () => {
      const other = await open();
      opened.push(other.sql);
      return other.store;
    },
    close: () => Promise.all(opened.map((each) => each.end())),
  };
}, { abilities: ["base", "reopen"], validates: true });

for (const { name, run } of contract) {
  Deno.test({ name: `PostgreSQL: ${name}`, fn: run, ...options });
}

Deno.test({
  name: "PostgreSQL: 1,000 asks of four clients on one id are all kept",
  ...options,
  async fn() {
    const opened = [];
    for (let index = 0; index < 4; index++) opened.push(await open());
    const kept = await manyAsks(opened.map(({ store }) => store), 250);
    assertEquals(kept, 1_000);
    for (const { sql } of opened) await sql.end();
  },
});
