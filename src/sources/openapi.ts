/**
 * Tools from an OpenAPI document: one for each operation.
 *
 * @module
 */

import { type DefinedTool, httpTool, type HttpToolDefinition, sanitize } from "../../mod.ts";
import { operationArguments } from "./openapi_arguments.ts";
import { entriesOf, isNode, type Node, serverUrl, SpecDocument } from "./openapi_document.ts";
import { unique } from "./openapi_schema.ts";

/** An operation of a document. */
export interface OpenAPIOperation {
  /** Its `operationId`, where it has one. */
  operationId: string | undefined;
  /** The method in capital letters; for `onSkip`, `*` where the whole path cannot be read. */
  method: string;
  /** The path as the document has it, such as `/pets/{petId}`. */
  path: string;
  /** Its tags. */
  tags: readonly string[];
  /** Its short description. */
  summary: string | undefined;
  /** Whether it should no longer be used. */
  deprecated: boolean;
}

/** What {@linkcode httpToolsFromOpenAPI} takes besides the document. */
export interface OpenAPIOptions {
  /** Where the API is, in place of the document's servers. @default the first server */
  baseUrl?: string | undefined;
  /** Values of the server's variables. @default the document's defaults */
  serverVariables?: Readonly<Record<string, string>> | undefined;
  /**
   * Headers of every request, as {@linkcode httpTool} takes them: `${NAME}` is the value of an
   * environment variable. Keys belong here: what the document says of security is not read. They go
   * to one origin, that of `baseUrl` or of the document's first server: an operation elsewhere is no
   * tool then.
   *
   * @default {}
   */
  headers?: Readonly<Record<string, string>> | undefined;
  /** Which operations become tools. @default all */
  filter?: ((operation: OpenAPIOperation) => boolean) | undefined;
  /** Which operations a human must approve each time. @default none */
  needsApproval?: ((operation: OpenAPIOperation) => boolean) | undefined;
  /** Stands before each tool's name. @default "" */
  namePrefix?: string | undefined;
  /**
   * Told of each operation, and of each path, that cannot be read or called, and why.
   *
   * @default a warning on the console
   */
  onSkip?: ((operation: OpenAPIOperation, reason: string) => void) | undefined;
  /** As {@linkcode httpTool} takes it. @default the client's `toolTimeoutMs`, else 30_000 */
  timeoutMs?: number | undefined;
  /** As {@linkcode httpTool} takes it. @default "text" */
  resultMode?: "text" | "json" | "status+text" | undefined;
  /** As {@linkcode httpTool} takes it. @default 100_000 */
  maxResponseBytes?: number | undefined;
  /** What sends the requests. @default globalThis.fetch */
  fetch?: typeof fetch | undefined;
}

const METHODS = ["get", "put", "post", "delete", "options", "head", "patch", "trace"];

/** The longest description that OpenAI accepts. */
const MAX_DESCRIPTION = 1024;

/**
 * Makes a tool of each operation of an OpenAPI 3.0 or 3.1 document. Parameters and the properties of
 * a body are arguments side by side; where a name comes twice, the later one is called by its place
 * too (`body_id`). A body that is no plain object is the argument `body`. References are followed
 * within the document; nothing is read from the network or from files.
 *
 * @param spec the document: its JSON or YAML text, or an object
 * @throws {TypeError} if it is no such document, or the URL of its server is missing or wrong
 *
 * @example
 * ```ts
 * import { httpToolsFromOpenAPI } from "@toolnexus/client/openapi";
 * import { assertEquals } from "@std/assert";
 *
 * const tools = await httpToolsFromOpenAPI(`
 * openapi: 3.1.0
 * info: { title: Pets, version: "1" }
 * servers: [{ url: "https://pets.test/v1" }]
 * paths:
 *   /pets/{id}:
 *     get:
 *       operationId: getPet
 *       summary: One pet
 *       parameters: [{ name: id, in: path, required: true, schema: { type: integer } }]
 * `);
 * assertEquals(tools.map((tool) => tool.name), ["getPet"]);
 * assertEquals(tools[0]?.inputSchema.required, ["id"]);
 * ```
 */
export async function httpToolsFromOpenAPI(
  spec: string | object,
  options: OpenAPIOptions = {},
): Promise<DefinedTool[]> {
  const { filter = () => true, onSkip = warn, namePrefix = "" } = options;
  const document = await SpecDocument.read(spec);
  checkSettings(options);
  let home: string | undefined;
  const tools = new Map<string, DefinedTool>();
  const { root } = document;
  for (const [path, item] of entriesOf(root.paths)) {
    let pathItem: Node;
    try {
      pathItem = document.resolve(item);
    } catch (error) {
      onSkip(describe("*", path, {}), reasonOf(error));
      continue;
    }
    for (const [method, node] of operationsOf(pathItem)) {
      const operation = describe(method, path, node);
      if (!filter(operation)) continue;
      home ??= urlOf([root, pathItem, node], options);
      try {
        const base = urlOf([node, pathItem, root], options, home);
        checkOrigin(path, base, home, options);
        const url = base + path;
        const name = nameOf(operation, namePrefix, tools);
        tools.set(name, toolOf({ document, pathItem, node, operation, url, name }, options));
      } catch (error) {
        onSkip(operation, reasonOf(error));
      }
    }
  }
  return [...tools.values()];
}

/** What is wrong with the options is wrong for every operation: no reason to skip each. */
function checkSettings(options: OpenAPIOptions): void {
  const { baseUrl, ...rest } = options;
  const url = baseUrl === undefined ? "http://localhost" : urlOf([], options);
  const { headers, timeoutMs, resultMode, maxResponseBytes, fetch } = rest;
  for (const name of ["filter", "needsApproval", "onSkip"] as const) {
    const value = rest[name];
    if (value === undefined || typeof value === "function") continue;
    throw new TypeError(`${name} must be a function: ${JSON.stringify(value)}`);
  }
  const { namePrefix = "" } = rest;
  if (typeof namePrefix !== "string") {
    throw new TypeError(`namePrefix must be a string: ${JSON.stringify(namePrefix)}`);
  }
  const sample = { name: "of the operations", description: "", method: "GET" };
  httpTool({ ...sample, url, headers, timeoutMs, resultMode, maxResponseBytes, fetch });
}

function operationsOf(pathItem: Node): [string, Node][] {
  return entriesOf(pathItem).flatMap(([method, node]): [string, Node][] =>
    METHODS.includes(method) && isNode(node) ? [[method, node]] : []
  );
}

function describe(method: string, path: string, node: Node): OpenAPIOperation {
  const { operationId, tags, summary, deprecated } = node;
  return {
    operationId: typeof operationId === "string" ? operationId : undefined,
    method: method.toUpperCase(),
    path,
    tags: Array.isArray(tags) ? tags.filter((tag) => typeof tag !== "object").map(String) : [],
    summary: typeof summary === "string" ? summary : undefined,
    deprecated: deprecated === true,
  };
}

/** `listPets`, or `get_pets_petId`. */
function nameOf(
  { operationId, method, path }: OpenAPIOperation,
  prefix: string,
  taken: ReadonlyMap<string, unknown>,
): string {
  const byPlace = `${method.toLowerCase()}${path.replace(/[^a-zA-Z0-9]+/g, "_")}`;
  return unique(sanitize(prefix + (operationId || byPlace.replace(/_$/, ""))), taken);
}

/** What the document says must not take the headers of the options to another host. */
function checkOrigin(path: string, base: string, home: string, { headers }: OpenAPIOptions): void {
  if (!path.startsWith("/")) {
    throw new TypeError(`path must begin with a slash: ${JSON.stringify(path)}`);
  }
  const [origin, homeOrigin] = [base, home].map((url) => URL.parse(url)?.origin);
  if (origin !== homeOrigin && Object.keys(headers ?? {}).length > 0) {
    throw new TypeError(`server ${origin} is not ${homeOrigin}, where the headers belong`);
  }
}

/** `baseUrl`, or the URL of the first of these that names a server; it may be relative to `home`. */
function urlOf(
  places: readonly Node[],
  { baseUrl, serverVariables = {} }: OpenAPIOptions,
  home?: string,
): string {
  const servers = places.values().map((place) => serverUrl(place.servers, serverVariables));
  const given = baseUrl ?? servers.find((each) => each !== undefined);
  const url = given && home ? URL.parse(given, `${home}/`)?.href : given;
  if (url === undefined || !/^https?:\/\/[^?#]+$/i.test(url)) {
    const shown = given === undefined ? "none" : JSON.stringify(given);
    const what = `must be an http or https URL without a query: ${shown}`;
    if (baseUrl !== undefined) throw new TypeError(`baseUrl ${what}`);
    throw new TypeError(`server ${what}${home === undefined ? "; give baseUrl" : ""}`);
  }
  return url.replace(/\/+$/, "");
}

interface ToolParts {
  document: SpecDocument;
  pathItem: Node;
  node: Node;
  operation: OpenAPIOperation;
  url: string;
  name: string;
}

function toolOf(
  { document, pathItem, node, operation, url, name }: ToolParts,
  options: OpenAPIOptions,
): DefinedTool {
  const { method, path, summary } = operation;
  // A body has no meaning there (OpenAPI 3.0.3, "Operation Object"), and `fetch` would send none.
  const called = /^(GET|HEAD)$/.test(method) ? { ...node, requestBody: undefined } : node;
  const { inputSchema, request } = operationArguments(document, path, pathItem, called);
  const texts = [summary, node.description].filter((text) => typeof text === "string" && text);
  const accept = answerType(document, node.responses);
  const definition: HttpToolDefinition<typeof inputSchema> = {
    name,
    description: shorten([...new Set(texts)].join("\n\n") || `${method} ${path}`),
    method,
    url,
    inputSchema,
    request(args) {
      const parts = request(args);
      return { ...parts, headers: { ...(accept && { accept }), ...parts.headers } };
    },
    headers: options.headers,
    needsApproval: options.needsApproval?.(operation),
    timeoutMs: options.timeoutMs,
    resultMode: options.resultMode,
    maxResponseBytes: options.maxResponseBytes,
    fetch: options.fetch,
  };
  return httpTool(definition);
}

/** The JSON type that an operation answers with, so that it does not choose another. */
function answerType(document: SpecDocument, responses: unknown): string | undefined {
  return entriesOf(responses)
    .filter(([status]) => /^(2..|default)$/i.test(status))
    .flatMap(([, response]) => entriesOf(document.resolve(response).content))
    .map(([type]) => type)
    .find((type) => /^application\/json\b|\+json\b/i.test(type));
}

function shorten(text: string): string {
  return text.length > MAX_DESCRIPTION ? `${text.slice(0, MAX_DESCRIPTION - 1)}…` : text;
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function warn({ method, path }: OpenAPIOperation, reason: string): void {
  console.warn(`openapi: ${method} ${path} is no tool: ${reason}`);
}
