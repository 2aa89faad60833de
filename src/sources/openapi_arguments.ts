/**
 * The arguments of an operation: where each comes from, and how a call's values get back there.
 *
 * @module
 */

import type { HttpRequestParts, JsonSchema } from "../../mod.ts";
import { entriesOf, isNode, type Node, nodesOf, type SpecDocument } from "./openapi_document.ts";
import {
  both,
  isReadOnly,
  MAX_NAME,
  readSiblings,
  SchemaWriter,
  unique,
} from "./openapi_schema.ts";
import { formPairs, headerText, parameterPairs, pathText, plainText } from "./openapi_styles.ts";

/** The arguments of one operation. */
export interface OperationArguments {
  /** The JSON Schema of all of them. */
  inputSchema: JsonSchema;
  /**
   * The parts of the request of a call.
   *
   * @throws {TypeError} if an argument is missing or unknown
   */
  request(args: Record<string, unknown>): HttpRequestParts;
}

/** In the order in which they get their names: the first of a name keeps it. */
const PLACES = ["path", "query", "header", "cookie", "body"] as const;

type Place = typeof PLACES[number];

/** A parameter, or a property of a body, as an argument. */
interface Argument {
  place: Place;
  /** Its name in the document. */
  key: string;
  schema: unknown;
  isRequired: boolean;
  description?: unknown;
  /** The parameter; for a property of a form, its encoding. */
  spec: Node;
}

/** The body of an operation. */
interface Body {
  contentType: string;
  kind: "json" | "form" | "text";
  isRequired: boolean;
  /** Whether its properties are arguments; else it is one. */
  isFlat: boolean;
  arguments: Argument[];
}

/** Headers that the request itself decides on (OpenAPI 3.1.1, "Parameter Object"; RFC 9110, 7). */
const OWN_HEADERS =
  /^(accept|authorization|connection|content-length|content-type|host|transfer-encoding)$/i;

/** What Anthropic accepts as a property's key is the least that all providers do. */
const FOREIGN_CHARACTER = /[^a-zA-Z0-9_.-]/g;

/**
 * Reads the arguments of an operation.
 *
 * @throws {TypeError} if the operation cannot be called with JSON values
 */
export function operationArguments(
  document: SpecDocument,
  path: string,
  pathItem: Node,
  operation: Node,
): OperationArguments {
  const body = bodyOf(document, operation.requestBody);
  const all = [...parametersOf(document, path, pathItem, operation), ...body?.arguments ?? []]
    .sort((a, b) => PLACES.indexOf(a.place) - PLACES.indexOf(b.place));
  const named = new Map<string, Argument>();
  for (const argument of all) named.set(nameOf(argument, named), argument);
  return {
    inputSchema: schemaOf(document, named),
    request(args) {
      const values = new Map(Object.entries(args));
      for (const name of values.keys()) {
        if (!named.has(name)) throw new TypeError(`unknown argument: ${name}`);
      }
      const given: [Argument, unknown][] = [];
      for (const [name, argument] of named) {
        const own = values.get(name);
        // Null is a value in a body alone.
        const value = own === null && argument.place !== "body" ? undefined : own;
        if (value !== undefined) given.push([argument, value]);
        else if (argument.isRequired) throw new TypeError(`argument ${name} is missing`);
      }
      return partsOf(given, body);
    },
  };
}

/** `id`; where that is taken `body_id`; where that is too, with a number. */
function nameOf({ key, place }: Argument, taken: ReadonlyMap<string, unknown>): string {
  const name = key.replace(FOREIGN_CHARACTER, "_").slice(0, MAX_NAME) || place;
  return taken.has(name) ? unique(`${place}_${name}`, taken) : name;
}

function schemaOf(document: SpecDocument, named: ReadonlyMap<string, Argument>): JsonSchema {
  const writer = new SchemaWriter(document, [...named.values()].map(({ schema }) => schema));
  const properties = [...named].map(([name, { schema, description }]) => {
    const written = writer.write(schema);
    return [name, typeof description === "string" ? { ...written, description } : written] as const;
  });
  const required = [...named].filter(([, { isRequired }]) => isRequired).map(([name]) => name);
  return {
    type: "object",
    properties: Object.fromEntries(properties),
    ...(required.length > 0 && { required }),
    additionalProperties: false,
    ...(writer.definitions.size > 0 && { $defs: Object.fromEntries(writer.definitions) }),
  };
}

function parametersOf(
  document: SpecDocument,
  path: string,
  pathItem: Node,
  operation: Node,
): Argument[] {
  const found = new Map<string, Argument>();
  // An operation's parameter stands in for the path's of the same place and name.
  for (const each of [...nodesOf(pathItem.parameters), ...nodesOf(operation.parameters)]) {
    const spec = document.resolve(each);
    const { name: key, in: place, description } = spec;
    if (typeof key !== "string" || !isPlace(place)) continue;
    if (place === "header" && OWN_HEADERS.test(key)) continue;
    const [, media] = entriesOf(spec.content)[0] ?? [];
    const schema = isNode(media) ? media.schema : spec.schema;
    const isRequired = place === "path" || spec.required === true;
    const id = `${place} ${place === "header" ? key.toLowerCase() : key}`;
    found.set(id, { place, key, schema, isRequired, description, spec });
  }
  // Some documents do not list what stands in their paths.
  for (const [, key = ""] of path.matchAll(/\{([^{}]+)\}/g)) {
    if (found.has(`path ${key}`)) continue;
    const schema = { type: "string" };
    found.set(`path ${key}`, { place: "path", key, schema, isRequired: true, spec: {} });
  }
  return [...found.values()];
}

function isPlace(value: unknown): value is Place {
  return value !== "body" && PLACES.includes(value as Place);
}

function bodyOf(document: SpecDocument, requestBody: unknown): Body | undefined {
  if (requestBody === undefined) return undefined;
  const spec = document.resolve(requestBody);
  const isRequired = spec.required === true;
  const media = entriesOf(spec.content).map(([type, value]) => {
    const [kind, contentType] = kindOf(type) ?? [];
    return { type, kind, contentType, value: isNode(value) ? value : {} };
  });
  const chosen = (["json", "form", "text"] as const)
    .map((kind) => media.find((each) => each.kind === kind))
    .find((each) => each !== undefined);
  if (chosen?.kind === undefined || chosen.contentType === undefined) {
    throw new TypeError(`body is ${media.map(({ type }) => type).join(", ") || "of no type"}`);
  }
  const { kind, contentType, value: { schema, encoding } } = chosen;
  const shape = kind === "text" ? undefined : shapeOf(document, schema);
  if (shape === undefined) {
    const whole: Argument = {
      place: "body",
      key: "body",
      schema: kind === "text" ? { type: "string" } : schema,
      isRequired,
      description: spec.description,
      spec: {},
    };
    return { kind, contentType, isRequired, isFlat: false, arguments: [whole] };
  }
  const encodings = isNode(encoding) ? encoding : {};
  const properties = [...shape.properties].map(([key, schema]): Argument => ({
    place: "body",
    key,
    schema,
    isRequired: isRequired && shape.required.has(key),
    spec: isNode(encodings[key]) ? encodings[key] : {},
  }));
  return { kind, contentType, isRequired, isFlat: true, arguments: properties };
}

/** How a body of a media type is written, and as what. */
function kindOf(type: string): [Body["kind"], string] | undefined {
  if (/^(application\/)?\*/.test(type)) return ["json", "application/json"];
  if (/^application\/json\b/i.test(type) || /\+json\b/i.test(type)) return ["json", type];
  if (/^application\/x-www-form-urlencoded\b/i.test(type)) return ["form", type];
  if (/^text\/(plain|\*)/i.test(type)) return ["text", "text/plain"];
  return undefined;
}

interface Shape {
  properties: ReadonlyMap<string, unknown>;
  required: ReadonlySet<unknown>;
}

/** The properties of an object schema; undefined where a list of properties does not say it all. */
function shapeOf(document: SpecDocument, schema: unknown): Shape | undefined {
  const properties = new Map<string, unknown>();
  const readOnly = new Set<string>();
  const required = new Set<unknown>();
  const seen = new Set<unknown>();
  if (!add(schema) || properties.size === 0) return undefined;
  for (const name of readOnly) properties.delete(name);
  return { properties, required };

  function add(given: unknown): boolean {
    const schema = readSiblings(document, given);
    const { $ref, ...node } = isNode(schema) ? schema : {};
    const isReference = typeof $ref === "string";
    // Once is enough, and references may lead in circles or double at every step.
    const key = isReference ? $ref : given;
    if (seen.has(key)) return true;
    seen.add(key);
    if (isReference) return add(document.get($ref));
    const { type = "object", allOf, anyOf, oneOf, additionalProperties, patternProperties } = node;
    const isObject = type === "object" || Array.isArray(type) && type.includes("object");
    const areOpen = [...nodesOf(anyOf), ...nodesOf(oneOf)].some((each) =>
      Object.keys(each).some((key) => key !== "required")
    );
    if (!isObject || areOpen || additionalProperties || patternProperties) return false;
    if (!nodesOf(allOf).every(add)) return false;
    for (const [name, part] of entriesOf(node.properties)) {
      const known = properties.get(name);
      properties.set(name, properties.has(name) ? both(known, part) : part);
      if (isReadOnly(document, part)) readOnly.add(name);
    }
    if (Array.isArray(node.required)) node.required.forEach((name) => required.add(name));
    return true;
  }
}

/** The values at their places in the request. */
function partsOf(
  given: readonly (readonly [Argument, unknown])[],
  body: Body | undefined,
): HttpRequestParts {
  const path: Record<string, string> = {};
  const query: [string, string][] = [];
  const headers: Record<string, string> = {};
  const cookies: string[] = [];
  const fields: (readonly [Argument, unknown])[] = [];
  for (const entry of given) {
    const [{ place, key, spec }, value] = entry;
    if (place === "body") fields.push(entry);
    else if (place === "query") query.push(...parameterPairs(key, value, spec));
    else if (place === "path") path[key] = pathText(key, value, spec);
    else if (place === "cookie") {
      cookies.push(...parameterPairs(key, value, spec).map((pair) => pair.join("=")));
    } else if (/^cookie$/i.test(key)) cookies.push(headerText(key, value, spec));
    else headers[key] = headerText(key, value, spec);
  }
  if (cookies.length > 0) headers.cookie = cookies.join("; ");
  const hasBody = body !== undefined && (fields.length > 0 || body.isRequired);
  if (hasBody) headers["content-type"] = body.contentType;
  const encoded = hasBody ? encodeBody(body, fields) : undefined;
  return { path, query, isEncoded: true, headers, body: encoded };
}

function encodeBody(
  { kind, isFlat }: Body,
  fields: readonly (readonly [Argument, unknown])[],
): string {
  const value = isFlat
    ? Object.fromEntries(fields.map(([{ key }, value]) => [key, value]))
    : fields[0]?.[1];
  if (kind === "json") return JSON.stringify(value);
  if (kind === "text") return plainText(value);
  const encodings = new Map(fields.map(([{ key, spec }]) => [key, spec]));
  const pairs = entriesOf(value).flatMap(([key, field]) => {
    return formPairs(key, field, isFlat ? encodings.get(key) ?? {} : {});
  });
  return pairs.map((pair) => pair.join("=")).join("&");
}
