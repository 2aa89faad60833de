/**
 * A client whose model is a function of the host's.
 *
 * @module
 */

import { Client } from "./client.ts";
import { ProviderError, quote, reasonOf } from "./errors.ts";
import type { ClientOptions } from "./options.ts";
import type { OpenAITool } from "./tools/declarations.ts";
import type { Awaitable, Message, Usage } from "./types.ts";

/** What {@linkcode InProcessOptions.generate} is asked. */
export interface InProcessRequest {
  /** The transcript in the OpenAI shape, the system prompt first. */
  messages: Message[];
  /** The tools in the OpenAI shape. */
  tools: OpenAITool[];
  /** The model. */
  model: string;
  /** Aborts when nobody waits for the answer any more. */
  signal: AbortSignal;
}

/** A tool call of an {@linkcode InProcessResponse}. */
export interface InProcessToolCall {
  /** The id of the call. @default a new one */
  id?: string | undefined;
  /** The tool's name. */
  name: string;
  /** The arguments, as an object or as JSON text. @default {} */
  arguments?: Record<string, unknown> | string | undefined;
  /** The same by the name that results have. */
  args?: Record<string, unknown> | undefined;
}

/** What {@linkcode InProcessOptions.generate} gives: an answer, or tool calls. */
export interface InProcessResponse {
  /** The text of the answer. */
  content?: string | undefined;
  /** The calls that the model makes. */
  toolCalls?: readonly InProcessToolCall[] | undefined;
  /** Tokens of this call. @default no tokens */
  usage?: Partial<Omit<Usage, "cacheCreationTokens">> | undefined;
}

/** What {@linkcode createInProcessClient} takes: the options of a client without an endpoint. */
export interface InProcessOptions
  extends Omit<ClientOptions, "baseUrl" | "style" | "apiKey" | "headers" | "fetch"> {
  /** The model. Its errors keep their message. */
  generate: (request: InProcessRequest) => Awaitable<InProcessResponse>;
  /** How often a failed call is made again. @default 0 */
  retries?: number | undefined;
}

/** No request ever leaves for it: RFC 6761 §6.4 keeps the name from being anybody's. */
const NOWHERE = "http://in-process.invalid";

/**
 * Creates a client that asks a function instead of an endpoint: a model in this process, a recorded
 * answer, another client. Everything else is as with {@linkcode createClient}; it cannot stream.
 *
 * @throws {TypeError | RangeError} if an option is wrong
 *
 * @example
 * ```ts
 * import { createInProcessClient } from "@toolnexus/client";
 * import { assertEquals } from "@std/assert";
 *
 * const client = createInProcessClient({
 *   model: "echo",
 *   generate: ({ messages }) => ({ content: `You said: ${messages.at(-1)?.content}` }),
 * });
 * assertEquals((await client.ask("hello", { id: "thread-1" })).text, "You said: hello");
 * ```
 */
export function createInProcessClient(options: InProcessOptions): Client {
  const { generate, ...rest } = options ?? {};
  if (typeof generate !== "function") {
    throw new TypeError(`in-process client requires a \`generate\` function: ${quote(generate)}`);
  }
  return new Client({
    ...rest,
    retries: rest.retries ?? 0,
    baseUrl: NOWHERE,
    style: "openai",
    fetch: async (_url, init) => Response.json(await answer(generate, init ?? {})),
  });
}

/** The function's answer as the payload of an endpoint. */
async function answer(
  generate: InProcessOptions["generate"],
  { body, signal }: RequestInit,
): Promise<unknown> {
  const { messages, tools = [], model, stream } = JSON.parse(String(body));
  if (stream) {
    const refused = "in-process client does not support streaming";
    throw new ProviderError(refused, { status: 0, retryable: false });
  }
  let response: InProcessResponse;
  try {
    response = await generate({ messages, tools, model, signal: signal! });
  } catch (error) {
    throw signal!.aborted ? error : failureOf(error);
  }
  const { content, toolCalls, usage } = response ?? {};
  if (typeof content !== "string" && !Array.isArray(toolCalls)) {
    throw new TypeError("generate must return { content } or { toolCalls }");
  }
  const calls = (toolCalls ?? []).map(({ id, name, args, arguments: given = args ?? {} }) => ({
    id,
    type: "function",
    function: { name, arguments: typeof given === "string" ? given : JSON.stringify(given) },
  }));
  return {
    choices: [{
      message: {
        role: "assistant",
        content: content ?? null,
        ...(calls.length > 0 && { tool_calls: calls }),
      },
      finish_reason: calls.length > 0 ? "tool_calls" : "stop",
    }],
    usage: {
      prompt_tokens: usage?.promptTokens,
      completion_tokens: usage?.completionTokens,
      total_tokens: usage?.totalTokens,
      prompt_tokens_details: { cached_tokens: usage?.cachedTokens },
      completion_tokens_details: { reasoning_tokens: usage?.reasoningTokens },
    },
  };
}

/** The function's own words. An error of another client's tells of a run that is not this one. */
function failureOf(cause: unknown): ProviderError {
  const details = { status: 0, retryable: cause instanceof ProviderError ? cause.retryable : true };
  return new ProviderError(`LLM request failed: ${reasonOf(cause)}`, details, { cause });
}
