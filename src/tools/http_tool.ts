/**
 * Tools from HTTP endpoints.
 *
 * @module
 */

import { checkFunction, checkNumber } from "../checks.ts";
import { quote, reasonOf } from "../errors.ts";
import type { JsonSchema, ToolContext, ToolResult } from "../types.ts";
import { type DefinedTool, defineTool, type ToolDefinition } from "./define_tool.ts";
import { checkHeaders, expandHeaders } from "./env_headers.ts";
import { readText, send } from "./http_exchange.ts";
import type { StandardJsonSchema } from "./standard_schema.ts";
import { type QueryPairs, urlTemplate, urlText } from "./url_template.ts";
import { Scope } from "../scope.ts";
import type { Secrets } from "../secrets.ts";

/** The parts of a request that are made from a call's arguments. */
export interface HttpRequestParts {
  /** Values for the placeholders of the URL, by name. @default {} */
  path?: Readonly<Record<string, unknown>> | undefined;
  /** Names and values of the query; a name may come more than once. @default [] */
  query?: QueryPairs | undefined;
  /** Whether `path` and `query` are percent-encoded; else they will be. @default false */
  isEncoded?: boolean | undefined;
  /** Headers of this call. Those of the definition win; cookies of both are sent. @default {} */
  headers?: Readonly<Record<string, string>> | undefined;
  /** The body. @default no body */
  body?: BodyInit | undefined;
}

/** What {@linkcode httpTool} takes. */
export interface HttpToolDefinition<Schema> extends Omit<ToolDefinition<Schema>, "run"> {
  /** The method, such as `GET`. */
  method: string;
  /**
   * The http or https URL. `{name}` in its path or query is the argument of that name, encoded: it
   * cannot leave its path segment. The host is fixed.
   */
  url: string;
  /**
   * Headers of every call. `${NAME}` is the value of an environment variable, read at each call; it
   * needs `--allow-env=NAME`. Such values, and those of headers named like a secret
   * (`authorization`, `cookie`, `x-api-key`), are taken out of results, from 6 characters on.
   *
   * @default {}
   */
  headers?: Readonly<Record<string, string>> | undefined;
  /** Names of arguments that go into the query although the method has a body. @default [] */
  query?: readonly string[] | undefined;
  /**
   * How the arguments that are neither in the URL nor in the query become the body: `json`; `form`
   * (URL-encoded); or `raw`, the argument `body` alone: a string as it is, anything else as JSON. GET,
   * HEAD and DELETE send them as the query instead, lists as repeated names.
   *
   * @default "json"; none for GET, HEAD and DELETE
   */
  body?: "json" | "form" | "raw" | undefined;
  /** Makes the parts of the request from the arguments, instead of the rules above. */
  request?: ((args: Record<string, unknown>) => HttpRequestParts) | undefined;
  /**
   * The longest time one call may take, in milliseconds.
   *
   * @default the client's `toolTimeoutMs`, else 30_000
   */
  timeoutMs?: number | undefined;
  /**
   * What the model gets of a 2xx answer: its text, compact JSON (a body that is none becomes a JSON
   * string), or the status, a newline and the text.
   *
   * @default "text"
   */
  resultMode?: "text" | "json" | "status+text" | undefined;
  /** The longest body that the model gets, in bytes; what is longer is cut. @default 100_000 */
  maxResponseBytes?: number | undefined;
  /** What sends the requests. @default globalThis.fetch */
  fetch?: typeof fetch | undefined;
}

/** A method as HTTP allows it (RFC 9110, section 5.6.2). */
const METHOD = /^[!#$%&'*+.^_`|~0-9A-Z-]+$/;
/** What `fetch` refuses to send (Fetch standard, forbidden method). */
const FORBIDDEN = ["CONNECT", "TRACE", "TRACK"];
const BODILESS = ["GET", "HEAD"];
const IN_QUERY = [...BODILESS, "DELETE"];
const DEFAULT_TIMEOUT_MS = 30_000;
const DEFAULT_RESPONSE_BYTES = 100_000;

/**
 * Makes a tool of an HTTP endpoint. A status other than 2xx is the error result
 * `HTTP <status>: <body>`; the status is in `metadata.status`. Redirects are followed within the
 * origin only.
 *
 * @throws {TypeError} if the definition is wrong
 * @throws {RangeError} if `timeoutMs` or `maxResponseBytes` is not above 0
 *
 * @example
 * ```ts
 * import { httpTool } from "@toolnexus/client";
 * import { assertEquals } from "@std/assert";
 *
 * await using server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, (request) => {
 *   const { pathname, search } = new URL(request.url);
 *   return new Response(pathname + search);
 * });
 * const orders = httpTool({
 *   name: "orders",
 *   description: "The orders of a customer",
 *   method: "GET",
 *   url: `http://127.0.0.1:${server.addr.port}/customers/{id}/orders`,
 *   inputSchema: {
 *     type: "object",
 *     properties: { id: { type: "string" }, year: { type: "integer" } },
 *     required: ["id"],
 *   },
 * });
 * const { output } = await orders.execute({ id: "a/b", year: 2026 });
 * assertEquals(output, "/customers/a%2Fb/orders?year=2026");
 * ```
 */
export function httpTool<const Schema extends JsonSchema | StandardJsonSchema = JsonSchema>(
  definition: HttpToolDefinition<Schema>,
): DefinedTool {
  const { headers, request, fetch, maxResponseBytes = DEFAULT_RESPONSE_BYTES } = definition;
  const method = methodOf(definition.method);
  const template = urlTemplate(definition.url);
  checkHeaders(headers);
  checkOptions(definition, method);
  const { query, body = IN_QUERY.includes(method) ? undefined : "json" } = definition;
  const partsOf = request ??
    ((args) => partsByRule(args, { method, query, body }, template.names));
  const tool = defineTool({
    ...definition,
    run: (args, context) => call(args as Record<string, unknown>, context),
  });
  if (request === undefined) checkPlaceholders(template.names, tool);
  return { ...tool, source: "http" };

  async function call(
    args: Record<string, unknown>,
    { signal, timeoutMs = definition.timeoutMs ?? DEFAULT_TIMEOUT_MS }: ToolContext,
  ): Promise<ToolResult> {
    using scope = new Scope(signal);
    scope.limit(timeoutMs, () => new Error(`timed out after ${timeoutMs} ms`));
    const { headers: fixed, secrets } = expandHeaders(headers);
    try {
      const { path = {}, query = [], isEncoded, headers: own = {}, body } = partsOf(args);
      checkHeaders({ ...own, ...fixed });
      const sent = new Headers({ ...own });
      for (const [name, value] of Object.entries(fixed)) {
        // Cookies stand side by side; of any other header there is one.
        const cookies = /^cookie$/i.test(name) ? sent.get(name) : null;
        sent.set(name, cookies === null ? value : `${value}; ${cookies}`);
      }
      const init = { method, headers: sent, ...(body !== undefined && { body }) };
      const url = template.fill(path, query, isEncoded);
      const response = await send(url, init, scope.signal, fetch);
      return await resultOf(response, definition.resultMode, maxResponseBytes, secrets);
    } catch (error) {
      throw scope.signal.aborted ? scope.signal.reason : new Error(secrets.redact(reasonOf(error)));
    }
  }
}

type Rules = Pick<HttpToolDefinition<unknown>, "method" | "query" | "body">;

function methodOf(method: unknown): string {
  const upper = String(method).toUpperCase();
  if (typeof method !== "string" || !METHOD.test(upper)) {
    throw new TypeError(`method must be an HTTP method: ${quote(method)}`);
  }
  if (FORBIDDEN.includes(upper)) throw new TypeError(`method ${upper} cannot be sent`);
  return upper;
}

type Options = Omit<HttpToolDefinition<unknown>, "inputSchema" | "needsApproval">;

function checkOptions(options: Options, method: string): void {
  const { query = [], body, request, resultMode, maxResponseBytes = 1, fetch } = options;
  if (!Array.isArray(query) || query.some((name) => typeof name !== "string")) {
    throw new TypeError(`query must be an array of strings: ${quote(query)}`);
  }
  if (body !== undefined && !["json", "form", "raw"].includes(body)) {
    throw new TypeError(`body must be "json", "form" or "raw": ${quote(body)}`);
  }
  if (body !== undefined && BODILESS.includes(method)) {
    throw new TypeError(`body is not allowed with the method ${method}`);
  }
  if (resultMode !== undefined && !["text", "json", "status+text"].includes(resultMode)) {
    throw new TypeError(
      `resultMode must be "text", "json" or "status+text": ${quote(resultMode)}`,
    );
  }
  checkNumber("maxResponseBytes", maxResponseBytes);
  if (!(maxResponseBytes > 0)) {
    throw new RangeError(`maxResponseBytes must be above 0: ${maxResponseBytes}`);
  }
  checkFunction("request", request);
  checkFunction("fetch", fetch);
}

/** An argument that the model is never told of would be missing in every call. */
function checkPlaceholders(names: ReadonlySet<string>, { name, inputSchema }: DefinedTool): void {
  const { properties, additionalProperties } = inputSchema;
  if (typeof properties !== "object" || properties === null || additionalProperties !== false) {
    return;
  }
  for (const placeholder of names) {
    if (Object.hasOwn(properties, placeholder)) continue;
    throw new TypeError(`url of tool ${name} has {${placeholder}}, its inputSchema does not`);
  }
}

/** The arguments to the URL, the query and the body, by the options of the definition. */
function partsByRule(
  args: Record<string, unknown>,
  { query = [], body }: Rules,
  placeholders: ReadonlySet<string>,
): HttpRequestParts {
  const left = Object.entries(args).filter(([name]) => !placeholders.has(name));
  const isQuery = (name: string) => body === undefined || query.includes(name);
  const rest = left.filter(([name]) => !isQuery(name));
  return {
    path: args,
    query: pairsOf(left.filter(([name]) => isQuery(name))),
    ...(body !== undefined && rest.length > 0 && encodeBody(body, rest)),
  };
}

function encodeBody(
  body: "json" | "form" | "raw",
  entries: readonly [string, unknown][],
): HttpRequestParts {
  if (body === "form") return { body: new URLSearchParams(pairsOf(entries)) };
  const args = Object.fromEntries(entries);
  const value = body === "raw" ? args.body : args;
  if (value === undefined || body === "raw" && typeof value === "string") return { body: value };
  return { headers: { "content-type": "application/json" }, body: JSON.stringify(value) };
}

function pairsOf(entries: readonly [string, unknown][]): [string, string][] {
  return entries.flatMap(([name, value]) =>
    (Array.isArray(value) ? value : [value])
      .filter((each) => each !== undefined && each !== null)
      .map((each): [string, string] => [name, urlText(each)])
  );
}

async function resultOf(
  response: Response,
  resultMode: HttpToolDefinition<unknown>["resultMode"],
  maxBytes: number,
  secrets: Secrets,
): Promise<ToolResult> {
  const { status, ok } = response;
  const text = await readText(response, maxBytes, secrets);
  // Again: what JSON had escaped may be a secret now.
  return { output: secrets.redact(outputOf()), isError: !ok, metadata: { status } };

  function outputOf(): string {
    if (!ok) return `HTTP ${status}: ${text}`;
    if (resultMode === "status+text") return `${status}\n${text}`;
    if (resultMode !== "json") return text;
    try {
      return JSON.stringify(JSON.parse(text));
    } catch {
      return JSON.stringify(text);
    }
  }
}
