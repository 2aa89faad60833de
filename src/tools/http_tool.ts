/**
 * Tools from HTTP endpoints.
 *
 * @module
 */

import { quote, reasonOf } from "../errors.ts";
import type { JsonSchema, ToolContext, ToolResult } from "../types.ts";
import { type DefinedTool, defineTool, type ToolDefinition } from "./define_tool.ts";
import { checkHeaders, expandHeaders } from "./env_headers.ts";
import { readText, send } from "./http_exchange.ts";
import type { StandardJsonSchema } from "./standard_schema.ts";
import { type QueryPairs, textOf, urlTemplate } from "./url_template.ts";
import { Scope } from "../scope.ts";
import type { Secrets } from "../secrets.ts";

/** The parts of a request that are made from a call's arguments. */
export interface HttpRequestParts {
  /** Values for the placeholders of the URL, by name; they are encoded. @default {} */
  path?: Readonly<Record<string, unknown>> | undefined;
  /** Names and values of the query, not yet encoded; a name may come more than once. @default [] */
  query?: QueryPairs | undefined;
  /** Headers of this call. Those of the definition win. @default {} */
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
   * needs `--allow-env=NAME`. Values never appear in a result.
   *
   * @default {}
   */
  headers?: Readonly<Record<string, string>> | undefined;
  /** Names of arguments that go into the query although the method has a body. @default [] */
  query?: readonly string[] | undefined;
  /**
   * How the arguments that are neither in the URL nor in the query become the body: `json`; `form`
   * (URL-encoded); or `raw`, the argument `body` as it is. GET, HEAD and DELETE send them as the query
   * instead, lists as repeated names.
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
  const method = methodOf(definition);
  const template = urlTemplate(definition.url);
  checkHeaders(headers);
  if (!(maxResponseBytes > 0)) {
    throw new RangeError(`maxResponseBytes must be above 0: ${quote(maxResponseBytes)}`);
  }
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
      const { path = {}, query = [], headers: own = {}, body } = partsOf(args);
      checkHeaders({ ...own, ...fixed });
      const sent = new Headers({ ...own });
      for (const [name, value] of Object.entries(fixed)) sent.set(name, value);
      const init = { method, headers: sent, ...(body !== undefined && { body }) };
      const response = await send(template.fill(path, query), init, scope.signal, fetch);
      return await resultOf(response, definition.resultMode, maxResponseBytes, secrets);
    } catch (error) {
      throw scope.signal.aborted ? scope.signal.reason : new Error(secrets.redact(reasonOf(error)));
    }
  }
}

type Rules = Pick<HttpToolDefinition<unknown>, "method" | "query" | "body">;

function methodOf({ method, body }: Rules): string {
  const upper = String(method).toUpperCase();
  if (typeof method !== "string" || !METHOD.test(upper)) {
    throw new TypeError(`method must be an HTTP method: ${quote(method)}`);
  }
  if (body !== undefined && !["json", "form", "raw"].includes(body)) {
    throw new TypeError(`body must be "json", "form" or "raw": ${quote(body)}`);
  }
  if (body !== undefined && BODILESS.includes(upper)) {
    throw new TypeError(`body is not allowed with the method ${upper}`);
  }
  return upper;
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
  if (body === "raw") return args.body === undefined ? {} : { body: textOf(args.body) };
  return { headers: { "content-type": "application/json" }, body: JSON.stringify(args) };
}

function pairsOf(entries: readonly [string, unknown][]): [string, string][] {
  return entries.flatMap(([name, value]) =>
    (Array.isArray(value) ? value : [value])
      .filter((each) => each !== undefined && each !== null)
      .map((each): [string, string] => [name, textOf(each)])
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
  return { output: outputOf(), isError: !ok, metadata: { status } };

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
