/**
 * The connection to one MCP server.
 *
 * @module
 */

import {
  type Answer,
  type Awaitable,
  expandEnvHeaders,
  pending,
  type PendingRequest,
  type ToolContext,
  type ToolResult,
} from "../../mod.ts";
import type { LocalServer, RemoteServer, Server } from "./mcp_config.ts";
import { Deadline } from "./mcp_deadline.ts";
import {
  answerToElicitResult,
  type ElicitationParams,
  elicitationToRequest,
} from "./mcp_elicitation.ts";
import {
  type Client,
  type ConnectOptions,
  type ElicitResult,
  loadClient,
  type ServerTool,
  type Transport,
} from "./mcp_package.ts";
import { mayBeSse, remoteOptions } from "./mcp_remote.ts";
import { type CallResult, toToolResult } from "./mcp_result.ts";
import { ServerSecrets } from "./mcp_secrets.ts";
import { StdioTransport } from "./mcp_stdio.ts";

/** Asks a human. */
export type WaitFor = (request: PendingRequest) => Awaitable<Answer>;

/** How a server is: `failed` also when it has ended by itself, `disabled` also when it was closed. */
export type McpStatus = "connected" | "disabled" | "failed";

/** A tool as its server lists it. */
export interface ListedTool {
  name: string;
  description?: string | undefined;
  inputSchema: Record<string, unknown>;
}

/** No limit of the client's own: time is kept here, where it can stand still for a human. */
const NO_TIMEOUT = 2 ** 31 - 1;

/** How long a program may leave the newest protocol's greeting unanswered. */
const MAX_PROBE_MS = 5_000;

/** How long a remote server may take to end a session. */
const END_SESSION_MS = 1_000;

const MAX_PAGES = 1_000;

/** The JSON-RPC error of a server whose tool wants other parameters repeated in headers. */
const HEADER_MISMATCH = -32020;

const CANCEL: ElicitResult = { action: "cancel" };

/** How much of what a program said last an error repeats. */
const MAX_SAID = 300;

/** One server: not connected yet, connected, or not any more. */
export class McpConnection {
  readonly #server: Server;
  readonly #waitFor: WaitFor | undefined;
  readonly #life = new AbortController();
  readonly #calls = new Set<Deadline>();
  readonly #definitions = new Map<string, ServerTool>();
  #client: Client | undefined;
  #transport: Transport | undefined;
  #secrets = new ServerSecrets([]);
  #state: McpStatus = "failed";
  #closing: Promise<void> | undefined;

  /** Connects to nothing yet. */
  constructor(server: Server, waitFor: WaitFor | undefined) {
    this.#server = server;
    this.#waitFor = waitFor;
  }

  /** How it is. */
  get state(): McpStatus {
    return this.#state;
  }

  /**
   * Connects and lists the tools, within the server's time.
   *
   * @throws {Error} saying what failed; the server is being ended then, see {@linkcode close}
   */
  async open(signal: AbortSignal | undefined): Promise<ListedTool[]> {
    const { timeoutMs } = this.#server;
    const deadline = new Deadline(timeoutMs, signal);
    let phase = "start";
    try {
      return await deadline.race(async () => {
        await this.#connect(deadline, (next) => phase = next);
        phase = "tools/list";
        const tools = await this.#list(deadline.signal);
        this.#state = "connected";
        return tools;
      });
    } catch (error) {
      void this.close(0);
      if (signal?.aborted) throw error;
      const what = deadline.isOver ? `no answer within ${timeoutMs} ms` : this.#describe(error);
      // A cause is shown together with its error.
      const cause = this.#secrets.isClean(error) ? error : undefined;
      throw new Error(`MCP server ${this.#server.name} failed at ${phase}: ${what}`, { cause });
    } finally {
      deadline.stop();
    }
  }

  /** Calls a tool. Never rejects. */
  async call(
    tool: string,
    args: Record<string, unknown>,
    context: ToolContext | undefined,
  ): Promise<ToolResult> {
    const { name, timeoutMs } = this.#server;
    const limit = Math.min(timeoutMs, context?.timeoutMs ?? timeoutMs);
    const deadline = new Deadline(limit, context?.signal);
    this.#calls.add(deadline);
    try {
      if (this.#state !== "connected") throw new Error("not connected");
      return await deadline.race(async () => {
        return toToolResult(name, await this.#call({ name: tool, arguments: args }, deadline));
      });
    } catch (error) {
      const suspended = loginOf(error);
      if (suspended !== undefined) return suspended;
      const what = deadline.isOver ? `no answer within ${limit} ms` : this.#describe(error);
      const output = `MCP server ${name}, tool ${tool}: ${what}`;
      return { output, isError: true, metadata: { server: name } };
    } finally {
      deadline.stop();
      this.#calls.delete(deadline);
    }
  }

  /**
   * Ends the connection, and with it a server that is a program; when the promise resolves that is gone.
   *
   * @param graceMs how long it may take to end by itself, in milliseconds
   */
  close(graceMs?: number): Promise<void> {
    if (this.#state === "connected") this.#state = "disabled";
    this.#closing ??= this.#close(graceMs);
    return this.#closing;
  }

  async #close(graceMs: number | undefined): Promise<void> {
    const transport = this.#transport;
    try {
      if (transport instanceof StdioTransport) await transport.close(graceMs);
      else if (transport !== undefined && graceMs !== 0 && "terminateSession" in transport) {
        const { terminateSession } = transport as { terminateSession(): Promise<void> };
        const deadline = new Deadline(END_SESSION_MS, undefined);
        await deadline.race(() => terminateSession.call(transport)).catch(() => {});
        deadline.stop();
      }
      await this.#client?.close();
      await transport?.close();
    } catch { /* there is nothing left to close */ }
    this.#life.abort();
  }

  async #connect(deadline: Deadline, enter: (phase: string) => void): Promise<void> {
    if (this.#server.isRemote) await this.#connectRemote(this.#server, deadline, enter);
    else await this.#connectLocal(this.#server, deadline, enter);
  }

  async #connectLocal(
    server: LocalServer,
    deadline: Deadline,
    enter: (phase: string) => void,
  ): Promise<void> {
    const env = expandEnvHeaders(server.env);
    this.#secrets = new ServerSecrets(Object.values(env));
    const start = (options?: ConnectOptions) => {
      enter("start");
      return this.#attempt(deadline, new StdioTransport({ ...server, env }), enter, options);
    };
    try {
      await start();
    } catch (error) {
      const { exit, fault } = (this.#transport ?? {}) as Partial<StdioTransport>;
      if (exit === undefined || fault !== undefined || deadline.signal.aborted) throw error;
      // Some servers end when they are greeted in the newest protocol, which they do not know.
      await start({ prior: { kind: "legacy" } });
    }
  }

  async #connectRemote(
    server: RemoteServer,
    deadline: Deadline,
    enter: (phase: string) => void,
  ): Promise<void> {
    const headers = expandEnvHeaders(server.headers);
    this.#secrets = new ServerSecrets(Object.values(headers), server.url);
    const { SSEClientTransport, StreamableHTTPClientTransport } = await loadClient();
    const options = remoteOptions(headers, this.#life.signal);
    const connectSse = () => {
      const transport = new SSEClientTransport(server.url, options);
      return this.#attempt(deadline, transport, enter, { prior: { kind: "legacy" } });
    };
    if (server.isSse) return await connectSse();
    try {
      await this.#attempt(deadline, new StreamableHTTPClientTransport(server.url, options), enter);
    } catch (error) {
      if (deadline.signal.aborted || !mayBeSse(error)) throw error;
      await connectSse().catch(() => {
        throw error; // the answer to the newer transport says more
      });
    }
  }

  async #attempt(
    deadline: Deadline,
    transport: Transport,
    enter: (phase: string) => void,
    options: ConnectOptions = {},
  ): Promise<void> {
    const { Client } = await loadClient();
    deadline.signal.throwIfAborted();
    const { timeoutMs, isRemote } = this.#server;
    const probeMs = isRemote ? timeoutMs : Math.min(MAX_PROBE_MS, timeoutMs / 3);
    const client = new Client({ name: "toolnexus", version: "0.1.0" }, {
      capabilities: this.#waitFor ? { elicitation: { form: {}, url: {} } } : {},
      versionNegotiation: { mode: "auto", probe: { timeoutMs: probeMs } },
      listMaxPages: MAX_PAGES,
    });
    if (this.#waitFor) {
      client.setRequestHandler(
        "elicitation/create",
        ({ params }, { mcpReq }) => this.#ask(params as ElicitationParams, mcpReq.signal),
      );
    }
    this.#client = client;
    this.#transport = transport;
    if (transport instanceof StdioTransport) await transport.start();
    enter("initialize");
    client.onclose = () => {
      if (this.#transport === transport && this.#state === "connected") this.#state = "failed";
    };
    await client.connect(transport, { ...options, signal: deadline.signal, timeout: NO_TIMEOUT });
  }

  /** Lists the tools, and keeps how each is to be called. */
  async #list(signal: AbortSignal): Promise<ServerTool[]> {
    const options = { signal, timeout: NO_TIMEOUT, cacheMode: "refresh" } as const;
    const { tools } = await this.#client!.listTools(undefined, options);
    // Without its output schema: a result that does not match it would be thrown away.
    for (const { outputSchema: _, ...tool } of tools) this.#definitions.set(tool.name, tool);
    return tools;
  }

  async #call(
    params: { name: string; arguments: Record<string, unknown> },
    deadline: Deadline,
  ): Promise<CallResult> {
    const client = this.#client!;
    const send = () =>
      client.callTool(params, {
        signal: deadline.signal,
        timeout: NO_TIMEOUT,
        onprogress: () => deadline.restart(),
        toolDefinition: this.#definitions.get(params.name)!,
      });
    try {
      return await send();
    } catch (error) {
      const { code } = (error ?? {}) as { code?: unknown };
      if (code !== HEADER_MISMATCH || client.getProtocolEra() !== "modern") throw error;
      // It did not run: the server has changed the tool since it was listed.
      await this.#list(deadline.signal);
      return await send();
    }
  }

  /**
   * Asks a human. Meanwhile the time of the calls that were open when the server asked stands still: it
   * does not say which of them asks. When they have all ended, or the server takes its question back,
   * nobody waits for the answer any more.
   */
  async #ask(params: ElicitationParams, withdrawn: AbortSignal): Promise<ElicitResult> {
    const calls = [...this.#calls];
    const unwanted = Promise.withResolvers<undefined>();
    const forget = () => unwanted.resolve(undefined);
    withdrawn.addEventListener("abort", forget, { once: true });
    if (calls.length > 0) void Promise.all(calls.map(({ ended }) => ended)).then(forget);
    calls.forEach((call) => call.pause());
    try {
      withdrawn.throwIfAborted();
      const asking = this.#waitFor!(elicitationToRequest(params));
      const answer = await Promise.race([asking, unwanted.promise]);
      return answer === undefined ? CANCEL : answerToElicitResult(answer) as ElicitResult;
    } catch {
      return CANCEL;
    } finally {
      calls.forEach((call) => call.resume());
    }
  }

  /** The error in words, with how the server ended and what it said last, and without its secrets. */
  #describe(error: unknown): string {
    const { exit, fault, stderr } = (this.#transport ?? {}) as Partial<StdioTransport>;
    const words = [fault?.message ?? (error instanceof Error ? error.message : String(error))];
    const { status } = (error ?? {}) as { status?: unknown };
    if (typeof status === "number") words[0] = `HTTP ${status}: ${words[0]}`;
    if (exit !== undefined && fault === undefined) {
      words.push(`the server ended with ${exit}`);
      // Redacted first: the beginning of a secret may be cut off.
      if (stderr) words.push(`and said: ${this.#secrets.redact(stderr).slice(-MAX_SAID)}`);
    }
    return this.#secrets.redact(words.join(", "));
  }
}

/** A tool that wants a login first says so by an error; it becomes a suspension like any other. */
function loginOf(error: unknown): ToolResult | undefined {
  const { code, data } = (error ?? {}) as { code?: unknown; data?: { elicitations?: unknown } };
  if (code !== -32042 || !Array.isArray(data?.elicitations)) return undefined;
  const [params] = data.elicitations;
  if (typeof params?.url !== "string") return undefined;
  return pending(elicitationToRequest({ ...params, message: String(params.message ?? "") }));
}
