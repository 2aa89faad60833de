// Answers made up at random, and the bytes by which a provider would send them.

import type { StyleName } from "../../mod.ts";
import type { Json } from "./fixture.ts";
import type { Random } from "./random.ts";

/** A call of an answer. */
export interface MadeCall {
  id: string;
  name: "lookup" | "ping";
  args: Record<string, Json>;
}

/** An answer as the model meant it. */
export interface MadeAnswer {
  text: string;
  reasoning: string;
  calls: MadeCall[];
}

const WORDS = [
  "the ",
  "answer",
  " is ",
  "42",
  "\n",
  '"',
  "\\",
  "{",
  "}",
  "é",
  "日本",
  "🌍",
  "data: ",
];
const VALUES = ["x", "", "ü🌍", 'a "quoted" one', 7, -0.5, true, null, [1, "two"], { deep: {} }];

/** An answer: a text, some calls, or both. */
export function madeAnswer(random: Random): MadeAnswer {
  const words = (most: number) =>
    Array.from({ length: random.below(most) }, () => random.of(WORDS)).join("");
  const calls = Array.from({ length: random.of([0, 0, 1, 2, 3]) }, (_, k): MadeCall => ({
    id: `call_${k}_${random.below(1000)}`,
    name: random.of(["lookup", "ping"]),
    args: Object.fromEntries(
      Array.from({ length: random.below(4) }, (_, n) => [`k${n}`, random.of(VALUES)]),
    ),
  }));
  return { text: words(12), reasoning: random.below(3) === 0 ? words(6) : "", calls };
}

/** The body of a plain answer. */
export function plainBody(style: StyleName, answer: MadeAnswer): Json {
  const { text, reasoning, calls } = answer;
  if (style === "openai") {
    const tool_calls = calls.map(({ id, name, args }) => ({
      id,
      type: "function",
      function: { name, arguments: JSON.stringify(args) },
    }));
    const message = {
      role: "assistant",
      content: text === "" && calls.length > 0 ? null : text,
      ...(reasoning !== "" && { reasoning_content: reasoning }),
      ...(calls.length > 0 && { tool_calls }),
    };
    return {
      id: "chatcmpl-1",
      object: "chat.completion",
      model: "m",
      choices: [{ index: 0, message, finish_reason: calls.length > 0 ? "tool_calls" : "stop" }],
      usage: { prompt_tokens: 9, completion_tokens: 4, total_tokens: 13 },
    };
  }
  return {
    id: "msg_1",
    type: "message",
    role: "assistant",
    model: "m",
    content: blocksOf(answer),
    stop_reason: calls.length > 0 ? "tool_use" : "end_turn",
    usage: { input_tokens: 9, output_tokens: 4 },
  };
}

function blocksOf({ text, reasoning, calls }: MadeAnswer): Json[] {
  return [
    ...(reasoning === "" ? [] : [{ type: "thinking", thinking: reasoning, signature: "c2ln" }]),
    ...(text === "" ? [] : [{ type: "text", text }]),
    ...calls.map(({ id, name, args }) => ({ type: "tool_use", id, name, input: args })),
  ];
}

/** The events of a streamed answer, each as JSON or as the text of its data. */
export function streamEvents(style: StyleName, answer: MadeAnswer, random: Random): Json[] {
  return style === "openai" ? openaiEvents(answer, random) : anthropicEvents(answer, random);
}

function openaiEvents({ text, reasoning, calls }: MadeAnswer, random: Random): Json[] {
  const events: Json[] = [];
  const chunk = (delta: Json, finish_reason: string | null = null) =>
    events.push({
      id: "chatcmpl-1",
      object: "chat.completion.chunk",
      choices: [{ index: 0, delta, finish_reason }],
    });
  chunk({ role: "assistant", content: "" });
  for (const piece of pieces(reasoning, random)) chunk({ reasoning_content: piece });
  for (const piece of pieces(text, random)) chunk({ content: piece });
  // Calls begin in their order; the pieces of their arguments may alternate.
  const open: { index: number; rest: string[] }[] = [];
  for (let begun = 0; begun < calls.length || open.length > 0;) {
    if (begun < calls.length && (open.length === 0 || random.below(4) === 0)) {
      const { id, name, args } = calls[begun]!;
      const start = { index: begun, id, type: "function", function: { name, arguments: "" } };
      chunk({ tool_calls: [start] });
      open.push({ index: begun++, rest: pieces(JSON.stringify(args), random) });
    } else {
      const call = random.of(open);
      chunk({ tool_calls: [{ index: call.index, function: { arguments: call.rest.shift() } }] });
      if (call.rest.length === 0) open.splice(open.indexOf(call), 1);
    }
  }
  chunk({}, calls.length > 0 ? "tool_calls" : "stop");
  events.push({ choices: [], usage: { prompt_tokens: 9, completion_tokens: 4, total_tokens: 13 } });
  events.push("[DONE]");
  return events;
}

function anthropicEvents(answer: MadeAnswer, random: Random): Json[] {
  const { content, stop_reason, usage, ...message } = plainBody("anthropic", answer);
  const started = { ...message, content: [], stop_reason: null };
  const events: Json[] = [{
    type: "message_start",
    message: { ...started, usage: { ...usage, output_tokens: 1 } },
  }];
  content.forEach((block: Json, index: number) => {
    const start = (content_block: Json) =>
      events.push({ type: "content_block_start", index, content_block });
    const delta = (delta: Json) => events.push({ type: "content_block_delta", index, delta });
    if (block.type === "tool_use") {
      start({ ...block, input: {} });
      for (const partial_json of pieces(JSON.stringify(block.input), random)) {
        delta({ type: "input_json_delta", partial_json });
      }
    } else if (block.type === "text") {
      start({ type: "text", text: "" });
      for (const text of pieces(block.text, random)) delta({ type: "text_delta", text });
    } else {
      start({ type: "thinking", thinking: "", signature: "" });
      for (const thinking of pieces(block.thinking, random)) {
        delta({ type: "thinking_delta", thinking });
      }
      delta({ type: "signature_delta", signature: block.signature });
    }
    events.push({ type: "content_block_stop", index });
    if (random.below(4) === 0) events.push({ type: "ping" });
  });
  events.push({ type: "message_delta", delta: { stop_reason }, usage: { output_tokens: 4 } });
  events.push({ type: "message_stop" });
  return events;
}

/** The bytes of a stream, with line ends, spaces and comments as servers have them. */
export function streamText(events: readonly Json[], random: Random): string {
  const end = random.of(["\n", "\n", "\r\n", "\r"]);
  const space = random.of([" ", " ", ""]);
  return events.map((event) => {
    const data = typeof event === "string" ? event : JSON.stringify(event);
    const name = event?.type === undefined ? "" : `event:${space}${event.type}${end}`;
    const comment = random.below(12) === 0 ? `: keep-alive${end}${end}` : "";
    return `${comment}${name}data:${space}${data}${end}${end}`;
  }).join("");
}

/** A text in pieces that are not empty. */
function pieces(text: string, random: Random): string[] {
  return random.pieces(text).filter((piece) => piece !== "");
}
