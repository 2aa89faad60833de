/**
 * What the Anthropic API refuses, mended on the copy that is sent; the stored transcript stays as it
 * came. https://docs.anthropic.com/en/api/messages
 *
 * @module
 */

import { isJsonObject, textOrUndefined } from "../json.ts";
import { legalName } from "../transcript/ids.ts";
import { isResultBlock, parseArguments, type Part } from "../transcript/read.ts";
import type { Message } from "../types.ts";

/** Stands where the API demands a text and there is none. */
const NOTHING = "(nothing)";

/**
 * A transcript that the API accepts: no blank text, no thinking without its signature, calls of a legal
 * or `declared` name with inputs that are objects, roles in turn with the user first, and no white
 * space at the end of a last answer.
 */
export function sendableMessages(
  transcript: readonly Message[],
  declared: ReadonlySet<string>,
): Message[] {
  const messages: Message[] = [];
  for (const message of transcript) {
    const content = sendableContent(message, declared);
    if (content === undefined) continue;
    const isBare = content === message.content && Object.keys(message).length === 2;
    // What an answer had around its content is no part of a message.
    const next: Message = isBare ? message : { role: message.role, content };
    const last = messages.at(-1);
    if (last?.role === next.role) {
      const blocks = [...asBlocks(last.content), ...asBlocks(content)];
      // Results come first in a message, also when two messages become one.
      messages[messages.length - 1] = {
        ...last,
        content: [
          ...blocks.filter(isResultBlock),
          ...blocks.filter((block) => !isResultBlock(block)),
        ],
      };
    } else messages.push(next);
  }
  if (messages[0]?.role === "assistant") messages.unshift({ role: "user", content: NOTHING });
  const last = messages.at(-1);
  if (last?.role === "assistant") messages[messages.length - 1] = trimmedEnd(last);
  return messages;
}

function sendableContent(message: Message, declared: ReadonlySet<string>): unknown {
  const { content } = message;
  if (typeof content === "string") return content.trim() === "" ? undefined : content;
  if (!Array.isArray(content)) return undefined;
  let isChanged = false;
  const blocks: unknown[] = [];
  for (const block of content) {
    const next = isJsonObject(block) ? sendableBlock(block, declared) : undefined;
    if (next !== block) isChanged = true;
    if (next !== undefined) blocks.push(next);
  }
  if (blocks.length === 0) return undefined;
  return isChanged ? blocks : content;
}

/** The block as it is sent; undefined if it is left out. */
function sendableBlock(block: Part, declared: ReadonlySet<string>): Part | undefined {
  switch (block.type) {
    case "text":
      return typeof block.text === "string" && block.text.trim() !== "" ? block : undefined;
    case "thinking":
      return typeof block.thinking === "string" && textOrUndefined(block.signature) !== undefined
        ? block
        : undefined;
    case "redacted_thinking":
      return textOrUndefined(block.data) === undefined ? undefined : block;
    case "tool_use": {
      const name = legalName(block.name, declared);
      return withInput(name === block.name ? block : { ...block, name });
    }
    case "server_tool_use":
      return withInput(block);
    case "tool_result":
      return sendableResult(block);
    default:
      return textOrUndefined(block.type) === undefined ? undefined : block;
  }
}

function withInput(block: Part): Part {
  return isJsonObject(block.input) ? block : { ...block, input: parseArguments(block.input) ?? {} };
}

function sendableResult(block: Part): Part {
  const { pending, ...rest } = block;
  const isEmpty = block.content === undefined || block.content === null ||
    (typeof block.content === "string" && block.content.trim() === "") ||
    (Array.isArray(block.content) && block.content.length === 0);
  if (isEmpty) return { ...rest, content: NOTHING };
  return pending === undefined ? block : rest;
}

/** A last message of the assistant is a text to go on from: it must not end in white space. */
function trimmedEnd(message: Message): Message {
  if (typeof message.content === "string") {
    return { ...message, content: message.content.trimEnd() };
  }
  const blocks = asBlocks(message.content);
  const last = blocks.at(-1);
  if (last?.type !== "text" || typeof last.text !== "string") return message;
  return { ...message, content: [...blocks.slice(0, -1), { ...last, text: last.text.trimEnd() }] };
}

function asBlocks(content: unknown): Part[] {
  return Array.isArray(content) ? content : [{ type: "text", text: content }];
}
