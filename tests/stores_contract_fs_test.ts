/** The contract of conversation stores, held by the file store. */
import { conversationStoreContract } from "../src/testing/mod.ts";
import { FsConversationStore } from "../stores/fs.ts";
import { TemporaryFolder } from "./fixtures/fs_folder.ts";

const contract = conversationStoreContract(async () => {
  const folder = await TemporaryFolder.create();
  return {
    store: new FsConversationStore(folder.path),
    reopen: () => new FsConversationStore(folder.path),
    close: () => folder[Symbol.asyncDispose](),
  };
}, { abilities: ["base", "delete", "list", "reopen"], validates: true });

for (const { name, run } of contract) Deno.test(`file store: ${name}`, run);
