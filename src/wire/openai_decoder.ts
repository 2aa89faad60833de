/**
 * Puts an OpenAI-style answer together from its stream.
 * https://platform.openai.com/docs/api-reference/chat-streaming
 *
 * @module
 */

import { StreamError } from "../errors.ts";
import { objectOf, textOrUndefined } from "../json.ts";
import { argumentsText, isSaidBy } from "../transcript/read.ts";
import type { StreamEvent } from "../types.ts";
import { grow, growAll } from "./grow.ts";
import { finishReasonOf, givenId, type StreamDecoder } from "./style.ts";

/** A call that is still growing. */
class GrowingCall {
  id = "";
  /** Deltas can name it by any of these. */
  readonly indexes = new Set<number | string>();
  name = "";
  arguments = "";
  /** What else the provider sent with it, such as `extra_content`. */
  readonly extra: Record<string, unknown> = {};
  /** What else it sent with the name and the arguments. */
  readonly functionExtra: Record<string, unknown> = {};
  /** Whether it is a call of a custom tool, whose arguments are any text. */
  isCustom = false;
  /** The list of calls that the latest delta came in. */
  list: unknown;
  #depth = 0;
  #isInString = false;
  #isEscaped = false;

  /** Whether the outermost bracket of the arguments has closed. */
  hasWholeArguments = false;

  /** A name comes whole, whole again with each delta, or in pieces before the arguments. */
  addName(name: string): void {
    if (this.name === "" || name.startsWith(this.name)) this.name = name;
    else if (this.arguments === "") this.name += name;
  }

  /** Looks at each character once: arguments can come in very many pieces. */
  addArguments(text: string): void {
    if (this.hasWholeArguments && !this.isCustom && text === this.arguments) return; // told again
    this.arguments += text;
    for (let index = 0; index < text.length; index++) {
      const character = text[index];
      if (this.#isInString) {
        if (this.#isEscaped) this.#isEscaped = false;
        else if (character === "\\") this.#isEscaped = true;
        else if (character === '"') this.#isInString = false;
      } else if (character === '"') this.#isInString = true;
      else if (character === "{" || character === "[") this.#depth++;
      else if (character === "}" || character === "]") {
        this.#depth--;
        this.hasWholeArguments = this.#depth === 0;
      }
    }
  }
}

/** Keys of a delta that carry nothing but the next piece of a text. */
const TEXT_KEYS = new Set(["content", "refusal", "reasoning", "reasoning_content"]);

/** The decoder of the OpenAI style. */
export class OpenAIDecoder implements StreamDecoder {
  isFinished = false;
  isComplete = false;
  isEnded = false;
  /** The keys of the chunks around the choices: id, model, … */
  #envelope: Record<string, unknown> = {};
  #hasChoice = false;
  /** Whether a chunk had choices, and none of them the first. */
  #hasOther = false;
  #usage: Record<string, unknown> | undefined;
  #finishReason: unknown = null;
  #message: Record<string, unknown> = {};
  #calls: GrowingCall[] = [];
  /** The one call of the form before `tool_calls`. */
  #functionCall: GrowingCall | undefined;

  push(data: Record<string, unknown>, _event: string, events: StreamEvent[]): void {
    if (this.#envelope.id === undefined && data.id !== undefined) {
      const { choices: _, usage: __, ...envelope } = data;
      this.#envelope = envelope;
    }
    const choices = Array.isArray(data.choices) ? data.choices : [];
    const choice = objectOf(choices.find((choice) => Number(objectOf(choice)?.index ?? 0) === 0));
    const usage = objectOf(data.usage) ?? objectOf(choice?.usage) ??
      objectOf(objectOf(data.x_groq)?.usage);
    for (const key in usage) {
      if (usage[key] !== null) {
        this.#usage = Object.assign(this.#usage ?? {}, { [key]: usage[key] });
      }
    }
    if (choice === undefined) {
      this.#hasOther ||= choices.length > 0;
      return;
    }
    this.#hasChoice = true;
    // Some servers put a whole message where a delta should be, or repeat it at the end.
    const sent = objectOf(choice.delta), whole = objectOf(choice.message);
    const delta = whole !== undefined && isBlank(sent ?? {}) && this.#isNew() ? whole : sent;
    if (delta !== undefined) this.#add(delta, events);
    this.#finish(finishReasonOf(choice.finish_reason), delta);
  }

  /** Whether nothing of the answer has come yet. */
  #isNew(): boolean {
    return this.#calls.length === 0 && this.#functionCall === undefined && isBlank(this.#message);
  }

  /**
   * Takes note of the finish reason. Some servers give one on every chunk: only on a chunk of its own
   * it ends the answer, and what comes after it without a reason takes it back.
   */
  #finish(reason: string | undefined, delta: Record<string, unknown> | undefined): void {
    if (reason === undefined && !this.isFinished) return;
    const isAlone = delta === undefined || isBlank(delta);
    if (reason !== undefined) {
      this.#finishReason = reason;
      this.isFinished = true;
      this.isComplete = isAlone;
    } else if (delta !== undefined && hasAnswer(delta)) this.isFinished = this.isComplete = false;
  }

  pushText(data: string): boolean {
    if (data.trim() !== "[DONE]") return false;
    this.isFinished = this.isComplete = this.isEnded = true;
    return true;
  }

  payload(): Record<string, unknown> {
    // Some servers count the choices up from chunk to chunk: then the first is only a piece.
    if (this.#hasOther && this.#finishReason === null) {
      throw new StreamError(
        "stream_malformed",
        "LLM answer has other choices, and no finish reason for the first",
      );
    }
    const message: Record<string, unknown> = { role: "assistant", content: null, ...this.#message };
    const calls = settleCalls(this.#calls);
    if (calls.length > 0) message.tool_calls = calls;
    if (this.#functionCall !== undefined) {
      const { name, arguments: text, functionExtra } = this.#functionCall;
      message.function_call = { name, arguments: text, ...functionExtra };
    }
    const choice = { index: 0, message, finish_reason: this.#finishReason };
    return {
      ...this.#envelope,
      object: "chat.completion",
      choices: this.#hasChoice ? [choice] : [],
      ...(this.#usage !== undefined && { usage: this.#usage }),
    };
  }

  #add(delta: Record<string, unknown>, events: StreamEvent[]): void {
    const message = this.#message;
    for (const key in delta) {
      const value = delta[key];
      if (value === null || value === undefined || key === "role") continue;
      if (key === "tool_calls") {
        if (Array.isArray(value)) {
          for (const call of value) this.#addCall(objectOf(call), value);
        }
      } else if (key === "function_call") this.#addFunctionCall(objectOf(value));
      else if (key === "reasoning_details" && Array.isArray(value)) this.#addDetails(value);
      else if (key === "content" && Array.isArray(value)) this.#addParts(value, events);
      else if (typeof value === "string" && TEXT_KEYS.has(key)) {
        if (value === "" && message[key] !== undefined) continue;
        this.#addText(key, value);
        if (key === "content" && value !== "") events.push({ type: "text", delta: value });
      } else grow(message, key, value);
    }
    // Some servers send the same reasoning under both names: it is shown once.
    const reasoning = textOrUndefined(delta.reasoning_content) ?? textOrUndefined(delta.reasoning);
    if (reasoning !== undefined) events.push({ type: "reasoning", delta: reasoning });
  }

  #addText(key: string, text: string): void {
    const before = this.#message[key];
    if (Array.isArray(before)) this.#addParts([{ type: "text", text }], []);
    else this.#message[key] = typeof before === "string" ? before + text : text;
  }

  /** Content that comes as a list of parts: neighbouring text parts grow together. */
  #addParts(parts: unknown[], events: StreamEvent[]): void {
    const before = this.#message.content;
    const content: unknown[] = Array.isArray(before)
      ? before
      : textOrUndefined(before) === undefined
      ? []
      : [{ type: "text", text: before }];
    for (const part of parts) {
      const last = objectOf(content.at(-1));
      const next = objectOf(part);
      if (next?.type === "text" && typeof next.text === "string") {
        if (next.text !== "") events.push({ type: "text", delta: next.text });
        if (last?.type === "text") {
          content[content.length - 1] = { ...last, text: `${last.text}${next.text}` };
          continue;
        }
      } else if (
        next?.type === "thinking" && last?.type === "thinking" && Array.isArray(next.thinking) &&
        Array.isArray(last.thinking)
      ) {
        for (const piece of next.thinking) last.thinking.push(piece);
        continue;
      }
      content.push(part);
    }
    this.#message.content = content;
  }

  /** OpenRouter's reasoning: a signature is that of a whole block, so its pieces are put together. */
  #addDetails(pieces: unknown[]): void {
    const details = this.#message.reasoning_details ??= [];
    if (!Array.isArray(details)) return;
    for (const piece of pieces) {
      const last = objectOf(details.at(-1)), next = objectOf(piece);
      const key = next?.type === "reasoning.summary" ? "summary" : "text";
      if (
        next?.type !== `reasoning.${key}` || last?.type !== next.type || last.index !== next.index
      ) {
        details.push(piece);
        continue;
      }
      const text = `${last[key] ?? ""}${next[key] ?? ""}`;
      const told = Object.entries(next).filter(([, value]) => value !== null);
      details[details.length - 1] = { ...last, ...Object.fromEntries(told), [key]: text };
    }
  }

  #addFunctionCall(delta: Record<string, unknown> | undefined): void {
    const { name: givenName, arguments: given, ...others } = delta ?? {};
    const call = this.#functionCall ??= new GrowingCall();
    const name = textOrUndefined(givenName);
    if (name !== undefined) call.addName(name);
    call.addArguments(argumentsText(given));
    growAll(call.functionExtra, others);
  }

  #addCall(delta: Record<string, unknown> | undefined, list: unknown): void {
    if (delta === undefined) return;
    const { id: sentId, index: givenIndex, type: _, function: sentFunction, custom, ...rest } =
      delta;
    const definition = objectOf(custom) ?? objectOf(sentFunction);
    // Some servers send a call flat: its name and arguments beside its id.
    const { name: givenName, [custom ? "input" : "arguments"]: given, ...others } = definition ??
      rest;
    const id = givenId(sentId);
    const index = typeof givenIndex === "number" ? givenIndex : textOrUndefined(givenIndex);
    const name = textOrUndefined(givenName);
    const text = argumentsText(given);
    let call = this.#callOf(id, index, name);
    if (
      call !== undefined && name !== undefined &&
      opensAnother(call, { id, index, name, text, list })
    ) {
      call = undefined;
    }
    if (call === undefined) {
      call = new GrowingCall();
      this.#calls.push(call);
    }
    if (id !== undefined && call.id === "") call.id = id;
    if (index !== undefined) call.indexes.add(index);
    if (name !== undefined) call.addName(name);
    call.addArguments(text);
    call.list = list;
    call.isCustom ||= objectOf(custom) !== undefined;
    growAll(call.extra, definition === undefined ? others : rest);
    if (definition !== undefined) growAll(call.functionExtra, others);
  }

  /** The call that a delta is about: by its id, then by its index, then the latest. */
  #callOf(
    id: string | undefined,
    index: number | string | undefined,
    name: string | undefined,
  ): GrowingCall | undefined {
    if (id !== undefined) {
      const same = this.#calls.filter((call) => call.id === id);
      const known = same.findLast((call) => index !== undefined && call.indexes.has(index));
      if (same.length > 0) return known ?? same.at(-1);
    }
    const open = index === undefined
      ? this.#calls.at(-1)
      : this.#calls.findLast((call) => call.indexes.has(index));
    // An id may come after the call's first delta; another one is another call, unless all that comes
    // with it is more of this one: some servers make a new id for each piece.
    const isMore = name === undefined && index !== undefined && open?.hasWholeArguments === false;
    return id === undefined || open?.id === "" || isMore ? open : undefined;
  }
}

/** Whether a delta holds a piece of a text or a call; counts, sources and the like may come late. */
function hasAnswer({ tool_calls, function_call, ...texts }: Record<string, unknown>): boolean {
  return !isBlank({ tool_calls, function_call: function_call ?? null }) ||
    [...TEXT_KEYS].some((key) => (texts[key] ?? "") !== "");
}

/** Whether a delta, or all that came of a message, holds nothing but a role. */
function isBlank(delta: Record<string, unknown>): boolean {
  for (const key in delta) {
    const value = delta[key];
    const isNothing = value === null || value === undefined || value === "" ||
      (Array.isArray(value) && value.length === 0);
    if (key !== "role" && !isNothing) return false;
  }
  return true;
}

/**
 * Whether a delta with a name, that seems to belong to `call`, begins another one: another name or
 * another entry of one list without an index, another name in one list, a known id under a new index,
 * or another name or new arguments where complete arguments stand.
 */
function opensAnother(
  call: GrowingCall,
  delta: {
    id: string | undefined;
    index: number | string | undefined;
    name: string;
    text: string;
    list: unknown;
  },
): boolean {
  if (call.name === "") return false;
  const { id, index, name, text, list } = delta;
  const isOther = name !== call.name, isBeside = list === call.list;
  const isNamed = id !== undefined && id === call.id;
  if (isBeside ? isOther || index === undefined : isOther && index === undefined && !isNamed) {
    return true;
  }
  if (id === call.id && index !== undefined && !call.indexes.has(index)) return true;
  return call.hasWholeArguments && (isOther || text.trim() !== "");
}

/**
 * The finished calls. What came twice under one id and name is one call, whether it was repeated,
 * mirrored or spread over several indexes; complete and different arguments are calls of their own.
 */
function settleCalls(growing: GrowingCall[]): Record<string, unknown>[] {
  const calls: GrowingCall[] = [];
  for (const call of growing) {
    const { id, name, arguments: text } = call;
    const same = id === ""
      ? []
      : calls.filter((before) => before.id === id && before.name === name);
    const last = same.at(-1);
    if (last === undefined) calls.push(call);
    else if (same.some((before) => isSaidBy(before.arguments, text))) continue;
    else if (last.hasWholeArguments) calls.push(call);
    else last.addArguments(text);
  }
  return calls.map(({ id, name, arguments: text, isCustom, extra, functionExtra }) => {
    if (isCustom) {
      return { id, type: "custom", custom: { name, input: text, ...functionExtra }, ...extra };
    }
    const definition = { name, arguments: text, ...functionExtra };
    return { id, type: "function", function: definition, ...extra };
  });
}
