/** examples/deno_deploy.ts, asked through HTTP as a browser would, and restarted in the middle. */
import { assert, assertEquals, assertMatch } from "@std/assert";
import { fromFileUrl } from "@std/path";

const EXAMPLE = fromFileUrl(new URL("../examples/deno_deploy.ts", import.meta.url));
const CONFIG = fromFileUrl(new URL("../deno.json", import.meta.url));

/** The example's own command, on a free port. */
class Deployment implements AsyncDisposable {
  readonly #process: Deno.ChildProcess;
  readonly #stderr: Promise<string>;
  readonly origin: Promise<string>;

  constructor(folder: string) {
    this.#process = new Deno.Command(Deno.execPath(), {
      args: [
        "serve",
        "--no-prompt",
        "--quiet",
        `--config=${CONFIG}`,
        "--allow-net=127.0.0.1",
        "--allow-read=chat.kv",
        "--allow-write=chat.kv",
        "--unstable-kv",
        "--host=127.0.0.1",
        `--port=${freePort(this)}`,
        EXAMPLE,
      ],
      cwd: folder,
      stdout: "null",
      stderr: "piped",
    }).spawn();
    this.#stderr = new Response(this.#process.stderr).text();
    this.origin = this.#isUp();
  }

  port = 0;

  async #isUp(): Promise<string> {
    const origin = `http://127.0.0.1:${this.port}`;
    let ended = false;
    this.#process.status.then(() => ended = true);
    while (!ended) {
      try {
        await (await fetch(origin)).body?.cancel();
        return origin;
      } catch {
        await new Promise((resolve) => setTimeout(resolve, 30));
      }
    }
    throw new Error(`the example ended: ${await this.#stderr}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#process.kill("SIGTERM");
    await this.#process.status;
    await this.#stderr;
  }
}

function freePort(deployment: Deployment): number {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  return deployment.port = listener.addr.port;
}

async function post(deployment: Deployment, prompt: string, cookie?: string) {
  const headers: HeadersInit = cookie === undefined ? {} : { cookie };
  const response = await fetch(await deployment.origin, { method: "POST", body: prompt, headers });
  return {
    status: response.status,
    text: await response.text(),
    cookie: response.headers.get("set-cookie")?.split(";")[0],
  };
}

Deno.test("deno_deploy.ts keeps a conversation for each visitor, also over a restart", async () => {
  const folder = await Deno.makeTempDir();
  try {
    let cookie: string | undefined;
    {
      await using deployment = new Deployment(folder);
      const first = await post(deployment, "Hello");
      assertEquals(first.text, "This conversation has 1 message(s).");
      cookie = first.cookie;
      assertMatch(cookie ?? "", /^visitor=[0-9a-f-]{36}$/);
      const again = await post(deployment, "Hello again", cookie);
      assertEquals([again.text, again.cookie], ["This conversation has 3 message(s).", undefined]);
      const stranger = await post(deployment, "Who are you?");
      assertEquals(stranger.text, "This conversation has 1 message(s).");
      assert(stranger.cookie !== cookie);
    }
    await using deployment = new Deployment(folder);
    assertEquals(
      (await post(deployment, "Still there?", cookie)).text,
      "This conversation has 5 message(s).",
    );
    const empty = await post(deployment, "", cookie);
    assertEquals([empty.status, empty.text], [400, "POST a prompt\n"]);
    // A cookie that is no visitor's makes a new one: it chooses no conversation.
    const forged = await post(deployment, "Hello", "visitor=../../etc/passwd");
    assertEquals(forged.text, "This conversation has 1 message(s).");
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});
