/**
 * Schemas of other libraries, by the two interfaces they share: https://standardschema.dev
 * (validation) and its JSON Schema companion. Restated here, so that nothing need be installed.
 *
 * @module
 */

import { quote, reasonOf } from "../errors.ts";
import { isPlainObject } from "../json.ts";
import type { JsonSchema } from "../types.ts";

/** A problem that a schema found. */
export interface StandardIssue {
  /** What is wrong. */
  readonly message: string;
  /** Where: keys from the outside in. */
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/** What a validation gives: the value, or the problems. */
export type StandardResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly StandardIssue[] };

/**
 * A schema that validates and has a JSON form: zod 4, arktype, valibot through its wrapper, or a
 * plain JSON Schema wrapped by `@toolnexus/client/json-schema`.
 */
export interface StandardJsonSchema<Input = unknown, Output = Input> {
  /** The properties of the standard. */
  readonly "~standard": {
    /** The version of the standard. */
    readonly version: 1;
    /** The library that made the schema. */
    readonly vendor: string;
    /** Checks a value. */
    readonly validate: (
      value: unknown,
    ) => StandardResult<Output> | Promise<StandardResult<Output>>;
    /** The JSON Schema of what it accepts. */
    readonly jsonSchema: {
      /** @throws if there is none */
      readonly input: (options: { readonly target: string }) => Record<string, unknown>;
    };
    /** The types; never there at run time. */
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
  };
}

/** Whether a value is a schema of the standard. Those of some libraries are functions. */
export function isStandardSchema(value: unknown): value is StandardJsonSchema {
  return ((typeof value === "object" && value !== null) || typeof value === "function") &&
    "~standard" in value;
}

/**
 * The JSON Schema of a schema's input.
 *
 * @throws {TypeError} if it has none
 */
export function jsonSchemaOf(schema: StandardJsonSchema, name: string): unknown {
  const convert = schema["~standard"].jsonSchema?.input;
  if (typeof convert !== "function") {
    throw new TypeError(
      `inputSchema of tool ${name} has no JSON Schema form (~standard.jsonSchema)`,
    );
  }
  let json: unknown;
  try {
    json = convert({ target: "draft-2020-12" });
  } catch (cause) {
    throw new TypeError(`inputSchema of tool ${name} has no JSON Schema form: ${reasonOf(cause)}`, {
      cause,
    });
  }
  if (!isPlainObject(json)) return json;
  // The dialect is the endpoint's affair, and some endpoints refuse the keyword.
  const { $schema: _, ...rest } = json;
  return rest;
}

/**
 * A schema of arguments. They are always an object, and providers want that said.
 *
 * @throws {TypeError} if it describes something else
 */
export function argumentsSchema(json: unknown, name: string): JsonSchema {
  if (!isPlainObject(json)) {
    throw new TypeError(`inputSchema of tool ${name} must be an object: ${quote(json)}`);
  }
  const { type = "object" } = json;
  if (type !== "object") {
    throw new TypeError(`inputSchema of tool ${name} must be of type "object": ${quote(type)}`);
  }
  return json.type === type ? json : { type, ...json };
}

/** The problems in one text that a model can mend its call by. */
export function issuesText(issues: readonly StandardIssue[]): string {
  return issues.map(({ message, path }) => {
    const place = placeOf(path ?? []);
    // Some libraries name the place themselves.
    return place === "" || message.startsWith(`${place} `) ? message : `${place}: ${message}`;
  }).join("; ");
}

/** `orders[0].city`. */
function placeOf(path: NonNullable<StandardIssue["path"]>): string {
  return path.map((part) => typeof part === "object" ? part.key : part)
    .map((key) => typeof key === "number" ? `[${key}]` : `.${String(key)}`)
    .join("").replace(/^\./, "");
}
