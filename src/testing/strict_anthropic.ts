/**
 * What Anthropic refuses.
 *
 * @module
 */

import {
  answered,
  isBlank,
  isObject,
  isText,
  type Json,
  objectSchema,
  type Refuse,
  type Rules,
  toolName,
} from "./strict_checks.ts";

/** The rules of a Messages request. */
export const anthropicRules: Rules = {
  onlyWithTools: ["tool_choice"],
  options: anthropicOptions,
  tools: anthropicTools,
  messages: anthropicMessages,
};

const LONGEST_NAME = 128;

function anthropicOptions(body: Json, refuse: Refuse): void {
  const { max_tokens, system } = body;
  if (!Number.isInteger(max_tokens) || (max_tokens as number) < 1) {
    refuse("max_tokens", "a positive whole number is required");
  }
  if (system === undefined || typeof system === "string") return;
  if (!Array.isArray(system)) return refuse("system", "must be a string or an array of blocks");
  system.forEach((block, index) => {
    if (!isObject(block) || block.type !== "text" || isBlank(block.text)) {
      refuse(`system[${index}]`, "must be a text block that is not blank");
    }
  });
}

function anthropicTools(tools: readonly unknown[], refuse: Refuse): void {
  const names = new Set<unknown>();
  tools.forEach((tool, index) => {
    const place = `tools[${index}]`;
    if (!isObject(tool)) return refuse(place, "must be an object");
    toolName(tool.name, LONGEST_NAME, `${place}.name`, refuse);
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
  messages.forEach((message, index) => {
    const place = `messages[${index}]`;
    if (!isObject(message) || (message.role !== "user" && message.role !== "assistant")) {
      return refuse(`${place}.role`, "must be user or assistant");
    }
    const fromUser = message.role === "user";
    if (index === 0 && !fromUser) {
      refuse(`${place}.role`, "the first message must be from the user");
    }
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
    blocks.forEach((block, position) => {
      const at = `${place}.content[${position}]`;
      anthropicBlock(block, at, refuse);
      if (block.type !== "tool_use") return;
      if (fromUser) refuse(at, "only the assistant calls tools");
      if (used.has(block.id)) refuse(`${at}.id`, `${block.id} is used twice`);
      used.add(block.id);
      open.push(block.id);
    });
    if (!fromUser && index === messages.length - 1) {
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
    content.forEach((block, index) => {
      if (!isObject(block) || !isText(block.type)) {
        refuse(`${place}[${index}]`, "must be an object with a type");
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
      toolName(block.name, LONGEST_NAME, `${place}.name`, refuse);
      break;
    case "thinking":
      if (typeof block.thinking !== "string") refuse(`${place}.thinking`, "is required");
      if (!isText(block.signature)) refuse(`${place}.signature`, "is required");
      break;
    case "redacted_thinking":
      if (!isText(block.data)) refuse(`${place}.data`, "is required");
      break;
    case "tool_result":
      if (block.pending !== undefined) refuse(`${place}.pending`, "Extra inputs are not permitted");
      if (content !== undefined && typeof content !== "string" && !Array.isArray(content)) {
        refuse(`${place}.content`, "must be a string or an array of blocks");
      } else if (block.is_error === true && (content === undefined || content.length === 0)) {
        refuse(`${place}.content`, "must not be empty where is_error is true");
      }
  }
}
