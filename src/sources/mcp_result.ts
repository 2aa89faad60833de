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
export const MAX_OUTPUT = 100_000;

/**
 * The result for the model. Structured content is JSON and stands for the text beside it; what is
 * neither text nor data is named by a line of its own, and is in `metadata.content` for the host.
 */
export function toToolResult(server: string, result: CallResult): ToolResult {
  const parts = (Array.isArray(result.content) ? result.content : []).map(readPart);
  const texts = parts.flatMap(({ text }) => text ?? []);
  const notes = parts.flatMap(({ note }) => note ?? []);
  const content = parts.flatMap(({ note, part }) => note === undefined ? [] : [part]);
  const metadata = { server, ...content.length > 0 ? { content } : {} };
  if (result.isError === true) {
    const output = [...texts.filter((text) => text.trim() !== ""), ...notes].join("\n\n");
    return { output: cut(output || "MCP tool returned an error"), isError: true, metadata };
  }
  const said = result.structuredContent === undefined || result.structuredContent === null
    ? parts.map(({ text, note }) => text ?? note)
    : [JSON.stringify(result.structuredContent), ...notes];
  return { output: cut(said.join("\n")), isError: false, metadata };
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
