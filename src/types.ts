/**
 * The data that crosses every border of the client: messages, tools, results, events.
 *
 * @module
 */

/** A value, or a promise of it. */
export type Awaitable<T> = T | PromiseLike<T>;

/** The wire style of an endpoint. */
export type StyleName = "openai" | "anthropic";

/**
 * One message of a transcript: plain JSON in the shape of the provider that wrote or reads it.
 * OpenAI style has `user`, `assistant`, `tool` (and `system`, `developer`) messages, Anthropic style
 * `user` and `assistant` with content blocks. A transcript may hold both kinds.
 */
export interface Message {
  /** Who speaks: `user`, `assistant`, `tool`, `system`, … */
  role: string;
  /** The content in the provider's shape: a string, a list of parts or blocks, or null. */
  content?: unknown;
  /** Whatever else the provider sent with the message; kept as it came. */
  [key: string]: unknown;
}

/**
 * A message as a caller may give it: a {@linkcode Message}, or the type of another library for the
 * same JSON.
 */
export interface MessageInput {
  /** Who speaks. */
  readonly role: string;
  /** The content in the provider's shape. */
  readonly content?: unknown;
}

/** Tokens counted by the provider, added up over the requests of a run. */
export interface Usage {
  /** Input tokens; without cache reads where the provider reports those apart (Anthropic). */
  promptTokens: number;
  /** Output tokens. */
  completionTokens: number;
  /** The total that the provider reports; at least the sum of the two. */
  totalTokens: number;
  /** Input tokens read from the provider's prompt cache, where reported. */
  cachedTokens?: number | undefined;
  /** Input tokens written to the prompt cache, where reported apart from the others (Anthropic). */
  cacheCreationTokens?: number | undefined;
  /** Output tokens spent on reasoning, where reported. */
  reasoningTokens?: number | undefined;
}

/** A JSON Schema document (any draft the endpoint understands). */
export interface JsonSchema {
  /** A keyword of the schema. */
  readonly [keyword: string]: unknown;
}

/** Where a tool came from; the label `source` of the metrics. */
export type ToolSource = "native" | "http" | "mcp" | "skill" | "custom";

/** What a tool gives back to the model. */
export interface ToolResult {
  /** The text that the model reads. */
  output: string;
  /** Whether the call failed; the model is told where the provider has a place for it. */
  isError: boolean;
  /** Data for the host; never sent to the model. */
  metadata?: Record<string, unknown> | undefined;
}

/** A request to a human, made by a suspended tool. Plain JSON: it travels to any process. */
export interface PendingRequest {
  /** Names this request; the answer must carry the same id. Generated ids start with `pnd-`. */
  id: string;
  /** What is asked for: `authorization`, `approval`, `input`, or a word of your own. */
  kind: string;
  /** The question, for a human. */
  prompt: string;
  /** Where the human answers, when there is such a place. */
  url?: string | undefined;
  /** Data for the host. `toolCallId` is stamped with the id of the suspended call. */
  data?: Record<string, unknown> | undefined;
  /** When the request runs out, as an RFC 3339 date-time. Default: never. */
  expiresAt?: string | undefined;
}

/** The answer to a {@linkcode PendingRequest}. */
export interface Answer {
  /** The id of the request. */
  id: string;
  /** Whether the tool may run. */
  ok: boolean;
  /** What the human gave: a token, a choice, a text. */
  data?: Record<string, unknown> | undefined;
  /** Why not, when `ok` is false. */
  reason?: string | undefined;
}

/** What a running tool is told. */
export interface ToolContext {
  /** Aborts when the run ends early or the call's time is over. */
  signal: AbortSignal;
  /** The id of this call, stable across a resume: use it as an idempotency key. */
  callId: string;
  /** The conversation, when the run has one. */
  conversationId?: string | undefined;
  /** The round of the run in which the call was made, from 1. */
  turn: number;
  /** The answer to this call's own suspension, when it runs again. */
  answer?: Answer | undefined;
  /** The time limit of this call in milliseconds, when there is one. */
  timeoutMs?: number | undefined;
}

/** A tool: a name, a schema, and a function. Any object of this shape is one. */
export interface Tool {
  /** What the model calls it; at most 64 letters, digits, `_` and `-` with most providers. */
  readonly name: string;
  /** Tells the model what it does and when to use it. */
  readonly description: string;
  /** JSON Schema of the arguments, an object schema. */
  readonly inputSchema: JsonSchema;
  /** Where it came from. */
  readonly source: ToolSource;
  /**
   * The longest time one call may take, in milliseconds; `Infinity` for no limit.
   *
   * @default the client's `toolTimeoutMs`
   */
  readonly timeoutMs?: number | undefined;
  /** Runs the tool. A throw becomes an error result. */
  execute(args: Record<string, unknown>, context: ToolContext): Awaitable<ToolResult>;
}

/** One tool call of a run, with its result. */
export interface ToolCallRecord {
  /** The id of the call. */
  id: string;
  /** The tool's name as the model gave it. */
  name: string;
  /** The arguments; `{}` where the model's were no JSON object. */
  args: Record<string, unknown>;
  /** What the model was given. */
  output: string;
  /** Whether the call failed. */
  isError: boolean;
  /** The tool's own data. */
  metadata?: Record<string, unknown> | undefined;
}

/** What was mended in a transcript so that a provider accepts it. */
export interface RepairReport {
  /** Ids of calls that had no result and got one. */
  closedCalls: string[];
  /** Ids of results that belonged to no call and were dropped. */
  droppedResults: string[];
}

/** The outcome of a run. */
export interface RunResult {
  /** The text of the last answer, with what was said before the model paused. */
  text: string;
  /**
   * The whole transcript as it was kept: history, prompt, tool rounds, answer; with the turns that
   * others have saved meanwhile.
   */
  messages: Message[];
  /** Every tool call of this run, in order. */
  toolCalls: ToolCallRecord[];
  /** The number of tool calls. */
  toolCallCount: number;
  /** The number of answers received from the model. */
  turns: number;
  /** Tokens of this run. */
  usage: Usage;
  /** The model that was asked. */
  model: string;
  /** Why the model stopped, as the provider named it; `unknown` where it gave no reason. */
  finishReason: string;
  /**
   * `done`: the model gave its answer. `pending`: a tool waits for a human, see `pending`.
   * `incomplete`: a limit stopped the run (see `limit`), or the run failed and this is what it had.
   */
  status: "done" | "pending" | "incomplete";
  /** The request of the suspended tool: there just when `status` is `pending`. */
  pending?: PendingRequest | undefined;
  /** The limit that stopped the run. */
  limit?: "maxTurns" | undefined;
  /** What had to be mended in the history, when anything had to be. */
  repaired?: RepairReport | undefined;
}

/** An event of a running stream. */
export type StreamEvent =
  /** A piece of the answer. */
  | { type: "text"; delta: string }
  /** A piece of the model's reasoning, where the provider shows it. */
  | { type: "reasoning"; delta: string }
  /** A tool is about to run. */
  | { type: "tool_call"; id: string; name: string; args: Record<string, unknown> }
  /** A tool has run. */
  | { type: "tool_result"; id: string; name: string; output: string; isError: boolean }
  /** A tool waits for a human. */
  | { type: "pending"; request: PendingRequest }
  /** Tokens of one answer. */
  | { type: "usage"; usage: Usage }
  /** The end: delivered once, last, after the conversation was saved. */
  | { type: "done"; result: RunResult };

/**
 * Where conversations are kept. Two operations are a whole store; a store that can, honours `base`
 * and refuses a stale write with a `ConversationConflictError`.
 *
 * @example A store is two closures
 * ```ts
 * import type { ConversationStore, Message } from "@toolnexus/client";
 *
 * const map = new Map<string, readonly Message[]>();
 * const store: ConversationStore = {
 *   get: (id) => map.get(id),
 *   save: (id, messages) => void map.set(id, messages),
 * };
 * ```
 */
export interface ConversationStore {
  /** The transcript kept under `id`, or null or undefined when there is none. */
  get(id: string): Awaitable<readonly Message[] | null | undefined>;
  /**
   * Keeps `messages` under `id`. `base` is the transcript that these were built on: what `get`
   * returned, what was last saved, or `[]` for "only if nothing is there"; absent means overwrite.
   */
  save(id: string, messages: readonly Message[], base?: readonly Message[]): Awaitable<void>;
}

/** What a store's `list` tells of a conversation. */
export interface ConversationInfo {
  /** The conversation's id. */
  id: string;
  /** When it was last saved. */
  updatedAt: Date;
  /** How many messages it has. */
  messageCount: number;
}

/** Which conversations a store's `list` tells of. */
export interface ListOptions {
  /** What the id begins with. @default "" */
  prefix?: string | undefined;
  /** The most to tell of. @default no limit */
  limit?: number | undefined;
}
