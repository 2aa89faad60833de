/**
 * What a provider's wire style must be able to do. The loop knows nothing else of a provider.
 *
 * @module
 */

import { textOrUndefined } from "../json.ts";
import type { Message, PendingRequest, StreamEvent, StyleName, Tool, Usage } from "../types.ts";

/** A request in the words of the loop. */
export interface ChatRequest {
  model: string;
  /** The system prompt; empty for none. */
  system: string;
  /** A balanced transcript, each message in the style it was written in. */
  messages: readonly Message[];
  tools: readonly Tool[];
  maxTokens: number | undefined;
  stream: boolean;
}

/** A tool call as the model made it. */
export interface CompletionCall {
  id: string;
  name: string;
  /** A JSON string (openai) or an object (anthropic), as it came. */
  arguments: unknown;
}

/** An answer, read. */
export interface Completion {
  /** The message as it is stored. */
  message: Message;
  text: string;
  /** What the model shows of its reasoning; empty for none. */
  reasoning: string;
  calls: CompletionCall[];
  /** In the provider's word. */
  finishReason: string;
  /** Whether a limit cut the answer, so that its last call may be incomplete. */
  isCut: boolean;
  /** Whether the model only paused: the same transcript is sent again. */
  isPaused: boolean;
  usage: Usage;
  /** The provider's decoded payload; put together from the events of a stream. */
  payload: unknown;
}

/** The result of a call, as it goes into the transcript. */
export interface CallResult {
  id: string;
  name: string;
  /** A text; a result that was stored before can be anything. */
  content: unknown;
  isError: boolean;
  /** The open request of a suspended call: the mark by which another process knows it. */
  pending?: PendingRequest | undefined;
}

/** Puts a payload together from the events of a stream. */
export interface StreamDecoder {
  /** Whether the provider has said why it stopped: the end of the stream is no loss from here on. */
  readonly isFinished: boolean;
  /** Whether nothing of the answer can follow. Some servers give a reason with every piece of it. */
  readonly isComplete: boolean;
  /** Whether the end marker came: nothing more is read. */
  readonly isEnded: boolean;
  /** Takes one event and adds what the user should see to `events`. */
  push(data: Record<string, unknown>, event: string, events: StreamEvent[]): void;
  /** The data of an event that is no JSON object: an end marker, or not known (false). */
  pushText(data: string): boolean;
  /** The payload, as a plain answer would have been. */
  payload(): Record<string, unknown>;
}

/** A wire style. */
export interface Style {
  readonly name: StyleName;
  /** What the base URL ends in, where the style demands it. */
  readonly version: string;
  /** The path of the endpoint below that. */
  readonly path: string;
  /** The headers that carry the key, and those that the provider demands. */
  headers(apiKey: string | undefined): Record<string, string>;
  /** The body of a request: the transcript in this style, cleaned of what the provider refuses. */
  body(request: ChatRequest): Record<string, unknown>;
  /**
   * Reads a payload.
   *
   * @throws {UnreadableAnswer} if it is no answer of this style
   */
  read(payload: Record<string, unknown>): Completion;
  decoder(): StreamDecoder;
  /** A tool choice of the OpenAI shape in this one. */
  toolChoice(choice: unknown): unknown;
  /** The messages that carry the results of an assistant message's calls. */
  results(answer: Message, results: readonly CallResult[]): Message[];
}

/** A payload that is JSON but no answer; the request turns it into a `ProviderError`. */
export class UnreadableAnswer extends Error {}

/** Why the provider stopped, in its word. Some servers write `null` as a text for no reason. */
export function finishReasonOf(value: unknown): string | undefined {
  return value === "null" ? undefined : textOrUndefined(value);
}

/** Gateways hand on the reasons of either style, some in capital letters. */
const CUT_REASONS: ReadonlySet<string> = new Set([
  "abort", // SGLang, vLLM
  "content_filter",
  "insufficient_system_resource", // DeepSeek
  "length",
  "max_tokens",
  "model_context_window_exceeded",
  "model_length", // Mistral
  "network_error", // GLM
  "refusal",
  "sensitive", // GLM
]);

/** Whether an answer that ended for this reason can lack its end. */
export function isCutReason(reason: string): boolean {
  return CUT_REASONS.has(reason.toLowerCase());
}

/** The id of a call as it was given; a blank one is none. */
export function givenId(value: unknown): string | undefined {
  return typeof value === "string" && value.trim() !== "" ? value : undefined;
}

/** A count of tokens as a provider sent it; anything that is no count is 0. */
export function tokenCount(value: unknown): number {
  return typeof value === "number" && Number.isFinite(value) && value > 0 ? value : 0;
}

/** An id for a call that came without one. */
export function newCallId(): string {
  return `call_${crypto.randomUUID().replaceAll("-", "").slice(0, 24)}`;
}
