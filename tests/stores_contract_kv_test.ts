/** The contract of stores, kept by the KV store in memory and in a file with two handles. */
import { conversationStoreContract } from "../src/testing/mod.ts";
import { KvConversationStore } from "../stores/kv.ts";

const abilities = ["base", "delete", "list", "reopen"] as const;

const inMemory = conversationStoreContract(async () => {
  const kv = await Deno.openKv(":memory:");
  return {
    store: new KvConversationStore(kv),
    reopen: () => new KvConversationStore(kv),
    close: () => kv.close(),
  };
}, { abilities, validates: true });

const inFile = conversationStoreContract(async () => {
  const directory = await Deno.makeTempDir();
  const handles: Deno.Kv[] = [];
  const open = async () => {
    const kv = await Deno.openKv(`${directory}/test.kv`);
    handles.push(kv);
    return new KvConversationStore(kv, { expireIn: 3_600_000 });
  };
  return {
    store: await open(),
    reopen: open,
    close: async () => {
      for (const kv of handles) kv.close();
      await Deno.remove(directory, { recursive: true });
    },
  };
}, { abilities, validates: true });

for (const { name, run } of inMemory) Deno.test(`KV in memory: ${name}`, run);
for (const { name, run } of inFile) Deno.test(`KV in a file: ${name}`, run);
