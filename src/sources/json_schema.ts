/**
 * Plain JSON Schema as a schema that also validates: what `defineTool` needs to turn a bad call away
 * with a list of what is wrong. Nothing is compiled with `eval`, so it runs on Deno Deploy too.
 *
 * @module
 */

import type { FromSchema, JsonSchema, StandardIssue, StandardJsonSchema } from "../../mod.ts";
import {
  dereference,
  type OutputUnit,
  type Schema as CheckedSchema,
  type SchemaDraft,
  Validator,
} from "npm:@cfworker/json-schema@^4.1.1";

const DRAFTS: readonly [RegExp, SchemaDraft][] = [
  [/draft-0?4/, "4"],
  [/draft-0?[67]/, "7"],
  [/2019-09/, "2019-09"],
];

/**
 * Wraps a JSON Schema as a Standard Schema with a JSON form. The draft is that of `$schema`, else
 * 2020-12. Values are checked, not changed: `default` stays an annotation.
 *
 * @throws {TypeError} if the schema is no object, has a `$ref` that leads nowhere, or a `pattern` that
 * is no regular expression
 *
 * @example
 * ```ts
 * import { defineTool } from "@toolnexus/client";
 * import { jsonSchema } from "@toolnexus/client/json-schema";
 * import { assertEquals } from "@std/assert";
 *
 * const roll = defineTool({
 *   name: "roll",
 *   description: "Rolls a die",
 *   inputSchema: jsonSchema({
 *     type: "object",
 *     properties: { sides: { type: "integer", minimum: 2 } },
 *     required: ["sides"],
 *   }),
 *   run: ({ sides }) => `rolled one of ${sides}`,
 * });
 * const { output } = await roll.execute({ sides: 1 });
 * assertEquals(output, "invalid arguments for roll: sides: 1 is less than 2");
 * ```
 */
export function jsonSchema<const Schema extends JsonSchema>(
  schema: Schema,
): StandardJsonSchema<FromSchema<Schema>> {
  if (typeof schema !== "object" || schema === null || Array.isArray(schema)) {
    throw new TypeError(`JSON Schema must be an object: ${JSON.stringify(schema)}`);
  }
  // The validator writes into its schema.
  const own = structuredClone(schema) as CheckedSchema;
  checkSchema(own);
  const dialect = String(schema.$schema ?? "");
  const draft = DRAFTS.find(([pattern]) => pattern.test(dialect))?.[1] ?? "2020-12";
  const validator = new Validator(own, draft, false);
  return {
    "~standard": {
      version: 1,
      vendor: "toolnexus",
      validate(value) {
        const { valid, errors } = validator.validate(value);
        return valid ? { value: value as FromSchema<Schema> } : { issues: issuesOf(errors) };
      },
      jsonSchema: { input: () => structuredClone(own) },
    },
  };
}

/** What would else come out at the first call, where only the model would be told. */
function checkSchema(schema: CheckedSchema): void {
  const known = dereference(schema);
  for (const part of Object.values(known)) {
    if (typeof part !== "object") continue;
    const { $ref, __absolute_ref__: target = "", pattern, patternProperties } = part;
    if ($ref !== undefined && known[target] === undefined) {
      throw new TypeError(`$ref ${JSON.stringify($ref)} of the JSON Schema leads nowhere`);
    }
    for (const source of [pattern ?? "", ...Object.keys(patternProperties ?? {})]) {
      try {
        new RegExp(source, "u");
      } catch (cause) {
        throw new TypeError(
          `pattern ${JSON.stringify(source)} of the JSON Schema is no regular expression`,
          { cause },
        );
      }
    }
  }
}

/** Keywords whose error only says that a part of the value, or a schema referred to, has one. */
const WRAPPERS: ReadonlySet<string> = new Set([
  "$ref",
  "$recursiveRef",
  "additionalItems",
  "additionalProperties",
  "allOf",
  "dependentSchemas",
  "items",
  "patternProperties",
  "prefixItems",
  "properties",
  "unevaluatedItems",
  "unevaluatedProperties",
]);

/** The problems themselves, each once and where it is. */
function issuesOf(errors: readonly OutputUnit[]): StandardIssue[] {
  const issues = new Map<string, StandardIssue>();
  for (const { keyword, instanceLocation, error } of errors) {
    if (WRAPPERS.has(keyword)) continue;
    const message = keyword === "false" ? "is not allowed" : error.replace(/\.$/, "");
    issues.set(`${instanceLocation} ${message}`, { message, path: pathOf(instanceLocation) });
  }
  return [...issues.values()];
}

/** `#/orders/0/city` as a path. */
function pathOf(pointer: string): PropertyKey[] {
  return pointer.split("/").slice(1).map((part) => {
    const key = decodeURIComponent(part).replaceAll("~1", "/").replaceAll("~0", "~");
    return /^\d+$/.test(key) ? Number(key) : key;
  });
}
