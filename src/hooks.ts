/**
 * Where a host can look in on a run, and change it.
 *
 * @module
 */

import { HookError } from "./errors.ts";
import { abortable } from "./scope.ts";
import type { Awaitable, Message, Tool, ToolResult } from "./types.ts";

/** What `beforeLLM` is told. */
export interface BeforeLLMEvent {
  /** The system prompt; empty for none. */
  system: string;
  /** The transcript that will be sent, each message in the style it was written in. */
  messages: readonly Message[];
  /** The tools that will be declared. */
  tools: readonly Tool[];
  /** The model. */
  model: string;
  /** The round of the run, from 1. */
  turn: number;
}

/** What `beforeLLM` may change. */
export interface BeforeLLMChanges {
  /** Another system prompt, for this request. */
  system?: string | undefined;
  /** Another transcript: it takes the old one's place for the rest of the run and is what is saved. */
  messages?: readonly Message[] | undefined;
  /** Other tools, for this request. */
  tools?: readonly Tool[] | undefined;
}

/** What `afterLLM` is told. */
export interface AfterLLMEvent {
  /** The provider's decoded payload; the same for a plain and a streamed answer. */
  response: unknown;
  /** The model. */
  model: string;
  /** The round of the run, from 1. */
  turn: number;
}

/** What `beforeTool` is told. */
export interface BeforeToolEvent {
  /** The tool's name. */
  name: string;
  /** The arguments. */
  args: Record<string, unknown>;
  /** The id of the call. */
  id: string;
  /** The round of the run, from 1. */
  turn: number;
}

/** What `beforeTool` may do. */
export interface BeforeToolChanges {
  /** Other arguments. */
  args?: Record<string, unknown> | undefined;
  /** The result: the tool does not run. A `pending()` result suspends the call. */
  result?: ToolResult | undefined;
}

/** What `afterTool` is told. */
export interface AfterToolEvent extends BeforeToolEvent {
  /** What the tool gave. */
  result: ToolResult;
}

/** What `afterTool` may change. */
export interface AfterToolChanges {
  /** The result that the model gets instead. */
  result?: ToolResult | undefined;
}

/**
 * Hooks of a run; all may be async. A hook that throws fails the run with a `HookError`; what was
 * completed is kept.
 */
export interface Hooks {
  /** Before each request. */
  beforeLLM?:
    | ((event: BeforeLLMEvent) => Awaitable<BeforeLLMChanges | undefined | void>)
    | undefined;
  /** After each answer. A throw vetoes the answer: it is on the error's `result`, and not saved. */
  afterLLM?: ((event: AfterLLMEvent) => Awaitable<void>) | undefined;
  /** Before each tool call: change its arguments, or answer it. */
  beforeTool?:
    | ((event: BeforeToolEvent) => Awaitable<BeforeToolChanges | undefined | void>)
    | undefined;
  /** After each tool call: change its result. */
  afterTool?:
    | ((event: AfterToolEvent) => Awaitable<AfterToolChanges | undefined | void>)
    | undefined;
}

/**
 * Calls a function of the host's, and waits no longer than the run may take; what it throws becomes a
 * `HookError` of that name.
 */
export async function callHook<Event, Changes>(
  name: string,
  hook: ((event: Event) => Awaitable<Changes>) | undefined,
  event: Event,
  signal: AbortSignal,
): Promise<Changes | undefined> {
  if (hook === undefined) return undefined;
  signal.throwIfAborted();
  try {
    return await abortable(hook(event), signal);
  } catch (cause) {
    throw signal.aborted ? signal.reason : new HookError(name, cause);
  }
}
