// What a wire fixture says, and the bytes that it stands for. tests/fixtures/wire/README.md tells
// the format.

import type { Message, StyleName } from "../../mod.ts";
import type { Piece, RawAnswer } from "./raw_server.ts";

/** A JSON value of a fixture. */
// deno-lint-ignore no-explicit-any
export type Json = any;

/** One item of an event stream. */
export type StreamItem =
  | string
  | { hex: string }
  | { data: Json }
  | { event: Json }
  | { delta: Json; finish?: string }
  | { long: Long & { chunk: number } }
  | { drip: { item: StreamItem; count: number; everyMs: number } }
  | StreamItem[];

interface Long {
  before: string;
  fill: string;
  count: number;
  after: string;
}

/** What the server does with one request. */
export interface Answer {
  status?: number;
  headers?: Record<string, string>;
  json?: Json;
  text?: string | Long;
  stream?: StreamItem[];
  gzip?: boolean;
  end?: RawAnswer["end"];
}

/** How the client is made and asked. */
export interface ClientSetup {
  base?: string;
  options?: Record<string, Json>;
  key?: string;
  /** Environment variables; no key is passed then. */
  env?: Record<string, string>;
  /** Whether a `fetch` is passed. */
  fetch?: boolean;
  set?: Record<string, Json>;
  drop?: string[];
  /** What `beforeLLM` does: the model goes on from an assistant message. */
  dropLastUser?: boolean;
  onError?: "retry" | "fail";
  signal?: boolean;
  abortAfterMs?: number;
  leaveAfterText?: boolean;
  repeat?: number;
  prompt?: string;
  history?: Message[];
  /** A second prompt on the same conversation. */
  then?: string;
}

/** One failure that servers, gateways or the network have, and what is right. */
export interface Fixture {
  title: string;
  style: StyleName;
  mode: "run" | "stream";
  server: Answer[];
  client?: ClientSetup;
  expect: Json;
  limitMs?: number;
}

const encoder = new TextEncoder();

/** The fixtures of one file. */
export function readFixtures(file: URL): Fixture[] {
  const lines = Deno.readTextFileSync(file).split("\n").filter((line) => line !== "");
  return lines.map((line) => JSON.parse(line));
}

/** Whether a fixture has a stream that can be cut into single bytes. */
export function hasStream({ server }: Fixture): boolean {
  return server.some(({ stream }) => stream !== undefined && !isTimed(stream));
}

/** The bytes of an answer. */
export async function rawAnswer(answer: Answer, byteByByte: boolean): Promise<RawAnswer> {
  const { status = 200, end = "whole", headers = {}, json, text, stream } = answer;
  if (stream === undefined) {
    const body = json !== undefined ? JSON.stringify(json) : filled(text ?? "");
    const type: Record<string, string> = json === undefined
      ? {}
      : { "content-type": "application/json" };
    const pieces = [{ bytes: encoder.encode(body) }];
    return { status, headers: { ...type, ...headers }, pieces, isStream: false, end };
  }
  let pieces = stream.flatMap(piecesOf);
  const encoding: Record<string, string> = {};
  if (answer.gzip) {
    encoding["content-encoding"] = "gzip";
    const whole = new Blob(pieces.map(({ bytes }) => bytes as Uint8Array<ArrayBuffer>));
    const zipped = new Response(whole.stream().pipeThrough(new CompressionStream("gzip")));
    pieces = [{ bytes: await zipped.bytes() }];
  }
  if (byteByByte && !isTimed(stream)) pieces = pieces.flatMap(singleBytes);
  return {
    status,
    headers: { "content-type": "text/event-stream", ...encoding, ...headers },
    pieces,
    isStream: true,
    end,
  };
}

function isTimed(stream: readonly StreamItem[]): boolean {
  return stream.some((item) => typeof item === "object" && ("long" in item || "drip" in item));
}

function singleBytes({ bytes }: Piece): Piece[] {
  return Array.from(bytes, (byte) => ({ bytes: Uint8Array.of(byte) }));
}

/** An item is one network chunk, unless it says otherwise. */
function piecesOf(item: StreamItem): Piece[] {
  if (typeof item === "object" && "drip" in item) {
    const { item: each, count, everyMs: waitMs } = item.drip;
    return Array.from({ length: count }, () => ({ bytes: bytesOf(each), waitMs }));
  }
  if (typeof item === "object" && "long" in item) {
    const bytes = encoder.encode(filled(item.long));
    const { chunk } = item.long;
    const count = Math.ceil(bytes.length / chunk);
    return Array.from(
      { length: count },
      (_, k) => ({ bytes: bytes.subarray(k * chunk, (k + 1) * chunk) }),
    );
  }
  return [{ bytes: bytesOf(item) }];
}

function bytesOf(item: StreamItem): Uint8Array {
  if (typeof item === "object" && "hex" in item) return Uint8Array.fromHex(item.hex);
  return encoder.encode(textOf(item));
}

function textOf(item: StreamItem): string {
  if (typeof item === "string") return item;
  if (Array.isArray(item)) return item.map(textOf).join("");
  if ("data" in item) return `data: ${JSON.stringify(item.data)}\n\n`;
  if ("event" in item) return `event: ${item.event.type}\ndata: ${JSON.stringify(item.event)}\n\n`;
  if ("delta" in item) {
    const choice = { index: 0, delta: item.delta, finish_reason: item.finish ?? null };
    const chunk = { id: "c1", object: "chat.completion.chunk", choices: [choice] };
    return `data: ${JSON.stringify(chunk)}\n\n`;
  }
  throw new TypeError(`unknown stream item: ${JSON.stringify(item)}`);
}

function filled(text: string | Long): string {
  return typeof text === "string" ? text : text.before + text.fill.repeat(text.count) + text.after;
}

/** The answer `fin`, which ends a run whose script is used up. */
export function finalAnswer(style: StyleName, streaming: boolean): Answer {
  if (style === "openai") {
    if (streaming) return { stream: [{ delta: { content: "fin" }, finish: "stop" }, DONE] };
    const message = { role: "assistant", content: "fin" };
    return { json: { choices: [{ index: 0, message, finish_reason: "stop" }] } };
  }
  const message = { id: "m9", type: "message", role: "assistant" };
  const content = [{ type: "text", text: "fin" }];
  if (!streaming) return { json: { ...message, content, stop_reason: "end_turn" } };
  const events = [
    { type: "message_start", message: { ...message, content: [], stop_reason: null } },
    { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
    { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "fin" } },
    { type: "content_block_stop", index: 0 },
    { type: "message_delta", delta: { stop_reason: "end_turn" } },
    { type: "message_stop" },
  ];
  return { stream: events.map((event) => ({ event })) };
}

const DONE = "data: [DONE]\n\n";
