/**
 * The standard input and output of a child process, as a transport of the MCP client.
 *
 * @module
 */

import type { LocalServer } from "./mcp_config.ts";
import type { JSONRPCMessage, Transport } from "./mcp_package.ts";

/** A message longer than this ends the connection. */
export const MAX_MESSAGE_BYTES = 16 * 1_048_576;

/** How long a server may take to end by itself, and then to end when it is told to. */
const GRACE_MS = 1_500;

/** How long its output may stay open after it has ended, while a child of its own holds it. */
const DRAIN_MS = 500;

/** How much of what it said on its standard error is kept. */
const MAX_STDERR = 2_000;

const COLOUR = new RegExp(`${String.fromCharCode(27)}\\[[0-9;]*m`, "g");

/**
 * Runs a server. Needs `--allow-run` of its command and nothing else. Where a process group may be
 * signalled, the server gets one of its own, and what it has started itself is ended with it: that
 * takes `--allow-run` of every command, or of `kill` too (`--allow-run=npx,kill`).
 */
export class StdioTransport implements Transport {
  onclose?: (() => void) | undefined;
  onerror?: ((error: Error) => void) | undefined;
  onmessage?: Transport["onmessage"];

  readonly #server: LocalServer;
  #child: Deno.ChildProcess | undefined;
  #signalGroup: SignalGroup | undefined;
  #input: WritableStreamDefaultWriter<Uint8Array> | undefined;
  #output: ReadableStreamDefaultReader<Uint8Array> | undefined;
  #errors: ReadableStreamDefaultReader<Uint8Array> | undefined;
  /** Settles when the server has ended and nothing holds its output any more. */
  #over: Promise<unknown> = Promise.resolve();
  #closing: Promise<void> | undefined;
  #stderr = "";
  #exit: string | undefined;
  #fault: Error | undefined;

  /** Nothing runs before `start`. */
  constructor(server: LocalServer) {
    this.#server = server;
  }

  /** The process id, while there is one. `pid` and `stderr` tell the client that this is no HTTP. */
  get pid(): number | null {
    return this.#child?.pid ?? null;
  }

  /** The end of what the server said on its standard error. */
  get stderr(): string {
    return this.#stderr.replace(COLOUR, "").trim();
  }

  /** How the server ended, once it has. */
  get exit(): string | undefined {
    return this.#exit;
  }

  /** What it did that ended the connection. */
  get fault(): Error | undefined {
    return this.#fault;
  }

  /** Starts the server; does nothing when it has been started. */
  // deno-lint-ignore require-await
  async start(): Promise<void> {
    if (this.#child !== undefined) return;
    const { command, args, env, clearEnv, cwd } = this.#server;
    this.#signalGroup = groupSignaller();
    const child = new Deno.Command(command, {
      args,
      env,
      clearEnv,
      ...cwd === undefined ? {} : { cwd },
      detached: this.#signalGroup !== undefined,
      stdin: "piped",
      stdout: "piped",
      stderr: "piped",
    }).spawn();
    this.#child = child;
    this.#input = child.stdin.getWriter();
    this.#input.closed.catch(() => {}); // a pipe that breaks is told by the output's end
    this.#output = child.stdout.getReader();
    this.#errors = child.stderr.getReader();
    const read = this.#readMessages(this.#output);
    const readErrors = this.#readErrors(this.#errors);
    const ended = child.status.then(({ code, signal }) => {
      this.#exit = signal === null ? `exit code ${code}` : signal;
    });
    this.#over = Promise.all([read, readErrors, ended]);
    void Promise.race([read, ended.then(() => within(read, DRAIN_MS))]).then(() =>
      this.close(DRAIN_MS)
    );
  }

  /** Writes one message. A failure is told when it is known how the server ended. */
  async send(message: JSONRPCMessage): Promise<void> {
    if (this.#input === undefined || this.#closing !== undefined) {
      throw new Error("the server's input is closed");
    }
    try {
      await this.#input.write(new TextEncoder().encode(`${JSON.stringify(message)}\n`));
    } catch (error) {
      // A pipe breaks when the server ends: how it ended says more.
      await within(this.#over, DRAIN_MS);
      throw error;
    }
  }

  /**
   * Ends the server: closes its input and waits, then tells it to end and waits, then kills it.
   *
   * @param graceMs milliseconds of either wait
   */
  close(graceMs: number = GRACE_MS): Promise<void> {
    this.#closing ??= this.#end(graceMs);
    return this.#closing;
  }

  async #end(graceMs: number): Promise<void> {
    if (this.#child !== undefined) {
      this.#input?.close().catch(() => {});
      if (!await within(this.#over, graceMs)) {
        this.#signal("SIGTERM");
        await within(this.#over, graceMs);
      }
      this.#signal("SIGKILL"); // also what the server left behind in its group
      await within(this.#child.status, graceMs + DRAIN_MS);
      await within(this.#over, DRAIN_MS);
      // What escaped the group may hold these open.
      await Promise.allSettled([
        this.#output?.cancel(),
        this.#errors?.cancel(),
        this.#input?.abort(),
      ]);
    }
    this.onclose?.();
  }

  #signal(signal: Deno.Signal): void {
    const child = this.#child;
    try {
      if (child === undefined) return;
      if (this.#signalGroup !== undefined) this.#signalGroup(child.pid, signal);
      else child.kill(signal);
    } catch { /* it has ended */ }
  }

  async #readMessages(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<void> {
    let pieces: Uint8Array[] = [];
    let length = 0;
    try {
      while (true) {
        const { done, value } = await reader.read();
        if (done) return;
        let start = 0;
        for (let end; (end = value.indexOf(10, start)) >= 0; start = end + 1) {
          pieces.push(value.subarray(start, end));
          this.#receive(pieces);
          pieces = [];
          length = 0;
        }
        if (start === value.length) continue;
        pieces.push(value.subarray(start));
        length += value.length - start;
        if (length > MAX_MESSAGE_BYTES) {
          throw new Error(`a message is longer than ${MAX_MESSAGE_BYTES} bytes`);
        }
      }
    } catch (error) {
      this.#fault = asError(error);
      this.onerror?.(this.#fault);
      await reader.cancel().catch(() => {});
      void this.close(0);
    }
  }

  /** One line. Servers print all sorts of things here; what is no message is passed over. */
  #receive(pieces: readonly Uint8Array[]): void {
    const decoder = new TextDecoder();
    const text = pieces.map((piece) => decoder.decode(piece, { stream: true })).join("");
    try {
      const message: unknown = JSON.parse(text + decoder.decode());
      if (typeof message !== "object" || message === null) throw new TypeError("no message");
      this.onmessage?.(message as JSONRPCMessage);
    } catch (error) {
      if (text.trim() !== "") this.onerror?.(asError(error));
    }
  }

  async #readErrors(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<void> {
    const decoder = new TextDecoder();
    try {
      while (true) {
        const { done, value } = await reader.read();
        if (done) return;
        this.#stderr += decoder.decode(value, { stream: true });
        this.#stderr = this.#stderr.slice(-MAX_STDERR);
      }
    } catch { /* the pipe broke: there is no more to say */ }
  }
}

type SignalGroup = (pid: number, signal: Deno.Signal) => void;

/** How a process group can be signalled with the permissions that there are, if it can. */
function groupSignaller(): SignalGroup | undefined {
  const mayRun = (command: { command?: string }) =>
    Deno.permissions.querySync({ name: "run", ...command }).state === "granted";
  if (Deno.build.os === "windows") return undefined;
  if (mayRun({})) return (pid, signal) => Deno.kill(-pid, signal);
  if (!mayRun({ command: "kill" })) return undefined;
  return (pid, signal) => {
    const args = ["-s", signal.slice("SIG".length), "--", `-${pid}`];
    new Deno.Command("kill", { args, stdout: "null", stderr: "null" }).outputSync();
  };
}

/** Whether the promise settles within so many milliseconds. */
async function within(promise: Promise<unknown>, milliseconds: number): Promise<boolean> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(resolve, milliseconds, false);
  });
  try {
    return await Promise.race([promise.then(() => true, () => true), late]);
  } finally {
    clearTimeout(timer);
  }
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}
