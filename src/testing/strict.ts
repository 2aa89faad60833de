/**
 * What the providers refuse: the rules by which {@linkcode stubLlm} answers 400.
 *
 * @module
 */

import type { StyleName } from "../../mod.ts";

/** Any JSON object. */
type Json = Record<string, unknown>;

/** Takes one reason, with the place it is about. */
type Refuse = (place: string, reason: string) => void;

/**
 * Why the provider of a style would refuse a request body: one line a reason, empty when it would
 * accept it.
 *
 * The rules are those that the providers enforce on a Chat Completions and on a Messages request:
 * every tool call is answered exactly once, right after it; roles, ids, names and contents have the
 * shape that the style asks for; no string is ill-formed Unicode. One rule is stricter than they
 * are: results stand in the order of their calls.
 *
 * @example
 * ```ts
 * import { refusalsOf } from "@toolnexus/client/testing";
 * import { assertEquals } from "@std/assert";
 *
 * const body = { model: "m", messages: [{ role: "tool", tool_call_id: "c1", content: "5" }] };
 * assertEquals(refusalsOf("openai", body), ["messages[0]: a tool result with no call before it"]);
 * ```
 */
export function refusalsOf(style: StyleName, body: unknown): string[] {
  if (!isObject(body)) return ["the body is not a JSON object"];
  const reasons: string[] = [];
  const refuse: Refuse = (place, reason) => void reasons.push(`${place}: ${reason}`);
  const { messages } = body;
  if (!isText(body.model)) refuse("model", "a model is required");
  if (body.tools === undefined) {
    if (body.tool_choice !== undefined) refuse("tool_choice", "only allowed with tools");
  } else if (!Array.isArray(body.tools) || body.tools.length === 0) {
    refuse("tools", "must be a non-empty array");
  } else if (style === "openai") {
    body.tools.forEach((tool, i) => openaiTool(tool, `tools[${i}]`, refuse));
  } else anthropicTools(body.tools, refuse);
  if (style === "anthropic") anthropicOptions(body, refuse);
  if (!Array.isArray(messages) || messages.length === 0) {
    refuse("messages", "must be a non-empty array");
  } else if (style === "openai") openaiMessages(messages, refuse);
  else anthropicMessages(messages, refuse);
  illFormed(body, "", refuse);
  return reasons;
}

// ---- openai ----

const OPENAI_ROLES = ["system", "developer", "user", "assistant", "tool", "function"];

function openaiTool(tool: unknown, place: string, refuse: Refuse): void {
  if (!isObject(tool) || !isText(tool.type)) return refuse(place, "must be an object with a type");
  if (tool.type !== "function") return;
  const declared = tool.function;
  if (!isObject(declared)) return refuse(`${place}.function`, "must be an object");
  toolName(declared.name, 64, `${place}.function.name`, refuse);
  if (declared.parameters !== undefined) {
    objectSchema(declared.parameters, `${place}.function.parameters`, refuse);
  }
}

function openaiMessages(messages: readonly unknown[], refuse: Refuse): void {
  for (let i = 0; i < messages.length; i++) {
    const message = messages[i];
    const place = `messages[${i}]`;
    if (!isObject(message) || !OPENAI_ROLES.includes(message.role as string)) {
      refuse(`${place}.role`, `must be one of ${OPENAI_ROLES.join(", ")}`);
      continue;
    }
    if (message.role === "tool") {
      refuse(place, "a tool result with no call before it");
      continue;
    }
    openaiContent(message, place, refuse);
    if (message.role !== "assistant") continue;
    if (message.function_call !== undefined && message.function_call !== null) {
      i += functionCall(message.function_call, messages[i + 1], `${place}.function_call`, refuse);
    } else if (message.tool_calls !== undefined) {
      i += openaiCalls(message.tool_calls, messages, i, refuse);
    }
  }
}

function openaiContent(message: Json, place: string, refuse: Refuse): void {
  const { content } = message;
  if (typeof content === "string") return;
  if (Array.isArray(content)) {
    if (content.length === 0) refuse(`${place}.content`, "must not be an empty array");
  } else if (content !== undefined && content !== null) {
    refuse(`${place}.content`, "must be a string or an array of parts");
  } else if (message.role !== "assistant") {
    refuse(`${place}.content`, "is required");
  } else if (
    !(Array.isArray(message.tool_calls) && message.tool_calls.length > 0) &&
    !message.function_call && !message.refusal && !message.audio
  ) refuse(`${place}.content`, "is required where there is no tool call in its place");
}

/** Checks a legacy call; returns how many of the messages after it belong to it. */
function functionCall(call: unknown, next: unknown, place: string, refuse: Refuse): number {
  if (!isObject(call) || !isText(call.name)) refuse(`${place}.name`, "is required");
  if (!isObject(call) || typeof call.arguments !== "string") {
    refuse(`${place}.arguments`, "must be a string");
  }
  const answered = isObject(next) && next.role === "function" && isObject(call) &&
    next.name === call.name;
  if (!answered) refuse(place, "must be followed by the message of its function");
  return answered ? 1 : 0;
}

/** Checks the calls of messages[index] and their results; returns the number of results. */
function openaiCalls(
  calls: unknown,
  messages: readonly unknown[],
  index: number,
  refuse: Refuse,
): number {
  const place = `messages[${index}].tool_calls`;
  const ids: unknown[] = [];
  if (!Array.isArray(calls)) refuse(place, "must be an array");
  else if (calls.length === 0) refuse(place, "must not be an empty array");
  else {
    calls.forEach((call, k) => {
      const { id, type, function: called } = isObject(call) ? call : {} as Json;
      const { name, arguments: args } = isObject(called) ? called : {} as Json;
      if (!isText(id)) refuse(`${place}[${k}].id`, "is required");
      else if (ids.includes(id)) refuse(`${place}[${k}].id`, `${id} is used twice`);
      if (type !== "function") refuse(`${place}[${k}].type`, "must be function");
      if (!isText(name)) refuse(`${place}[${k}].function.name`, "is required");
      if (typeof args !== "string") refuse(`${place}[${k}].function.arguments`, "must be a string");
      ids.push(id);
    });
  }
  const results: Json[] = [];
  for (let next = messages[index + 1]; isObject(next) && next.role === "tool";) {
    results.push(next);
    next = messages[index + 1 + results.length];
  }
  results.forEach(({ content }, k) => {
    if (typeof content !== "string" && !(Array.isArray(content) && content.length > 0)) {
      refuse(`messages[${index + 1 + k}].content`, "must be a string or an array of parts");
    }
  });
  answered(ids, results.map((result) => result.tool_call_id), `messages[${index}]`, refuse);
  return results.length;
}

// ---- anthropic ----

function anthropicOptions(body: Json, refuse: Refuse): void {
  const { max_tokens, system } = body;
  if (!Number.isInteger(max_tokens) || (max_tokens as number) < 1) {
    refuse("max_tokens", "a positive whole number is required");
  }
  if (system === undefined || typeof system === "string") return;
  if (!Array.isArray(system)) return refuse("system", "must be a string or an array of blocks");
  system.forEach((block, k) => {
    if (!isObject(block) || block.type !== "text" || isBlank(block.text)) {
      refuse(`system[${k}]`, "must be a text block that is not blank");
    }
  });
}

function anthropicTools(tools: readonly unknown[], refuse: Refuse): void {
  const names = new Set<unknown>();
  tools.forEach((tool, i) => {
    const place = `tools[${i}]`;
    if (!isObject(tool)) return refuse(place, "must be an object");
    toolName(tool.name, 128, `${place}.name`, refuse);
    if (names.has(tool.name)) refuse(`${place}.name`, `${tool.name} is used twice`);
    names.add(tool.name);
    // Tools that the provider runs itself have a versioned type and no schema.
    if (tool.type === undefined || tool.type === "custom") {
      objectSchema(tool.input_schema, `${place}.input_schema`, refuse);
    }
  });
}

function anthropicMessages(messages: readonly unknown[], refuse: Refuse): void {
  const used = new Set<unknown>();
  let open: unknown[] = [];
  messages.forEach((message, i) => {
    const place = `messages[${i}]`;
    if (!isObject(message) || (message.role !== "user" && message.role !== "assistant")) {
      return refuse(`${place}.role`, "must be user or assistant");
    }
    const fromUser = message.role === "user";
    if (i === 0 && !fromUser) refuse(`${place}.role`, "the first message must be from the user");
    const blocks = contentBlocks(message.content, `${place}.content`, refuse);
    const results = blocks.filter((block) => block.type === "tool_result");
    if (fromUser) {
      answered(open, results.map((block) => block.tool_use_id), place, refuse);
      if (blocks.slice(0, results.length).some((block) => block.type !== "tool_result")) {
        refuse(`${place}.content`, "tool results must come before all else");
      }
    } else {
      answered(open, [], place, refuse);
      if (results.length > 0) refuse(`${place}.content`, "only the user gives tool results");
    }
    open = [];
    blocks.forEach((block, k) => {
      const at = `${place}.content[${k}]`;
      anthropicBlock(block, at, refuse);
      if (block.type !== "tool_use") return;
      if (fromUser) refuse(at, "only the assistant calls tools");
      if (used.has(block.id)) refuse(`${at}.id`, `${block.id} is used twice`);
      used.add(block.id);
      open.push(block.id);
    });
    if (!fromUser && i === messages.length - 1) {
      const last = typeof message.content === "string" ? message.content : blocks.at(-1)?.text;
      if (typeof last === "string" && /\s$/.test(last)) {
        refuse(`${place}.content`, "a last message of the assistant must not end in white space");
      }
    }
  });
  answered(open, [], "messages", refuse);
}

function contentBlocks(content: unknown, place: string, refuse: Refuse): Json[] {
  if (typeof content === "string") {
    if (isBlank(content)) refuse(place, "must not be blank");
  } else if (!Array.isArray(content) || content.length === 0) {
    refuse(place, "must be a string or a non-empty array of blocks");
  } else {
    content.forEach((block, k) => {
      if (!isObject(block) || !isText(block.type)) {
        refuse(`${place}[${k}]`, "must be an object with a type");
      }
    });
    return content.map((block) => isObject(block) ? block : {});
  }
  return [];
}

function anthropicBlock(block: Json, place: string, refuse: Refuse): void {
  const { type, content } = block;
  if (typeof type === "string" && type.endsWith("tool_use")) {
    if (!isObject(block.input)) refuse(`${place}.input`, "must be an object");
  }
  switch (type) {
    case "text":
      if (isBlank(block.text)) refuse(`${place}.text`, "must not be blank");
      break;
    case "tool_use":
      if (typeof block.id !== "string" || !/^[a-zA-Z0-9_-]+$/.test(block.id)) {
        refuse(`${place}.id`, "must be letters, digits, _ and -");
      }
      if (!isText(block.name)) refuse(`${place}.name`, "is required");
      break;
    case "thinking":
      if (typeof block.thinking !== "string") refuse(`${place}.thinking`, "is required");
      if (!isText(block.signature)) refuse(`${place}.signature`, "is required");
      break;
    case "redacted_thinking":
      if (!isText(block.data)) refuse(`${place}.data`, "is required");
      break;
    case "tool_result":
      if (content !== undefined && typeof content !== "string" && !Array.isArray(content)) {
        refuse(`${place}.content`, "must be a string or an array of blocks");
      } else if (block.is_error === true && (content === undefined || content.length === 0)) {
        refuse(`${place}.content`, "must not be empty where is_error is true");
      }
  }
}

// ---- both ----

/** Calls and results must be the same ids in the same order. */
function answered(
  calls: readonly unknown[],
  results: readonly unknown[],
  place: string,
  refuse: Refuse,
): void {
  if (calls.length === results.length && calls.every((id, k) => id === results[k])) return;
  refuse(
    place,
    `the calls ${JSON.stringify(calls)} need one result each right after them, not ${
      JSON.stringify(results)
    }`,
  );
}

function toolName(name: unknown, longest: number, place: string, refuse: Refuse): void {
  if (typeof name !== "string" || name.length > longest || !/^[a-zA-Z0-9_-]+$/.test(name)) {
    refuse(place, `must be 1 to ${longest} letters, digits, _ and -`);
  }
}

function objectSchema(schema: unknown, place: string, refuse: Refuse): void {
  if (!isObject(schema) || schema.type !== "object") {
    refuse(place, "must be a JSON Schema of type object");
  }
}

function illFormed(value: unknown, place: string, refuse: Refuse): void {
  if (typeof value === "string") {
    if (!value.isWellFormed()) refuse(place, "has half of a surrogate pair");
  } else if (Array.isArray(value)) {
    value.forEach((item, k) => illFormed(item, `${place}[${k}]`, refuse));
  } else if (isObject(value)) {
    for (const [key, item] of Object.entries(value)) {
      illFormed(item, place === "" ? key : `${place}.${key}`, refuse);
    }
  }
}

function isObject(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isText(value: unknown): value is string {
  return typeof value === "string" && value !== "";
}

function isBlank(value: unknown): boolean {
  return typeof value !== "string" || value.trim() === "";
}
