/**
 * One request to a provider, sent again where that can help: from the body's text to the answer, or
 * to a typed error.
 *
 * @module
 */

import {
  ProviderError,
  reasonOf,
  RunAbortedError,
  StreamError,
  ToolnexusError,
} from "../errors.ts";
import { objectOf, parseJson } from "../json.ts";
import { abortable, type IdleWatch, Scope, sleep } from "../scope.ts";
import type { StreamEvent } from "../types.ts";
import { AnswerStream } from "./answer_stream.ts";
import { carriedError, unwrapped } from "./payload.ts";
import { type Failure, providerError } from "./provider_failure.ts";
import { type Completion, type Style, UnreadableAnswer } from "./style.ts";
import { TextReader } from "./text_reader.ts";

/** How much of an error's body is read, in characters. */
const MAX_ERROR_BODY = 65_536;

/** The largest body that is read at once, in bytes. */
const MAX_SMALL_BODY = 65_536;

/** After the whole answer only counts can follow: a server that stays silent then has ended. */
const SILENCE_AFTER_FINISH_MS = 2_000;

/** What is known of a failed request when it is decided whether to send it again. */
export interface RequestErrorInfo {
  /** The HTTP status, when there was one. */
  status?: number | undefined;
  /** The error. */
  error?: unknown;
  /** The provider's own code. */
  code?: string | undefined;
  /** How many times the request was sent before, from 0. */
  attempt: number;
  /** What the client would do: whether the same request may succeed later. */
  retryable: boolean;
}

/** What a request needs to know of the client. */
export interface RequestSettings {
  style: Style;
  url: string;
  /** Made at the first request: the key may have to be looked up. */
  headers(): Record<string, string>;
  fetch: typeof fetch;
  /** Whether `fetch` is the host's own: then it may be deaf to its signal. */
  isHostFetch: boolean;
  retries: number;
  retryBaseMs: number;
  maxRetryDelayMs: number;
  requestTimeoutMs: number | undefined;
  idleTimeoutMs: number;
  onError: ((info: RequestErrorInfo) => "retry" | "fail") | undefined;
  /** Takes the client's secrets out of a text. */
  redact(text: string): string;
}

/** The text that the answer has so far: an ended run keeps it. */
export interface Progress {
  text: string;
}

/** Shows events, and resolves when more are wanted. */
export type Show = (events: StreamEvent[]) => Promise<void>;

/**
 * Sends the request until it is answered or must fail. With `show` the answer is streamed, piece by
 * piece. It is sent again only while nothing of the answer was shown: what the user saw stays true.
 */
export async function requestAnswer(
  settings: RequestSettings,
  body: string,
  signal: AbortSignal,
  progress: Progress,
  show?: Show,
): Promise<Completion> {
  const headers = settings.headers();
  for (let attempt = 0;; attempt++) {
    progress.text = "";
    const sending = new Sending(settings, signal, progress, show);
    try {
      // Each request has its own headers: a host's fetch may change them.
      return await sending.run({ method: "POST", headers: { ...headers }, body });
    } catch (thrown) {
      if (signal.aborted) throw signal.reason;
      const error = sending.explain(thrown);
      if (error instanceof ProviderError) error.attempts = attempt + 1;
      const delay = retryDelay(settings, error, attempt, sending.hasShown);
      if (delay === undefined) throw error;
      await sleep(delay, signal);
    } finally {
      sending.end();
    }
  }
}

/** How long to wait before the request is sent again; undefined if it is not. */
function retryDelay(
  settings: RequestSettings,
  error: ToolnexusError,
  attempt: number,
  hasShown: boolean,
): number | undefined {
  const provider = error instanceof ProviderError ? error : undefined;
  const retryable = !hasShown &&
    (provider?.retryable ?? (error.code === "timeout" || error.code === "stream_truncated"));
  const info = {
    status: provider?.status || undefined,
    code: provider?.providerCode,
    error,
    attempt,
    retryable,
  };
  const verdict = settings.onError?.(info) ?? (retryable ? "retry" : "fail");
  if (verdict !== "retry" || hasShown || attempt >= settings.retries) return undefined;
  const asked = provider?.retryAfterMs;
  if (asked !== undefined) return asked > settings.maxRetryDelayMs ? undefined : asked;
  return Math.random() * Math.min(settings.retryBaseMs * 2 ** attempt, settings.maxRetryDelayMs);
}

/** The request being sent once. */
class Sending {
  /** Whether a piece of the answer was shown. */
  hasShown = false;
  readonly #settings: RequestSettings;
  readonly #caller: AbortSignal;
  readonly #scope: Scope;
  readonly #progress: Progress;
  readonly #show: Show | undefined;
  #watch: IdleWatch | undefined;
  #response: Response | undefined;

  constructor(
    settings: RequestSettings,
    caller: AbortSignal,
    progress: Progress,
    show: Show | undefined,
  ) {
    this.#settings = settings;
    this.#caller = caller;
    this.#progress = progress;
    this.#show = show;
    this.#scope = new Scope(caller);
    const { requestTimeoutMs } = settings;
    const late = `LLM request took longer than ${requestTimeoutMs} ms`;
    this.#scope.limit(requestTimeoutMs, () => new RunAbortedError("timeout", late));
  }

  async run(init: RequestInit): Promise<Completion> {
    const { style, url, fetch } = this.#settings;
    const { signal } = this.#scope;
    const show = this.#show;
    // A plain answer is silent while it is being made; a stream that is silent is broken.
    if (show !== undefined) this.#listen();
    const response = await this.#send(fetch(url, { ...init, signal, redirect: "manual" }));
    this.#response = response;
    this.#listen();
    if (!response.ok) await this.#refuse(response);
    const payload = show !== undefined || !this.#isSmall(response)
      ? await this.#readPieces(response)
      : this.#parse(await response.text());
    const answer = this.#read(style, payload);
    // What was shown is the answer, in the order in which it came.
    if (this.hasShown) answer.text = this.#progress.text;
    // A plain answer to a streaming request is a stream of one piece.
    if (show !== undefined && !this.hasShown) {
      const { reasoning, text } = answer;
      if (reasoning !== "") await this.#showAll([{ type: "reasoning", delta: reasoning }]);
      if (text !== "") await this.#showAll([{ type: "text", delta: text }]);
    }
    return answer;
  }

  /** What was thrown, in this client's terms. */
  explain(thrown: unknown): ToolnexusError {
    const { aborted, reason: why } = this.#scope.signal;
    // What the provider said stands, though its body did not end in time.
    const error = aborted && !(thrown instanceof ProviderError) ? why : thrown;
    if (error instanceof ToolnexusError) return error;
    // What fetch throws can repeat the whole URL, and a key in it; its cause says what happened.
    const said = causesOf(error).map(reasonOf);
    const reason = this.#settings.redact(said.at(-1)!);
    const isClean = said.every((text) => this.#settings.redact(text) === text);
    const cause = isClean ? error : new TypeError(reason);
    if (this.hasShown) {
      const broken = `LLM answer broke off: ${reason}`;
      return new StreamError("stream_truncated", broken, { cause });
    }
    const details = { status: 0, retryable: true };
    return new ProviderError(`LLM request failed: ${reason}`, details, { cause });
  }

  end(): void {
    this.#scope[Symbol.dispose]();
    const body = this.#response?.body;
    if (body && !body.locked) body.cancel().catch(() => {});
  }

  /** A response that comes when nobody waits for it any more is let go. */
  async #send(fetched: Promise<Response>): Promise<Response> {
    if (!this.#settings.isHostFetch) return await fetched;
    try {
      return await abortable(fetched, this.#scope.signal);
    } catch (error) {
      fetched.then((late) => late.body?.cancel(), () => {}).catch(() => {});
      throw error;
    }
  }

  #listen(): void {
    if (this.#watch !== undefined) return this.#watch.touch();
    const { idleTimeoutMs } = this.#settings;
    const silent = `LLM answer was silent for ${idleTimeoutMs} ms`;
    this.#watch = this.#scope.watch(idleTimeoutMs, () => new StreamError("stream_idle", silent));
  }

  #fail(failure: Omit<Failure, "status" | "headers">): never {
    const { status = 0, headers } = this.#response ?? {};
    throw providerError({ ...failure, status, headers }, this.#settings.redact);
  }

  async #refuse(response: Response): Promise<never> {
    const { status, type, body } = response;
    if ((status >= 300 && status < 400) || type === "opaqueredirect") {
      // A key must not travel to a host that it was not given for.
      return this.#fail({ summary: "the endpoint redirects, which is refused" });
    }
    let text = "";
    if (body !== null) {
      using reader = new TextReader(body, this.#scope.signal);
      try {
        for (
          let piece;
          text.length < MAX_ERROR_BODY && (piece = await reader.read()) !== undefined;
        ) {
          text += piece;
        }
      } catch (error) {
        // The status says enough: a body that breaks off or never ends cannot take it back.
        if (this.#caller.aborted) throw error;
      }
    }
    return this.#fail({ body: text });
  }

  /** Whether a body is read at once: it is of one piece, or nearly. */
  #isSmall({ headers }: Response): boolean {
    const length = Number(headers.get("content-length") ?? NaN);
    // A fetch of the host's may be deaf to its signal; piece by piece the body can be let go.
    return length <= MAX_SMALL_BODY && !this.#settings.isHostFetch;
  }

  #read(style: Style, payload: Record<string, unknown>): Completion {
    try {
      return style.read(payload);
    } catch (error) {
      if (!(error instanceof UnreadableAnswer)) throw error;
      return this.#fail({ payload, summary: error.message });
    }
  }

  /** Reads a body of unknown length: an event stream, or JSON that servers keep alive by blanks. */
  async #readPieces(response: Response): Promise<Record<string, unknown>> {
    if (response.body === null) return this.#parse("");
    using reader = new TextReader(response.body, this.#scope.signal);
    const stream = this.#stream();
    let start: string | undefined = "";
    let raw = "";
    let piece: string | undefined;
    try {
      while (!stream.isOver && (piece = await reader.read()) !== undefined) {
        this.#watch!.touch();
        if (start !== undefined) {
          // The first character that is no blank tells the two apart, whatever the headers say.
          start = piece.trimStart();
          if (start === "") continue;
          if (/^[{[<]/.test(start)) {
            let text = start;
            while ((piece = await reader.read()) !== undefined) {
              this.#watch!.touch();
              text += piece;
            }
            return this.#parse(text);
          }
          piece = start;
          start = undefined;
        }
        if (!stream.hasBegun && raw.length < MAX_ERROR_BODY) raw += piece;
        stream.push(piece);
        await this.#showAll(stream.take());
        if (stream.isComplete) this.#watch!.shorten(SILENCE_AFTER_FINISH_MS);
      }
    } catch (error) {
      // What happens to the connection after the finish reason cannot take the answer back.
      if (!stream.isFinished || this.#caller.aborted) throw error;
    }
    if (start !== undefined) return this.#parse(start);
    stream.end();
    await this.#showAll(stream.take());
    // A body that holds no event is something else: what it says is told.
    return stream.hasBegun ? stream.payload() : this.#parse(raw);
  }

  #stream(): AnswerStream {
    const { style, redact } = this.#settings;
    return new AnswerStream({
      decoder: style.decoder(),
      carriedError: (payload, isFirst) => {
        const { status = 0, headers } = this.#response ?? {};
        return providerError({ status, headers, payload, isFirst }, redact);
      },
      redact,
    });
  }

  /** Takes note of events as the answer so far. */
  #note(events: readonly StreamEvent[]): void {
    if (events.length > 0) this.hasShown = true;
    for (const event of events) if (event.type === "text") this.#progress.text += event.delta;
  }

  /** Shows events to whoever watches. */
  async #showAll(events: StreamEvent[]): Promise<void> {
    // After the end of the run nobody sees them: they are no part of what was said.
    this.#caller.throwIfAborted();
    this.#note(events);
    if (this.#show === undefined || events.length === 0) return;
    // Whoever reads slowly is not the provider's silence.
    this.#watch?.pause();
    await this.#show(events);
    this.#watch?.touch();
  }

  /** The payload of a whole body: JSON, or an event stream under another name. */
  #parse(body: string): Record<string, unknown> {
    const payload = /^[{[]/.test(body) ? objectOf(unwrapped(parseJson(body))) : undefined;
    if (payload === undefined) return this.#parseOdd(body);
    const error = carriedError(payload);
    if (error !== undefined) return this.#fail({ payload: error, isFirst: true });
    return payload;
  }

  /** A body that does not begin as JSON should, or is none. */
  #parseOdd(body: string): Record<string, unknown> {
    const text = body.trim();
    if (text === "") return this.#fail({ summary: "the answer is empty" });
    if (/^(data|event|id|retry)?:/.test(text)) {
      const stream = this.#stream();
      stream.push(body);
      stream.end();
      this.#note(stream.take()); // nobody watches a plain request
      return stream.payload();
    }
    if (text !== body && /^[{[]/.test(text)) return this.#parse(text);
    const start = this.#settings.redact(text).slice(0, 200);
    const summary = text.startsWith("<") ? undefined : `the answer is no JSON object: ${start}`;
    return this.#fail({ body, summary });
  }
}

/** An error, its cause, the cause of that, and so on. */
function causesOf(error: unknown): unknown[] {
  const causes = [error];
  for (
    let cause = error;
    cause instanceof Error && cause.cause !== undefined && causes.length < 10;
  ) {
    causes.push(cause = cause.cause);
  }
  return causes;
}
