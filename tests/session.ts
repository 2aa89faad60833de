/** A program run by a test as a user runs it: typed to, watched, and never left behind. */
import { assert } from "@std/assert";

/** A running program and what it has shown so far. One that hangs is killed. */
export class Session implements AsyncDisposable {
  readonly process: Deno.ChildProcess;
  output = "";
  errors = "";
  readonly #input: WritableStreamDefaultWriter<Uint8Array>;
  readonly #reading: Promise<unknown>;
  #wake = Promise.withResolvers<void>();
  #isOver = false;
  readonly #deadline = setTimeout(() => this.#kill(), 30_000);

  constructor(
    [program, ...args]: string[],
    options: Deno.CommandOptions,
    onChunk?: (chunk: string) => void,
  ) {
    const piped = { stdin: "piped", stdout: "piped", stderr: "piped" } as const;
    this.process = new Deno.Command(program!, { ...options, ...piped, args }).spawn();
    this.#input = this.process.stdin.getWriter();
    const stdout = this.#read(this.process.stdout, (chunk) => {
      this.output += chunk;
      onChunk?.(chunk);
    });
    const stderr = this.#read(this.process.stderr, (chunk) => this.errors += chunk);
    this.#reading = Promise.all([stdout, stderr]).then(() => {
      this.#isOver = true;
      this.#wake.resolve();
    });
  }

  async type(text: string): Promise<void> {
    await this.#input.write(new TextEncoder().encode(text));
  }

  async endOfInput(): Promise<void> {
    await this.#input.close();
  }

  /** Waits until the output has this. */
  async shows(expected: string | RegExp): Promise<void> {
    const isShown = () =>
      typeof expected === "string" ? this.output.includes(expected) : expected.test(this.output);
    while (!isShown()) {
      assert(!this.#isOver, `ended without showing ${expected}: ${this.output}${this.errors}`);
      await this.#wake.promise;
    }
  }

  /** The exit code, when everything is read. */
  async ended(): Promise<number> {
    await this.#reading;
    return (await this.process.status).code;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearTimeout(this.#deadline);
    this.#kill();
    await this.#input.close().catch(() => {});
    await this.#reading;
    await this.process.status;
  }

  #kill(): void {
    if (!this.#isOver) this.process.kill("SIGKILL");
  }

  async #read(stream: ReadableStream<Uint8Array>, take: (chunk: string) => void): Promise<void> {
    const decoder = new TextDecoder();
    for await (const chunk of stream) {
      take(decoder.decode(chunk, { stream: true }));
      this.#wake.resolve();
      this.#wake = Promise.withResolvers();
    }
  }
}
