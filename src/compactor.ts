/**
 * Keeping a long conversation within the model's window: what is old is summarized.
 *
 * @module
 */

import { checkFunction, checkObject } from "./checks.ts";
import { quote } from "./errors.ts";
import type { BeforeLLMEvent } from "./hooks.ts";
import { leadingSystem } from "./transcript/system.ts";
import { turnStarts } from "./transcript/turns.ts";
import type { Awaitable, Message } from "./types.ts";

/** What the text of a summary begins with. */
const SUMMARY = "[Summary of earlier conversation]";

/** What {@linkcode compactor} takes. */
export interface CompactorOptions {
  /**
   * The budget of the transcript, in tokens; above 0. The system prompt and the tools are not
   * counted, nor is the answer: leave room for them.
   */
  maxTokens: number;
  /**
   * How many tokens of the latest turns are kept as they are, at most; the last turn always is.
   * From 0 to `maxTokens`.
   *
   * @default maxTokens / 2
   */
  keepTail?: number | undefined;
  /**
   * Writes the summary of the messages that make room: whole turns, oldest first; an earlier summary
   * is the first of them. An empty summary changes nothing. A throw fails the run with a `HookError`.
   */
  summarize: (messages: readonly Message[]) => Awaitable<string>;
  /**
   * Counts the tokens of messages.
   *
   * @default a quarter of the characters of their JSON; 1,500 for the data of an image or a file
   */
  countTokens?: ((messages: readonly Message[]) => Awaitable<number>) | undefined;
}

/** A `beforeLLM` hook that gives a shorter transcript, or undefined to leave it as it is. */
export type Compactor = (
  event: Pick<BeforeLLMEvent, "messages">,
) => Promise<{ messages: Message[] } | undefined>;

/**
 * Makes a `beforeLLM` hook that keeps a conversation of any length within a budget. A transcript of
 * at most `maxTokens` is left as it is. Of a longer one the older turns become one user message, the
 * summary, which begins with `[Summary of earlier conversation]`.
 *
 * - The transcript is cut where a turn begins, in either style: no tool call is parted from its
 *   result, and a call that is open or waits for a human is not summarized away.
 * - System messages at the start stay, the latest turns stay as they are, and so does the last turn
 *   when it is over the budget alone.
 * - The shorter transcript is what is sent and, by `ask`, what is saved. When somebody else has saved
 *   the conversation meanwhile, the run ends with a `ConversationConflictError` that has the result.
 *
 * The hook keeps no state: one may serve any number of conversations at once.
 *
 * @throws {TypeError | RangeError} if an option is wrong; the error names it and its value
 *
 * @example
 * ```ts
 * import { compactor, createClient } from "@toolnexus/client";
 * import { stubLlm } from "@toolnexus/client/testing";
 * import { assertEquals } from "@std/assert";
 *
 * await using server = stubLlm(() => "ok");
 * const beforeLLM = compactor({
 *   maxTokens: 60,
 *   summarize: (messages) => `${messages.length} messages about colours`, // or ask a model
 * });
 * const client = createClient({
 *   baseUrl: server.baseUrl,
 *   style: "openai",
 *   model: "test",
 *   hooks: { beforeLLM },
 * });
 * for (const colour of ["red", "green", "blue", "white"]) {
 *   await client.ask(`I like ${colour}`, { id: "thread-1" });
 * }
 * const [summary, ...rest] = await client.conversationStore().get("thread-1") ?? [];
 * assertEquals(summary?.content, "[Summary of earlier conversation]\n4 messages about colours");
 * assertEquals(rest.map(({ content }) => content), ["I like blue", "ok", "I like white", "ok"]);
 * ```
 */
export function compactor(options: CompactorOptions): Compactor {
  checkObject("options", options);
  const { maxTokens, keepTail = maxTokens / 2, summarize, countTokens = estimate } = options;
  if (typeof summarize !== "function") {
    throw new TypeError(`summarize must be a function: ${quote(summarize)}`);
  }
  checkFunction("countTokens", countTokens);
  const limits = { maxTokens, keepTail };
  for (const [name, value] of Object.entries(limits)) {
    if (typeof value !== "number") {
      throw new TypeError(`${name} must be a number: ${quote(value)}`);
    }
  }
  if (!(maxTokens > 0)) throw new RangeError(`maxTokens must be above 0: ${maxTokens}`);
  if (!(keepTail >= 0 && keepTail <= maxTokens)) {
    throw new RangeError(`keepTail must be from 0 to maxTokens: ${keepTail}`);
  }

  async function count(messages: readonly Message[]): Promise<number> {
    const tokens = await countTokens(messages);
    if (typeof tokens === "number" && tokens >= 0) return tokens;
    throw new TypeError(`countTokens must give a number from 0: ${quote(tokens)}`);
  }

  /** Where the part begins that is kept; 0 if there is no turn to cut before. */
  async function tailStart(messages: readonly Message[], head: number): Promise<number> {
    const starts = turnStarts(messages).filter((start) => start > head);
    let start = starts.pop() ?? 0;
    let tokens = await count(messages.slice(start));
    for (let earlier; (earlier = starts.pop()) !== undefined; start = earlier) {
      tokens += await count(messages.slice(earlier, start));
      if (tokens > keepTail) break;
    }
    return start;
  }

  return async ({ messages }) => {
    if (await count(messages) <= maxTokens) return undefined;
    const head = leadingSystem(messages);
    const start = await tailStart(messages, head);
    const older = messages.slice(head, start);
    // A summary of the summary alone would be made again with each request.
    if (older.every(isSummary)) return undefined;
    const summary: unknown = await summarize(older);
    if (typeof summary !== "string") {
      throw new TypeError(`summarize must give a string: ${quote(summary)}`);
    }
    if (summary.trim() === "") return undefined;
    const message = { role: "user", content: `${SUMMARY}\n${summary.trim()}` };
    return { messages: [...messages.slice(0, head), message, ...messages.slice(start)] };
  };
}

function isSummary({ role, content }: Message): boolean {
  return role === "user" && typeof content === "string" && content.startsWith(SUMMARY);
}

/** A picture of the largest size that is not scaled down: https://docs.anthropic.com/en/docs/build-with-claude/vision */
const DATA_CHARACTERS = 6_000;

/** The default count: few tokenizers need more than one token for four characters of JSON. */
function estimate(messages: readonly Message[]): number {
  let characters = 0;
  for (const message of messages) {
    let data = 0;
    // A string has no parts that could hold data.
    const replacer = typeof message.content === "string"
      ? undefined
      : (key: string, value: unknown) => {
        if (typeof value !== "string" || !isData(key, value)) return value;
        data++;
        return "";
      };
    characters += JSON.stringify(message, replacer).length + data * DATA_CHARACTERS;
  }
  return Math.ceil(characters / 4);
}

/** Whether a text is encoded data, which a provider does not count by its length. */
function isData(key: string, value: string): boolean {
  return key === "data" || key === "file_data" || value.startsWith("data:");
}
