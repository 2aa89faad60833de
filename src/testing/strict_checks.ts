/**
 * What the rules of both styles are made of.
 *
 * @module
 */

/** Any JSON object. */
export type Json = Record<string, unknown>;

/** Takes one reason, with the place it is about. */
export type Refuse = (place: string, reason: string) => void;

/** What the provider of a style asks of a request body. */
export interface Rules {
  /** Keys that need tools beside them. */
  readonly onlyWithTools: readonly string[];
  /** Checks what stands beside the messages and the tools. */
  options(body: Json, refuse: Refuse): void;
  /** Checks the declarations of tools. */
  tools(tools: readonly unknown[], refuse: Refuse): void;
  /** Checks the transcript. */
  messages(messages: readonly unknown[], refuse: Refuse): void;
}

/** Calls and results must be the same ids in the same order. */
export function answered(
  calls: readonly unknown[],
  results: readonly unknown[],
  place: string,
  refuse: Refuse,
): void {
  if (calls.length === results.length && calls.every((id, index) => id === results[index])) return;
  refuse(
    place,
    `the calls ${JSON.stringify(calls)} need one result each right after them, not ${
      JSON.stringify(results)
    }`,
  );
}

/** A tool's name must be one that providers take. */
export function toolName(name: unknown, longest: number, place: string, refuse: Refuse): void {
  if (typeof name !== "string" || name.length > longest || !/^[a-zA-Z0-9_-]+$/.test(name)) {
    refuse(place, `must be 1 to ${longest} letters, digits, _ and -`);
  }
}

/** Arguments are described by a schema of an object. */
export function objectSchema(schema: unknown, place: string, refuse: Refuse): void {
  if (!isObject(schema) || schema.type !== "object") {
    refuse(place, "must be a JSON Schema of type object");
  }
}

/** Whether it is a JSON object. */
export function isObject(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Whether it is a string with something in it. */
export function isText(value: unknown): value is string {
  return typeof value === "string" && value !== "";
}

/** Whether it is no string, or one of white space alone. */
export function isBlank(value: unknown): boolean {
  return typeof value !== "string" || value.trim() === "";
}
