/**
 * The TypeScript type of what a literal JSON Schema describes.
 *
 * @module
 */

/**
 * The type of the values that `Schema` accepts, by the keywords that have a meaning in TypeScript:
 * `type`, `properties`, `required`, `additionalProperties`, `items`, `prefixItems`, `enum`, `const`,
 * `anyOf`, `oneOf`, `allOf`. What the others demand is not seen; a schema without any of these is
 * `unknown`.
 *
 * @example
 * ```ts
 * import type { FromSchema } from "@toolnexus/client";
 *
 * type Move = FromSchema<{
 *   type: "object";
 *   properties: { to: { type: "string" }; speed: { enum: ["slow", "fast"] } };
 *   required: ["to"];
 * }>;
 * const move: Move = { to: "Paris", speed: "fast" };
 * ```
 */
export type FromSchema<Schema> = Schema extends { readonly const: infer Value } ? Value
  : Schema extends { readonly enum: readonly (infer Value)[] } ? Value
  : Schema extends false ? never
  : FromKeywords<Schema>;

/**
 * Every keyword narrows; one that is absent gives `unknown`, which narrows nothing.
 *
 * @internal
 */
export type FromKeywords<Schema> = Typed<Schema> & AnyOf<Schema> & OneOf<Schema> & AllOf<Schema>;

type AnyOf<Schema> = Schema extends { readonly anyOf: readonly (infer Branch)[] }
  ? FromSchema<Branch>
  : unknown;

type OneOf<Schema> = Schema extends { readonly oneOf: readonly (infer Branch)[] }
  ? FromSchema<Branch>
  : unknown;

type AllOf<Schema> = Schema extends { readonly allOf: infer Branches } ? Both<Branches> : unknown;

type Both<Branches> = Branches extends readonly [infer First, ...infer Others]
  ? FromSchema<First> & Both<Others>
  : unknown;

type Typed<Schema> = Schema extends { readonly type: infer Type } ? FromType<Type, Schema>
  : unknown;

type FromType<Type, Schema> = Type extends readonly (infer Each)[] ? FromType<Each, Schema>
  : Type extends "string" ? string
  : Type extends "number" | "integer" ? number
  : Type extends "boolean" ? boolean
  : Type extends "null" ? null
  : Type extends "array" ? FromItems<Schema>[]
  : Type extends "object" ? FromProperties<Schema>
  : unknown;

/** An element may be any of those listed first, or one of those that follow. */
type FromItems<Schema> = Schema extends { readonly items: infer Items }
  ? FromSchema<Items> | FromPrefix<Schema>
  : unknown;

type FromPrefix<Schema> = Schema extends { readonly prefixItems: readonly (infer Item)[] }
  ? FromSchema<Item>
  : never;

type FromProperties<Schema> = Schema extends { readonly properties: infer Properties }
  ? Flat<Named<Properties, RequiredKeys<Schema>> & Others<Schema>>
  : Schema extends { readonly additionalProperties: infer Rest } ? FromRest<Rest>
  : Record<string, unknown>;

type FromRest<Rest> = Rest extends false ? Record<string, never>
  : Rest extends true ? Record<string, unknown>
  : Record<string, FromSchema<Rest>>;

type Named<Properties, Needed> =
  & {
    -readonly [Key in keyof Properties as Key extends Needed ? Key : never]: FromSchema<
      Properties[Key]
    >;
  }
  & {
    -readonly [Key in keyof Properties as Key extends Needed ? never : Key]?: FromSchema<
      Properties[Key]
    >;
  };

type RequiredKeys<Schema> = Schema extends { readonly required: readonly (infer Key)[] } ? Key
  : never;

/** Only what a schema invites by name: TypeScript cannot say "any key but these" more closely. */
type Others<Schema> = Schema extends { readonly additionalProperties: false } ? unknown
  : Schema extends { readonly additionalProperties: unknown } ? { [key: string]: unknown }
  : unknown;

type Flat<Type> = { [Key in keyof Type]: Type[Key] };
