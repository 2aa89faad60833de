/**
 * Schemas of other libraries, by the two interfaces they share: https://standardschema.dev
 * (validation) and its JSON Schema companion. Restated here, so that nothing need be installed.
 *
 * @module
 */

import { isPlainObject } from "../messages.ts";
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
 * @throws {TypeError} if it has none, or none of an object
 */
export function jsonSchemaOf(schema: StandardJsonSchema, name: string): JsonSchema {
  const convert = schema["~standard"].jsonSchema?.input;
  if (typeof convert !== "function") {
    throw new TypeError(
      `inputSchema of tool ${name} has no JSON Schema form (~standard.jsonSchema)`,
    );
  }
  const json = convert({ target: "draft-2020-12" });
  if (!isPlainObject(json)) {
    throw new TypeError(`inputSchema of tool ${name} has a JSON form that is no object`);
  }
  // The dialect is the endpoint's affair, and some endpoints refuse the keyword.
  const { $schema: _, ...rest } = json;
  return rest;
}

/** The problems in one text that a model can mend its call by. */
export function issuesText(issues: readonly StandardIssue[]): string {
  return issues.map(({ message, path }) => {
    const place = (path ?? []).map((part) => String(typeof part === "object" ? part.key : part));
    return place.length > 0 ? `${place.join(".")}: ${message}` : message;
  }).join("; ");
}
