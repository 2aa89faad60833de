/**
 * How many tokens messages are, near enough to keep a budget.
 *
 * @module
 */

import { objectOf } from "../json.ts";
import type { Message } from "../types.ts";
import type { Part } from "./read.ts";

/** A picture of the largest size that is not scaled down: https://docs.anthropic.com/en/docs/build-with-claude/vision */
const DATA_CHARACTERS = 6_000;

/**
 * A quarter of the characters of the messages' JSON: few tokenizers need more than one token for four
 * of them. The data of an image, an audio or a file is 1,500 tokens at most, whatever its length.
 */
export function estimateTokens(messages: readonly Message[]): number {
  let characters = 0;
  for (const message of messages) {
    characters += JSON.stringify(message).length;
    for (const part of [message, ...partsIn(message.content)]) {
      for (const data of dataOf(part)) characters -= Math.max(0, data.length - DATA_CHARACTERS);
    }
  }
  return Math.ceil(characters / 4);
}

/** The parts of a content, those of tool results too. */
function partsIn(content: unknown): Part[] {
  if (!Array.isArray(content)) return [];
  return content.flatMap((value) => {
    const part = objectOf(value);
    if (part === undefined) return [];
    return part.type === "tool_result" ? [part, ...partsIn(part.content)] : [part];
  });
}

/** The encoded data that a part carries, where either style has a place for it. */
function dataOf(part: Part): string[] {
  const source = objectOf(part.source);
  const places = [
    source?.type === "base64" ? source.data : undefined,
    ...[part.image_url, part.video_url, part.audio_url].map(dataUrlOf),
    objectOf(part.input_audio)?.data,
    objectOf(part.audio)?.data,
    objectOf(part.file)?.file_data,
  ];
  return places.filter((data) => typeof data === "string");
}

function dataUrlOf(value: unknown): string | undefined {
  const url = objectOf(value)?.url ?? value;
  return typeof url === "string" && url.startsWith("data:") ? url : undefined;
}
