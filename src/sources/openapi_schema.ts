/**
 * The schemas of OpenAPI 3.0 and 3.1 as the JSON Schema that a tool declares.
 *
 * @module
 */

import { type JsonSchema, sanitize } from "../../mod.ts";
import { entriesOf, isNode, type Node, type SpecDocument } from "./openapi_document.ts";

/**
 * The keywords of JSON Schema 2020-12 by what they hold. What is none of them is left out: words of
 * OpenAPI say nothing to a model, and some providers refuse them; definitions are found through the
 * document; a name of a schema would lead references astray.
 */
const KEYWORDS = {
  schema: "additionalProperties contains contentSchema else if items not propertyNames then " +
    "unevaluatedItems unevaluatedProperties",
  schemas: "allOf anyOf oneOf prefixItems",
  map: "dependentSchemas patternProperties properties",
  string: "contentEncoding contentMediaType description format pattern title",
  number: "maxContains maxItems maxLength maxProperties maximum minContains minItems minLength " +
    "minProperties minimum multipleOf",
  boolean: "deprecated uniqueItems",
  list: "enum examples required",
  any: "const default dependentRequired exclusiveMaximum exclusiveMinimum type",
} as const;

const KINDS: ReadonlyMap<string, string> = new Map(
  Object.entries(KEYWORDS).flatMap(([kind, words]) => words.split(" ").map((word) => [word, kind])),
);

/** Those that say something of a value without restricting it, as every unknown word does. */
const ANNOTATIONS = /^(default|deprecated|description|examples|title)$/;

/** More is no schema for a model: a YAML text can double at every line what its anchors stand for. */
const MAX_PARTS = 20_000;

/** So many characters of a text are a part more. */
const LONG_TEXT = 100;

/** A schema of no parts that is referred to more than once is put in place if its JSON is shorter. */
const MAX_IN_PLACE = 500;

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
    this.#count(schemas);
  }

  /** A schema as JSON Schema. */
  write(schema: unknown): JsonSchema {
    const written = this.#write(schema);
    return isNode(written) ? written : {};
  }

  /** Without recursion, as an object may contain itself. */
  #count(schemas: readonly unknown[]): void {
    const left = [...schemas];
    while (left.length > 0) {
      const schema = readSiblings(this.#document, left.pop());
      if (!isNode(schema)) continue;
      this.#spend(1);
      if (typeof schema.$ref === "string") {
        const count = (this.#counts.get(schema.$ref) ?? 0) + 1;
        this.#counts.set(schema.$ref, count);
        if (count === 1) {
          this.#document.resolve(schema); // throws if it leads to itself
          left.push(this.#document.get(schema.$ref));
        }
      }
      mapParts(schema, (part) => left.push(part), (value) => this.#measure(value));
    }
  }

  /** Counts what is written as it is. */
  #measure(value: unknown): void {
    const left = [value];
    while (left.length > 0) {
      const value = left.pop();
      this.#spend(typeof value === "string" ? 1 + Math.floor(value.length / LONG_TEXT) : 1);
      if (typeof value !== "object" || value === null) continue;
      for (const [key, part] of Object.entries(value)) left.push(key, part);
    }
  }

  #spend(parts: number): void {
    this.#parts += parts;
    if (this.#parts > MAX_PARTS) throw new TypeError(`schemas have more than ${MAX_PARTS} parts`);
  }

  #write(given: unknown): unknown {
    const schema = readSiblings(this.#document, given);
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

  #isShared(ref: string, target: unknown): boolean {
    if (!isNode(target) || this.#counts.get(ref) === 1) return false;
    if (this.#names.has(ref) || target.$ref !== undefined) return true;
    let parts = 0;
    mapParts(target, () => ++parts);
    return parts > 0 || JSON.stringify(this.#convert(target)).length > MAX_IN_PLACE;
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

/**
 * A schema as JSON Schema reads it: what stands beside a reference is one more condition (2020-12,
 * section 8.2.3.1). In OpenAPI 3.0 nothing does; there, too, many documents describe what they refer to.
 */
export function readSiblings(document: SpecDocument, schema: unknown): unknown {
  if (!isNode(schema) || typeof schema.$ref !== "string") return schema;
  const { $ref, ...beside } = schema;
  if (!document.ignoresSiblings) return both({ $ref }, beside);
  return {
    $ref,
    ...Object.fromEntries(Object.entries(beside).filter(([key]) => !restricts(key))),
  };
}

/** Two schemas of one value as one: side by side, unless their keywords can stand together. */
export function both(first: unknown, second: unknown): unknown {
  return isNode(first) && isNode(second) && areOne(first, second)
    ? { ...first, ...second }
    : { allOf: [first, second] };
}

/** Documents often repeat a property to describe it anew. */
function areOne(first: Node, second: Node): boolean {
  const [keys = [], others = []] = [first, second].map((each) =>
    Object.keys(each).filter(restricts)
  );
  if (keys.length === 0 || others.length === 0) return true;
  // It adds null to what stands beside it.
  if ((first.nullable === true) !== (second.nullable === true)) return false;
  const hasParts = (key: string) => key === "$ref" || /^(schemas?|map)$/.test(KINDS.get(key)!);
  if ([...keys, ...others].some((key) => hasParts(key) && first[key] !== second[key])) return false;
  return keys.every((key) => !others.includes(key) || isSame(first[key], second[key]));
}

function isSame(first: unknown, second: unknown): boolean {
  if (!Array.isArray(first) || !Array.isArray(second)) return first === second;
  return first.length === second.length && first.every((each, index) => each === second[index]);
}

/** Whether a keyword excludes values. */
function restricts(key: string): boolean {
  return key === "$ref" || KINDS.has(key) && !ANNOTATIONS.test(key);
}

/** A copy of a schema's keywords with something in the place of each part, and of each other value. */
function mapParts(
  schema: Node,
  change: (part: unknown) => unknown,
  changeValue: (value: unknown) => unknown = (value) => value,
): Record<string, unknown> {
  const copy: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(schema)) {
    const kind = KINDS.get(key);
    if (kind === "schema") copy[key] = change(value);
    else if (kind === "schemas") {
      if (Array.isArray(value)) copy[key] = value.map(change);
    } else if (kind === "map") {
      const entries = entriesOf(value);
      changeValue(entries.map(([name]) => name));
      copy[key] = Object.fromEntries(entries.map(([name, part]) => [name, change(part)]));
    } else if (kind === "any" || (kind === "list" ? Array.isArray(value) : kind === typeof value)) {
      copy[key] = changeValue(value);
    }
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
