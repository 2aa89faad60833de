/**
 * A server's tool, as providers accept it: one that they do not would make them refuse every request.
 *
 * @module
 */

import { type JsonSchema, sanitize, toAnthropic, type Tool } from "../../mod.ts";
import type { ListedTool, McpConnection } from "./mcp_connection.ts";

/** Most providers accept no longer name, of a tool or of an argument. */
const MAX_NAME = 64;

/** What Anthropic accepts as a property's key is the least that all providers do. */
const FOREIGN_CHARACTER = /[^a-zA-Z0-9_.-]/g;

/** The tool, called through the connection. */
export function toTool(server: string, connection: McpConnection, listed: ListedTool): Tool {
  const tool: Tool = {
    name: nameOf(server, listed.name),
    description: listed.description ?? "",
    inputSchema: schemaOf(listed),
    source: "mcp",
    // The connection keeps its time, which stands still while a human is asked.
    timeoutMs: Infinity,
    execute: (args, context) => connection.call(listed.name, args, context),
  };
  // As it is declared: what is combined at the top of a schema has names, too.
  const { properties = {}, required, ...schema } = toAnthropic([tool])[0]!.input_schema;
  const names = argumentNames(Object.keys(properties as object));
  if (names.size === 0) return tool;
  const ownNames = new Map([...names].map(([own, name]) => [name, own]));
  return {
    ...tool,
    inputSchema: {
      ...schema,
      properties: renamed(properties as object, names),
      ...Array.isArray(required) && { required: required.map((key) => names.get(key) ?? key) },
    },
    execute: (args, context) => tool.execute(renamed(args, ownNames), context),
  };
}

function renamed(values: object, names: ReadonlyMap<string, string>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(values).map(([key, value]) => [names.get(key) ?? key, value]),
  );
}

/** An object schema, without the dialect's name, which some endpoints refuse. */
export function schemaOf(
  { inputSchema: { $schema: _, ...schema } }: ListedTool,
): JsonSchema & { properties: object } {
  return { ...schema, type: "object", properties: schema["properties"] ?? {} };
}

function nameOf(server: string, tool: string): string {
  const name = `${sanitize(server)}_${sanitize(tool)}`;
  if (name.length <= MAX_NAME) return name;
  let hash = 0x811c9dc5; // FNV-1a: the same name on every machine
  for (const character of `${server}_${tool}`) {
    hash = Math.imul(hash ^ character.codePointAt(0)!, 0x01000193) >>> 0;
  }
  return `${name.slice(0, MAX_NAME - 9)}_${hash.toString(16).padStart(8, "0")}`;
}

/** The arguments whose names no provider would accept, with names that all do. */
function argumentNames(own: readonly string[]): Map<string, string> {
  const accepted = (name: string) => name.replace(FOREIGN_CHARACTER, "_").slice(0, MAX_NAME) || "_";
  const taken = new Set(own.filter((name) => accepted(name) === name));
  const names = new Map<string, string>();
  for (const name of own) {
    if (taken.has(name)) continue;
    let free = accepted(name);
    for (let number = 2; taken.has(free); number++) {
      free = `${accepted(name).slice(0, MAX_NAME - 1 - `${number}`.length)}_${number}`;
    }
    taken.add(free);
    names.set(name, free);
  }
  return names;
}
