/**
 * The schema of a tool's arguments as providers take it.
 *
 * @module
 */

import { equalJson, isJsonObject, objectOf } from "../json.ts";
import type { JsonSchema } from "../types.ts";

/** What providers refuse at the top of a schema: each refuses the whole request for it. */
const REFUSED = ["$ref", "allOf", "anyOf", "const", "enum", "not", "oneOf"] as const;

/** The properties of an object, and those that it must have. */
interface Shape {
  properties: Map<string, unknown>;
  required: Set<string>;
}

/**
 * The schema as that of one object, which providers demand. What is combined at its top, as unions
 * are, is folded into one list of properties. That tells the model less than the schema does, never
 * more. A schema that needs no folding stays the same object.
 */
export function objectSchema(schema: JsonSchema): JsonSchema {
  if (schema.type === "object" && !REFUSED.some((key) => key in schema)) return schema;
  const { properties, required } = new Folding(schema).shapeOf(schema) ?? shapeOf(schema);
  const folded: Record<string, unknown> = { ...schema, type: "object" };
  for (const key of REFUSED) delete folded[key];
  if (properties.size > 0) folded.properties = Object.fromEntries(properties);
  if (required.size > 0) folded.required = [...required];
  return folded;
}

class Folding {
  readonly #root: JsonSchema;
  /** Each schema is read once, however often and from wherever it is referred to. */
  readonly #shapes = new Map<object, Shape | undefined>();

  constructor(root: JsonSchema) {
    this.#root = root;
  }

  /** The shape of the objects that a schema allows; undefined if it allows none. */
  shapeOf(schema: unknown): Shape | undefined {
    if (schema === true) return shapeOf({});
    if (!isJsonObject(schema) || !allowsObject(schema)) return undefined;
    if (this.#shapes.has(schema)) return this.#shapes.get(schema);
    // Where a schema refers to itself it says nothing new.
    this.#shapes.set(schema, shapeOf({}));
    const shapes = [shapeOf(schema), ...listOf(schema.allOf).map((part) => this.shapeOf(part))];
    if (typeof schema.$ref === "string") shapes.push(this.shapeOf(this.#find(schema.$ref)));
    for (const choice of [schema.anyOf, schema.oneOf]) {
      const branches = listOf(choice);
      if (branches.length > 0) shapes.push(anyOf(branches.map((branch) => this.shapeOf(branch))));
    }
    const shape = allOf(shapes);
    this.#shapes.set(schema, shape);
    return shape;
  }

  /** What a reference within the schema points to; what cannot be found allows everything. */
  #find(reference: string): unknown {
    if (!reference.startsWith("#")) return true;
    let found: unknown = this.#root;
    for (const step of reference.split("/").slice(1)) {
      const key = step.replaceAll("~1", "/").replaceAll("~0", "~");
      if (typeof found !== "object" || found === null || !Object.hasOwn(found, key)) return true;
      found = (found as Record<string, unknown>)[key];
    }
    return found;
  }
}

/** What a schema itself says of the properties. */
function shapeOf({ properties, required }: Record<string, unknown>): Shape {
  return {
    properties: new Map(Object.entries(objectOf(properties) ?? {})),
    required: new Set(listOf(required).filter((name) => typeof name === "string")),
  };
}

function allowsObject({ type }: Record<string, unknown>): boolean {
  return type === undefined || type === "object" || listOf(type).includes("object");
}

function listOf(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}

/** An object that is of all these shapes. */
function allOf(shapes: readonly (Shape | undefined)[]): Shape | undefined {
  if (!shapes.every((shape) => shape !== undefined)) return undefined;
  return {
    properties: propertiesOf(shapes, "allOf"),
    required: shapes.reduce((all, { required }) => all.union(required), new Set<string>()),
  };
}

/** An object that is of one of these shapes. */
function anyOf(branches: readonly (Shape | undefined)[]): Shape | undefined {
  const shapes = branches.filter((shape) => shape !== undefined);
  if (shapes.length === 0) return undefined;
  return {
    properties: propertiesOf(shapes, "anyOf"),
    required: shapes.map(({ required }) => required).reduce((all, own) => all.intersection(own)),
  };
}

/** The properties of all shapes; the forms that one has in several are combined. */
function propertiesOf(
  shapes: readonly Shape[],
  combined: "allOf" | "anyOf",
): Map<string, unknown> {
  const forms = new Map<string, unknown[]>();
  for (const { properties } of shapes) {
    for (const [name, form] of properties) {
      const before = forms.get(name);
      if (before === undefined) forms.set(name, [form]);
      else if (!before.some((other) => equalJson(other, form))) before.push(form);
    }
  }
  return new Map(
    [...forms].map(([name, all]) => [name, all.length === 1 ? all[0] : { [combined]: all }]),
  );
}
