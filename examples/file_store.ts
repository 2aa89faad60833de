// A store of your own in a few lines: one JSON file per conversation. It survives a restart.
//
//   deno run --allow-net=127.0.0.1 --allow-read=conversations --allow-write=conversations \
//     examples/file_store.ts
//
// For real use take `FsConversationStore` of "@toolnexus/client/stores/fs": it also loses no turn when
// two processes share a folder, and none that was saved when the power goes.

import { type ConversationStore, createClient, sanitize } from "@toolnexus/client";
import { stubLlm } from "@toolnexus/client/testing";

/** One JSON file per conversation under `dir`. */
export function fileStore(dir: string): ConversationStore {
  // An id comes from a caller: it must not choose a path, nor hit the file of another id. The
  // readable part does the first, the hash the second.
  const path = async (id: string) => {
    const hash = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(id));
    return `${dir}/${sanitize(id).slice(0, 60)}.${new Uint8Array(hash).toHex()}.json`;
  };
  return {
    async get(id) {
      try {
        return JSON.parse(await Deno.readTextFile(await path(id)));
      } catch (error) {
        if (error instanceof Deno.errors.NotFound) return null;
        throw error; // a file that cannot be read is no empty conversation
      }
    },
    async save(id, messages) {
      const text = JSON.stringify(messages); // as they are now, whatever the caller does next
      await Deno.mkdir(dir, { recursive: true });
      const file = await path(id);
      const draft = `${file}.${crypto.randomUUID()}`;
      await Deno.writeTextFile(draft, text);
      await Deno.rename(draft, file); // who reads meanwhile sees the old file or the new one
    },
  };
}

if (import.meta.main) {
  await using server = stubLlm(({ body }) => `I was sent ${body.messages.length} message(s).`);
  const store = fileStore("conversations");
  const client = createClient({ baseUrl: server.baseUrl, style: "openai", model: "test", store });
  const { text, messages } = await client.ask("Hello again.", { id: "../me" });
  console.log(text);
  console.log(`conversations/ keeps ${messages.length} messages: run me again.`);
}
