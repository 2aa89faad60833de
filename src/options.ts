/**
 * The options of a client, checked once.
 *
 * @module
 */

import { checkFunction, checkObject, milliseconds, timeLimit, wholeNumber } from "./checks.ts";
import { type Endpoint, endpointOf } from "./endpoint.ts";
import { HookError, quote } from "./errors.ts";
import type { Hooks } from "./hooks.ts";
import { isPlainObject } from "./json.ts";
import { copyJson } from "./json_copy.ts";
import type { MetricEvent } from "./metrics.ts";
import { type Toolkit, toolkitOf } from "./tools/toolkit.ts";
import type { Tracer } from "./tracer.ts";
import type {
  Answer,
  Awaitable,
  ConversationStore,
  PendingRequest,
  StyleName,
  Tool,
} from "./types.ts";
import type { RequestErrorInfo, RequestSettings } from "./wire/request.ts";
import type { Style } from "./wire/style.ts";
import { STYLES } from "./wire/styles.ts";

/** What {@linkcode createClient} takes. All times are in milliseconds. */
export interface ClientOptions {
  /**
   * The endpoint: a base URL such as `https://api.openai.com/v1`, or the whole URL. It may carry a
   * query.
   */
  baseUrl: string;
  /** The wire style that the endpoint speaks. */
  style: StyleName;
  /** The model, as the endpoint names it; sent as it is. */
  model: string;
  /**
   * The API key.
   *
   * @default the environment variable that belongs to the host, read at the first request
   * (`OPENAI_API_KEY`, `ANTHROPIC_API_KEY`, `OPENROUTER_API_KEY`); none for any other host
   */
  apiKey?: string | undefined;
  /** Headers of every request; null removes a default header. */
  headers?: Record<string, string | null | undefined> | undefined;
  /** The system prompt; never stored, so a new one takes effect with the next ask. */
  systemPrompt?: string | undefined;
  /** The tools of every run that is not given its own. */
  toolkit?: Toolkit | readonly Tool[] | undefined;
  /** The most calls to the model in one run. @default 10 */
  maxTurns?: number | undefined;
  /**
   * The maximum number of tokens of one answer, sent as `max_tokens`. For a model that wants another
   * name use `requestParams: { max_completion_tokens }`.
   *
   * @default 4096 in the Anthropic style, which demands a limit
   */
  maxTokens?: number | undefined;
  /** Where conversations are kept. @default a new `InMemoryConversationStore` */
  store?: ConversationStore | undefined;
  /**
   * When a conversation is saved: after the run, or also before and after each round of tools, so
   * that a killed process loses at most the round in flight.
   *
   * @default "run"
   */
  checkpoint?: "run" | "round" | undefined;
  /** Hooks of every run. */
  hooks?: Hooks | undefined;
  /** Gets a human's answer for a suspended tool. Without it a suspension ends the run. */
  waitFor?: ((request: PendingRequest) => Awaitable<Answer>) | undefined;
  /**
   * Decides whether a failed request is sent again, within `retries`. It may not be async.
   *
   * @default (info) => info.retryable ? "retry" : "fail"
   */
  onError?: ((info: RequestErrorInfo) => "retry" | "fail") | undefined;
  /** Gets an event for each request, tool call and run. */
  onMetric?: ((event: MetricEvent) => void) | undefined;
  /**
   * Makes OpenTelemetry spans of each run, request and tool call, without what was said: pass
   * `trace.getTracer("my-app")` of `npm:@opentelemetry/api`.
   */
  tracer?: Tracer | undefined;
  /** How many times a failed request is sent again, at most. @default 2 */
  retries?: number | undefined;
  /**
   * The upper bound of the first wait before a retry; it doubles with each one (full jitter).
   *
   * @default 500
   */
  retryBaseMs?: number | undefined;
  /**
   * The longest wait before a retry. A request whose provider asks for a longer one fails at once.
   *
   * @default 60_000
   */
  maxRetryDelayMs?: number | undefined;
  /** The longest time of a run. @default no limit */
  timeoutMs?: number | undefined;
  /**
   * The longest time of one request, with its answer and the time that the reader of a stream takes
   * over it.
   *
   * @default no limit
   */
  requestTimeoutMs?: number | undefined;
  /**
   * The longest silence of a stream, or of a plain answer once its headers have come. Until then only
   * `requestTimeoutMs` bounds a plain request.
   *
   * @default 120_000
   */
  idleTimeoutMs?: number | undefined;
  /**
   * The longest time of one tool call; a tool's own `timeoutMs` and an MCP server's `timeout` come
   * first.
   *
   * @default no limit
   */
  toolTimeoutMs?: number | undefined;
  /**
   * More keys of the request's body, which override the client's. `messages`, `tools` and `stream` are
   * refused.
   */
  requestParams?: Record<string, unknown> | undefined;
  /** The last step before sending: gets a copy of the body, and changes it or returns another. */
  bodyTransform?:
    | ((body: Record<string, unknown>) => Awaitable<Record<string, unknown> | undefined | void>)
    | undefined;
  /** Sends the requests. @default the global `fetch` */
  fetch?: typeof fetch | undefined;
}

/** Options of one call, in common. */
export interface CallOptions {
  /** The tools of this run. @default the client's */
  toolkit?: Toolkit | readonly Tool[] | undefined;
  /** Ends the run; what was completed is saved. */
  signal?: AbortSignal | undefined;
}

/** The client's options, checked and complete. */
export interface Settings extends RequestSettings {
  style: Style;
  model: string;
  systemPrompt: string;
  toolkit: Toolkit;
  maxTurns: number;
  maxTokens: number | undefined;
  checkpoint: "run" | "round";
  hooks: Hooks;
  waitFor: ClientOptions["waitFor"];
  timeoutMs: number | undefined;
  toolTimeoutMs: number | undefined;
  requestParams: Record<string, unknown>;
  bodyTransform: ClientOptions["bodyTransform"];
  tracer: Tracer | undefined;
  emit(event: MetricEvent): void;
}

const HOOK_NAMES = ["beforeLLM", "afterLLM", "beforeTool", "afterTool"] as const;

/**
 * Checks the options and fills in the defaults.
 *
 * @throws {TypeError | RangeError} that names the option and its value
 */
export function settingsOf(options: ClientOptions, emit: Settings["emit"]): Settings {
  checkObject("options", options);
  const { style: styleName, model, hooks = {}, requestParams = {}, checkpoint = "run" } = options;
  if (typeof styleName !== "string" || !Object.hasOwn(STYLES, styleName)) {
    throw new TypeError(`style must be "openai" or "anthropic": ${quote(styleName)}`);
  }
  const style = STYLES[styleName];
  if (typeof model !== "string" || model === "") {
    throw new TypeError(`model must be a non-empty string: ${quote(model)}`);
  }
  for (const name of ["apiKey", "systemPrompt"] as const) {
    if (options[name] !== undefined && typeof options[name] !== "string") {
      const value = name === "apiKey" ? typeof options[name] : quote(options[name]);
      throw new TypeError(`${name} must be a string: ${value}`);
    }
  }
  if (checkpoint !== "run" && checkpoint !== "round") {
    throw new TypeError(`checkpoint must be "run" or "round": ${quote(checkpoint)}`);
  }
  for (const name of ["bodyTransform", "fetch", "onError", "onMetric", "waitFor"] as const) {
    checkFunction(name, options[name]);
  }
  checkObject("hooks", hooks);
  // A class has fields of its own, and its methods on its prototype.
  const names = isPlainObject(hooks) ? Object.keys(hooks) : [];
  const unknown = names.find((name) => !(HOOK_NAMES as readonly string[]).includes(name));
  if (unknown !== undefined) throw new TypeError(`unknown hook: ${quote(unknown)}`);
  for (const name of HOOK_NAMES) checkFunction(`hooks.${name}`, hooks[name]);
  if (!isPlainObject(options.headers ?? {})) {
    // The value is not shown: it may hold a key.
    throw new TypeError("headers must be a plain object of names and values");
  }
  if (!isPlainObject(requestParams)) {
    throw new TypeError(`requestParams must be a plain object: ${quote(requestParams)}`);
  }
  for (const name of ["messages", "tools", "stream"]) {
    if (name in requestParams) {
      throw new TypeError(`requestParams must not set ${name}: use bodyTransform`);
    }
  }
  checkStore(options.store);
  if (options.tracer !== undefined && typeof options.tracer?.startActiveSpan !== "function") {
    throw new TypeError(`tracer must have startActiveSpan(): ${quote(options.tracer)}`);
  }
  const endpoint: Endpoint = endpointOf(options, style);
  return {
    ...endpoint,
    style,
    model,
    systemPrompt: options.systemPrompt ?? "",
    toolkit: toolkitOf(options.toolkit),
    maxTurns: wholeNumber("maxTurns", options.maxTurns, 1, 10),
    maxTokens: options.maxTokens === undefined
      ? undefined
      : wholeNumber("maxTokens", options.maxTokens, 1),
    checkpoint,
    // A class may be a set of hooks, too.
    hooks: {
      beforeLLM: hooks.beforeLLM?.bind(hooks),
      afterLLM: hooks.afterLLM?.bind(hooks),
      beforeTool: hooks.beforeTool?.bind(hooks),
      afterTool: hooks.afterTool?.bind(hooks),
    },
    waitFor: options.waitFor,
    onError: options.onError && ((info) => verdictOf(options.onError!, info)),
    retries: wholeNumber("retries", options.retries, 0, 2),
    retryBaseMs: milliseconds("retryBaseMs", options.retryBaseMs, 0, 500),
    maxRetryDelayMs: milliseconds("maxRetryDelayMs", options.maxRetryDelayMs, 0, 60_000),
    timeoutMs: timeLimit("timeoutMs", options.timeoutMs),
    requestTimeoutMs: timeLimit("requestTimeoutMs", options.requestTimeoutMs),
    idleTimeoutMs: milliseconds("idleTimeoutMs", options.idleTimeoutMs, 1, 120_000),
    toolTimeoutMs: timeLimit("toolTimeoutMs", options.toolTimeoutMs),
    requestParams: copyJson(requestParams, "requestParams"),
    bodyTransform: options.bodyTransform,
    // The global is looked up at each call, so that it can be replaced.
    fetch: options.fetch ?? ((input, init) => fetch(input, init)),
    isHostFetch: options.fetch !== undefined,
    tracer: options.tracer,
    emit,
  };
}

/**
 * Checks that a store has its two operations.
 *
 * @throws {TypeError} if it has not
 */
function checkStore(store: unknown): void {
  if (store === undefined) return;
  const { get, save } = (store ?? {}) as Partial<ConversationStore>;
  if (typeof get !== "function" || typeof save !== "function") {
    throw new TypeError(`store must have get() and save(): ${quote(store)}`);
  }
}

/** The host's verdict; what it throws is a failure of the run. */
function verdictOf(
  onError: NonNullable<ClientOptions["onError"]>,
  info: RequestErrorInfo,
): "retry" | "fail" {
  try {
    return onError(info);
  } catch (cause) {
    throw new HookError("onError", cause);
  }
}
