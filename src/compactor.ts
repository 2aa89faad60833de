/**
 * Keeping a long conversation within the model's window: what is old is summarized.
 *
 * @module
 */

import { type AsyncContext, asyncContext } from "./async_hooks.ts";
import { checkFunction, checkNumber, checkObject } from "./checks.ts";
import { quote } from "./errors.ts";
import type { BeforeLLMEvent } from "./hooks.ts";
import { leadingSystem } from "./transcript/system.ts";
import { estimateTokens } from "./transcript/token_estimate.ts";
import { turnStarts } from "./transcript/turns.ts";
import type { Awaitable, Message } from "./types.ts";

/** What the text of a summary begins with. */
const SUMMARY = "[Summary of earlier conversation]";

/** What {@linkcode compactor} takes. */
export interface CompactorOptions {
  /**
   * The budget of the transcript, in tokens; above 0. The client's system prompt and the tools are not
   * counted, nor is the answer: leave room for them.
   */
  maxTokens: number;
  /**
   * How many tokens of the latest turns are kept as they are, at most; the last turn always is. Where
   * the summary leaves no room for so many, it is fewer. From 0 to `maxTokens`.
   *
   * @default maxTokens / 2
   */
  keepTail?: number | undefined;
  /**
   * Writes the summary of the messages that make room: whole turns, oldest first; an earlier summary
   * is the first of them. An empty summary changes nothing. A throw fails the run with a `HookError`.
   * It may ask the same client: what it sends is not compacted.
   */
  summarize: (messages: readonly Message[]) => Awaitable<string>;
  /**
   * Counts the tokens of messages.
   *
   * @default a quarter of the characters of their JSON; at most 1,500 for the data of an image, an
   * audio or a file
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
  const { maxTokens, summarize, countTokens = estimateTokens } = options;
  if (typeof summarize !== "function") {
    throw new TypeError(`summarize must be a function: ${quote(summarize)}`);
  }
  checkFunction("countTokens", countTokens);
  checkNumber("maxTokens", maxTokens);
  if (!(maxTokens > 0)) throw new RangeError(`maxTokens must be above 0: ${maxTokens}`);
  const { keepTail = maxTokens / 2 } = options;
  checkNumber("keepTail", keepTail);
  if (!(keepTail >= 0 && keepTail <= maxTokens)) {
    throw new RangeError(`keepTail must be from 0 to maxTokens: ${keepTail}`);
  }
  /** In it, what `summarize` asks of the same client is known: it would be summarized without end. */
  let summarizing: AsyncContext<true> | undefined;

  async function count(messages: readonly Message[]): Promise<number> {
    const tokens = await countTokens(messages);
    if (typeof tokens === "number" && tokens >= 0) return tokens;
    throw new TypeError(`countTokens must give a number from 0: ${quote(tokens)}`);
  }

  /** Where the part begins that is kept, within `room`; 0 if there is no turn to cut before. */
  async function tailStart(messages: readonly Message[], room: number): Promise<number> {
    const starts = turnStarts(messages).filter((start) => start > 0);
    let start = starts.pop() ?? 0;
    let tokens = await count(messages.slice(start));
    for (let earlier; (earlier = starts.pop()) !== undefined; start = earlier) {
      tokens += await count(messages.slice(earlier, start));
      if (tokens > room) break;
    }
    return start;
  }

  /** The summary as a message; undefined if it is empty. */
  async function summaryOf(messages: readonly Message[]): Promise<Message | undefined> {
    summarizing ??= asyncContext();
    const work = () => summarize(messages);
    const text: unknown = await (summarizing === undefined ? work() : summarizing.run(true, work));
    if (typeof text !== "string") {
      throw new TypeError(`summarize must give a string: ${quote(text)}`);
    }
    if (text.trim() === "") return undefined;
    return { role: "user", content: `${SUMMARY}\n${text.trim()}` };
  }

  return async ({ messages }) => {
    if (summarizing?.getStore() === true) return undefined;
    const head = messages.slice(0, leadingSystem(messages));
    let rest = messages.slice(head.length);
    let isShorter = false;
    let isOver = await count(messages) > maxTokens;
    while (isOver) {
      const fixed = [...head, ...rest.slice(0, isSummary(rest[0]) ? 1 : 0)];
      const used = fixed.length === 0 ? 0 : await count(fixed);
      // What leaves no room for the whole tail leaves half of the rest to grow.
      const room = used + keepTail <= maxTokens ? keepTail : (maxTokens - used) / 2;
      const start = await tailStart(rest, room);
      const older = rest.slice(0, start);
      // A summary of the summary alone would be made again with each request.
      if (older.every(isSummary)) break;
      const summary = await summaryOf(older);
      if (summary === undefined) break;
      rest = [summary, ...rest.slice(start)];
      isShorter = true;
      // A long summary may take the room of more than one turn.
      const second = turnStarts(rest)[2];
      isOver = second !== undefined &&
        await count([...head, summary, ...rest.slice(second)]) > maxTokens;
    }
    return isShorter ? { messages: [...head, ...rest] } : undefined;
  };
}

function isSummary(message: Message | undefined): boolean {
  const { role, content } = message ?? {};
  return role === "user" && typeof content === "string" && content.startsWith(SUMMARY);
}
