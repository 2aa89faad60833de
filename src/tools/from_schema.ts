/**
 * The TypeScript type of what a literal JSON Schema describes.
 *
 * @module
 */

/**
 * The type of the values that `Schema` accepts, for the keywords that have a meaning in TypeScript:
 * `type`, `properties`, `required`, `additionalProperties`, `items`, `enum`, `const`, `anyOf`,
 * `oneOf`. Whatever it does not know is `unknown`; it is never `any`.
 */
export type FromSchema<Schema> = Schema extends { readonly const: infer Value } ? Value
  : Schema extends { readonly enum: readonly (infer Value)[] } ? Value
  : Schema extends { readonly anyOf: readonly (infer Branch)[] } ? FromSchema<Branch>
  : Schema extends { readonly oneOf: readonly (infer Branch)[] } ? FromSchema<Branch>
  : Schema extends { readonly type: infer Type } ? FromType<Type, Schema>
  : unknown;

type FromType<Type, Schema> = Type extends readonly (infer Each)[] ? FromType<Each, Schema>
  : Type extends "string" ? string
  : Type extends "number" | "integer" ? number
  : Type extends "boolean" ? boolean
  : Type extends "null" ? null
  : Type extends "array" ? FromItems<Schema>[]
  : Type extends "object" ? FromProperties<Schema>
  : unknown;

type FromItems<Schema> = Schema extends { readonly items: infer Items } ? FromSchema<Items>
  : unknown;

type FromProperties<Schema> = Schema extends { readonly properties: infer Properties }
  ? Flat<Named<Properties, Required<Schema>> & Others<Schema>>
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

type Required<Schema> = Schema extends { readonly required: readonly (infer Key)[] } ? Key : never;

type Others<Schema> = Schema extends { readonly additionalProperties: true }
  ? { [key: string]: unknown }
  : unknown;

type Flat<Type> = { [Key in keyof Type]: Type[Key] };
