/**
 * The schemas of OpenAPI 3.0 and 3.1 as the JSON Schema that a tool declares.
 *
 * @module
 */

import { type JsonSchema, sanitize } from "../../mod.ts";
import { entriesOf, isNode, type Node, type SpecDocument } from "./openapi_document.ts";

/** Keywords that hold a schema, a list of schemas, a map of schemas. */
const SINGLE = new Set([
  "additionalProperties",
  "contains",
  "else",
  "if",
  "items",
  "not",
  "propertyNames",
  "then",
  "unevaluatedItems",
  "unevaluatedProperties",
]);
const LIST = new Set(["allOf", "anyOf", "oneOf", "prefixItems"]);
const MAP = new Set(["dependentSchemas", "patternProperties", "properties"]);

/** What OpenAPI adds to JSON Schema; it says nothing to a model, and some providers refuse it. */
const FOREIGN = /^(discriminator|example|externalDocs|nullable|readOnly|writeOnly|xml|x-.*)$/;

/** More is no schema for a model: a YAML text can double at every line what its anchors stand for. */
const MAX_PARTS = 20_000;

/** The longest name of a tool, and of an argument, that all providers accept. */
export const MAX_NAME = 64;

/**
 * Writes the schemas of one tool. A schema that is referred to once is put in place; one that is
 * referred to more often, or by itself, is kept once in `$defs`.
 */
export class SchemaWriter {
  readonly #document: SpecDocument;
  readonly #counts = new Map<string, number>();
  #parts = 0;
  readonly #names = new Map<string, string>();
  /** The schemas that others refer to, by name. */
  readonly definitions: Map<string, unknown> = new Map();

  /**
   * `schemas` is everything that will be written.
   *
   * @throws {TypeError} if it is too much
   */
  constructor(document: SpecDocument, schemas: readonly unknown[]) {
    this.#document = document;
    schemas.forEach((schema) => this.#count(schema));
  }

  /** A schema as JSON Schema. */
  write(schema: unknown): JsonSchema {
    const written = this.#write(schema);
    return isNode(written) ? written : {};
  }

  #count(schema: unknown): unknown {
    if (!isNode(schema)) return schema;
    if (++this.#parts > MAX_PARTS) throw new TypeError(`schemas have more than ${MAX_PARTS} parts`);
    const { $ref } = schema;
    if (typeof $ref === "string") {
      const count = (this.#counts.get($ref) ?? 0) + 1;
      this.#counts.set($ref, count);
      if (count === 1) this.#count(this.#document.get($ref));
    }
    return mapParts(schema, (part) => this.#count(part));
  }

  #write(schema: unknown): unknown {
    if (typeof schema === "boolean") return schema;
    if (!isNode(schema)) return {};
    const { $ref, nullable, ...beside } = schema;
    if (typeof $ref !== "string") return this.#convert(schema);
    const target = this.#document.get($ref);
    const written = this.#isShared($ref, target)
      ? { $ref: `#/$defs/${this.#define($ref, target)}` }
      : this.#write(target);
    if (!isNode(written)) return written;
    const merged = { ...written, ...this.#convert(beside) };
    return nullable === true ? orNull(merged) : merged;
  }

  /** Small ones are put in place however often they come. */
  #isShared(ref: string, target: unknown): boolean {
    if (!isNode(target) || this.#counts.get(ref) === 1) return false;
    let parts = 0;
    mapParts(target, () => ++parts);
    return parts > 0 || target.$ref !== undefined;
  }

  #define(ref: string, target: unknown): string {
    const known = this.#names.get(ref);
    if (known !== undefined) return known;
    const name = unique(sanitize(ref.slice(ref.lastIndexOf("/") + 1)), this.definitions);
    this.#names.set(ref, name);
    this.definitions.set(name, {});
    this.definitions.set(name, this.#write(target));
    return name;
  }

  #convert(schema: Node): Node {
    const node = this.#withoutReadOnly(schema);
    const written: Record<string, unknown> = mapParts(node, (part) => this.#write(part));
    for (const key of Object.keys(written)) {
      if (FOREIGN.test(key)) delete written[key];
    }
    if (!Array.isArray(written.examples)) delete written.examples;
    if (!Array.isArray(written.required)) delete written.required;
    if (written.properties !== undefined) written.type ??= "object";
    // Some providers refuse a list that does not say of what.
    if (written.type === "array" && written.prefixItems === undefined) written.items ??= {};
    exclusive(written, "exclusiveMinimum", "minimum");
    exclusive(written, "exclusiveMaximum", "maximum");
    return schema.nullable === true ? orNull(written) : written;
  }

  #withoutReadOnly(schema: Node): Node {
    const hidden = entriesOf(schema.properties)
      .filter(([, part]) => isReadOnly(this.#document, part)).map(([name]) => name);
    if (hidden.length === 0) return schema;
    const { required } = schema;
    return {
      ...schema,
      properties: Object.fromEntries(
        entriesOf(schema.properties).filter(([name]) => !hidden.includes(name)),
      ),
      ...(Array.isArray(required) && {
        required: required.filter((name) => !hidden.includes(name)),
      }),
    };
  }
}

/** Whether only the server may set a property: then it is none of a caller's business. */
export function isReadOnly(document: SpecDocument, schema: unknown): boolean {
  return isNode(schema) && document.resolve(schema).readOnly === true;
}

/** A copy of a schema with something in the place of each of its parts. */
function mapParts(schema: Node, change: (part: unknown) => unknown): Record<string, unknown> {
  const copy: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(schema)) {
    if (SINGLE.has(key)) copy[key] = change(value);
    else if (LIST.has(key) && Array.isArray(value)) copy[key] = value.map(change);
    else if (MAP.has(key)) {
      copy[key] = Object.fromEntries(entriesOf(value).map(([name, part]) => [name, change(part)]));
    } else copy[key] = value;
  }
  return copy;
}

/** In OpenAPI 3.0 `exclusiveMinimum` is a word about `minimum`. */
function exclusive(schema: Record<string, unknown>, keyword: string, bound: string): void {
  if (typeof schema[keyword] !== "boolean") return;
  if (schema[keyword] && schema[bound] !== undefined) {
    schema[keyword] = schema[bound];
    delete schema[bound];
  } else delete schema[keyword];
}

/** In OpenAPI 3.0 null is no type. */
function orNull(schema: Record<string, unknown>): Node {
  if (typeof schema.type !== "string") {
    const { description, ...rest } = schema;
    if (Object.keys(rest).length === 0) return schema;
    return {
      ...(description !== undefined && { description }),
      anyOf: [rest, { type: "null" }],
    };
  }
  const { type, enum: values } = schema;
  return {
    ...schema,
    type: [type, "null"],
    ...(Array.isArray(values) && !values.includes(null) && { enum: [...values, null] }),
  };
}

/** A name that is not taken yet: as it is, or with a number after it. */
export function unique(name: string, taken: ReadonlyMap<string, unknown>): string {
  let free = name.slice(0, MAX_NAME);
  for (let number = 2; taken.has(free); number++) {
    const suffix = `_${number}`;
    free = name.slice(0, MAX_NAME - suffix.length) + suffix;
  }
  return free;
}
