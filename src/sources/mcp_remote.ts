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

/** How a remote transport of the server is to be set up, given the headers with their values. */
export function remoteOptions(headers: Readonly<Record<string, string>>): RemoteOptions {
  return {
    requestInit: { headers: { ...headers } },
    fetch: async (url, init) => bounded(await fetch(url, init)),
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

/** The response, failing when one message in it is longer than may be held. */
function bounded(response: Response): Response {
  if (response.body === null) return response;
  const isStream = response.headers.get("content-type")?.startsWith("text/event-stream");
  let length = 0;
  const count = new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, controller) {
      const end = isStream ? endOfEvent(chunk) : -1;
      length = end < 0 ? length + chunk.length : chunk.length - end;
      if (length > MAX_MESSAGE_BYTES) {
        throw new Error(`a message is longer than ${MAX_MESSAGE_BYTES} bytes`);
      }
      controller.enqueue(chunk);
    },
  });
  const { status, statusText, headers } = response;
  return new Response(response.body.pipeThrough(count), { status, statusText, headers });
}

/** Where the last whole event of the chunk ends: after an empty line. */
function endOfEvent(chunk: Uint8Array): number {
  for (let at = chunk.length - 1; at > 0; at--) {
    if (
      chunk[at] === 10 && (chunk[at - 1] === 10 || chunk[at - 2] === 10 && chunk[at - 1] === 13)
    ) {
      return at + 1;
    }
  }
  return -1;
}
