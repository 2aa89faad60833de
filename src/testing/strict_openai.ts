/**
 * What OpenAI refuses.
 *
 * @module
 */

import {
  answered,
  isObject,
  isText,
  type Json,
  objectSchema,
  type Refuse,
  type Rules,
  toolName,
} from "./strict_checks.ts";

/** The rules of a Chat Completions request. */
export const openaiRules: Rules = {
  onlyWithTools: ["tool_choice", "parallel_tool_calls"],
  options() {},
  tools: (tools, refuse) =>
    tools.forEach((tool, index) => openaiTool(tool, `tools[${index}]`, refuse)),
  messages: openaiMessages,
};

const LONGEST_NAME = 64;

const ROLES = ["system", "developer", "user", "assistant", "tool", "function"];

function openaiTool(tool: unknown, place: string, refuse: Refuse): void {
  if (!isObject(tool) || !isText(tool.type)) return refuse(place, "must be an object with a type");
  if (tool.type !== "function") return;
  const declared = tool.function;
  if (!isObject(declared)) return refuse(`${place}.function`, "must be an object");
  toolName(declared.name, LONGEST_NAME, `${place}.function.name`, refuse);
  if (declared.parameters !== undefined) {
    objectSchema(declared.parameters, `${place}.function.parameters`, refuse);
  }
}

function openaiMessages(messages: readonly unknown[], refuse: Refuse): void {
  for (let index = 0; index < messages.length; index++) {
    const message = messages[index];
    const place = `messages[${index}]`;
    if (!isObject(message) || !ROLES.includes(message.role as string)) {
      refuse(`${place}.role`, `must be one of ${ROLES.join(", ")}`);
      continue;
    }
    if (message.role === "tool") {
      refuse(place, "a tool result with no call before it");
      continue;
    }
    openaiContent(message, place, refuse);
    if (message.role !== "assistant") continue;
    if (message.function_call !== undefined && message.function_call !== null) {
      const next = messages[index + 1];
      index += functionCall(message.function_call, next, `${place}.function_call`, refuse);
    } else if (message.tool_calls !== undefined) {
      index += openaiCalls(message.tool_calls, messages, index, refuse);
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
  toolName(isObject(call) ? call.name : undefined, LONGEST_NAME, `${place}.name`, refuse);
  if (!isObject(call) || typeof call.arguments !== "string") {
    refuse(`${place}.arguments`, "must be a string");
  }
  const answered = isObject(next) && next.role === "function" && isObject(call) &&
    next.name === call.name;
  if (!answered) refuse(place, "must be followed by the message of its function");
  return answered ? 1 : 0;
}

/** Checks the calls of the message `at` and their results; returns the number of results. */
function openaiCalls(
  calls: unknown,
  messages: readonly unknown[],
  at: number,
  refuse: Refuse,
): number {
  const place = `messages[${at}].tool_calls`;
  const ids: unknown[] = [];
  if (!Array.isArray(calls)) refuse(place, "must be an array");
  else if (calls.length === 0) refuse(place, "must not be an empty array");
  else {
    calls.forEach((call, index) => {
      const { id, type, function: called } = isObject(call) ? call : {} as Json;
      const { name, arguments: args } = isObject(called) ? called : {} as Json;
      if (!isText(id)) refuse(`${place}[${index}].id`, "is required");
      else if (ids.includes(id)) refuse(`${place}[${index}].id`, `${id} is used twice`);
      if (type !== "function") refuse(`${place}[${index}].type`, "must be function");
      toolName(name, LONGEST_NAME, `${place}[${index}].function.name`, refuse);
      if (typeof args !== "string") {
        refuse(`${place}[${index}].function.arguments`, "must be a string");
      }
      ids.push(id);
    });
  }
  const results: Json[] = [];
  for (let next = messages[at + 1]; isObject(next) && next.role === "tool";) {
    results.push(next);
    next = messages[at + 1 + results.length];
  }
  results.forEach(({ content, pending }, index) => {
    if (pending !== undefined) {
      refuse(`messages[${at + 1 + index}].pending`, "Additional properties are not allowed");
    }
    if (typeof content !== "string" && !(Array.isArray(content) && content.length > 0)) {
      refuse(`messages[${at + 1 + index}].content`, "must be a string or an array of parts");
    }
  });
  answered(ids, results.map((result) => result.tool_call_id), `messages[${at}]`, refuse);
  return results.length;
}
