/**
 * What the providers refuse: the rules by which {@linkcode stubLlm} answers 400.
 *
 * @module
 */

import type { StyleName } from "../../mod.ts";
import { anthropicRules } from "./strict_anthropic.ts";
import { isObject, isText, type Refuse, type Rules } from "./strict_checks.ts";
import { openaiRules } from "./strict_openai.ts";

const RULES: Readonly<Record<StyleName, Rules>> = {
  openai: openaiRules,
  anthropic: anthropicRules,
};

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
  const rules = RULES[style];
  if (body.tools === undefined) {
    for (const key of rules.onlyWithTools) {
      if (body[key] !== undefined) refuse(key, "only allowed with tools");
    }
  } else if (!Array.isArray(body.tools) || body.tools.length === 0) {
    refuse("tools", "must be a non-empty array");
  } else rules.tools(body.tools, refuse);
  rules.options(body, refuse);
  if (!Array.isArray(messages) || messages.length === 0) {
    refuse("messages", "must be a non-empty array");
  } else rules.messages(messages, refuse);
  illFormed(body, "", refuse);
  return reasons;
}

function illFormed(value: unknown, place: string, refuse: Refuse): void {
  if (typeof value === "string") {
    if (!value.isWellFormed()) refuse(place, "has half of a surrogate pair");
  } else if (Array.isArray(value)) {
    value.forEach((item, index) => illFormed(item, `${place}[${index}]`, refuse));
  } else if (isObject(value)) {
    for (const [key, item] of Object.entries(value)) {
      illFormed(item, place === "" ? key : `${place}.${key}`, refuse);
    }
  }
}
