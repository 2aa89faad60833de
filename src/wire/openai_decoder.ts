/**
 * Puts an OpenAI-style answer together from its stream.
 * https://platform.openai.com/docs/api-reference/chat-streaming
 *
 * @module
 */

import { objectOf, textOrUndefined } from "../json.ts";
import { argumentsText } from "../transcript/read.ts";
import type { StreamEvent } from "../types.ts";
import type { StreamDecoder } from "./style.ts";

/** A call that is still growing. */
class GrowingCall {
  id = "";
  /** Deltas can name it by any of these. */
  readonly indexes = new Set<number>();
  name = "";
  arguments = "";
  /** What else the provider sent with it, such as `extra_content`. */
  readonly extra: Record<string, unknown> = {};
  /** What else it sent with the name and the arguments. */
  readonly functionExtra: Record<string, unknown> = {};
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

/** Keys of a delta that carry the next piece of a text; any other key carries a whole value. */
const TEXT_KEYS = new Set(["content", "refusal", "reasoning", "reasoning_content"]);

/** The decoder of the OpenAI style. */
export class OpenAIDecoder implements StreamDecoder {
  isFinished = false;
  isEnded = false;
  /** The keys of the chunks around the choices: id, model, … */
  #envelope: Record<string, unknown> = {};
  #hasChoice = false;
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
    const choice = objectOf(choices.find((choice) => (objectOf(choice)?.index ?? 0) === 0));
    const usage = objectOf(data.usage) ?? objectOf(choice?.usage);
    for (const key in usage) {
      if (usage[key] !== null) {
        this.#usage = Object.assign(this.#usage ?? {}, { [key]: usage[key] });
      }
    }
    if (choice === undefined) return;
    this.#hasChoice = true;
    const isNew = this.#calls.length === 0 && Object.keys(this.#message).length === 0;
    // Some servers put a whole message where a delta should be, or repeat it at the end.
    const delta = objectOf(choice.delta) ?? (isNew ? objectOf(choice.message) : undefined);
    if (delta !== undefined) this.#add(delta, events);
    const reason = textOrUndefined(choice.finish_reason);
    if (reason !== undefined) {
      this.#finishReason = reason;
      this.isFinished = true;
    }
  }

  pushText(data: string): boolean {
    if (data.trim() !== "[DONE]") return false;
    this.isFinished = this.isEnded = true;
    return true;
  }

  payload(): Record<string, unknown> {
    const message: Record<string, unknown> = { role: "assistant", content: null, ...this.#message };
    const calls = settleCalls(this.#calls);
    if (calls.length > 0) message.tool_calls = calls;
    if (this.#functionCall !== undefined) {
      const { name, arguments: text } = this.#functionCall;
      message.function_call = { name, arguments: text };
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
        if (Array.isArray(value)) { for (const call of value) this.#addCall(objectOf(call)); }
      } else if (key === "function_call") this.#addFunctionCall(objectOf(value));
      else if (key === "content" && Array.isArray(value)) this.#addParts(value, events);
      else if (typeof value === "string" && TEXT_KEYS.has(key)) {
        if (value === "" && message[key] !== undefined) continue;
        this.#addText(key, value);
        if (key === "content" && value !== "") events.push({ type: "text", delta: value });
      } else if (Array.isArray(value) && Array.isArray(message[key])) {
        for (const entry of value) (message[key] as unknown[]).push(entry);
      } else message[key] = value;
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

  #addFunctionCall(delta: Record<string, unknown> | undefined): void {
    const call = this.#functionCall ??= new GrowingCall();
    const name = textOrUndefined(delta?.name);
    if (name !== undefined) call.addName(name);
    call.addArguments(argumentsText(delta?.arguments));
  }

  #addCall(delta: Record<string, unknown> | undefined): void {
    if (delta === undefined) return;
    const { id: givenId, index: givenIndex, type: _, function: definition, ...extra } = delta;
    const { name: givenName, arguments: given, ...functionExtra } = objectOf(definition) ?? {};
    const id = textOrUndefined(givenId);
    const index = typeof givenIndex === "number" ? givenIndex : undefined;
    const name = textOrUndefined(givenName);
    const text = argumentsText(given);
    let call = this.#callOf(id, index);
    if (call !== undefined && name !== undefined && opensAnother(call, { id, index, name, text })) {
      call = undefined;
    }
    if (call === undefined) {
      call = new GrowingCall();
      this.#calls.push(call);
    }
    if (id !== undefined) call.id = id;
    if (index !== undefined) call.indexes.add(index);
    if (name !== undefined) call.addName(name);
    call.addArguments(text);
    Object.assign(call.extra, extra);
    Object.assign(call.functionExtra, functionExtra);
  }

  /** The call that a delta is about: by its id, then by its index, then the latest. */
  #callOf(id: string | undefined, index: number | undefined): GrowingCall | undefined {
    if (id !== undefined) {
      const same = this.#calls.filter((call) => call.id === id);
      const known = same.findLast((call) => index !== undefined && call.indexes.has(index));
      if (same.length > 0) return known ?? same.at(-1);
    }
    const open = index === undefined
      ? this.#calls.at(-1)
      : this.#calls.findLast((call) => call.indexes.has(index));
    // An id may come after the call's first delta; another one is another call.
    return id === undefined || open?.id === "" ? open : undefined;
  }
}

/**
 * Whether a delta with a name, that seems to belong to `call`, begins another one: it names a known
 * id under a new index, or new arguments come where complete ones stand.
 */
function opensAnother(
  call: GrowingCall,
  delta: { id: string | undefined; index: number | undefined; name: string; text: string },
): boolean {
  if (call.name === "") return false;
  if (delta.id === call.id && delta.index !== undefined && !call.indexes.has(delta.index)) {
    return true;
  }
  const isNew = delta.text.trim() !== "" || (delta.name !== call.name && delta.id !== call.id);
  return isNew && call.hasWholeArguments;
}

/**
 * The finished calls. What came twice under one id is one call, whether it was repeated, mirrored or
 * spread over several indexes; complete and different arguments are calls of their own.
 */
function settleCalls(growing: GrowingCall[]): Record<string, unknown>[] {
  const calls: GrowingCall[] = [];
  for (const call of growing) {
    const same = call.id === "" ? undefined : calls.find((before) => before.id === call.id);
    if (same === undefined) calls.push(call);
    else if (same.arguments === call.arguments || call.arguments.trim() === "") continue;
    else if (same.hasWholeArguments) calls.push(call);
    else same.addArguments(call.arguments);
  }
  return calls.map(({ id, name, arguments: text, extra, functionExtra }) => ({
    id,
    type: "function",
    function: { name, arguments: text, ...functionExtra },
    ...extra,
  }));
}
