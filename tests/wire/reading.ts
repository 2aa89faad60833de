// What can be read in bytes that may be damaged, found out as simply as it can be: what the client
// makes of them is held against it.

import type { StyleName } from "../../mod.ts";
import type { Json } from "./fixture.ts";

/** A piece of a call's arguments. */
interface Fragment {
  index: unknown;
  text: string;
}

/** A call with all its pieces: each goes to the call of its id, else of its index, else the latest. */
interface DeliveredCall {
  id: string | undefined;
  index: unknown;
  text: string;
  /** Whether the text is the input with which a block started. */
  isStart: boolean;
  /** Whether a block of this id had started before: without an input of its own it is that one. */
  isRepeated: boolean;
}

/** What an answer says, as far as it can be told. */
export interface Reading {
  /** Why it cannot be an answer: the client must throw. */
  fault: string | undefined;
  /** The text of the answer; undefined where it is open what counts. */
  text: string | undefined;
  /** The latest block that text came for. */
  latest?: number;
  /** Every piece of arguments that was delivered, in order. */
  fragments: Fragment[];
  calls: DeliveredCall[];
}

/** Reads a body in the way in which the client must: JSON if it begins like that, else a stream. */
export function readBody(style: StyleName, bytes: Uint8Array): Reading {
  const body = new TextDecoder().decode(bytes);
  const reading: Reading = { fault: undefined, text: "", fragments: [], calls: [] };
  if (/^\s*$/.test(body)) reading.fault = "it is empty";
  else if (/^\s*</.test(body)) reading.fault = "it is a page";
  else if (/^\s*[[{]/.test(body)) readPlain(style, body, reading);
  else readStream(style, body, reading);
  return reading;
}

function readPlain(style: StyleName, body: string, reading: Reading): void {
  const payload = parsed(body);
  if (!isObject(payload)) reading.fault = "it is no JSON object";
  else if (isError(payload)) reading.fault = "it is an error";
  else if (style === "openai") {
    const message = payload.choices?.[0]?.message;
    if (!isObject(message)) reading.fault = "it has no message";
    else {
      reading.text = message.content === null || message.content === undefined
        ? ""
        : typeof message.content === "string"
        ? message.content
        : undefined;
      const calls = Array.isArray(message.tool_calls) ? message.tool_calls : [];
      for (const call of calls) newCall(reading, call?.function?.arguments);
      newCall(reading, message.function_call?.arguments);
    }
  } else if (typeof payload.content === "string") reading.text = payload.content;
  else if (Array.isArray(payload.content)) {
    for (const block of payload.content) {
      if (block?.type === "text" && typeof block.text === "string") addText(reading, block.text);
      if (block?.type === "tool_use") newCall(reading, block.input);
    }
  } else if (payload.content !== undefined && payload.content !== null) {
    reading.fault = "it has no content";
  } else reading.text = undefined;
}

function readStream(style: StyleName, body: string, reading: Reading): void {
  let isFinished = false, isEnded = false;
  for (const { data, event, isWhole } of eventsOf(body)) {
    if (isEnded || reading.fault !== undefined) break;
    if (data.trim() === "[DONE]") {
      if (style === "openai") isFinished = isEnded = true;
      continue;
    }
    if (data.trim() === "" || data.startsWith(":")) continue;
    const payload = parsed(data);
    if (payload === undefined && !isWhole) break;
    if (!isObject(payload)) {
      // After the finish reason it is a gateway's word, and no loss.
      if (!isFinished) reading.fault = "an event is no JSON object";
    } else if (isError(payload) || event === "error") reading.fault = "an event is an error";
    else if (style === "openai") isFinished = readChunk(payload, reading) || isFinished;
    else {
      const type = isText(payload.type) ? payload.type : event;
      readEvent(type, payload, reading);
      isEnded = type === "message_stop";
      isFinished ||= isEnded ||
        type === "message_delta" && isText(payload.delta?.stop_reason);
    }
  }
  if (!isFinished) reading.fault ??= "it does not end";
}

/** Reads a chunk of an OpenAI style stream; whether it finishes the answer. */
function readChunk(chunk: Json, reading: Reading): boolean {
  const choices = Array.isArray(chunk.choices) ? chunk.choices : [];
  const choice = choices.find((choice: Json) =>
    isObject(choice) && Number(choice.index ?? 0) === 0
  );
  // What an odd choice or message is worth is open.
  if (choices.some((other: Json) => other !== choice) || !isObject(choice?.delta)) {
    if (choices.length > 0) reading.text = undefined;
  }
  const { content, tool_calls, function_call } = choice?.delta ?? {};
  if (typeof content === "string") addText(reading, content);
  else if (content !== undefined && content !== null) reading.text = undefined;
  for (const call of Array.isArray(tool_calls) ? tool_calls : []) {
    const index = typeof call?.index === "number" ? call.index : undefined;
    fragment(reading, call?.id, index, call?.function?.arguments);
  }
  fragment(reading, undefined, undefined, function_call?.arguments);
  return isText(choice?.finish_reason);
}

function readEvent(type: unknown, payload: Json, reading: Reading): void {
  const { index, delta, content_block: block } = payload;
  if (type === "content_block_start" && isObject(block)) {
    if (block.type === "tool_use") {
      const input = JSON.stringify(block.input) === "{}" ? "" : block.input;
      fragment(reading, block.id, index, input, true);
    } // A text that is there from the start, or a block that is odd: open what counts.
    else if (block.text || (block.type !== "text" && block.type !== "thinking")) {
      reading.text = undefined;
    }
  }
  if (type === "content_block_delta") {
    if (delta?.type === "input_json_delta") {
      fragment(reading, undefined, index, delta.partial_json);
    } else if (delta?.type === "text_delta" && typeof delta.text === "string") {
      addText(reading, delta.text);
      // Blocks that grow side by side: which comes first is open.
      if (typeof index !== "number" || index < (reading.latest ?? 0)) reading.text = undefined;
      else reading.latest = index;
    } else if (delta?.type !== "thinking_delta" && delta?.type !== "signature_delta") {
      reading.text = undefined;
    }
  }
}

function addText(reading: Reading, text: string): void {
  if (reading.text !== undefined) reading.text += text;
}

/** The whole arguments of a call in a plain answer. */
function newCall({ calls }: Reading, given: unknown): void {
  calls.push({
    id: undefined,
    index: undefined,
    text: textOf(given),
    isStart: true,
    isRepeated: false,
  });
}

function fragment(
  reading: Reading,
  givenId: unknown,
  index: unknown,
  given: unknown,
  isStart = false,
): void {
  const { calls, fragments } = reading;
  const text = textOf(given);
  const id = isText(givenId) ? givenId : undefined;
  fragments.push({ index, text });
  const known = calls.findLast((call) => id !== undefined && call.id === id) ??
    calls.findLast((call) => index !== undefined && call.index === index) ??
    (index === undefined ? calls.at(-1) : undefined);
  const isOther = id !== undefined && known?.id !== undefined && id !== known.id;
  if (known === undefined || isOther || isStart) {
    calls.push({ id, index, text, isStart, isRepeated: isStart && id === known?.id });
  } else {
    // Whole arguments that come once more are told again.
    const isAgain = text === known.text && isObject(parsed(text));
    // The input with which a block starts is replaced by what follows.
    if (!isAgain) known.text = known.isStart ? text : known.text + text;
    known.isStart = false;
    known.id ??= id;
    known.index = index ?? known.index;
  }
}

function textOf(given: unknown): string {
  if (typeof given === "string") return given;
  return given === undefined || given === null ? "" : JSON.stringify(given);
}

/**
 * Whether arguments are what the server delivered for a call: all of its pieces, put together. Where
 * damage has made it doubtful which call a piece belongs to, any pieces in a row will do, but never
 * none: a call without arguments is one to which no piece belongs.
 */
export function wereDelivered(args: Json, { fragments, calls }: Reading): boolean {
  const wanted = JSON.stringify(args);
  const means = (text: string) => {
    const value = text.trim() === "" ? {} : parsed(text);
    return isObject(value) && JSON.stringify(value) === wanted;
  };
  const own = calls.filter(({ isRepeated, text }) => !isRepeated || text.trim() !== "");
  if (own.some(({ text }) => means(text))) return true;
  if (wanted === "{}") return false;
  const groups = [
    fragments,
    ...fragments.map(({ index }) => {
      return fragments.filter((other) => other.index === index);
    }),
  ];
  return groups.some((group) =>
    group.some((_, start) => {
      let text = "";
      return group.slice(start).some((piece) => means(text += piece.text));
    })
  );
}

interface SseEvent {
  data: string;
  event: string;
  /** Whether it ended in a blank line. */
  isWhole: boolean;
}

/** The events of a stream, by the standard's words. */
function eventsOf(body: string): SseEvent[] {
  const events: SseEvent[] = [];
  let data: string[] = [], event = "";
  const dispatch = (isWhole: boolean) => {
    if (data.length > 0) events.push({ data: data.join("\n"), event, isWhole });
    data = [];
    event = "";
  };
  const lines = body.split(/\r\n|\r|\n/);
  // What follows the last line end is a line only if there is something.
  if (lines.at(-1) === "") lines.pop();
  for (const line of lines) {
    const [, field, value = ""] = /^([^:]*)(?:: ?(.*))?$/su.exec(line)!;
    if (line === "") dispatch(true);
    else if (field === "data") data.push(value);
    else if (field === "event") event = value;
  }
  dispatch(false);
  return events;
}

function isError({ type, object, error }: Json): boolean {
  if (type === "error" || object === "error") return true;
  return isObject(error) ? Object.values(error).some(Boolean) : Boolean(error);
}

function parsed(text: string): Json {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function isObject(value: unknown): value is Record<string, Json> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isText(value: unknown): value is string {
  return typeof value === "string" && value !== "";
}
