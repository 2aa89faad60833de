/**
 * Converting the parts of a message's content: texts, images, documents.
 *
 * A part that the other style has no place for becomes a short text note, such as `[input_audio]`.
 * Reasoning, and the work of tools that the provider itself ran, is for that provider alone: it is
 * dropped, as the answer tells what came of it.
 *
 * @module
 */

import { isJsonObject } from "../json.ts";
import { isServerToolBlock, type Part, partStyle, textOfContent } from "./read.ts";

/** The images that Anthropic reads. */
const IMAGE_TYPES: ReadonlySet<string> = new Set([
  "image/gif",
  "image/jpeg",
  "image/png",
  "image/webp",
]);

/** The parts of a content, whatever it is: a text is one part. */
export function partsOf(content: unknown): readonly unknown[] {
  if (Array.isArray(content)) return content;
  if (content === null || content === undefined || content === "") return [];
  return [isJsonObject(content) ? content : textPart(String(content))];
}

/** A part as an Anthropic block; undefined for what is dropped. `role` is that of the message. */
export function toAnthropicBlock(part: unknown, role: string): Part | undefined {
  if (!isJsonObject(part)) return typeof part === "string" ? textPart(part) : undefined;
  switch (part.type) {
    case "text":
      return typeof part.text === "string" ? part : undefined;
    case "refusal":
      return typeof part.refusal === "string" ? textPart(part.refusal) : undefined;
    case "thinking":
      return Array.isArray(part.thinking) ? undefined : part;
    case "reasoning":
      return undefined;
    case "image_url":
      return role === "assistant" ? noteOf(part) : imageBlock(part) ?? noteOf(part);
    case "file":
      return role === "assistant" ? noteOf(part) : documentBlock(part) ?? noteOf(part);
    case "tool_use": // a call of nobody
    case "tool_result":
      return noteOf(part);
  }
  return partStyle(part) === "anthropic" ? part : noteOf(part);
}

/** A block as an OpenAI part; undefined for what is dropped. */
export function toOpenAIPart(block: unknown): Part | undefined {
  if (!isJsonObject(block)) return typeof block === "string" ? textPart(block) : undefined;
  if (partStyle(block) === "openai") return block;
  switch (block.type) {
    case "text":
      return typeof block.text === "string" ? textPart(block.text) : undefined;
    case "thinking":
    case "redacted_thinking":
      return undefined;
    case "image":
      return imagePart(block) ?? noteOf(block);
    case "document":
      return filePart(block) ?? noteOf(block);
  }
  if (isServerToolBlock(block)) return undefined;
  return noteOf(block);
}

/** A block as text, for an assistant's message of OpenAI style; empty for what is dropped. */
export function toOpenAIText(block: unknown): string {
  if (isJsonObject(block)) {
    if (block.type === "tool_use") return "";
    if (block.type === "refusal" && typeof block.refusal === "string") return block.refusal;
    if (block.type === "reasoning" || block.type === "thinking") return "";
  }
  const part = toOpenAIPart(block);
  if (part === undefined) return "";
  return part.type === "text" ? part.text as string : noteOf(part).text;
}

/** A part in words: its own text where it has some, else its type and name. */
function noteOf(part: Part): { type: "text"; text: string } {
  if (typeof part.text === "string") return textPart(part.text);
  const inner = textOfContent(part.content);
  if (inner !== "") return textPart(inner);
  const kind = typeof part.type === "string" ? part.type.replace(/_url$/, "") : "unknown part";
  const file = isJsonObject(part.file) ? part.file : {};
  const source = isJsonObject(part.source) ? part.source : {};
  const name = [part.title, part.name, file.filename, source.url].find((value) =>
    typeof value === "string" && value !== ""
  );
  return textPart(name === undefined ? `[${kind}]` : `[${kind}: ${name}]`);
}

/** A text as a part; the same in both styles. */
export function textPart(text: string): { type: "text"; text: string } {
  return { type: "text", text };
}

function imageBlock(part: Part): Part | undefined {
  const image = part.image_url;
  const url = isJsonObject(image) ? image.url : image;
  if (typeof url !== "string") return undefined;
  if (/^https?:/i.test(url)) return { type: "image", source: { type: "url", url } };
  const data = readDataUrl(url);
  if (data === undefined) return undefined;
  const mediaType = data.mediaType === "image/jpg" ? "image/jpeg" : data.mediaType;
  if (!IMAGE_TYPES.has(mediaType)) return undefined;
  return { type: "image", source: { type: "base64", media_type: mediaType, data: data.base64 } };
}

function imagePart(block: Part): Part | undefined {
  const url = urlOf(block.source);
  return url === undefined ? undefined : { type: "image_url", image_url: { url } };
}

function documentBlock(part: Part): Part | undefined {
  if (!isJsonObject(part.file) || typeof part.file.file_data !== "string") return undefined;
  const data = readDataUrl(part.file.file_data);
  if (data?.mediaType !== "application/pdf") return undefined;
  const source = { type: "base64", media_type: data.mediaType, data: data.base64 };
  const title = part.file.filename;
  return { type: "document", source, ...typeof title === "string" && title ? { title } : {} };
}

function filePart(block: Part): Part | undefined {
  if (!isJsonObject(block.source)) return undefined;
  const { type, data, content } = block.source;
  if (type === "text" && typeof data === "string") return textPart(data);
  if (type === "content") return textPart(textOfContent(content));
  if (type !== "base64") return undefined; // an address or an id that only that provider opens
  const fileData = urlOf(block.source);
  if (fileData === undefined) return undefined;
  const filename = typeof block.title === "string" && block.title ? block.title : "document.pdf";
  return { type: "file", file: { filename, file_data: fileData } };
}

/** The address of an Anthropic source, or its bytes as a data URL. */
function urlOf(source: unknown): string | undefined {
  if (!isJsonObject(source)) return undefined;
  const { type, url, data, media_type: mediaType } = source;
  if (type === "url") return typeof url === "string" ? url : undefined;
  if (type !== "base64" || typeof data !== "string" || typeof mediaType !== "string") {
    return undefined;
  }
  return `data:${mediaType};base64,${data}`;
}

function readDataUrl(url: string): { mediaType: string; base64: string } | undefined {
  const comma = url.indexOf(",");
  if (comma < 0 || comma > 200 || !/^data:/i.test(url)) return undefined;
  const [mediaType = "", ...parameters] = url.slice(5, comma).split(";");
  if (parameters.at(-1)?.trim().toLowerCase() !== "base64") return undefined;
  return { mediaType: mediaType.trim().toLowerCase(), base64: url.slice(comma + 1) };
}
