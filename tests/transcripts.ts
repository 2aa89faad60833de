// Transcripts made up from a seed, in one style or in both, and ways to damage and to tell them.

import { assertEquals, assertStrictEquals } from "@std/assert";
import type { Message, StyleName } from "../src/types.ts";

/** Where this run's transcripts start; `TOOLNEXUS_SEED` repeats a run. */
export const SEED: number = Number(Deno.env.get("TOOLNEXUS_SEED")) ||
  crypto.getRandomValues(new Uint32Array(1))[0]!;

/** Runs a check on many transcripts; a failure names the seed that repeats it. */
export function forTranscripts(count: number, check: (dice: Dice, ids: IdKind) => void): void {
  for (let number = 0; number < count; number++) {
    const seed = (SEED + number) >>> 0;
    const dice = new Dice(seed);
    try {
      check(dice, dice.pick(["unique", "each round anew", "odd"]));
    } catch (cause) {
      throw new Error(`TOOLNEXUS_SEED=${seed}: ${(cause as Error).message}`, { cause });
    }
  }
}

/** Random numbers from a seed (xorshift32): the same seed gives the same transcripts. */
export class Dice {
  #state: number;

  constructor(seed: number) {
    this.#state = (seed ^ 0x9e3779b9) >>> 0 || 1;
  }

  /** A whole number from 0 to `sides` - 1. */
  roll(sides: number): number {
    this.#state ^= this.#state << 13;
    this.#state ^= this.#state >>> 17;
    this.#state ^= this.#state << 5;
    return (this.#state >>> 0) % sides;
  }

  pick<T>(choices: readonly T[]): T {
    return choices[this.roll(choices.length)]!;
  }

  /** True once in `times`. */
  once(times: number): boolean {
    return this.roll(times) === 0;
  }
}

/** How ids are given: each one new, numbered anew in each round, or as no provider should. */
export type IdKind = "unique" | "each round anew" | "odd";

export interface Plan {
  /** The style of each turn. */
  styles: readonly StyleName[];
  ids: IdKind;
}

/** A transcript that is valid message by message: each call answered right after it, in order. */
export function makeTranscript(dice: Dice, { styles, ids }: Plan): Message[] {
  const messages: Message[] = [];
  let serial = 0;
  if (dice.once(4) && styles.every((style) => style === "openai")) {
    messages.push({ role: "system", content: "Be brief" });
  }
  for (let turn = dice.roll(4) + 1; turn > 0; turn--) {
    const style = dice.pick(styles);
    messages.push(question(dice, style, serial++));
    for (let round = dice.roll(3); round > 0; round--) {
      messages.push(...toolRound(dice, style, ids, serial));
      serial += 10;
    }
    messages.push(answer(dice, style, `answer ${serial++}`, []));
    if (style === "openai" && dice.once(8)) {
      messages.push({ role: "developer", content: `note ${serial++}` });
    }
  }
  return messages;
}

const PNG = "iVBORw0KGgo=";

function question(dice: Dice, style: StyleName, serial: number): Message {
  const text = `question ${serial}`;
  if (!dice.once(4)) return { role: "user", content: text };
  const image = style === "openai"
    ? { type: "image_url", image_url: { url: `data:image/png;base64,${PNG}` } }
    : { type: "image", source: { type: "base64", media_type: "image/png", data: PNG } };
  return { role: "user", content: [{ type: "text", text }, image] };
}

interface Call {
  id: string;
  name: string;
  tag: string;
}

function toolRound(dice: Dice, style: StyleName, ids: IdKind, serial: number): Message[] {
  if (style === "openai" && ids === "odd" && dice.once(4)) {
    const tag = `t${serial}`;
    const call = { name: "lookup", arguments: JSON.stringify({ tag }) };
    return [
      { role: "assistant", content: null, function_call: call },
      { role: "function", name: "lookup", content: `result ${tag}` },
    ];
  }
  const calls = Array.from({ length: dice.roll(3) + 1 }, (_, place): Call => {
    const odd = dice.pick(["", "k:0", "k.0", "k_0", `k${place}`, "é", "x".repeat(90) + place]);
    const id = ids === "unique"
      ? `call_${serial}_${place}`
      : ids === "odd"
      ? odd
      : `lookup:${place}`;
    return { id, name: dice.pick(["lookup", "ping"]), tag: `t${serial + place}` };
  });
  const message = answer(dice, style, dice.once(2) ? `thought ${serial}` : "", calls);
  const results = calls.map(({ id, tag }): Message =>
    style === "openai"
      ? { role: "tool", tool_call_id: id, content: `result ${tag}` }
      : { type: "tool_result", tool_use_id: id, content: `result ${tag}` } as unknown as Message
  );
  if (style === "openai") return [message, ...results];
  const text = dice.once(4) ? [{ type: "text", text: `aside ${serial}` }] : [];
  return [message, { role: "user", content: [...results, ...text] }];
}

function answer(dice: Dice, style: StyleName, text: string, calls: readonly Call[]): Message {
  const reasons = dice.once(2);
  if (style === "openai") {
    const toolCalls = calls.map(({ id, name, tag }) => ({
      id,
      type: "function",
      function: { name, arguments: JSON.stringify({ tag }) },
    }));
    return {
      role: "assistant",
      content: text || null,
      ...(dice.once(2) ? { refusal: null, annotations: [] } : {}),
      ...(reasons ? { reasoning_content: "hm" } : {}),
      ...(toolCalls.length > 0 ? { tool_calls: toolCalls } : {}),
    };
  }
  const search = { type: "server_tool_use", id: "srv_1", name: "web_search", input: {} };
  return {
    role: "assistant",
    content: [
      ...(reasons ? [{ type: "thinking", thinking: "hm", signature: "c2ln" }] : []),
      ...(dice.once(6) ? [search] : []),
      ...(text ? [{ type: "text", text }] : []),
      ...calls.map(({ id, name, tag }) => ({ type: "tool_use", id, name, input: { tag } })),
    ],
  };
}

/** Damages a transcript as crashes, trims and bad clients do: results go missing, twice, elsewhere. */
export function damage(dice: Dice, messages: readonly Message[]): Message[] {
  const damaged = messages.map((message) => {
    if (!Array.isArray(message.content) || dice.once(2)) return message;
    const content = message.content.filter((part) => part.type !== "tool_result" || !dice.once(3));
    const results = content.filter((part) => part.type === "tool_result");
    if (results.length > 0 && dice.once(3)) content.push(dice.pick(results));
    if (dice.once(3)) content.reverse();
    return content.length > 0 ? { ...message, content } : { ...message, content: "(nothing left)" };
  });
  for (let times = dice.roll(4) + 1; times > 0 && damaged.length > 0; times--) {
    const from = dice.roll(damaged.length);
    const message = damaged[from]!;
    const isResult = message.role === "tool" || message.role === "function";
    switch (dice.roll(4)) {
      case 0: // lost
        damaged.splice(from, 1);
        break;
      case 1: // told twice
        if (isResult) damaged.splice(dice.roll(damaged.length + 1), 0, structuredClone(message));
        break;
      case 2: // elsewhere
        if (isResult) damaged.splice(dice.roll(damaged.length), 0, ...damaged.splice(from, 1));
        break;
      case 3: // cut off
        damaged.length = from + 1;
    }
  }
  return damaged;
}

/**
 * What a transcript tells, whatever its style: who says what, which tools are called with what, and
 * what they answer, in order. Two transcripts of one conversation tell the same.
 */
export function story(messages: readonly Message[]): string[] {
  const told: string[] = [];
  for (const message of messages) {
    const who = message.role === "assistant" ? "assistant" : "user";
    // deno-lint-ignore no-explicit-any
    const { content, tool_calls: calls, function_call: legacy } = message as Record<string, any>;
    if (message.role === "tool" || message.role === "function") {
      told.push(`result: ${textIn(content)}`);
      continue;
    }
    // deno-lint-ignore no-explicit-any
    const blocks: any[] = Array.isArray(content) ? content : [];
    for (const block of blocks) {
      if (block.type === "tool_result") told.push(`result: ${textIn(block.content)}`);
    }
    if (textIn(content) !== "") told.push(`${who}: ${textIn(content)}`);
    for (const { type, source, image_url: image } of blocks) {
      if (type === "image") told.push(`image: data:${source.media_type};base64,${source.data}`);
      if (type === "image_url") told.push(`image: ${image.url}`);
    }
    for (const call of [...(calls ?? []).map((call: Json) => call.function), legacy ?? []].flat()) {
      told.push(`call: ${call.name} ${JSON.stringify(JSON.parse(call.arguments))}`);
    }
    for (const { type, name, input } of blocks) {
      if (type === "tool_use") told.push(`call: ${name} ${JSON.stringify(input)}`);
    }
  }
  return told;
}

// deno-lint-ignore no-explicit-any
type Json = any;

function textIn(content: unknown): string {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  return content.map((part) => part.type === "text" ? part.text : "").join("");
}

/** Makes data unchangeable, so that a function that changes its input throws. */
export function freeze<T>(value: T): T {
  if (typeof value === "object" && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    for (const inner of Object.values(value)) freeze(inner);
  }
  return value;
}

/** Asserts that these are the very objects. */
export function assertSame(actual: readonly Message[], expected: readonly Message[]): void {
  if (actual.length !== expected.length) assertEquals(actual, expected);
  for (const [index, message] of actual.entries()) {
    if (message !== expected[index]) assertStrictEquals(message, expected[index]);
  }
}

/** The messages that are sent as such: the client hoists leading system messages for Anthropic. */
export function withoutLeadingSystem(style: StyleName, messages: readonly Message[]): Message[] {
  const start = messages.findIndex(({ role }) => role !== "system" && role !== "developer");
  return style === "openai" ? [...messages] : start < 0 ? [] : messages.slice(start);
}
