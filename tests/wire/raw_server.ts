// A server that is wrong on purpose, down to the byte: network chunks where the fixture puts them,
// connections that break or fall silent, answers that are no answers.

/** One piece of a body: what goes out in one network chunk, maybe after a pause. */
export interface Piece {
  bytes: Uint8Array;
  waitMs?: number;
}

/** An answer as it goes over the wire. */
export interface RawAnswer {
  status: number;
  /** `{origin}` in a value becomes the address of this server. */
  headers: Record<string, string>;
  /** With `isStream` in HTTP chunks, otherwise with a content-length. */
  pieces: Piece[];
  isStream: boolean;
  /**
   * How it ends: as it should, by a broken connection, with silence; or it does not begin: `nothing`
   * closes the connection, `never` leaves it open.
   */
  end: "whole" | "reset" | "silence" | "nothing" | "never";
}

/** A request as the server saw it. */
export interface SeenRequest {
  method: string;
  url: string;
  headers: Record<string, string>;
  // deno-lint-ignore no-explicit-any
  body: any;
  /** Milliseconds since the answer before it was finished. */
  gapMs: number;
}

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** Serves whatever `answer` gives for each request. Disposing it ends every connection. */
export class RawServer implements AsyncDisposable {
  readonly requests: SeenRequest[] = [];
  readonly #listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  readonly #answer: (request: SeenRequest) => Promise<RawAnswer>;
  readonly #open = new Set<Deno.TcpConn>();
  readonly #work = new Set<Promise<void>>();
  #lastEnd = 0;

  constructor(answer: (request: SeenRequest) => Promise<RawAnswer>) {
    this.#answer = answer;
    this.#track(this.#accept());
  }

  get origin(): string {
    return `http://127.0.0.1:${this.#listener.addr.port}`;
  }

  /** Waits until the client has let go of every connection, no longer than `ms`; those left. */
  async connectionsLeft(ms: number): Promise<number> {
    for (const end = performance.now() + ms; this.#open.size > 0 && performance.now() < end;) {
      await pause(5);
    }
    return this.#open.size;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#listener.close();
    for (const connection of this.#open) close(connection);
    while (this.#work.size > 0) await Promise.all(this.#work);
  }

  #track(work: Promise<void>): void {
    const settled = work.catch(() => {}).finally(() => this.#work.delete(settled));
    this.#work.add(settled);
  }

  async #accept(): Promise<void> {
    for await (const connection of this.#listener) {
      connection.setNoDelay(true);
      this.#open.add(connection);
      this.#track(this.#serve(connection));
    }
  }

  async #serve(connection: Deno.TcpConn): Promise<void> {
    try {
      const request = await readRequest(connection);
      if (request === undefined) return;
      const gapMs = this.#lastEnd === 0 ? 0 : performance.now() - this.#lastEnd;
      const seen = { ...request, gapMs };
      this.requests.push(seen);
      const gone = untilClosed(connection);
      try {
        await this.#respond(connection, await this.#answer(seen), gone);
      } finally {
        this.#lastEnd = performance.now();
      }
    } finally {
      close(connection);
      this.#open.delete(connection);
    }
  }

  async #respond(connection: Deno.TcpConn, answer: RawAnswer, gone: Promise<void>) {
    if (answer.end === "nothing") return;
    if (answer.end === "never") return await gone;
    const { pieces, isStream } = answer;
    const length = pieces.reduce((sum, { bytes }) => sum + bytes.length, 0);
    const head = [`HTTP/1.1 ${answer.status} -`, "connection: close"];
    head.push(isStream ? "transfer-encoding: chunked" : `content-length: ${length}`);
    for (const [name, value] of Object.entries(answer.headers)) {
      head.push(`${name}: ${value.replaceAll("{origin}", this.origin)}`);
    }
    await write(connection, encoder.encode(head.join("\r\n") + "\r\n\r\n"));
    for (const { bytes, waitMs } of pieces) {
      if (waitMs !== undefined) await pause(waitMs);
      await write(connection, isStream ? httpChunk(bytes) : bytes);
    }
    if (answer.end === "whole") {
      if (isStream) await write(connection, encoder.encode("0\r\n\r\n"));
    } else if (answer.end === "silence") await gone;
  }
}

function httpChunk(bytes: Uint8Array): Uint8Array {
  const size = encoder.encode(`${bytes.length.toString(16)}\r\n`);
  const chunk = new Uint8Array(size.length + bytes.length + 2);
  chunk.set(size);
  chunk.set(bytes, size.length);
  chunk.set([13, 10], size.length + bytes.length);
  return chunk;
}

async function readRequest(
  connection: Deno.TcpConn,
): Promise<Omit<SeenRequest, "gapMs"> | undefined> {
  let received = new Uint8Array(0);
  const buffer = new Uint8Array(65_536);
  for (;;) {
    const count = await connection.read(buffer);
    if (count === null) return undefined;
    const longer = new Uint8Array(received.length + count);
    longer.set(received);
    longer.set(buffer.subarray(0, count), received.length);
    received = longer;
    const [head, ...rest] = decoder.decode(received).split("\r\n\r\n");
    if (rest.length === 0) continue;
    const [first, ...lines] = head!.split("\r\n");
    const headers = Object.fromEntries(lines.map((line) => {
      const colon = line.indexOf(":");
      return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
    }));
    const length = Number(headers["content-length"] ?? 0);
    const start = encoder.encode(head!).length + 4;
    if (received.length < start + length) continue;
    const [method, url] = first!.split(" ");
    const text = decoder.decode(received.subarray(start, start + length));
    return { method: method!, url: url!, headers, body: JSON.parse(text) };
  }
}

async function write(connection: Deno.TcpConn, bytes: Uint8Array): Promise<void> {
  while (bytes.length > 0) bytes = bytes.subarray(await connection.write(bytes));
}

async function untilClosed(connection: Deno.TcpConn): Promise<void> {
  const buffer = new Uint8Array(16);
  try {
    while (await connection.read(buffer) !== null);
  } catch { /* reset: closed as well */ }
}

function close(connection: Deno.TcpConn): void {
  try {
    connection.close();
  } catch { /* it was */ }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
