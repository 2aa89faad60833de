/** What the tests of OpenAPI share: a server with a library, and its document. */
import { assert, assertEquals } from "@std/assert";
import type { DefinedTool, JsonSchema } from "../mod.ts";
import { httpToolsFromOpenAPI, type OpenAPIOptions } from "../src/sources/openapi.ts";

/** The document of a small API. */
export const library = await Deno.readTextFile(
  new URL("./fixtures/library_openapi.yaml", import.meta.url),
);

/** A server that writes down what it is sent, and the tools of the library on it. */
export class Library implements AsyncDisposable {
  readonly seen: { line: string; headers: Headers; body: string }[] = [];
  readonly skipped: string[] = [];
  readonly #server: Deno.HttpServer<Deno.NetAddr>;
  #tools: DefinedTool[] = [];

  private constructor() {
    const options = { hostname: "127.0.0.1", port: 0, onListen() {} };
    this.#server = Deno.serve(options, async (request) => {
      const { pathname, search } = new URL(request.url);
      const line = `${request.method} ${pathname}${decodeURIComponent(search)}`;
      this.seen.push({ line, headers: request.headers, body: await request.text() });
      return Response.json({ ok: true });
    });
  }

  static async open(spec: string | object = library, options: OpenAPIOptions = {}) {
    const opened = new Library();
    opened.#tools = await httpToolsFromOpenAPI(spec, {
      serverVariables: { host: opened.host },
      onSkip: ({ operationId }, reason) => opened.skipped.push(`${operationId}: ${reason}`),
      ...options,
    });
    return opened;
  }

  get host(): string {
    return `127.0.0.1:${this.#server.addr.port}`;
  }

  get names(): string[] {
    return this.#tools.map(({ name }) => name);
  }

  tool(name: string): DefinedTool {
    const tool = this.#tools.find((each) => each.name === name);
    assert(tool, `no tool ${name} among ${this.names.join()}`);
    return tool;
  }

  /** The properties of a tool's arguments. */
  properties(name: string): Record<string, JsonSchema> {
    return this.tool(name).inputSchema.properties as Record<string, JsonSchema>;
  }

  /** What arrives of a call. */
  async call(name: string, args: Record<string, unknown>) {
    const result = await this.tool(name).execute(args);
    assertEquals(result, { output: '{"ok":true}', isError: false, metadata: { status: 200 } });
    return this.seen.at(-1)!;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server.shutdown();
  }
}

/** A document of one path. */
export function documentOf(path: string, item: object, rest: object = {}): object {
  const servers = [{ url: "http://api.test" }];
  return { openapi: "3.1.0", info: {}, servers, paths: { [path]: item }, ...rest };
}
