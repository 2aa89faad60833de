// An edge handler: a conversation for each visitor, kept in Deno KV, the answer streamed.
//
//   deno serve --allow-net=127.0.0.1 --allow-read=chat.kv --allow-write=chat.kv --unstable-kv \
//     examples/deno_deploy.ts
//
// POST / with the prompt as the body. On Deno Deploy leave the path of Deno.openKv() and the stub
// out, and give createClient() a real endpoint.

import { createClient } from "@toolnexus/client";
import { KvConversationStore } from "@toolnexus/client/stores/kv";
import { stubLlm } from "@toolnexus/client/testing";

const server = stubLlm(({ body }) => `This conversation has ${body.messages.length} message(s).`);
// The stub is a server of its own, which would go on without the handler.
Deno.addSignalListener("SIGTERM", () => Deno.exit());
const kv = await Deno.openKv("chat.kv");
const client = createClient({
  baseUrl: server.baseUrl,
  style: "openai",
  model: "test",
  // A visitor who stays away for a month is forgotten.
  store: new KvConversationStore(kv, { expireIn: 30 * 24 * 3_600_000 }),
});

/** The visitor of a request: whoever has the cookie, or somebody new. */
function visitorOf(request: Request): { id: string; isNew: boolean } {
  const cookie = request.headers.get("cookie") ?? "";
  const known = /(?:^|; )visitor=([0-9a-f-]{36})(?:;|$)/.exec(cookie)?.[1];
  return { id: known ?? crypto.randomUUID(), isNew: known === undefined };
}

export default {
  async fetch(request: Request): Promise<Response> {
    if (request.method !== "POST") return new Response("POST a prompt\n", { status: 405 });
    const visitor = visitorOf(request);
    const prompt = await request.text();
    if (prompt.trim() === "") return new Response("POST a prompt\n", { status: 400 });
    // A visitor who goes away ends the run; what was said so far is kept.
    const events = client.stream(prompt, { id: visitor.id })[Symbol.asyncIterator]();
    const body = new ReadableStream<Uint8Array>({
      async pull(controller) {
        for (;;) {
          const { done, value } = await events.next();
          if (done) return controller.close();
          if (value.type !== "text") continue;
          return controller.enqueue(new TextEncoder().encode(value.delta));
        }
      },
      async cancel() {
        await events.return?.();
      },
    });
    const headers = new Headers({ "content-type": "text/plain; charset=utf-8" });
    if (visitor.isNew) {
      headers.set("set-cookie", `visitor=${visitor.id}; HttpOnly; Secure; SameSite=Lax; Path=/`);
    }
    return new Response(body, { headers });
  },
};
