/**
 * What a run does as spans, by OpenTelemetry's conventions for generative AI: `invoke_agent`, and in
 * it `chat {model}` and `execute_tool {name}`.
 * https://github.com/open-telemetry/semantic-conventions-genai/tree/main/docs/gen-ai
 *
 * What was said is never in a span, nor is an error's message, which may repeat it.
 *
 * @module
 */

import { asyncHooks } from "./async_hooks.ts";
import { ProviderError, ToolnexusError } from "./errors.ts";
import { objectOf } from "./json.ts";
import type { Settings } from "./options.ts";
import type { CallOutcome } from "./round.ts";
import type { SpanAttributes, Tracer, TracerSpan } from "./tracer.ts";
import type { RunResult, Usage } from "./types.ts";
import type { Completion, CompletionCall } from "./wire/style.ts";

/** Kinds of spans, and the status of a failed one. */
const INTERNAL = 0, CLIENT = 2, ERROR = 2;

/** What a traced run, or a part of one, tells of itself. */
interface Traced {
  settings: Settings;
  conversationId: string | undefined;
}

/** A whole run, from its turn in the line to its end. */
export function traceRun(run: Traced, work: () => Promise<RunResult>): Promise<RunResult> {
  const { tracer } = run.settings;
  return tracer === undefined ? work() : inSpan(tracer, work, {
    name: "invoke_agent",
    kind: INTERNAL,
    attributes: { ...attributesOf(run, "invoke_agent"), ...endpointOf(run.settings) },
    conclude: (span, result) => span.set(runAttributes(run.settings, result)),
  });
}

/** A request to the model, until it is answered. */
export function traceChat(
  run: Traced & { show?: unknown },
  work: () => Promise<Completion>,
): Promise<Completion> {
  const { settings, show } = run;
  const { tracer, model, maxTokens } = settings;
  return tracer === undefined ? work() : inSpan(tracer, work, {
    name: `chat ${model}`,
    kind: CLIENT,
    attributes: {
      ...attributesOf(run, "chat"),
      ...endpointOf(settings),
      ...(maxTokens !== undefined && { "gen_ai.request.max_tokens": maxTokens }),
      ...(show !== undefined && { "gen_ai.request.stream": true }),
    },
    conclude: (span, answer) => span.set(answerAttributes(settings, answer)),
  });
}

/** A call of a tool, its hooks and its waiting for a human included. */
export function traceTool(
  run: Traced,
  { id, name }: CompletionCall,
  work: () => Promise<CallOutcome>,
): Promise<CallOutcome> {
  const { tracer } = run.settings;
  return tracer === undefined ? work() : inSpan(tracer, work, {
    name: `execute_tool ${name}`,
    kind: INTERNAL,
    attributes: {
      ...attributesOf(run, "execute_tool"),
      "gen_ai.tool.name": name,
      "gen_ai.tool.call.id": id,
      "gen_ai.tool.type": "function",
    },
    conclude(span, { pending, result }) {
      if (pending !== undefined) span.set({ "toolnexus.pending": true });
      else if (result.isError) span.fail("tool_error");
    },
  });
}

/** A span to be, and what the result adds to it. */
interface Plan<Result> {
  name: string;
  kind: number;
  attributes: SpanAttributes;
  conclude(span: Span, result: Result): void;
}

/** The same work, inside a span. */
async function inSpan<Result>(
  tracer: Tracer,
  work: () => Promise<Result>,
  { name, kind, attributes, conclude }: Plan<Result>,
): Promise<Result> {
  const span = new Span(tracer, name, kind, attributes);
  try {
    const result = await span.within(work);
    conclude(span, result);
    return result;
  } catch (error) {
    span.fail(errorType(error));
    throw error;
  } finally {
    span.end();
  }
}

/** A span that fails nobody: whoever only watches must not end what is paid for. */
class Span {
  #span: TracerSpan | undefined;
  #within: (<Result>(work: () => Result) => Result) | undefined;

  constructor(tracer: Tracer, name: string, kind: number, attributes: SpanAttributes) {
    this.#quietly(() =>
      tracer.startActiveSpan(name, { kind, attributes }, (span) => {
        this.#span = span;
        // Work is done in pieces, between which other work is: each must find the span active.
        this.#within = asyncHooks()?.AsyncLocalStorage.snapshot?.();
      })
    );
  }

  /** Does work while this span is the active one, so that spans of the work become its children. */
  within<Result>(work: () => Result): Result {
    return this.#within === undefined ? work() : this.#within(work);
  }

  set(attributes: SpanAttributes): void {
    this.#quietly(() => this.#span?.setAttributes(attributes));
  }

  fail(type: string): void {
    this.set({ "error.type": type });
    this.#quietly(() => this.#span?.setStatus({ code: ERROR }));
  }

  end(): void {
    this.#quietly(() => this.#span?.end());
  }

  #quietly(act: () => unknown): void {
    // As if nobody watched, also where a method fails later.
    const ignore = () => {};
    try {
      Promise.resolve(act()).catch(ignore);
    } catch { /* the same */ }
  }
}

function attributesOf({ settings, conversationId }: Traced, operation: string): SpanAttributes {
  return {
    "gen_ai.operation.name": operation,
    "gen_ai.provider.name": settings.style.name,
    "gen_ai.request.model": settings.model,
    ...(conversationId !== undefined && { "gen_ai.conversation.id": conversationId }),
  };
}

/** Where the endpoint is; nothing else of its URL, which may hold a key. */
function endpointOf({ url }: Settings): SpanAttributes {
  const { protocol, hostname, port } = new URL(url);
  if (hostname.endsWith(".invalid")) return {}; // a name that is nobody's: there is no endpoint
  return {
    "server.address": hostname,
    "server.port": Number(port) || (protocol === "https:" ? 443 : 80),
  };
}

function runAttributes(settings: Settings, { status, turns, ...rest }: RunResult): SpanAttributes {
  return {
    "toolnexus.status": status,
    ...(turns > 0 && {
      ...usageAttributes(settings, rest.usage),
      "gen_ai.response.finish_reasons": [rest.finishReason],
    }),
  };
}

function answerAttributes(settings: Settings, answer: Completion): SpanAttributes {
  const { id, model } = objectOf(answer.payload) ?? {};
  return {
    ...usageAttributes(settings, answer.usage),
    "gen_ai.response.finish_reasons": [answer.finishReason],
    ...(typeof id === "string" && { "gen_ai.response.id": id }),
    ...(typeof model === "string" && { "gen_ai.response.model": model }),
  };
}

/** Input tokens include those that a cache gave or took, which Anthropic reports apart. */
function usageAttributes({ style }: Settings, usage: Usage): SpanAttributes {
  const { promptTokens, completionTokens, reasoningTokens } = usage;
  const { cachedTokens: read = 0, cacheCreationTokens: created = 0 } = usage;
  return {
    "gen_ai.usage.input_tokens": promptTokens + (style.name === "anthropic" ? read + created : 0),
    "gen_ai.usage.output_tokens": completionTokens,
    ...(read > 0 && { "gen_ai.usage.cache_read.input_tokens": read }),
    ...(created > 0 && { "gen_ai.usage.cache_creation.input_tokens": created }),
    ...(reasoningTokens !== undefined && {
      "gen_ai.usage.reasoning.output_tokens": reasoningTokens,
    }),
  };
}

/** What kind of failure it is, as a word that can be counted: the HTTP status, a code, a name. */
function errorType(error: unknown): string {
  if (error instanceof ProviderError && error.status > 0) return String(error.status);
  if (error instanceof ToolnexusError) return error.code;
  return error instanceof Error ? error.name : "_OTHER";
}
