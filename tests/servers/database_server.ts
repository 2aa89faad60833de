/** A database server for a test: started on a free port of the loopback, gone when it ends. */

/** A running server. */
export interface DatabaseServer extends AsyncDisposable {
  port: number;
}

/** A Redis that writes nothing to disk. */
export async function startRedis(): Promise<DatabaseServer> {
  const program = await find("redis-server", ["/usr/bin"]);
  const port = freePort();
  const options = ["--bind", "127.0.0.1", "--port", `${port}`, "--save", "", "--appendonly", "no"];
  const directory = await Deno.makeTempDir();
  const process = start([program, ...options, "--dir", directory]);
  await isListening(port, process);
  return {
    port,
    async [Symbol.asyncDispose]() {
      process.kill("SIGTERM");
      await process.status;
      await Deno.remove(directory, { recursive: true });
    },
  };
}

/** A PostgreSQL with a new cluster; the user and the database are `postgres`. */
export async function startPostgres(): Promise<DatabaseServer> {
  const folders: string[] = [];
  for await (const { name } of Deno.readDir("/usr/lib/postgresql")) {
    folders.push(`/usr/lib/postgresql/${name}/bin`);
  }
  const [initdb, postgres] = [await find("initdb", folders), await find("postgres", folders)];
  const directory = await Deno.makeTempDir();
  // It refuses to run as root.
  const asUser = Deno.uid() === 0 ? ["runuser", "-u", "postgres", "--"] : [];
  if (asUser.length > 0) await run(["chown", "postgres", directory]);
  const data = `${directory}/data`;
  await run([...asUser, initdb, "-D", data, "-U", "postgres", "--auth=trust", "--no-sync"]);
  const port = freePort();
  const options = ["-D", data, "-p", `${port}`, "-h", "127.0.0.1", "-k", "", "-F"];
  const process = start([...asUser, postgres, ...options]);
  await isListening(port, process);
  return {
    port,
    async [Symbol.asyncDispose]() {
      const [pid] = (await Deno.readTextFile(`${data}/postmaster.pid`)).split("\n");
      // A fast shutdown: it does not wait for clients.
      Deno.kill(Number(pid), "SIGINT");
      await process.status;
      await Deno.remove(directory, { recursive: true });
    },
  };
}

async function find(program: string, folders: string[]): Promise<string> {
  for (const folder of folders.toReversed()) {
    try {
      await Deno.stat(`${folder}/${program}`);
      return `${folder}/${program}`;
    } catch { /* the next one */ }
  }
  throw new Error(`${program} is not installed: apt-get install redis-server postgresql`);
}

function start([program, ...args]: string[]): Deno.ChildProcess {
  return new Deno.Command(program!, { args, stdout: "null", stderr: "null" }).spawn();
}

async function run([program, ...args]: string[]): Promise<void> {
  const { success, stderr } = await new Deno.Command(program!, { args }).output();
  if (!success) throw new Error(`${program} failed: ${new TextDecoder().decode(stderr)}`);
}

function freePort(): number {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  return listener.addr.port;
}

/** Connects until somebody answers; a server that has ended never will. */
async function isListening(port: number, process: Deno.ChildProcess): Promise<void> {
  let hasEnded = false;
  process.status.then(() => hasEnded = true);
  while (!hasEnded) {
    try {
      using _ = await Deno.connect({ hostname: "127.0.0.1", port });
      return;
    } catch {
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
  throw new Error(`the server ended before it listened on port ${port}`);
}
