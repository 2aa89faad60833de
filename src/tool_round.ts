/**
 * The tool calls of one answer, side by side.
 *
 * @module
 */

import { HookError, quote, reasonOf } from "./errors.ts";
import { callHook } from "./hooks.ts";
import { equalJson, isPlainObject } from "./json.ts";
import { copyJson } from "./json_copy.ts";
import { isRequest, pendingOf, timeOf } from "./pending.ts";
import type { CallOutcome, Round } from "./round.ts";
import type { Run, RunContext } from "./run.ts";
import { abortable, Scope } from "./scope.ts";
import { traceTool } from "./tracing.ts";
import { resultOf } from "./tools/define_tool.ts";
import { unknownTool } from "./tools/toolkit.ts";
import { declined } from "./transcript/last_turn.ts";
import { parseArguments } from "./transcript/read.ts";
import type { Answer, PendingRequest, StreamEvent, ToolContext, ToolResult } from "./types.ts";
import type { CompletionCall } from "./wire/style.ts";

/**
 * Runs the calls of a round that have no outcome yet and puts the round into the transcript. Each
 * outcome is noted when it is there, so that a failure of one call loses no other's.
 */
export async function runRound(run: Run, round: Round): Promise<void> {
  const { context } = run;
  const { show } = context;
  const checkpoint = context.settings.checkpoint === "round" ? context.checkpoint : undefined;
  if (!round.mustBeAnswered) await checkpoint?.(run);
  const open = [...round.calls.keys()].filter((index) => round.outcomes[index] === undefined);
  await show?.(open.map((index) => callEvent(round.calls[index]!)));
  const failures: unknown[] = [];
  await Promise.all(open.map(async (index) => {
    const call = round.calls[index]!;
    try {
      const outcome = await traceTool(context, call, () => runCall(context, round, index));
      round.outcomes[index] = outcome;
      if (outcome.pending === undefined) await show?.([resultEvent(call, outcome)]);
    } catch (error) {
      failures.push(error);
    }
  }));
  if (failures.length > 0) throw failures[0];
  run.closeRound(round);
  if (run.pending !== undefined) await show?.([{ type: "pending", request: run.pending }]);
  else await checkpoint?.(run);
}

function callEvent(call: CompletionCall): StreamEvent {
  const { id, name } = call;
  return { type: "tool_call", id, name, args: ownArguments(call) ?? {} };
}

function resultEvent({ id, name }: CompletionCall, { result }: CallOutcome): StreamEvent {
  return { type: "tool_result", id, name, output: result.output, isError: result.isError };
}

async function runCall(run: RunContext, round: Round, index: number): Promise<CallOutcome> {
  const call = round.calls[index]!;
  const { name } = call;
  const started = performance.now();
  const tool = round.toolkit.get(name);
  let outcome: CallOutcome;
  const args = argumentsOf(round, index);
  if (tool === undefined) {
    outcome = { args: args ?? {}, result: unknownTool(name) };
  } else if (args === undefined) {
    const raw = typeof call.arguments === "string" ? call.arguments : quote(call.arguments);
    outcome = {
      args: {},
      result: failed(`not executed: arguments are no whole JSON object: ${raw.slice(0, 200)}`),
    };
  } else outcome = await executed(run, round, call, args);
  const isPending = outcome.pending !== undefined;
  run.settings.emit({
    event: "tool",
    tool: name,
    source: tool === undefined ? "unknown" : tool.source ?? "custom",
    isError: outcome.result.isError && !isPending,
    ms: performance.now() - started,
    ...(isPending && { pending: true }),
  });
  return outcome;
}

/**
 * The arguments as the model made them; undefined if they are not whole. Empty arguments of the last
 * call of an answer that was cut are none that the model chose.
 */
function argumentsOf(round: Round, index: number): Record<string, unknown> | undefined {
  const args = ownArguments(round.calls[index]!);
  if (args === undefined || !round.isCut || index < round.calls.length - 1) return args;
  return Object.keys(args).length === 0 ? undefined : args;
}

/** A copy of a call's arguments: what becomes of it must not change the transcript. */
function ownArguments({ arguments: raw }: CompletionCall): Record<string, unknown> | undefined {
  const args = parseArguments(raw);
  try {
    return args && copyJson(args, "arguments");
  } catch {
    return undefined; // nested deeper than anything that a tool asks for
  }
}

/** The call with the hooks around it, and the human's answer where the tool waits for one. */
async function executed(
  run: RunContext,
  round: Round,
  call: CompletionCall,
  given: Record<string, unknown>,
): Promise<CallOutcome> {
  const { signal, settings: { hooks } } = run;
  const { id, name } = call;
  const event = { name, args: copyJson(given, "arguments"), id, turn: round.turn };
  const { approval } = round;
  let args = given;
  let result: ToolResult;
  let isOfHook = false;
  const again = (answer?: Answer) => execute(run, round, call, args, answer);
  if (approval !== undefined && round.calls[approval.index] === call) {
    // Whoever asked for the approval has it now: nobody is asked again.
    const { request, answer } = approval;
    args = argumentsOfRequest(request) ?? given;
    result = await answered(request, answer, again);
  } else {
    const changes = await callHook("beforeTool", hooks.beforeTool, event, signal);
    if (changes?.args !== undefined && !isPlainObject(changes.args)) {
      throw new HookError(
        "beforeTool",
        new TypeError(`args must be an object: ${quote(changes.args)}`),
      );
    }
    args = changes?.args ?? given;
    isOfHook = changes?.result !== undefined;
    result = isOfHook ? hookResult("beforeTool", changes!.result) : await again();
  }
  // A hook can ask, and then the tool.
  for (;;) {
    let request: PendingRequest | undefined;
    try {
      request = openRequest(result, call, args, isOfHook);
    } catch (error) {
      result = failed(`invalid pending request: ${reasonOf(error)}`);
    }
    if (request === undefined) break;
    const { waitFor } = run.settings;
    if (waitFor === undefined) return { args, result, pending: request };
    await run.show?.([{ type: "pending", request }]);
    const answer = await callHook("waitFor", waitFor, request, signal);
    result = await answered(request, answer, again);
    isOfHook = false;
  }
  // It has run: whatever the hook does now, the round is part of the conversation.
  round.mustBeAnswered = true;
  round.outcomes[round.calls.indexOf(call)] = { args, result, isWithheld: true };
  const replaced = await callHook("afterTool", hooks.afterTool, { ...event, args, result }, signal);
  if (replaced?.result !== undefined) result = hookResult("afterTool", replaced.result);
  return { args, result };
}

/** What a hook gave as a result, in the form of one. */
function hookResult(hook: string, value: unknown): ToolResult {
  try {
    return resultOf(value);
  } catch (cause) {
    throw new HookError(hook, cause);
  }
}

/** Runs a suspended tool, if the answer allows it. */
async function answered(
  request: PendingRequest,
  answer: Answer | undefined,
  again: (answer?: Answer) => Promise<ToolResult>,
): Promise<ToolResult> {
  if (answer?.ok !== true || answer.id !== request.id || isExpired(request)) {
    return failed(declined(request));
  }
  // What a hook has asked is no answer to the tool: it has yet to ask, if it wants to.
  if (request.data?.askedBy === HOOK) return await again();
  const result = await again(answer);
  return pendingOf(result) === undefined ? result : failed(`unresolved: ${request.prompt}`);
}

/** Whether a request has run out. A time that cannot be read has. */
function isExpired({ expiresAt }: PendingRequest): boolean {
  return expiresAt !== undefined && !(timeOf(expiresAt) > Date.now());
}

/** The tool itself, within its time. */
async function execute(
  run: RunContext,
  round: Round,
  { id, name }: CompletionCall,
  args: Record<string, unknown>,
  answer?: Answer,
): Promise<ToolResult> {
  run.signal.throwIfAborted();
  try {
    const timeoutMs = round.toolkit.get(name)?.timeoutMs ?? run.settings.toolTimeoutMs;
    using scope = timeoutMs === undefined ? undefined : new Scope(run.signal);
    const late = `timed out after ${timeoutMs} ms`;
    scope?.limit(timeoutMs, () => new DOMException(late, "TimeoutError"));
    const signal = scope?.signal ?? run.signal;
    const context: ToolContext = {
      signal,
      callId: id,
      turn: round.turn,
      ...(run.conversationId !== undefined && { conversationId: run.conversationId }),
      ...(answer !== undefined && { answer }),
      ...(timeoutMs !== undefined && { timeoutMs }),
    };
    // Each run gets its own: a tool may change what it is given.
    return await abortable(round.toolkit.execute(name, copyOf(args), context), signal);
  } catch (error) {
    if (run.signal.aborted) throw run.signal.reason;
    return failed(reasonOf(error));
  }
}

/** Marks the request of a hook. */
const HOOK = "beforeTool";

/**
 * The request of a suspended call as plain JSON, stamped with the call's id, with who asks where it
 * is not the tool, and with the arguments where they are not those of the call: what is approved is
 * what runs.
 *
 * @throws {TypeError} if it is no request
 */
function openRequest(
  result: ToolResult,
  call: CompletionCall,
  args: Record<string, unknown>,
  isOfHook: boolean,
): PendingRequest | undefined {
  const request: unknown = pendingOf(result);
  if (request === undefined) return undefined;
  if (!isRequest(request)) throw new TypeError("it needs an id and a prompt");
  if (request.data !== undefined && !isPlainObject(request.data)) {
    throw new TypeError("its data must be an object");
  }
  const { toolArgs: _, askedBy: __, ...data } = request.data ?? {};
  const isChanged = !equalJson(args, parseArguments(call.arguments));
  const stamp = {
    toolCallId: call.id,
    ...(isChanged && { toolArgs: args }),
    ...(isOfHook && { askedBy: HOOK }),
  };
  return copyJson({ ...request, data: { ...data, ...stamp } }, "request");
}

/** A copy, if it is JSON; what a hook made need not be. */
function copyOf(args: Record<string, unknown>): Record<string, unknown> {
  try {
    return copyJson(args, "arguments");
  } catch {
    return args;
  }
}

function argumentsOfRequest({ data }: PendingRequest): Record<string, unknown> | undefined {
  return isPlainObject(data?.toolArgs) ? data.toolArgs : undefined;
}

function failed(output: string): ToolResult {
  return { output, isError: true };
}
