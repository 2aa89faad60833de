/**
 * The client.
 *
 * @module
 */

import { checkFunction, checkObject, checkSignal } from "./checks.ts";
import { ConversationConflictError, quote, type ToolnexusError } from "./errors.ts";
import { Execution } from "./execution.ts";
import { callHook } from "./hooks.ts";
import { InMemoryConversationStore } from "./memory_store.ts";
import { checkConversationId } from "./conversation_id.ts";
import { isPlainObject } from "./json.ts";
import { cloneJson, copyJson } from "./json_copy.ts";
import { copyMessages, equalMessages } from "./messages.ts";
import { type MetricEvent, Metrics } from "./metrics.ts";
import { type CallOptions, type ClientOptions, type Settings, settingsOf } from "./options.ts";
import { RunStream } from "./run_stream.ts";
import { toolkitOf } from "./tools/toolkit.ts";
import { translate, type TranslateRequest, type TranslateResult } from "./translate.ts";
import type {
  Answer,
  ConversationStore,
  Message,
  MessageInput,
  PendingRequest,
  RunResult,
} from "./types.ts";

/** A prompt: a text, or the content of a user message in the provider's shape. */
export type Prompt = string | readonly object[];

/** Options of {@linkcode Client.run}. */
export interface RunOptions extends CallOptions {
  /** A transcript to go on from; it is not changed. @default [] */
  history?: readonly MessageInput[] | undefined;
  /** Gets each piece of the answer as it comes. */
  onText?: ((delta: string) => void) | undefined;
}

/** Options of {@linkcode Client.ask}. */
export interface AskOptions extends CallOptions {
  /**
   * The conversation that is continued: a non-empty string of at most 1,024 UTF-8 bytes. Without one
   * nothing is remembered.
   */
  id?: string | undefined;
  /** Gets each piece of the answer as it comes. */
  onText?: ((delta: string) => void) | undefined;
}

/** Options of {@linkcode Client.stream}. */
export interface StreamOptions extends CallOptions {
  /** The conversation that is continued. Without one nothing is remembered. */
  id?: string | undefined;
  /** A transcript to go on from, when there is no `id`. @default [] */
  history?: readonly MessageInput[] | undefined;
}

/** Options of {@linkcode Client.conversation}. */
export interface ConversationOptions extends CallOptions {
  /** What was said before. @default [] */
  history?: readonly MessageInput[] | undefined;
}

/** Options of {@linkcode Client.resume}. */
export interface ResumeOptions extends CallOptions {
  /** The conversation to go on with; either this or `history`. */
  id?: string | undefined;
  /** The transcript to go on with, when it is not in the store. */
  history?: readonly MessageInput[] | undefined;
  /** The answer to the open request. @default none: an interrupted run goes on */
  answer?: Answer | undefined;
  /** The request as the caller knows it; the one in the transcript counts, so this is not read. */
  pending?: PendingRequest | undefined;
  /** Gets each piece of the answer as it comes. */
  onText?: ((delta: string) => void) | undefined;
}

/** Options of {@linkcode Client.resumeStream}: the stream brings what `onText` would get. */
export type ResumeStreamOptions = Omit<ResumeOptions, "onText">;

/** Options of {@linkcode Conversation.send}. */
export type SendOptions = Pick<AskOptions, "signal" | "onText">;

/** Options of {@linkcode Conversation.resume}. */
export type ConversationResumeOptions = Pick<ResumeOptions, "answer" | "signal" | "onText">;

/** What one call is about. */
interface Call extends CallOptions {
  store: ConversationStore;
  id?: string | undefined;
  history?: readonly MessageInput[] | undefined;
  answer?: Answer | undefined;
  onText?: ((delta: string) => void) | undefined;
}

/**
 * A client of one endpoint. It runs the whole loop of answers and tool calls, and remembers
 * conversations by id.
 *
 * @example
 * ```ts
 * import { createClient } from "@toolnexus/client";
 * import { stubLlm } from "@toolnexus/client/testing";
 * import { assertEquals } from "@std/assert";
 *
 * await using server = stubLlm(["Hello Ann", "You are Ann"]);
 * const client = createClient({ baseUrl: server.baseUrl, style: "openai", model: "test" });
 * await client.ask("I am Ann", { id: "thread-1" });
 * const { text, messages } = await client.ask("Who am I?", { id: "thread-1" });
 * assertEquals([text, messages.length], ["You are Ann", 4]);
 * ```
 */
export class Client {
  readonly #settings: Settings;
  readonly #store: ConversationStore;
  readonly #metrics = new Metrics();

  /** @internal Use {@linkcode createClient}. */
  constructor(options: ClientOptions) {
    const onMetric = options?.onMetric;
    this.#settings = settingsOf(options, (event) => this.#emit(event, onMetric));
    this.#store = options.store ?? new InMemoryConversationStore();
  }

  /**
   * Asks without remembering; `history` goes on from a transcript.
   *
   * @throws {ToolnexusError} with what was completed on its `result`
   * @throws {TypeError} if an argument is wrong, or the key of the endpoint is missing
   */
  async run(prompt: Prompt, options: RunOptions = {}): Promise<RunResult> {
    checkObject("options", options);
    if ("id" in options && options.id !== undefined) {
      throw new TypeError("run() remembers nothing: use ask() with an id");
    }
    return await this.#result(userTurn(prompt), { ...options, store: this.#store });
  }

  /**
   * Asks and, with an `id`, remembers: the conversation is loaded, continued and saved. Asks on one
   * id wait for each other. Without an `id`, or with `id: undefined`, nothing is remembered: it is
   * {@linkcode Client.run}.
   *
   * @throws {ToolnexusError} with what was completed on its `result`
   * @throws {TypeError} if an argument is wrong, or the key of the endpoint is missing
   */
  async ask(prompt: Prompt, options: AskOptions = {}): Promise<RunResult> {
    checkObject("options", options);
    return await this.#result(userTurn(prompt), { ...options, store: this.#store });
  }

  /**
   * The same as {@linkcode Client.ask}, event by event. The run starts when the stream is first read.
   *
   * @throws {TypeError} if an argument is wrong
   */
  stream(prompt: Prompt, options: StreamOptions = {}): RunStream {
    checkObject("options", options);
    const call = { ...options, store: this.#store };
    return new RunStream(this.#execution(userTurn(prompt), call));
  }

  /**
   * Goes on with the last turn of a conversation, without a new user turn: with the `answer` that a
   * suspended tool waits for, or, without one, from where the run was interrupted. A suspended
   * conversation without an answer gives its request again, a finished one its last answer.
   *
   * @throws {StaleAnswerError} if the answer is for no open request, or nothing is known of the id
   * @throws {ToolnexusError} as {@linkcode Client.ask} does
   */
  async resume(options: ResumeOptions): Promise<RunResult> {
    return await this.#result(undefined, { ...checkedResume(options), store: this.#store });
  }

  /**
   * The same as {@linkcode Client.resume}, event by event.
   *
   * @throws {TypeError} at once, if an argument is wrong
   */
  resumeStream(options: ResumeStreamOptions): RunStream {
    const call = { ...checkedResume(options), store: this.#store };
    return new RunStream(this.#execution(undefined, call));
  }

  /**
   * Makes exactly one call to the provider, OpenAI shapes in and out, whatever the endpoint speaks.
   * No tool runs and nothing is remembered.
   *
   * @throws {ToolnexusError} if the call failed
   * @throws {TypeError} if an argument is wrong
   */
  async translate(request: TranslateRequest): Promise<TranslateResult> {
    checkObject("request", request);
    return await translate(this.#settings, request);
  }

  /**
   * A conversation whose transcript lives on the returned object.
   *
   * @throws {TypeError} if an option is wrong
   */
  conversation(options: ConversationOptions = {}): Conversation {
    checkObject("options", options);
    const { history, ...rest } = options;
    return new Conversation(history ?? [], {
      send: (turn, call) => this.#result(turn, { ...rest, ...call }),
      stream: (turn, call) => new RunStream(this.#execution(turn, { ...rest, ...call })),
    });
  }

  /** The store in use: the one that was given, or the client's own. */
  conversationStore(): ConversationStore {
    return this.#store;
  }

  /** What the client has done so far, as Prometheus text (exposition format 0.0.4). */
  metrics(): string {
    return this.#metrics.text();
  }

  async #result(
    turn: Message[] | undefined,
    { onText, ...call }: Call,
  ): Promise<RunResult> {
    checkFunction("onText", onText);
    const execution = this.#execution(turn, call);
    if (onText === undefined) return await execution.run();
    return await execution.run(async (events, signal) => {
      for (const [index, event] of events.entries()) {
        if (event.type !== "text") continue;
        try {
          await callHook("onText", onText, event.delta, signal);
        } catch (error) {
          // It has not seen the rest, whether it failed itself or the run was ended meanwhile.
          execution.close(events.slice(index + 1), error as ToolnexusError);
          throw error;
        }
      }
    });
  }

  #execution(turn: Message[] | undefined, call: Call): Execution {
    const { store, id, history, signal, toolkit, answer } = call;
    if (id !== undefined) checkConversationId(id);
    if (id !== undefined && history !== undefined) {
      throw new TypeError(
        "history and id exclude each other: the history of an id is in the store",
      );
    }
    checkSignal(signal);
    return new Execution({
      settings: this.#settings,
      store,
      toolkit: toolkit === undefined ? this.#settings.toolkit : toolkitOf(toolkit),
      prompt: turn,
      answer,
      history: copyMessages(history ?? []),
      id,
      signal,
    });
  }

  #emit(event: MetricEvent, onMetric: ClientOptions["onMetric"]): void {
    this.#metrics.record(event);
    // Whoever only watches must not end what is paid for, now or later.
    const watch = async () => await onMetric?.(event);
    if (onMetric !== undefined) watch().catch(() => {});
  }
}

/** @throws {TypeError} if it is no prompt */
function userTurn(prompt: Prompt): Message[] {
  const isEmpty = typeof prompt === "string" ? prompt.trim() === "" : prompt?.length === 0;
  if (isEmpty) throw new TypeError("prompt must not be empty");
  if (typeof prompt !== "string" && !(Array.isArray(prompt) && prompt.every(isPlainObject))) {
    throw new TypeError(`prompt must be a string or a list of content parts: ${quote(prompt)}`);
  }
  return copyMessages([{ role: "user", content: prompt }]);
}

/** @throws {TypeError} if it does not say what to resume, or the answer is none */
function checkedResume(options: ResumeOptions): ResumeOptions {
  checkObject("options", options);
  const { id, history, answer } = options;
  if (id === undefined && history === undefined) {
    throw new TypeError("resume needs an id or a history");
  }
  if (answer === undefined) return options;
  checkObject("answer", answer);
  if (typeof answer.id !== "string" || typeof answer.ok !== "boolean") {
    throw new TypeError(`answer must have the id of the request and ok: ${quote(answer)}`);
  }
  return { ...options, answer: copyJson(answer, "answer") };
}

/** What a {@linkcode Conversation} needs of its client. */
interface ConversationRuns {
  send(turn: Message[] | undefined, call: Call): Promise<RunResult>;
  stream(turn: Message[] | undefined, call: Call): RunStream;
}

/**
 * A conversation that lives as long as this object. Its turns wait for each other, and it keeps what
 * a failed turn completed, as a stored conversation does.
 */
export class Conversation {
  readonly #runs: ConversationRuns;
  readonly #id = crypto.randomUUID();
  #messages: readonly Message[];
  /** A store of this one conversation: its turns are like those of any other. */
  readonly #store: ConversationStore = {
    get: () => this.messages,
    save: (id, messages, base) => {
      // It can have been reset while a turn went on.
      const isStale = base !== undefined && !equalMessages(this.#messages, base);
      if (isStale) throw new ConversationConflictError(id);
      this.#messages = copyMessages(messages);
    },
  };

  /** @internal Use `client.conversation()`. */
  constructor(history: readonly MessageInput[], runs: ConversationRuns) {
    this.#runs = runs;
    this.#messages = copyMessages(history);
  }

  /** A copy of the transcript. */
  get messages(): Message[] {
    return this.#messages.map(cloneJson);
  }

  /** Asks, and goes on from here. Errors are those of {@linkcode Client.ask}. */
  async send(prompt: Prompt, options: SendOptions = {}): Promise<RunResult> {
    return await this.#runs.send(userTurn(prompt), this.#call(options));
  }

  /** The same as {@linkcode Conversation.send}, event by event. */
  stream(prompt: Prompt, options: Omit<SendOptions, "onText"> = {}): RunStream {
    return this.#runs.stream(userTurn(prompt), this.#call(options));
  }

  /**
   * Goes on with the last turn, as {@linkcode Client.resume} does: with the answer that a tool waits
   * for, or from where the run was interrupted.
   */
  async resume(options: ConversationResumeOptions = {}): Promise<RunResult> {
    return await this.#runs.send(undefined, this.#resumed(options));
  }

  /**
   * The same as {@linkcode Conversation.resume}, event by event.
   *
   * @throws {TypeError} at once, if an argument is wrong
   */
  resumeStream(options: Omit<ConversationResumeOptions, "onText"> = {}): RunStream {
    return this.#runs.stream(undefined, this.#resumed(options));
  }

  #resumed(options: ConversationResumeOptions): Call {
    const call = this.#call(options);
    const { answer } = checkedResume({ ...options, id: this.#id });
    return { ...call, answer };
  }

  /** Forgets what was said. */
  reset(): void {
    this.#messages = [];
  }

  #call(options: SendOptions): Call {
    checkObject("options", options);
    const { signal, onText } = options;
    // One that is left out must not hide the conversation's own.
    const ending = signal === undefined ? {} : { signal };
    return { store: this.#store, id: this.#id, onText, ...ending };
  }
}

/**
 * Creates a client.
 *
 * @throws {TypeError | RangeError} if an option is wrong; the error names it and its value
 */
export function createClient(options: ClientOptions): Client {
  return new Client(options);
}
