/**
 * What a script of {@linkcode stubLlm} is made of.
 *
 * @module
 */

import type { Awaitable, Message, StyleName, Usage } from "../../mod.ts";

/** One request as the stub received it. */
export interface StubRequest {
  /** `POST`. */
  readonly method: string;
  /** The whole URL, with its query. */
  readonly url: string;
  /** The path alone. */
  readonly path: string;
  /** The style, told by the end of the path. */
  readonly style: StyleName;
  /** The headers. */
  readonly headers: Headers;
  /** The parsed body; `{}` where it was no JSON object. */
  readonly body: StubRequestBody;
  /** The body as it came. */
  readonly text: string;
  /** Aborts when the client hangs up before the reply is complete. */
  readonly signal: AbortSignal;
}

/** A request body as the client sent it; its fields are unchecked where the stub is not strict. */
export interface StubRequestBody {
  /** The model. */
  model: string;
  /** The transcript. */
  messages: Message[];
  /** Whether an event stream was asked for. */
  stream?: boolean | undefined;
  /** Everything else. */
  [key: string]: unknown;
}

/** A tool call of a {@linkcode StubAnswer}. */
export interface StubToolCall {
  /** The id of the call. @default `call_1`, `call_2`, … (openai) or `toolu_1`, … (anthropic), counted over the stub's life */
  id?: string | undefined;
  /** The tool's name. */
  name: string;
  /**
   * The arguments; a string is sent as it is, to be broken on purpose. In a plain anthropic reply,
   * where arguments are no string, it is parsed if it can be.
   *
   * @default {}
   */
  args?: Record<string, unknown> | string | undefined;
  /** The same by the name that providers have. */
  arguments?: Record<string, unknown> | string | undefined;
}

/** What the model says, written in the style and the form that the request asks for. */
export interface StubAnswer {
  /** The text. @default none */
  text?: string | undefined;
  /** The tools that it calls. @default none */
  toolCalls?: readonly StubToolCall[] | undefined;
  /** Its reasoning: `reasoning_content` (openai), a signed thinking block (anthropic). */
  reasoning?: string | undefined;
  /** Token counts. @default 10 prompt tokens and 5 completion tokens */
  usage?: Partial<Usage> | undefined;
  /**
   * Why it stopped, in the provider's word.
   *
   * @default `stop` or `tool_calls` (openai), `end_turn` or `tool_use` (anthropic)
   */
  finishReason?: string | undefined;
}

/** An HTTP response as it stands. */
export interface StubRawReply {
  /** The HTTP status. @default 200 */
  status?: number | undefined;
  /** Headers. @default a content type that fits the body, and a request id */
  headers?: HeadersInit | undefined;
  /**
   * Bytes or text as they are; anything else becomes JSON.
   *
   * @default the provider's own error body for a status from 400, else nothing
   */
  body?: unknown;
}

/** An event stream as it stands. */
export interface StubEventStream {
  /** The network chunks, written one by one; they need not end where an event or a character does. */
  sse: readonly (string | Uint8Array)[];
  /**
   * What follows the last chunk: the regular end of the body, silence until one side hangs up, or a
   * broken connection.
   *
   * @default "close"
   */
  end?: "close" | "hang" | "reset" | undefined;
  /** The HTTP status. @default 200 */
  status?: number | undefined;
  /** Headers. @default `content-type: text/event-stream` */
  headers?: HeadersInit | undefined;
}

/** A reply; a string is the text of an answer. */
export type StubReply = string | StubAnswer | StubRawReply | StubEventStream;

/** A reply made from the request. */
export type StubReplyFunction = (request: StubRequest) => Awaitable<StubReply>;
