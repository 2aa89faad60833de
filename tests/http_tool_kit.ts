/** What the tests of HTTP tools share: a server that writes down what it is sent, and a tool for it. */
import { httpTool, type HttpToolDefinition } from "../mod.ts";

/** Arguments of any kind. */
export const ANY = { type: "object", additionalProperties: true } as const;

/** What a server was sent. */
export interface Seen {
  method: string;
  path: string;
  headers: Headers;
  body: string;
}

/** A real server that writes down what it is sent. */
export class Server implements AsyncDisposable {
  readonly seen: Seen[] = [];
  readonly #server: Deno.HttpServer<Deno.NetAddr>;

  constructor(answer: (request: Request) => Response | Promise<Response> = () => new Response()) {
    const options = { hostname: "127.0.0.1", port: 0, onListen() {} };
    this.#server = Deno.serve(options, async (request) => {
      const { method, headers } = request;
      const { pathname, search } = new URL(request.url);
      this.seen.push({ method, path: pathname + search, headers, body: await request.text() });
      return await answer(request);
    });
  }

  get url(): string {
    return `http://127.0.0.1:${this.#server.addr.port}`;
  }

  /** The same server by a name of its own: another origin. */
  get otherUrl(): string {
    return `http://localhost:${this.#server.addr.port}`;
  }

  get paths(): string[] {
    return this.seen.map(({ method, path }) => `${method} ${path}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server.shutdown();
  }
}

/** An HTTP tool that takes anything. */
export function toolOf(definition: Partial<HttpToolDefinition<typeof ANY>> & { url: string }) {
  return httpTool({
    name: "call",
    description: "Calls",
    method: "GET",
    inputSchema: ANY,
    ...definition,
  });
}

/** Sets a variable for as long as it is held. */
export function variable(name: string, value: string): Disposable {
  Deno.env.set(name, value);
  return { [Symbol.dispose]: () => Deno.env.delete(name) };
}
