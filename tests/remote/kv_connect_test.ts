/**
 * The KV store over KV Connect, on a real `denokv` server behind a proxy that loses answers, refuses
 * for a while, and whose server is killed and started again. `denokv` is looked for in
 * `TOOLNEXUS_DENOKV`, then on the path; `cargo install denokv --locked` brings it.
 */
import { assert, assertEquals, assertGreater } from "@std/assert";
import { conversationStoreContract } from "../../src/testing/mod.ts";
import { KvConversationStore } from "../../stores/kv.ts";
import { lostOf } from "../fixtures/append.ts";
import { run } from "../fixtures/processes.ts";
import { rowsOf } from "../fixtures/kv_wrapper.ts";

const denokv = await findServer();
const token = "a-token-for-tests";
if (!denokv) console.warn("denokv is not installed: nothing of KV Connect is tested");

/** A `denokv` process on a database file that stays when it is killed. */
class Server {
  readonly #directory: string;
  readonly port: number;
  #process: Deno.ChildProcess | undefined;

  private constructor(directory: string, port: number) {
    this.#directory = directory;
    this.port = port;
  }

  static async create(): Promise<Server> {
    const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
    const { port } = listener.addr;
    listener.close();
    const server = new Server(await Deno.makeTempDir(), port);
    await server.start();
    return server;
  }

  async start(): Promise<void> {
    this.#process = new Deno.Command(denokv ?? "", {
      args: [
        ...["--sqlite-path", `${this.#directory}/test.kv`, "serve"],
        ...["--access-token", token, "--addr", `127.0.0.1:${this.port}`],
      ],
      stdout: "null",
      stderr: "null",
    }).spawn();
    for (;;) {
      try {
        (await Deno.connect({ hostname: "127.0.0.1", port: this.port })).close();
        return;
      } catch (error) {
        if (!(error instanceof Deno.errors.ConnectionRefused)) throw error;
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    }
  }

  async kill(): Promise<void> {
    this.#process?.kill("SIGKILL");
    await this.#process?.status;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
    await Deno.remove(this.#directory, { recursive: true });
  }
}

/** Stands before a server; `fate` decides about each request. */
function proxy(server: Server, fate: (path: string) => "pass" | "refuse" | "lose answer") {
  return Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, async (request) => {
    const { pathname } = new URL(request.url);
    const decision = fate(pathname);
    const body = await request.arrayBuffer();
    if (decision === "refuse") return new Response("not now", { status: 503 });
    try {
      const { method, headers } = request;
      const answer = await fetch(`http://127.0.0.1:${server.port}${pathname}`, {
        method,
        headers,
        body,
      });
      const bytes = await answer.arrayBuffer();
      if (decision === "lose answer") return new Response("lost", { status: 502 });
      return new Response(bytes, { status: answer.status, headers: answer.headers });
    } catch {
      return new Response("no server", { status: 502 });
    }
  });
}

const missing = denokv ? "" : " (not run: denokv is not installed)";

Deno.test({
  name: `the contract over KV Connect${missing}`,
  ignore: !denokv,
  fn: async (t) => {
    await using server = await Server.create();
    Deno.env.set("DENO_KV_ACCESS_TOKEN", token);
    const url = `http://127.0.0.1:${server.port}`;
    let cases = 0;
    const contract = conversationStoreContract(async () => {
      const prefix = ["case", cases++];
      const handles: Deno.Kv[] = [];
      const open = async () => {
        const kv = await Deno.openKv(url);
        handles.push(kv);
        return new KvConversationStore(kv, { prefix });
      };
      return {
        store: await open(),
        reopen: open,
        close: () => handles.forEach((kv) => kv.close()),
      };
    }, { abilities: ["base", "delete", "list", "reopen"], validates: true });
    for (const { name, run } of contract) await t.step(name, run);
  },
});

Deno.test({
  name:
    `1,000 turns of four processes over KV Connect, through lost answers and a restart${missing}`,
  ignore: !denokv,
  fn: async () => {
    await using server = await Server.create();
    Deno.env.set("DENO_KV_ACCESS_TOKEN", token);
    let commits = 0, lost = 0, refused = 0;
    let refusing = false;
    await using front = proxy(server, (path) => {
      if (refusing) {
        refused++;
        return "refuse";
      }
      if (!path.endsWith("atomic_write") || ++commits % 25 !== 0) return "pass";
      lost++;
      return "lose answer";
    });
    const url = `http://127.0.0.1:${front.addr.port}`;
    using kv = await Deno.openKv(url);
    const store = new KvConversationStore(kv);
    const length = async () => {
      for await (const { messageCount } of store.list()) return messageCount;
      return 0;
    };

    const start = performance.now();
    const writers = ["anna", "bert", "cleo", "dana"];
    const options = { permissions: ["--allow-net", "--allow-env"] };
    const appends = Promise.all(
      writers.map((writer) => run("kv_append", [url, "chat", writer, "250"], options)),
    );
    const reaches = async (count: number) => {
      while (await length() < count) await new Promise((resolve) => setTimeout(resolve, 50));
    };
    const trouble = (async () => {
      await reaches(250);
      await server.kill();
      await new Promise((resolve) => setTimeout(resolve, 1000));
      await server.start();
      await reaches(500);
      refusing = true;
      await new Promise((resolve) => setTimeout(resolve, 1500));
      refusing = false;
      await reaches(750);
      await server.kill();
      await server.start();
    })();
    const [conflicts] = await Promise.all([appends, trouble]);
    const seconds = ((performance.now() - start) / 1000).toFixed(1);
    console.log(
      `4 × 250 appends: ${seconds} s, ${commits} commits, ${lost} answers lost, ${refused} requests ` +
        `refused, conflicts ${conflicts.map((text) => text.trim())}`,
    );
    assertGreater(lost, 20);
    assertGreater(refused, 0);

    assertEquals(lostOf(await store.get("chat"), writers, 250), []);
  },
});

Deno.test({
  name: `large saves over KV Connect whose answers are all lost once are done once${missing}`,
  ignore: !denokv,
  fn: async () => {
    await using server = await Server.create();
    Deno.env.set("DENO_KV_ACCESS_TOKEN", token);
    let commits = 0;
    await using front = proxy(
      server,
      (path) => path.endsWith("atomic_write") && commits++ % 2 === 0 ? "lose answer" : "pass",
    );
    using kv = await Deno.openKv(`http://127.0.0.1:${front.addr.port}`);
    const store = new KvConversationStore(kv);
    const message = (letter: string) => ({ role: "user", content: letter.repeat(1_500_000) });
    const first = [message("a")];
    await store.save("chat", first, []);
    const second = [...first, message("b")];
    await store.save("chat", second, first);
    await store.save("chat", [...second, { role: "user", content: "c" }], second);
    const lengths = (await store.get("chat"))?.map(({ content }) => String(content).length);
    assertEquals(lengths, [1_500_000, 1_500_000, 1]);
    assert(commits > 10);
    assertEquals(await store.sweep({ graceMs: 0 }), 0);
    assertEquals((await rowsOf(kv)).length, 1 + 51 + 1);
  },
});

async function findServer(): Promise<string | undefined> {
  for (const command of [Deno.env.get("TOOLNEXUS_DENOKV"), "denokv"]) {
    if (!command) continue;
    try {
      const server = new Deno.Command(command, {
        args: ["--help"],
        stdout: "null",
        stderr: "null",
      });
      if ((await server.output()).success) return command;
    } catch (error) {
      if (!(error instanceof Deno.errors.NotFound)) throw error;
    }
  }
  return undefined;
}
