/**
 * Making the ids of tool calls legal for the endpoint that is asked, on both sides of the pair.
 *
 * @module
 */

import type { Message, StyleName } from "../types.ts";
import { Pairing } from "./pairs.ts";
import { type CallPart, type Part, resultId } from "./read.ts";

/** The longest id that is made here; OpenAI refuses a longer one. */
const MAX_LENGTH = 40;

/**
 * Gives out ids while a transcript is read from its start. An id depends on what comes before it
 * alone, so a growing transcript keeps its ids from request to request, and with them the
 * provider's prompt cache.
 *
 * Anthropic takes letters, digits, `_` and `-`, each id once in a conversation; OpenAI anything that
 * is not empty, each id once in a message.
 */
export class CallIds {
  readonly #style: StyleName;
  readonly #pairing = new Pairing<string>();
  readonly #used = new Set<string>();
  /** How often an id was met: numbering goes on from there. */
  readonly #met = new Map<string, number>();

  constructor(style: StyleName) {
    this.#style = style;
  }

  /** The legal ids of a message's calls. `foreign`: the message was written for the other style. */
  ofCalls(message: Message, calls: readonly CallPart[], foreign: boolean): string[] {
    if (this.#style === "openai") {
      this.#used.clear();
      this.#met.clear();
    }
    const legal = calls.map((call) => this.#unique(this.#legal(call.id, call.name, foreign)));
    this.#pairing.open(message, calls, legal);
    return legal;
  }

  /** The legal id of the call that a result message or block answers. */
  ofResult(result: Part): string {
    return this.#pairing.answer(result)?.item ?? this.#legal(resultId(result), "", false);
  }

  #legal(id: string, name: string, foreign: boolean): string {
    // A server is given back its own ids, however long.
    if (isLegal(id, this.#style)) return foreign ? id.slice(0, MAX_LENGTH) : id;
    return (id.replaceAll(ILLEGAL, "_") || `call_${legalName(name)}`).slice(0, MAX_LENGTH);
  }

  #unique(base: string): string {
    let count = this.#met.get(base) ?? 0;
    let id: string;
    do {
      const tail = count === 0 ? "" : `_${count + 1}`;
      id = tail === "" ? base : base.slice(0, MAX_LENGTH - tail.length) + tail;
      count++;
    } while (this.#used.has(id));
    this.#met.set(base, count);
    this.#used.add(id);
    return id;
  }
}

/**
 * Whether the ids of all calls are legal as they are. The messages are in the style; only then are
 * their results' ids right, too.
 */
export function hasLegalIds(messages: readonly Message[], style: StyleName): boolean {
  const used = new Set<unknown>();
  for (const message of messages) {
    if (message.role !== "assistant") continue;
    if (style === "openai") used.clear();
    const parts = style === "openai" ? message.tool_calls : message.content;
    if (!Array.isArray(parts)) continue;
    for (const { type, id } of parts) {
      if (style === "anthropic" && type !== "tool_use") continue;
      if (!isLegal(id, style) || used.has(id)) return false;
      used.add(id);
    }
  }
  return true;
}

function isLegal(id: unknown, style: StyleName): boolean {
  return typeof id === "string" && (style === "openai" ? id !== "" : LEGAL.test(id));
}

const LEGAL = /^[a-zA-Z0-9_-]+$/;
const ILLEGAL = /[^a-zA-Z0-9_-]/g;

const LEGAL_NAME = /^[a-zA-Z0-9_-]{1,64}$/;

/**
 * A tool's name as both providers take it in a transcript: a model may have made up any text. A name
 * that is declared stays as it is.
 */
export function legalName(name: unknown, declared?: ReadonlySet<unknown>): string {
  if (typeof name !== "string") return "unknown";
  if (LEGAL_NAME.test(name) || declared?.has(name)) return name;
  return name.replaceAll(ILLEGAL, "_").slice(0, 64) || "unknown";
}
