// Compares what was seen with what a wire fixture expects. tests/fixtures/wire/README.md tells the
// words.

import { refusalsOf } from "../../src/testing/strict.ts";
import { equalJson } from "../../src/json.ts";
import { refusals } from "../strict.ts";
import type { Fixture, Json } from "./fixture.ts";
import { isTyped, KEY, type Observed } from "./play.ts";

/** What the engine says of a mistake in the client, which is never a failure of the provider. */
export const FROM_INSIDE =
  /Cannot (read|set|convert|destructure)|is not (a function|iterable|defined)|Unexpected (token|end)|call stack/;

/** Every way in which what was seen is not what the fixture expects; empty if it is. */
export function differences(fixture: Fixture, observed: Observed): string[] {
  return [
    ...alwaysWrong(fixture, observed),
    ...expected(fixture.expect, observed),
    ...unsendable(fixture, observed),
  ];
}

/** What is wrong in whichever fixture. */
function alwaysWrong({ client = {} }: Fixture, observed: Observed): string[] {
  const { error, events = [], result, deltas = "", ran } = observed;
  const wrong: string[] = [];
  if (error !== undefined && !isTyped(error)) wrong.push(`threw an untyped error: ${error.stack}`);
  if (FROM_INSIDE.test(observed.shown)) {
    wrong.push(`an error from inside is shown: ${observed.shown.slice(0, 500)}`);
  }
  if (observed.shown.includes(client.key ?? KEY)) wrong.push("the key is shown");
  for (const { args } of ran) {
    if (typeof args !== "object" || args === null || Array.isArray(args)) {
      wrong.push(`a tool got ${show(args)}`);
    }
  }
  if (result === undefined || client.leaveAfterText) return wrong;
  if (events.length > 0) {
    const types = events.map(({ type }) => type);
    if (types.indexOf("done") !== types.length - 1) wrong.push("done is not once and last");
    if (!deltas.endsWith(result.text)) wrong.push(`deltas ${show(deltas)} lack the text`);
    for (const { type, delta } of events) {
      if (type === "text" && !delta.isWellFormed()) wrong.push("a delta is ill-formed");
    }
    if (!equalJson(observed.streamResult, result)) wrong.push("stream.result is another result");
    const ids = (type: string) =>
      events.filter((event) => event.type === type).map(({ id }) => id).sort();
    if (result.status === "done" && !equalJson(ids("tool_call"), ids("tool_result"))) {
      wrong.push("tool_call and tool_result events do not pair");
    }
  }
  return wrong;
}

function expected(expect: Json, observed: Observed): string[] {
  const wrong: string[] = [];
  const { result, error, requests, ran, stored, ms } = observed;
  const same = (what: string, actual: unknown, wanted: unknown) => {
    if (!equalJson(actual, wanted)) wrong.push(`${what} is ${show(actual)}, not ${show(wanted)}`);
  };
  if (expect.oneOf !== undefined) {
    const tries: string[][] = expect.oneOf.map((one: Json) => expected(one, observed));
    if (tries.every((found) => found.length > 0)) wrong.push(`none of: ${show(tries)}`);
  } else if (expect.throws !== undefined) wrong.push(...thrown(expect.throws, observed));
  else if (error !== undefined) wrong.push(`threw ${error.name} ${error.code}: ${error.message}`);
  for (const key of ["text", "status", "finishReason", "turns"]) {
    if (key in expect) same(key, result?.[key], expect[key]);
  }
  if ("textLength" in expect) same("text length", result?.text?.length, expect.textLength);
  if ("usage" in expect) {
    const { promptTokens, completionTokens, totalTokens } = result?.usage ?? {};
    same("usage", [promptTokens, completionTokens, totalTokens], expect.usage);
  }
  if ("toolErrors" in expect) {
    const failed = (result?.toolCalls ?? []).filter((call: Json) => call.isError);
    same("failed tools", failed.map((call: Json) => call.name), expect.toolErrors);
  }
  if ("ran" in expect) {
    same("tools run", ran.map(({ name, args }) => [name, args]), expect.ran);
  }
  if ("requests" in expect) same("requests", requests.length, expect.requests);
  if ("stored" in expect) same("whether a transcript is stored", !!stored?.length, expect.stored);
  if ("maxMs" in expect && ms > expect.maxMs) wrong.push(`it took ${ms} ms`);
  if (expect.released) {
    same("connections left", observed.connectionsLeft, 0);
    same("listeners left on the signal", observed.listenersLeft, 0);
  }
  for (const [path, matcher] of Object.entries(expect.see ?? {})) {
    const problem = mismatch(at(observed, path), matcher as Json, observed);
    if (problem !== undefined) wrong.push(`${path} ${problem}`);
  }
  return wrong;
}

function thrown(expect: Json, { error, shown }: Observed): string[] {
  if (error === undefined) return ["nothing was thrown"];
  const wrong: string[] = [];
  for (const [key, wanted] of Object.entries<Json>(expect)) {
    if (key === "shows") {
      for (const words of wanted) if (!shown.includes(words)) wrong.push(`${words} is not shown`);
    } else if (key === "hides") {
      for (const words of wanted) if (shown.includes(words)) wrong.push(`${words} is shown`);
    } else {
      const actual = key === "cause" ? error.cause?.message : error[key];
      const problem = mismatch(actual, wanted, undefined);
      if (problem !== undefined) wrong.push(`error.${key} ${problem}: ${error.message}`);
    }
  }
  return wrong;
}

/** Every request passes the provider's checks, and so does the next one on what was kept. */
function unsendable({ style, expect }: Fixture, observed: Observed): string[] {
  if (expect.sendable === undefined) return [];
  const { requests, next, stored, result, error } = observed;
  const wrong: string[] = [];
  const check = (what: string, style: "openai" | "anthropic", body: Json) => {
    const reasons = [...refusalsOf(style, body), ...refusals(style, body.messages)];
    for (const reason of reasons) wrong.push(`${what}: ${reason}`);
  };
  requests.forEach(({ body }, k) => check(`request ${k}`, style, body));
  for (const { style, body, error } of next) {
    if (error !== undefined) wrong.push(`the next run (${style}) failed: ${error}`);
    else check(`the next request (${style})`, style, body);
  }
  const kept = { stored, "result.messages": result?.messages, "error.result": error?.result };
  for (const [what, transcript] of Object.entries(kept)) {
    const messages = transcript?.messages ?? transcript ?? [];
    const open = unanswered(messages);
    if (open !== undefined) wrong.push(`${what}: ${open}`);
  }
  return wrong;
}

/** The first message whose calls are not answered right after it, once each and in order. */
function unanswered(messages: readonly Json[]): string | undefined {
  for (let k = 0; k < messages.length; k++) {
    const message = messages[k];
    const blocks = Array.isArray(message.content) ? message.content : [];
    const uses = blocks.filter((block: Json) => block?.type === "tool_use");
    const calls = [...message.tool_calls ?? [], ...uses].map((call: Json) => call.id);
    const answers: string[] = [];
    for (let next = k + 1; messages[next]?.role === "tool"; next++) {
      answers.push(messages[next].tool_call_id);
    }
    const after = messages[k + 1]?.content;
    for (const block of Array.isArray(after) ? after : []) {
      if (block?.type === "tool_result") answers.push(block.tool_use_id);
    }
    if (message.role === "assistant" && !equalJson(calls, answers)) {
      return `message ${k} calls ${show(calls)}, answered are ${show(answers)}`;
    }
  }
  return undefined;
}

/** Why a value is not what a matcher wants: a value itself, or `{ "$…": … }`. */
function mismatch(value: Json, matcher: Json, observed: unknown): string | undefined {
  const words = typeof matcher === "object" && matcher !== null ? Object.keys(matcher) : [];
  if (words.length === 0 || !words.every((word) => word.startsWith("$"))) {
    return equalJson(value, matcher) ? undefined : `is ${show(value)}, not ${show(matcher)}`;
  }
  const text = typeof value === "string" ? value : JSON.stringify(value) ?? "";
  const holds: Record<string, (wanted: Json) => boolean> = {
    $exists: (wanted) => (value !== undefined) === wanted,
    $matches: (wanted) => value !== undefined && new RegExp(wanted, "isu").test(text),
    $lacks: (wanted) => !new RegExp(wanted, "su").test(text),
    $min: (wanted) => value >= wanted,
    $max: (wanted) => value <= wanted,
    $length: (wanted) => value?.length === wanted,
    $maxLength: (wanted) => text.length <= wanted,
    $in: (wanted) => wanted.includes(value),
    $has: (wanted) => hasPart(value, wanted),
    $unique: (wanted) =>
      Array.isArray(value) && new Set(value.map((item) => at(item, wanted))).size === value.length,
    $sameAs: (wanted) => equalJson(value, at(observed, wanted)),
  };
  for (const word of words) {
    if (!holds[word]!(matcher[word])) return `is ${show(value)}, ${word} ${show(matcher[word])}`;
  }
  return undefined;
}

function hasPart(value: Json, part: Json): boolean {
  if (typeof part !== "object" || part === null || Array.isArray(part)) {
    return equalJson(value, part);
  }
  return Object.keys(part).every((key) => hasPart(value?.[key], part[key]));
}

/** `requests[1].body.messages[-1].content`, `events[type=tool_call].id`; the last one that matches. */
function at(root: unknown, path: string): Json {
  let value: Json = root;
  for (const [, name, place] of path.matchAll(/([^.[\]]+)|\[([^\]]*)\]/g)) {
    if (value === undefined || value === null) return undefined;
    if (name !== undefined) value = value[name];
    else if (/^-?\d+$/.test(place!)) value = value.at?.(Number(place));
    else {
      const [key, wanted] = place!.split("=");
      value = value.findLast?.((item: Json) => String(item?.[key!]) === wanted);
    }
  }
  return value;
}

function show(value: unknown): string {
  const text = JSON.stringify(value) ?? "undefined";
  return text.length > 300 ? `${text.slice(0, 300)}…` : text;
}
