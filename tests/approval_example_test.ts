/** examples/approval.ts as three processes, by the command and the permissions of its header. */
import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { fromFileUrl } from "@std/path";
import { Session } from "./session.ts";

const EXAMPLE = "examples/approval.ts";

Deno.test("approval.ts: asked here, approved there, paid once elsewhere", async () => {
  await using place = await Place.create();
  const asked = await place.run("ask");
  assertEquals(asked, [`pending: Pay 900 EUR to <Landlord & Sons>?`, place.link]);

  await using page = await place.start("serve");
  await page.shows(`open ${place.link}\n`);
  const html = await (await fetch(place.link)).text();
  assertStringIncludes(html, "<h1>Pay 900 EUR to &#60;Landlord &#38; Sons&#62;?</h1>");
  const [, id] = /name="id" value="(pnd-[^"]+)"/.exec(html)!;

  // What is no answer of this page's is none.
  assertEquals(await place.post({ id: id!, choice: "yes" }, "https://evil.test"), 403);
  assertEquals(await place.post({ id: "pnd-old", choice: "yes" }), 409);
  assertEquals(await place.post({ id: id!, choice: "maybe" }), 400);
  assertEquals(await place.post({ id: id!, choice: "yes" }), 200);
  assertEquals(await page.ended(), 0, page.errors);
  assertStringIncludes(page.output, "answered: yes\n");

  const [paid] = await place.run("resume");
  assertMatch(
    paid!,
    /^done: The rent: paid 900 EUR to <Landlord & Sons>, reference call_\w+\.$/,
  );
  const [again] = await place.run("resume");
  assertEquals(again, `stale_answer: no request "${id}" is open in conversation "rent"`);

  const kept = await Deno.readTextFile(`${place.folder}/approvals/conversations/rent.json`);
  assertEquals(JSON.parse(kept).map(({ role }: { role: string }) => role), [
    "user",
    "assistant",
    "tool",
    "assistant",
  ]);
  assert(!kept.includes("pnd-"), kept);
});

Deno.test("approval.ts: a no is told to the model, and nothing is paid", async () => {
  await using place = await Place.create();
  await place.run("ask");
  await using page = await place.start("serve");
  await page.shows(`open ${place.link}\n`);
  const html = await (await fetch(place.link)).text();
  const [, id] = /name="id" value="(pnd-[^"]+)"/.exec(html)!;
  assertEquals(await place.post({ id: id!, choice: "no" }), 200);
  assertEquals(await page.ended(), 0, page.errors);
  assertEquals(await place.run("resume"), [
    "done: The rent: declined/expired: Pay 900 EUR to <Landlord & Sons>?.",
  ]);
});

Deno.test("approval.ts: its page escapes what a request holds, and asks for a command", async () => {
  await using place = await Place.create();
  assertEquals(await place.run("help"), ["ask, serve or resume?"]);
  const request = { id: `"><b>`, kind: "approval", prompt: `</h1><script>alert('x')</script>` };
  await Deno.mkdir(`${place.folder}/approvals`);
  await Deno.writeTextFile(`${place.folder}/approvals/request.json`, JSON.stringify(request));
  await using page = await place.start("serve");
  await page.shows(`open ${place.link}\n`);
  const response = await fetch(place.link);
  assertEquals(response.headers.get("content-security-policy"), "frame-ancestors 'none'");
  const html = await response.text();
  assert(!html.includes("<script") && !html.includes("<b>"), html);
  assertEquals(await place.post({ id: request.id, choice: "no" }), 200);
  assertEquals(await page.ended(), 0);
});

/** A folder in which the example runs, and a free port for its page. */
class Place implements AsyncDisposable {
  readonly folder: string;
  readonly port: number;
  readonly #command: string[];

  constructor(folder: string, port: number, command: string[]) {
    this.folder = folder;
    this.port = port;
    this.#command = command;
  }

  static async create(): Promise<Place> {
    const path = fromFileUrl(new URL(`../${EXAMPLE}`, import.meta.url));
    const [header = ""] = (await Deno.readTextFile(path)).split("\n\n");
    const lines = header.replaceAll(/^\/\/ ?/gm, "").replaceAll("\\\n", " ");
    const [command = ""] = /^ *deno run .* ask$/m.exec(lines) ?? [];
    const words = command.trim().split(/\s+/).slice(1, -1);
    assertEquals(words.pop(), EXAMPLE);
    const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
    const { port } = listener.addr;
    listener.close();
    const folder = await Deno.makeTempDir({ prefix: "toolnexus-approval-" });
    return new Place(folder, port, [Deno.execPath(), ...words, "--no-prompt", path]);
  }

  get link(): string {
    return `http://127.0.0.1:${this.port}/`;
  }

  start(command: string): Session {
    const words = [...this.#command, command, `${this.port}`];
    return new Session(words, { cwd: this.folder, env: { NO_COLOR: "1" } });
  }

  /** Runs a command to its end and gives the lines that it printed. */
  async run(command: string): Promise<string[]> {
    await using session = this.start(command);
    assertEquals(await session.ended(), 0, session.errors);
    return session.output.trimEnd().split("\n");
  }

  /** Sends the form, as a browser does, and gives the status. */
  async post(form: Record<string, string>, origin = new URL(this.link).origin): Promise<number> {
    const body = new URLSearchParams(form);
    const response = await fetch(this.link, { method: "POST", body, headers: { origin } });
    await response.body?.cancel();
    return response.status;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Deno.remove(this.folder, { recursive: true });
  }
}
