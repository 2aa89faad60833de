/**
 * Remote MCP servers: what is asked of their transports.
 *
 * @module
 */

import { MAX_MESSAGE_BYTES } from "./mcp_stdio.ts";

/** The options of a remote transport. The client itself follows no redirect to another origin. */
export interface RemoteOptions {
  requestInit: RequestInit;
  fetch: (url: string | URL, init?: RequestInit) => Promise<Response>;
  reconnectionOptions: {
    initialReconnectionDelay: number;
    maxReconnectionDelay: number;
    reconnectionDelayGrowFactor: number;
    maxRetries: number;
  };
}

/**
 * How a remote transport of the server is to be set up, given the headers with their values. The signal
 * ends what a transport leaves behind, such as the body of an answer that it does not read.
 */
export function remoteOptions(
  headers: Readonly<Record<string, string>>,
  life: AbortSignal,
): RemoteOptions {
  return {
    requestInit: { headers: { ...headers } },
    fetch: async (url, init) => {
      const signal = init?.signal ? AbortSignal.any([init.signal, life]) : life;
      return bounded(await fetch(url, { ...init, signal }).catch(explain));
    },
    reconnectionOptions: {
      initialReconnectionDelay: 500,
      maxReconnectionDelay: 10_000,
      reconnectionDelayGrowFactor: 2,
      maxRetries: 5,
    },
  };
}

/**
 * Whether a refused streamable HTTP request may mean that the server speaks only the older HTTP+SSE:
 * such a server has no POST at its address. Being unauthorized, limited or slow is no such sign.
 * https://modelcontextprotocol.io/specification/2025-06-18/basic/transports#backwards-compatibility
 */
export function mayBeSse(error: unknown): boolean {
  const status = (error as { status?: unknown } | undefined)?.status;
  return typeof status === "number" && status >= 400 && status < 500 &&
    ![401, 403, 408, 429].includes(status);
}

/** What `fetch` throws says in its innermost cause what happened, and shows the URL with its keys. */
function explain(error: unknown): never {
  if (!(error instanceof TypeError)) throw error;
  let inner: Error = error;
  while (inner.cause instanceof Error) inner = inner.cause;
  const url = /( from \S+)? for (url )?\(?https?:\S+?\)?( \(\S+\))?(?=: |$)/;
  throw new TypeError(inner.message.replace(url, ""));
}

/** The response, failing when one message in it is longer than may be held. */
function bounded(response: Response): Response {
  if (response.body === null) return response;
  const isStream = /^text\/event-stream/i.test(response.headers.get("content-type") ?? "");
  const message = new MessageLength(isStream);
  const count = new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, controller) {
      message.read(chunk);
      controller.enqueue(chunk);
    },
  });
  const { status, statusText, headers } = response;
  return new Response(response.body.pipeThrough(count), {
    status,
    statusText,
    headers,
  });
}

const LF = 10;
const CR = 13;

/** The length of the message being read: the whole body, or in a stream what an empty line ends. */
class MessageLength {
  readonly #isStream: boolean;
  #length = 0;
  #isLineEmpty = false;
  #last = 0;

  constructor(isStream: boolean) {
    this.#isStream = isStream;
  }

  /** @throws {Error} if the message is longer than may be held */
  read(chunk: Uint8Array): void {
    if (!this.#isStream) this.#add(chunk.length);
    else for (const byte of chunk) this.#readByte(byte);
  }

  #readByte(byte: number): void {
    const isLineEnd = byte === LF || byte === CR;
    const isSecondHalf = byte === LF && this.#last === CR;
    this.#last = byte;
    this.#add(1);
    if (isSecondHalf) return;
    if (isLineEnd && this.#isLineEmpty) this.#length = 0;
    this.#isLineEmpty = isLineEnd;
  }

  #add(bytes: number): void {
    this.#length += bytes;
    if (this.#length > MAX_MESSAGE_BYTES) {
      throw new Error(`a message is longer than ${MAX_MESSAGE_BYTES} bytes`);
    }
  }
}
