/**
 * The tools of MCP servers: programs on this machine and servers on the net.
 *
 * Needs `--allow-run=<command>` for a program, `--allow-net=<host>` for a remote server, and
 * `--allow-env=<name>` for each variable that a `${NAME}` in the configuration stands for. The MCP
 * client is loaded by the first connection. https://modelcontextprotocol.io
 *
 * @example
 * ```ts ignore
 * import { createClient, createToolkit } from "@toolnexus/client";
 * import { connectMcp } from "@toolnexus/client/mcp";
 *
 * await using toolkit = createToolkit({
 *   sources: [
 *     await connectMcp({
 *       mcpServers: {
 *         files: { command: "npx", args: ["-y", "@modelcontextprotocol/server-filesystem", "."] },
 *         docs: { url: "https://docs.example/mcp", headers: { authorization: "Bearer ${TOKEN}" } },
 *       },
 *     }),
 *   ],
 * });
 * const client = createClient({ baseUrl, style: "openai", model, toolkit });
 * ```
 *
 * @module
 */

import type { JsonSchema, Tool, ToolSourceProvider } from "../../mod.ts";
import { normalizeServer, parseMcpConfig, type Server } from "./mcp_config.ts";
import { type ListedTool, McpConnection, type McpStatus, type WaitFor } from "./mcp_connection.ts";
import { schemaOf, toTool } from "./mcp_tool.ts";

export { parseMcpConfig } from "./mcp_config.ts";
export type {
  McpConfig,
  McpLocalServer,
  McpRemoteServer,
  McpServerConfig,
  McpServerOptions,
} from "./mcp_config.ts";
export { answerToElicitResult, elicitationToRequest } from "./mcp_elicitation.ts";
export type { ElicitationParams, ElicitationResult } from "./mcp_elicitation.ts";
export type { McpStatus, WaitFor } from "./mcp_connection.ts";

/** What {@linkcode connectMcp} takes besides the configuration. */
export interface ConnectMcpOptions {
  /**
   * Answers what servers ask a human for while a tool runs. Without it they are told that nobody can
   * be asked. An answer that comes after the call has ended goes nowhere.
   */
  waitFor?: WaitFor | undefined;
  /** Ends the connecting: every server is ended and the promise rejects with the signal's reason. */
  signal?: AbortSignal | undefined;
}

/** Connected servers, a source of tools for `createToolkit({ sources: [mcp] })`. */
export interface McpSource extends ToolSourceProvider, AsyncDisposable {
  /** The tools of all connected servers, in the order of the configuration. */
  tools(): Tool[];
  /** How each server is. */
  status(): Record<string, McpStatus>;
  /** Why servers could not be connected. */
  errors(): Record<string, Error>;
  /** Ends the connections and the programs; when the promise resolves they are gone. */
  close(): Promise<void>;
}

/** A tool as a server lists it. */
export interface McpToolInfo {
  /** The server's own name for it: what a server's `tools` in the configuration names. */
  name: string;
  /** What it does; empty where the server does not say. */
  description: string;
  /** JSON Schema of its arguments. */
  inputSchema: JsonSchema;
}

/** What {@linkcode listMcpTools} found. */
export interface McpInventory {
  /** All tools of each server that could be connected. */
  tools: Record<string, McpToolInfo[]>;
  /** How each server was. */
  status: Record<string, McpStatus>;
  /** Why servers could not be connected. */
  errors: Record<string, Error>;
}

/**
 * Connects to every server at once and takes their tools. A server that fails, or does not answer in
 * its own time, is reported on the console and in `status()` and `errors()`, and does not hold up or
 * break the others. A tool is called `<server>_<tool>`, with `_` for what providers do not accept in
 * a name; a name of more than 64 characters ends in a hash. Arguments are renamed by the same rule for
 * the model, and go to the server under their own names.
 *
 * @param config what {@linkcode parseMcpConfig} takes
 * @throws {TypeError | RangeError | SyntaxError} if the configuration is wrong, before anything is
 * started
 * @throws the reason of `signal`, when that aborts
 */
export async function connectMcp(
  config: string | URL | object,
  options: ConnectMcpOptions = {},
): Promise<McpSource> {
  const { servers, opened, close } = await openAll(config, options);
  const tools = opened.flatMap(({ server, connection, listed }) => {
    const known = new Set(listed.map(({ name }) => name));
    for (const name of server.namedTools) {
      if (!known.has(name)) console.warn(`MCP server ${server.name} has no tool ${name}`);
    }
    return listed.filter(({ name }) => server.takes(name))
      .map((tool) => toTool(server.name, connection, tool));
  });
  for (const { error } of opened) if (error !== undefined) console.warn(error.message);
  return {
    tools: () => [...tools],
    status: () => statusOf(servers, opened),
    errors: () => errorsOf(opened),
    close,
    [Symbol.asyncDispose]: close,
  };
}

/**
 * Lists what every server offers, whatever its `tools` in the configuration say, and ends all
 * connections again: for writing that configuration.
 *
 * @param config what {@linkcode parseMcpConfig} takes
 * @throws {TypeError | RangeError} if the configuration is wrong, before anything is started
 */
export async function listMcpTools(
  config: string | URL | object,
  options: { signal?: AbortSignal | undefined } = {},
): Promise<McpInventory> {
  const { servers, opened, close } = await openAll(config, { signal: options.signal });
  const inventory = {
    tools: Object.fromEntries(
      opened.filter(({ error }) => error === undefined).map(({ server, listed }) => [
        server.name,
        listed.map((tool) => ({
          name: tool.name,
          description: tool.description ?? "",
          inputSchema: schemaOf(tool),
        })),
      ]),
    ),
    status: statusOf(servers, opened),
    errors: errorsOf(opened),
  };
  await close();
  return inventory;
}

interface Opened {
  server: Server;
  connection: McpConnection;
  listed: ListedTool[];
  error?: Error | undefined;
}

async function openAll(config: string | URL | object, { waitFor, signal }: ConnectMcpOptions) {
  if (waitFor !== undefined && typeof waitFor !== "function") {
    throw new TypeError(`waitFor must be a function: ${typeof waitFor}`);
  }
  const servers = Object.entries(parseMcpConfig(config))
    .map(([name, server]) => normalizeServer(name, server));
  signal?.throwIfAborted();
  const started = servers.filter(({ isEnabled }) => isEnabled)
    .map((server) => ({ server, connection: new McpConnection(server, waitFor) }));
  const close = async () => {
    await Promise.all(started.map(({ connection }) => connection.close()));
  };
  const opened = await Promise.all(started.map(async (each): Promise<Opened> => {
    try {
      return { ...each, listed: await each.connection.open(signal) };
    } catch (error) {
      return { ...each, listed: [], error: error as Error };
    }
  }));
  if (signal?.aborted) {
    await Promise.all(started.map(({ connection }) => connection.close(0)));
    throw signal.reason;
  }
  return { servers, opened, close };
}

function statusOf(
  servers: readonly Server[],
  opened: readonly Opened[],
): Record<string, McpStatus> {
  const states = new Map(opened.map(({ server, connection }) => [server, connection.state]));
  return Object.fromEntries(servers.map((server) => [
    server.name,
    states.get(server) ?? "disabled",
  ]));
}

function errorsOf(opened: readonly Opened[]): Record<string, Error> {
  return Object.fromEntries(
    opened.flatMap(({ server, error }) => error === undefined ? [] : [[server.name, error]]),
  );
}
