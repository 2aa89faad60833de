// A payment behind an approval link, in three processes that need not run on one day or one machine:
// the first asks and ends, the second is the web page of the link, the third goes on with the answer.
//
//   deno run --allow-net=127.0.0.1 --allow-read=approvals --allow-write=approvals \
//     examples/approval.ts ask
//
// Then the same with `serve` (open the link, say yes or no), then with `resume`. What travels between
// them are two small pieces of JSON, here as files: send them as you like.

import { createClient, defineTool, pending, ToolnexusError } from "@toolnexus/client";
import type { Answer, PendingRequest } from "@toolnexus/client";
import { FsConversationStore } from "@toolnexus/client/stores/fs";
import { stubLlm, type StubRequest } from "@toolnexus/client/testing";

const ID = "rent";
const REQUEST = "approvals/request.json";
const ANSWER = "approvals/answer.json";

const [command, port = "8462"] = Deno.args;
const link = `http://127.0.0.1:${port}/`;

const pay = defineTool({
  name: "pay",
  description: "Pays an amount to someone",
  inputSchema: {
    type: "object",
    properties: { to: { type: "string" }, euro: { type: "number" } },
    required: ["to", "euro"],
  },
  run({ to, euro }, { answer, callId }) {
    if (answer === undefined) {
      const expiresAt = new Date(Date.now() + 7 * 24 * 3_600_000).toISOString();
      const prompt = `Pay ${euro} EUR to ${to}?`;
      return pending({ kind: "approval", prompt, url: link, data: { to, euro }, expiresAt });
    }
    // Only a yes comes so far. The call's id is the same in every process: a good payment reference.
    return `paid ${euro} EUR to ${to}, reference ${callId}`;
  },
});

/** Stands in for a model: it wants to pay, and then tells what came of it. */
function model({ body }: StubRequest) {
  const { role, content } = body.messages.at(-1)!;
  if (role === "tool") return `The rent: ${content}.`;
  return { toolCalls: [{ name: "pay", args: { to: "<Landlord & Sons>", euro: 900 } }] };
}

async function run(): Promise<void> {
  await using server = stubLlm(model);
  const { baseUrl } = server;
  const store = new FsConversationStore("approvals/conversations");
  const client = createClient({ baseUrl, style: "openai", model: "test", store, toolkit: [pay] });
  if (command === "ask") {
    const result = await client.ask("Pay the rent.", { id: ID });
    console.log(`${result.status}: ${result.toolCalls.at(-1)?.output}`);
    await write(REQUEST, result.pending);
  } else {
    const answer: Answer = await read(ANSWER);
    try {
      const result = await client.resume({ id: ID, answer });
      console.log(`${result.status}: ${result.text}`);
    } catch (error) {
      // Also an answer that comes twice: the payment is made once.
      if (!(error instanceof ToolnexusError)) throw error;
      console.log(`${error.code}: ${error.message}`);
    }
  }
}

/** Serves the page of the link until it is answered. */
async function serve(): Promise<void> {
  const request: PendingRequest = await read(REQUEST);
  const server = Deno.serve(
    { hostname: "127.0.0.1", port: Number(port), onListen: () => console.log(`open ${link}`) },
    (asked) => asked.method === "POST" ? take(asked, request) : page(request),
  );
  async function take(posted: Request, { id }: PendingRequest): Promise<Response> {
    // Another site that is open in the same browser may not answer; a real page knows its user, too.
    if (posted.headers.get("origin") !== new URL(link).origin) return text("Not from here.", 403);
    const form = await posted.formData();
    const choice = form.get("choice");
    if (form.get("id") !== id) return text("This is another request by now.", 409);
    if (choice !== "yes" && choice !== "no") return text("Yes or no?", 400);
    await write(ANSWER, { id, ok: choice === "yes" });
    console.log(`answered: ${choice}`);
    server.shutdown();
    return text(`Your answer is ${choice}. You can close this page.`);
  }
  await server.finished;
}

/** The question, as a form. Its text comes from a model: it is data, not HTML. */
function page({ id, prompt, expiresAt }: PendingRequest): Response {
  const html = `<!doctype html>
<meta charset="utf-8">
<title>Approval</title>
<h1>${escaped(prompt)}</h1>
<p>Until ${escaped(expiresAt ?? "whenever you like")}.</p>
<form method="post">
  <input type="hidden" name="id" value="${escaped(id)}">
  <button name="choice" value="yes">Yes</button>
  <button name="choice" value="no">No</button>
</form>
`;
  const frames = "frame-ancestors 'none'"; // no button of this page under somebody else's picture
  const headers = { "content-type": "text/html", "content-security-policy": frames };
  return new Response(html, { headers });
}

function text(message: string, status = 200): Response {
  return new Response(message, { status });
}

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}

async function write(path: string, value: unknown): Promise<void> {
  await Deno.writeTextFile(path, JSON.stringify(value, null, 2));
}

async function read<Type>(path: string): Promise<Type> {
  return JSON.parse(await Deno.readTextFile(path));
}

if (command === "serve") await serve();
else if (command === "ask" || command === "resume") await run();
else console.log("ask, serve or resume?");
