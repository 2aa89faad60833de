/**
 * The configuration of MCP servers, in the spellings that are about.
 *
 * @module
 */

/** What every server can have. */
export interface McpServerOptions {
  /** Whether it is connected to. @default true */
  enabled?: boolean | undefined;
  /** The opposite, as some spell it. @default false */
  disabled?: boolean | undefined;
  /**
   * Milliseconds for starting, connecting and listing the tools together, and for one call. A call's
   * time begins anew with every progress the server reports. While a human is asked it stands still for
   * the calls that run then, and begins anew with the answer. The client's `toolTimeoutMs` has no say.
   *
   * @default 30000
   */
  timeout?: number | undefined;
  /**
   * The tools to take, by the server's own names: a list of them, or an object where one `true` means
   * only those that are true and otherwise all but the `false` ones are taken.
   *
   * @default all
   */
  tools?: readonly string[] | Readonly<Record<string, boolean>> | undefined;
}

/** A server that is a program on this machine; it speaks over its standard input and output. */
export interface McpLocalServer extends McpServerOptions {
  /** Told by `command` when left out. */
  type?: "local" | "stdio" | undefined;
  /** The program, or the program and its arguments. */
  command: string | readonly string[];
  /** More arguments. @default [] */
  args?: readonly string[] | undefined;
  /**
   * Environment variables; `${NAME}` in a value stands for a variable of this process.
   *
   * @default {}
   */
  env?: Readonly<Record<string, string>> | undefined;
  /** The same, as some spell it. */
  environment?: Readonly<Record<string, string>> | undefined;
  /** Whether the program gets `env` alone and not this process's variables too. @default false */
  clearEnv?: boolean | undefined;
  /** Its working directory. @default this process's */
  cwd?: string | undefined;
}

/** A server somewhere on the net. */
export interface McpRemoteServer extends McpServerOptions {
  /** Told by `url` when left out; `sse` leaves the newer transport untried. */
  type?: "remote" | "http" | "streamable-http" | "sse" | undefined;
  /** Its address. */
  url: string | URL;
  /** Headers of every request; `${NAME}` in a value stands for an environment variable. @default {} */
  headers?: Readonly<Record<string, string>> | undefined;
}

/** A server of either kind. */
export type McpServerConfig = McpLocalServer | McpRemoteServer;

/** Servers by name. */
export type McpConfig = Record<string, McpServerConfig>;

/** A local server with everything in its place. */
export interface LocalServer {
  isRemote: false;
  command: string;
  args: string[];
  env: Readonly<Record<string, string>>;
  clearEnv: boolean;
  cwd: string | undefined;
}

/** A remote server with everything in its place. */
export interface RemoteServer {
  isRemote: true;
  url: URL;
  headers: Readonly<Record<string, string>>;
  isSse: boolean;
}

/** A server with everything in its place. */
export type Server = (LocalServer | RemoteServer) & {
  name: string;
  isEnabled: boolean;
  timeoutMs: number;
  takes(tool: string): boolean;
  /** The names of tools in `tools`. */
  namedTools: string[];
};

const DEFAULT_TIMEOUT_MS = 30_000;
const MAX_TIMEOUT_MS = 2 ** 31 - 1;

const LOCAL: readonly unknown[] = ["local", "stdio"];
const REMOTE: readonly unknown[] = ["remote", "http", "streamable-http", "sse"];

/** What else other ports keep at the top of a file whose servers have no key of their own. */
const NO_SERVERS: ReadonlySet<string> = new Set(["builtins", "agents", "a2a", "mcpServer"]);

/**
 * Reads a configuration and checks it: the servers under `mcpServers`, `servers` or `mcp`, or a bare
 * object of servers. A string or URL is the path of a JSON file (and needs `--allow-read`), a string
 * that starts with `{` is JSON itself.
 *
 * @throws {TypeError | RangeError} if something in it is wrong; the error names the server
 * @throws {SyntaxError} if it is no JSON
 *
 * @example
 * ```ts
 * import { parseMcpConfig } from "@toolnexus/client/mcp";
 * import { assertEquals } from "@std/assert";
 *
 * const servers = { files: { command: "npx", args: ["-y", "@example/server", "."] } };
 * assertEquals(parseMcpConfig({ mcpServers: servers }), servers);
 * assertEquals(parseMcpConfig(JSON.stringify({ mcp: servers })), servers);
 * assertEquals(parseMcpConfig(servers), servers);
 * ```
 */
export function parseMcpConfig(input: string | URL | object): McpConfig {
  const config = read(input);
  if (!isRecord(config)) throw new TypeError(`MCP config must be an object: ${show(config)}`);
  const wrapped = ["mcpServers", "servers", "mcp"].find((key) => config[key] !== undefined);
  const servers = wrapped === undefined
    ? Object.fromEntries(Object.entries(config).filter(([name]) => !NO_SERVERS.has(name)))
    : config[wrapped];
  if (!isRecord(servers)) throw new TypeError(`${wrapped} must be an object: ${show(servers)}`);
  for (const [name, server] of Object.entries(servers)) normalizeServer(name, server);
  return servers as McpConfig;
}

function read(input: string | URL | object): unknown {
  if (typeof input === "string" && input.trimStart().startsWith("{")) return JSON.parse(input);
  const isFile = typeof input === "string" || input instanceof URL;
  return isFile ? JSON.parse(Deno.readTextFileSync(input)) : input;
}

/**
 * Puts everything in its place.
 *
 * @throws {TypeError | RangeError} if something is wrong
 */
export function normalizeServer(name: string, given: unknown): Server {
  const fail = (what: string, value: unknown): never => {
    throw new TypeError(`MCP server ${show(name)}: ${what}: ${show(value)}`);
  };
  if (!isRecord(given)) return fail("must be an object", given);
  const { type, enabled, disabled, timeout = DEFAULT_TIMEOUT_MS, tools = {} } = given;
  for (const [key, value] of Object.entries({ enabled, disabled })) {
    if (value !== undefined && typeof value !== "boolean") fail(`${key} must be a boolean`, value);
  }
  if (typeof timeout !== "number" || !(timeout > 0 && timeout <= MAX_TIMEOUT_MS)) {
    throw new RangeError(
      `MCP server ${show(name)}: timeout must be milliseconds above 0: ${show(timeout)}`,
    );
  }
  const filter = Array.isArray(tools)
    ? Object.fromEntries(tools.map((tool) => [tool, true]))
    : isRecord(tools)
    ? tools
    : fail("tools must be a list of names or an object", tools);
  const onlyTrue = Object.values(filter).includes(true) || Array.isArray(tools);
  const common = {
    name,
    isEnabled: enabled !== false && disabled !== true,
    timeoutMs: timeout,
    takes: (tool: string) => Object.hasOwn(filter, tool) ? filter[tool] === true : !onlyTrue,
    namedTools: Object.keys(filter),
  };
  if (type !== undefined && ![...LOCAL, ...REMOTE].includes(type)) fail("type is unknown", type);
  if (REMOTE.includes(type) || type === undefined && given["url"] !== undefined) {
    const { url, headers = {} } = given;
    const parsed = URL.parse(String(url));
    if (parsed === null || !/^https?:$/.test(parsed.protocol)) {
      return fail("url must be an http or https URL", url);
    }
    if (!isStrings(headers)) return fail("headers must be an object of strings", typeof headers);
    return { ...common, isRemote: true, url: parsed, headers, isSse: type === "sse" };
  }
  const { command, args = [], env, environment, clearEnv = false, cwd } = given;
  const line = [command, args].flat();
  if (!line.every((part) => typeof part === "string") || !line[0]) {
    return fail("command must be a program or a program and its arguments", line);
  }
  const [program, ...rest] = line as [string, ...string[]];
  const variables = { ...environment ?? {}, ...env ?? {} };
  if (!isStrings(variables)) return fail("env must be an object of strings", typeof env);
  if (typeof clearEnv !== "boolean") return fail("clearEnv must be a boolean", clearEnv);
  if (cwd !== undefined && typeof cwd !== "string") return fail("cwd must be a path", cwd);
  return {
    ...common,
    isRemote: false,
    command: program,
    args: rest,
    env: variables,
    clearEnv,
    cwd,
  };
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isStrings(value: unknown): value is Record<string, string> {
  return isRecord(value) && Object.values(value).every((part) => typeof part === "string");
}

function show(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value);
  return text.length > 100 ? `${text.slice(0, 99)}…` : text;
}
