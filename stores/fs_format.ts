/**
 * Where a conversation lies in a folder of files, and how it is written there.
 *
 * @module
 */

import { decodeMessage, equalMessages } from "../mod.ts";
import type { Message } from "../mod.ts";
import type { StoredFile } from "./fs_folder.ts";

/** The names that Windows gives to devices, in whatever folder and with whatever extension. */
const deviceName = /^(?:con|prn|aux|nul|com[0-9]|lpt[0-9])$/;

/** How much of an id its file name shows. */
const shownLength = 60;

/** Whether the id itself is the name of its file. */
function isPlain(id: string): boolean {
  return /^[a-z0-9-][a-z0-9_-]{0,99}$/.test(id) && !deviceName.test(id);
}

/** A file name with a hash: the id is in the file. */
function isEnvelope(name: string): boolean {
  return /^_[A-Za-z0-9_-]{1,60}\.[0-9a-f]{64}\.json$/.test(name);
}

/**
 * The name of a conversation's file: at most 131 bytes, where 143 is the tightest limit in use
 * (eCryptfs).
 */
export async function fileNameOf(id: string): Promise<string> {
  if (isPlain(id)) return `${id}.json`;
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(id));
  const hash = Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0"));
  return `_${shown(id)}.${hash.join("")}.json`;
}

/** The name under which another port may have left the conversation, when that is not ours. */
export function foreignNameOf(id: string): string | undefined {
  return /^[A-Za-z0-9_-]{1,250}$/.test(id) && !isPlain(id) ? `${id}.json` : undefined;
}

/** Whether this is the name of a conversation's file. */
export function isFileName(name: string): boolean {
  return isEnvelope(name) || idIn(name) !== undefined;
}

/** The id that a file name gives away. */
export function idIn(name: string): string | undefined {
  const id = name.endsWith(".json") ? name.slice(0, -".json".length) : "";
  return isPlain(id) || foreignNameOf(id) ? id : undefined;
}

/** Whether the id of the conversation in this file may start so. */
export function mayStartWith(name: string, prefix: string): boolean {
  return isEnvelope(name) ? name.startsWith(`_${shown(prefix)}`) : name.startsWith(prefix);
}

/** Each UTF-16 unit by itself, so that the prefix of an id shows as a prefix. */
function shown(id: string): string {
  return id.slice(0, shownLength).replace(/[^A-Za-z0-9_-]/g, "_");
}

/** The text of a conversation's file. */
export function render(id: string, lines: readonly string[]): string {
  const messages = lines.length === 0 ? "[]" : `[\n${lines.join(",\n")}\n]`;
  return isPlain(id) ? `${messages}\n` : `{"id":${JSON.stringify(id)},"messages":${messages}}\n`;
}

/** Whether the file holds these messages. As a rule we wrote it, and the text alone decides. */
export function holds(file: StoredFile | undefined, id: string, lines: readonly string[]): boolean {
  if (!file) return lines.length === 0;
  return file.text === render(id, lines) ||
    equalMessages(messagesIn(file, id), lines.map(decodeMessage));
}

/** The messages in the file, which must be those of conversation `id`. */
export function messagesIn(file: StoredFile, id: string): Message[] {
  let messages: unknown;
  if (isEnvelope(file.name)) {
    const envelope = envelopeIn(file);
    if (envelope.id !== id) throw damaged(file, `it holds ${JSON.stringify(envelope.id)}`);
    messages = envelope.messages;
  } else messages = parse(file);
  if (!Array.isArray(messages)) throw damaged(file, "no array of messages");
  const wrong = messages.findIndex((message) =>
    !isObject(message) || typeof message.role !== "string"
  );
  if (wrong >= 0) throw damaged(file, `message ${wrong} is no object with a role`);
  return messages;
}

/** The id of the conversation in the file. */
export async function idOf(file: StoredFile): Promise<string> {
  const named = idIn(file.name);
  if (named !== undefined) return named;
  const { id } = envelopeIn(file);
  if (await fileNameOf(id) === file.name) return id;
  throw damaged(file, `it holds ${JSON.stringify(id)}`);
}

/** Other keys than the two would be of a format that is not known here. */
function envelopeIn(file: StoredFile): { id: string; messages: unknown } {
  const value = parse(file);
  if (!isObject(value) || Object.keys(value).sort().join() !== "id,messages") {
    throw damaged(file, "no object of id and messages");
  }
  const { id, messages } = value;
  if (typeof id !== "string") throw damaged(file, "its id is no string");
  return { id, messages };
}

function parse(file: StoredFile): unknown {
  try {
    return JSON.parse(file.text);
  } catch (cause) {
    throw damaged(file, "not JSON", cause);
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function damaged(file: StoredFile, how: string, cause?: unknown): Error {
  return new Error(`${file.path} is damaged: ${how}`, { cause });
}
