export type SchemaType = "core" | "default" | "failsafe" | "json" | "extended";

export interface ParseOptions {
  allowDuplicateKeys?: boolean;
  schema?: SchemaType;
  onWarning?(error: Error): void;
}

export interface StringifyOptions {
  indent?: number;
  arrayIndent?: boolean;
  skipInvalid?: boolean;
  flowLevel?: number;
  schema?: SchemaType;
  sortKeys?: boolean | ((a: string, b: string) => number);
  lineWidth?: number;
  useAnchors?: boolean;
  compatMode?: boolean;
  condenseFlow?: boolean;
}

export function parse(content: string, options?: ParseOptions): unknown;
export function stringify(data: unknown, options?: StringifyOptions): string;
