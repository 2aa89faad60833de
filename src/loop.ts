/**
 * The loop: ask the model, run its tools, ask again. There is one, for every way to run it.
 *
 * @module
 */

import { type BeforeLLMEvent, callHook, type Hooks } from "./hooks.ts";
import { checkString } from "./checks.ts";
import { cloneJson } from "./json_copy.ts";
import { copyMessages } from "./messages.ts";
import type { Run } from "./run.ts";
import { runRound } from "./tool_round.ts";
import { toolkitOf } from "./tools/toolkit.ts";
import { traceChat } from "./tracing.ts";
import { leadingSystem, systemText } from "./transcript/system.ts";
import { requestAnswer } from "./wire/request.ts";
import type { Completion } from "./wire/style.ts";

/** Runs until the model has answered, a tool waits for a human, or the turns are used up. */
export async function loop(run: Run): Promise<void> {
  if (run.round !== undefined) await runRound(run, run.round);
  const { show, settings: { maxTurns, style } } = run.context;
  while (run.pending === undefined) {
    if (run.turns >= maxTurns) {
      run.limit = "maxTurns";
      return;
    }
    const answer = await askModel(run);
    const { message, calls, isCut, isPaused, usage } = answer;
    if (calls.length > 0) {
      run.round = {
        answer: message,
        style,
        calls,
        toolkit: run.declared,
        outcomes: calls.map(() => undefined),
        turn: run.turns,
        isCut,
        mustBeAnswered: false,
      };
      await show?.([{ type: "usage", usage }]);
      await runRound(run, run.round);
    } else {
      run.add(message);
      run.isDone = !isPaused;
      await show?.([{ type: "usage", usage }]);
      if (!isPaused) return;
    }
  }
}

/** One answer of the model, with the hooks around it. */
export async function askModel(run: Run): Promise<Completion> {
  const { settings, signal, progress, show } = run.context;
  const { model, hooks, emit } = settings;
  const body = await requestBody(run);
  const started = performance.now();
  let answer: Completion;
  const metric = { event: "llm", model } as const;
  try {
    answer = await traceChat(
      run.context,
      () => requestAnswer(settings, body, signal, progress, show),
    );
  } catch (error) {
    const ms = performance.now() - started;
    emit({ ...metric, status: "error", ms, promptTokens: 0, completionTokens: 0 });
    throw error;
  }
  const { promptTokens, completionTokens } = answer.usage;
  const ms = performance.now() - started;
  emit({ ...metric, status: "ok", ms, promptTokens, completionTokens });
  run.take(answer);
  run.unapproved = answer;
  if (hooks.afterLLM !== undefined) {
    const response = cloneJson(answer.payload);
    await callHook("afterLLM", hooks.afterLLM, { response, model, turn: run.turns }, signal);
  }
  run.unapproved = undefined;
  return answer;
}

/** The text of the request: own keys, then `beforeLLM`, `requestParams`, `bodyTransform`. */
async function requestBody(run: Run): Promise<string> {
  const { settings, toolkit, signal, show } = run.context;
  const { style, model, maxTokens, hooks, requestParams, bodyTransform, systemPrompt } = settings;
  const own = systemPrompt || systemText(run.messages);
  let system = [own, toolkit.prompt()].filter((text) => text !== "").join("\n\n");
  run.declared = toolkit;
  if (hooks.beforeLLM !== undefined) {
    const event = {
      system,
      messages: run.messages.map(cloneJson),
      tools: toolkit.tools(),
      model,
      turn: run.turns + 1,
    };
    const changes = await callHook("beforeLLM", checked(hooks.beforeLLM), event, signal);
    if (changes?.messages !== undefined) run.rewrite(changes.messages);
    system = changes?.system ?? system;
    if (changes?.toolkit !== undefined) run.declared = changes.toolkit;
  }
  const messages = run.messages.slice(leadingSystem(run.messages));
  const tools = run.declared.tools();
  const body = style.body({
    model,
    system,
    messages,
    tools,
    maxTokens,
    stream: show !== undefined,
  });
  Object.assign(body, requestParams);
  if (tools.length === 0) {
    // Providers refuse to be told how to choose where there is nothing to choose from.
    delete body.tool_choice;
    delete body.parallel_tool_calls;
  }
  if (bodyTransform !== undefined) {
    // A copy: what is marked on it is not stored.
    const copy = JSON.parse(JSON.stringify(body));
    const transform = async (copy: Record<string, unknown>) =>
      wellFormedJson(await bodyTransform(copy) ?? copy);
    return (await callHook("bodyTransform", transform, copy, signal))!;
  }
  return wellFormedJson(body);
}

/** The hook with what it gives checked and its messages copied: what is wrong fails the hook. */
function checked(hook: NonNullable<Hooks["beforeLLM"]>) {
  return async (event: BeforeLLMEvent) => {
    const changes = await hook(event);
    if (!changes) return undefined;
    const { system, messages, tools } = changes;
    if (system !== undefined) checkString("system", system);
    return {
      system,
      messages: messages === undefined ? undefined : copyMessages(messages),
      toolkit: tools === undefined ? undefined : toolkitOf(tools),
    };
  };
}

/** JSON in which half a character, which providers refuse, is U+FFFD. */
function wellFormedJson(value: unknown): string {
  const text = JSON.stringify(value);
  if (!text.includes("\\ud")) return text;
  // An escaped backslash is passed over, so that it is not taken for the start of an escape.
  return text.replace(
    /\\(?:\\|ud[89a-f][0-9a-f]{2})/g,
    (found) => found === "\\\\" ? found : "\\ufffd",
  );
}
