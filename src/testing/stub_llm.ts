/**
 * A model server for tests: real HTTP on the loopback, scripted answers, the providers' strictness.
 *
 * @module
 */

import type { StyleName } from "../../mod.ts";
import { refusalsOf } from "./strict.ts";
import { showSuppressedErrors } from "./suppressed.ts";
import type { StubReply, StubReplyFunction, StubRequest, StubRequestBody } from "./stub_replies.ts";
import { errorResponse, responseOf, type StubResponse } from "./stub_responses.ts";

/** Options of {@linkcode stubLlm}. */
export interface StubLlmOptions {
  /**
   * Whether a request that the real provider would refuse gets that provider's 400. `true` refuses
   * and makes {@linkcode StubLlm.close} fail, `"refuse"` only refuses, `false` accepts everything.
   * A refused request uses up no reply.
   *
   * @default true
   */
  strict?: boolean | "refuse" | undefined;
  /** The most characters of one delta of a streamed answer. @default 4 */
  deltaLength?: number | undefined;
  /**
   * Cuts what is streamed into network chunks of this many bytes, wherever that falls.
   *
   * @default one chunk for each event, or for each item of `sse`
   */
  chunkBytes?: number | undefined;
  /** Milliseconds before each chunk of a stream. @default 0 */
  delayMs?: number | undefined;
}

/** A running stub. */
export interface StubLlm extends AsyncDisposable {
  /** What a client's `baseUrl` is set to, in either style: `http://127.0.0.1:<port>/v1`. */
  readonly baseUrl: string;
  /** `http://127.0.0.1:<port>` */
  readonly origin: string;
  /** Every model request so far, in the order in which they arrived. */
  readonly requests: readonly StubRequest[];
  /**
   * Shuts the server down, open streams included, and says what went wrong, once. `await using`
   * calls it.
   *
   * @throws {AggregateError} if a call was not expected, a request was refused, a reply function
   * threw, a reply was none that HTTP can carry, or a reply was not asked for; one entry of `errors`
   * for each
   */
  close(): Promise<void>;
}

/**
 * Starts a model server on 127.0.0.1 that answers as told, in the style that the path asks for
 * (`…/chat/completions` openai, `…/messages` anthropic), plain or streamed as the body asks.
 *
 * An array is used up reply by reply; one more call than replies is a failure, and so is a reply
 * that nobody asked for. A function answers any number of calls. The stub is as strict about
 * transcripts as the providers are, see {@linkcode refusalsOf}.
 *
 * Needs `--allow-net=127.0.0.1` and nothing else.
 *
 * @example
 * ```ts
 * import { stubLlm } from "@toolnexus/client/testing";
 * import { assertEquals } from "@std/assert";
 *
 * await using stub = stubLlm([
 *   { toolCalls: [{ name: "clock", args: { zone: "UTC" } }] },
 *   "It is noon.",
 *   { status: 429, headers: { "retry-after": "1" } },
 *   (request) => `You said ${JSON.stringify(request.body.messages.at(-1)?.content)}`,
 * ]);
 *
 * const ask = async (content: string) => {
 *   const response = await fetch(`${stub.baseUrl}/chat/completions`, {
 *     method: "POST",
 *     body: JSON.stringify({ model: "any", messages: [{ role: "user", content }] }),
 *   });
 *   return { status: response.status, body: await response.json() };
 * };
 * const first = await ask("What time is it?");
 * assertEquals(first.body.choices[0].message.tool_calls[0].function.name, "clock");
 * assertEquals((await ask("Well?")).body.choices[0].message.content, "It is noon.");
 * assertEquals((await ask("Thanks")).status, 429);
 * assertEquals((await ask("Hm")).body.choices[0].message.content, 'You said "Hm"');
 * assertEquals(stub.requests.length, 4);
 * ```
 *
 * @throws {TypeError} if a reply is of no known shape
 * @throws {RangeError} if an option is out of its range
 */
export function stubLlm(
  script: readonly (StubReply | StubReplyFunction)[] | StubReplyFunction,
  options: StubLlmOptions = {},
): StubLlm {
  return new Stub(script, options);
}

class Stub implements StubLlm {
  readonly origin: string;
  readonly baseUrl: string;
  readonly requests: StubRequest[] = [];
  readonly #script: readonly (StubReply | StubReplyFunction)[] | StubReplyFunction;
  readonly #strict: boolean | "refuse";
  readonly #deltaLength: number;
  readonly #chunkBytes: number;
  readonly #delayMs: number;
  readonly #server: Deno.HttpServer<Deno.NetAddr>;
  readonly #closing = new AbortController();
  readonly #failures: Error[] = [];
  #repliesUsed = 0;
  #toolCalls = 0;

  constructor(
    script: readonly (StubReply | StubReplyFunction)[] | StubReplyFunction,
    options: StubLlmOptions,
  ) {
    const { strict = true, deltaLength = 4, chunkBytes = Infinity, delayMs = 0 } = options;
    atLeast(1, "deltaLength", deltaLength);
    atLeast(1, "chunkBytes", chunkBytes);
    atLeast(0, "delayMs", delayMs);
    if (typeof script !== "function") {
      script.forEach((reply, index) => checkReply(reply, `reply ${index + 1}`));
    }
    this.#script = typeof script === "function" ? script : [...script];
    this.#strict = strict;
    this.#deltaLength = deltaLength;
    this.#chunkBytes = chunkBytes;
    this.#delayMs = delayMs;
    this.#server = Deno.serve(
      { hostname: "127.0.0.1", port: 0, signal: this.#closing.signal, onListen: () => {} },
      (request) => this.#handle(request),
    );
    this.origin = `http://127.0.0.1:${this.#server.addr.port}`;
    this.baseUrl = `${this.origin}/v1`;
  }

  async close(): Promise<void> {
    const first = !this.#closing.signal.aborted;
    // Not shutdown(): that would wait for clients that read no further.
    this.#closing.abort();
    await this.#server.finished;
    if (first) this.#verify();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    try {
      await this.close();
    } catch (error) {
      showSuppressedErrors();
      throw error;
    }
  }

  #verify(): void {
    if (typeof this.#script !== "function") {
      for (const [index, reply] of this.#script.entries()) {
        if (index < this.#repliesUsed) continue;
        this.#fail(`reply ${index + 1} was never asked for: ${describe(reply)}`);
      }
    }
    if (this.#failures.length > 0) {
      const lines = this.#failures.map((failure) => `\n- ${failure.message}`);
      throw new AggregateError(this.#failures, `stub LLM:${lines.join("")}`);
    }
  }

  #fail(message: string, cause?: unknown): void {
    this.#failures.push(new Error(message, cause === undefined ? undefined : { cause }));
  }

  async #handle(request: Request): Promise<Response> {
    const { pathname } = new URL(request.url);
    let text: string;
    try {
      text = await request.text();
    } catch {
      return new Response(null, { status: 400 }); // the client hung up: nobody reads this
    }
    const style = styleOf(pathname);
    const called = `${request.method} ${pathname}`;
    if (style === undefined || request.method !== "POST") {
      this.#fail(`${called} is no model call`);
      return this.#send(errorResponse(style ?? "openai", 404, `unknown: ${called}`));
    }
    const hangUp = new AbortController();
    let answered = false;
    const onAbort = () => {
      if (!answered) hangUp.abort();
    };
    const body = objectOf(text);
    const recorded: StubRequest = {
      method: request.method,
      url: request.url,
      path: pathname,
      style,
      headers: request.headers,
      body: (body ?? {}) as StubRequestBody,
      text,
      // Listens on demand, and until there is an answer: Deno aborts the signal of a request that
      // went well, too, and prints a warning where it was read.
      get signal() {
        if (!answered) request.signal.addEventListener("abort", onAbort);
        return hangUp.signal;
      },
    };
    const call = this.requests.push(recorded);
    const response = await this.#answer(recorded, body, call, hangUp);
    // Nobody is there any more; an answer would only make Deno print that warning.
    if (hangUp.signal.aborted) return await new Promise<never>(() => {});
    answered = true;
    const idHeader = style === "openai" ? "x-request-id" : "request-id";
    if (!response.headers.has(idHeader)) response.headers.set(idHeader, `req_${call}`);
    return response;
  }

  async #answer(
    request: StubRequest,
    body: unknown,
    call: number,
    hangUp: AbortController,
  ): Promise<Response> {
    const { style } = request;
    const name = `call ${call} (${request.path})`;
    if (this.#strict !== false || body === undefined) {
      const refusals = refusalsOf(style, body);
      if (refusals.length > 0) {
        if (this.#strict !== "refuse") this.#fail(`${name} was refused: ${refusals.join("; ")}`);
        return this.#send(errorResponse(style, 400, refusals.join("; ")));
      }
    }
    try {
      const response = responseOf(await this.#nextReply(request), {
        style,
        body: request.body,
        call,
        deltaLength: this.#deltaLength,
        nextToolCall: () => ++this.#toolCalls,
      });
      return this.#send(response, hangUp);
    } catch (error) {
      // The test is wrong, or what it tests: no retry would mend it.
      const message = `${name} got no reply: ${error instanceof Error ? error.message : error}`;
      this.#fail(message, error);
      const response = errorResponse(style, 500, message);
      response.headers.set("x-should-retry", "false");
      return this.#send(response);
    }
  }

  async #nextReply(request: StubRequest): Promise<StubReply> {
    const script = this.#script;
    let reply: StubReply | StubReplyFunction;
    if (typeof script === "function") reply = script;
    else {
      const next = script[this.#repliesUsed];
      if (next === undefined) throw new Error(`the script has ${script.length} and all were used`);
      this.#repliesUsed++;
      reply = next;
    }
    if (typeof reply !== "function") return reply;
    reply = await reply(request);
    checkReply(reply, "what its function returned");
    return reply;
  }

  #send({ status, headers, body }: StubResponse, hangUp?: AbortController): Response {
    if (typeof body === "string" || body instanceof Uint8Array) {
      return new Response(body.length === 0 ? null : body, { status, headers });
    }
    // A body that ends before its announced length breaks the connection, and Deno logs nothing.
    if (body.end === "reset") headers.set("content-length", `${Number.MAX_SAFE_INTEGER}`);
    const chunks = cutBytes(body.chunks, this.#chunkBytes);
    let timer: ReturnType<typeof setTimeout> | undefined;
    const stream = new ReadableStream<Uint8Array>({
      pull: async (controller) => {
        const chunk = chunks.next();
        if (chunk.done) {
          if (body.end !== "hang") return controller.close();
          return await new Promise<never>(() => {});
        }
        await new Promise<void>((resolve) => {
          if (this.#delayMs > 0) timer = setTimeout(resolve, this.#delayMs);
          // A turn of the event loop between chunks keeps them apart on the network.
          else setImmediate(resolve);
        });
        controller.enqueue(chunk.value);
      },
      cancel: () => {
        clearTimeout(timer);
        hangUp?.abort();
      },
    }, { highWaterMark: 0 });
    return new Response(stream, { status, headers });
  }
}

function styleOf(path: string): StyleName | undefined {
  if (path.endsWith("/chat/completions")) return "openai";
  return path.endsWith("/messages") ? "anthropic" : undefined;
}

function objectOf(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) {
      return value as Record<string, unknown>;
    }
  } catch { /* no JSON: refused like any other body that is no object */ }
  return undefined;
}

const encoder = new TextEncoder();

function* cutBytes(
  chunks: readonly (string | Uint8Array)[],
  size: number,
): Generator<Uint8Array, void> {
  for (const chunk of chunks) {
    const bytes = typeof chunk === "string" ? encoder.encode(chunk) : chunk;
    for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
  }
}

const REPLY_KEYS = [
  ["sse", "end", "status", "headers"],
  ["status", "headers", "body"],
  ["text", "toolCalls", "reasoning", "usage", "finishReason"],
];

function checkReply(reply: unknown, what: string): void {
  if (typeof reply === "string" || typeof reply === "function") return;
  if (typeof reply === "object" && reply !== null) {
    const keys = Object.keys(reply);
    if (REPLY_KEYS.some((known) => keys.every((key) => known.includes(key)))) return;
  }
  throw new TypeError(`${what} is no reply: ${describe(reply)}`);
}

function atLeast(least: number, name: string, value: unknown): void {
  if (typeof value !== "number" || !(value >= least) || (value !== Infinity && value % 1 !== 0)) {
    throw new RangeError(`${name} must be a whole number from ${least}: ${describe(value)}`);
  }
}

function describe(value: unknown): string {
  const text = typeof value === "function" ? "a function" : JSON.stringify(value) ?? String(value);
  return text.length > 100 ? `${text.slice(0, 99)}…` : text;
}
