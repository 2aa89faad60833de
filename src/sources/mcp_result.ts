/**
 * What a server's tool gave, as text for the model.
 *
 * @module
 */

import type { ToolResult } from "../../mod.ts";

/** The parts of a `tools/call` result that are read here; a server may send anything. */
export interface CallResult {
  content?: unknown;
  structuredContent?: unknown;
  isError?: boolean | undefined;
}

/** What is longer is cut: a model can do nothing with more, and it is paid for on every turn. */
const MAX_OUTPUT = 100_000;

/**
 * The result for the model. Structured content is JSON, and stands for the texts beside it that say the
 * same; what is neither text nor data is named by a line of its own, and is in `metadata.content` for
 * the host.
 */
export function toToolResult(server: string, result: CallResult): ToolResult {
  const parts = (Array.isArray(result.content) ? result.content : []).map(readPart);
  const content = parts.flatMap(({ note, part }) => note === undefined ? [] : [part]);
  const metadata = { server, ...content.length > 0 ? { content } : {} };
  const isError = result.isError === true;
  const data = result.structuredContent ?? undefined;
  const known = data === undefined ? undefined : textsOf(data);
  const said = parts.filter(({ text }) => text === undefined || !isKnown(text, known))
    .map(({ text, note }) => text ?? note);
  if (data !== undefined) said.push(JSON.stringify(data));
  const output = said.join("\n");
  const isSilent = isError && output.trim() === "";
  return { output: isSilent ? "MCP tool returned an error" : cut(output), isError, metadata };
}

/** What texts say that repeat the data: all of it, a part, or a part of a part; JSON if it is no string. */
function textsOf(data: unknown): ReadonlySet<string> {
  const partsOf = (value: unknown): unknown[] =>
    typeof value === "object" && value !== null ? Object.values(value) : [];
  const parts = partsOf(data);
  const all = [data, ...parts, ...parts.flatMap(partsOf)];
  return new Set(all.map((value) => typeof value === "string" ? value : JSON.stringify(value)));
}

function isKnown(text: string, known: ReadonlySet<string> | undefined): boolean {
  if (known === undefined) return false;
  if (text.trim() === "" || known.has(text)) return true;
  try {
    return known.has(JSON.stringify(JSON.parse(text)));
  } catch {
    return false; // it is no JSON
  }
}

interface ReadPart {
  part: unknown;
  text?: string | undefined;
  note?: string | undefined;
}

function readPart(part: unknown): ReadPart {
  const { type, text, data, mimeType, resource, uri, name } = (part ?? {}) as Record<
    string,
    unknown
  >;
  if (type === "text" && typeof text === "string") return { part, text };
  if (type === "resource") {
    const { uri, text, blob, mimeType } = (resource ?? {}) as Record<string, unknown>;
    if (typeof text === "string") return { part, text };
    return { part, note: note("resource", uri, mimeType, size(blob)) };
  }
  if (type === "resource_link") return { part, note: note("resource", uri, mimeType, name) };
  return { part, note: note(type ?? "unknown content", mimeType, size(data)) };
}

function note(...words: unknown[]): string {
  return `[${words.filter((word) => typeof word === "string").join(", ")}]`;
}

/** Of base64: four characters are three bytes. */
function size(base64: unknown): string | undefined {
  if (typeof base64 !== "string") return undefined;
  return `${Math.floor(base64.replace(/=+$/, "").length * 3 / 4)} bytes`;
}

function cut(text: string): string {
  if (text.length <= MAX_OUTPUT) return text;
  // Not through the middle of a character.
  const kept = text.slice(0, MAX_OUTPUT).replace(/[\uD800-\uDBFF]$/, "");
  return `${kept}\n[cut: ${text.length} characters in all]`;
}
