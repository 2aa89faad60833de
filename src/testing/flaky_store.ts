/**
 * A store that fails and dawdles as told.
 *
 * @module
 */

import type { Awaitable, ConversationStore } from "../../mod.ts";
import type { StoreUnderTest } from "./contract_subject.ts";

/** What one operation does. */
export type FlakyStep =
  /** It does what it should. */
  | "ok"
  /** It fails without having touched the store. */
  | Error
  /** It waits, works, and fails, each where asked for. */
  | {
    /** Milliseconds to wait before anything else. @default 0 */
    delay?: number | undefined;
    /** What it fails with. @default it does not fail */
    error?: Error | undefined;
    /** Whether it fails only after it took effect: a write that was made and not confirmed. */
    after?: boolean | undefined;
  };

/**
 * The steps of each operation, one a call; calls past the last step are `ok`. A function decides
 * call by call, and may hold an operation up by answering late.
 */
export type FlakyPlan =
  | { get?: readonly FlakyStep[] | undefined; save?: readonly FlakyStep[] | undefined }
  | ((operation: "get" | "save", id: string) => Awaitable<FlakyStep>);

/**
 * Wraps a store so that chosen operations fail or take long. Arguments are handed on in the number
 * in which they came, so a save without `base` stays one. What else the store offers, `delete` and
 * `list`, is there and does not fail.
 *
 * @example A database that confirms nothing
 * ```ts
 * import { type ConversationStore, type Message } from "@toolnexus/client";
 * import { flakyStore } from "@toolnexus/client/testing";
 * import { assertEquals, assertRejects } from "@std/assert";
 *
 * const map = new Map<string, readonly Message[]>();
 * const plain: ConversationStore = {
 *   get: (id) => map.get(id),
 *   save: (id, messages) => void map.set(id, messages),
 * };
 * const store = flakyStore(plain, {
 *   get: ["ok", new Error("connection refused")],
 *   save: [{ error: new Error("connection reset"), after: true }],
 * });
 *
 * await assertRejects(async () => await store.save("a", []), Error, "connection reset");
 * assertEquals(await store.get("a"), []);
 * await assertRejects(async () => await store.get("a"), Error, "connection refused");
 * ```
 */
export function flakyStore(store: ConversationStore, plan: FlakyPlan): StoreUnderTest {
  const left = typeof plan === "function"
    ? undefined
    : { get: [...plan.get ?? []], save: [...plan.save ?? []] };

  async function perform<T>(
    operation: "get" | "save",
    id: string,
    work: () => Awaitable<T>,
  ): Promise<T> {
    const step = typeof plan === "function"
      ? await plan(operation, id)
      : left?.[operation].shift() ?? "ok";
    if (step === "ok") return await work();
    const { delay = 0, error, after = false } = step instanceof Error ? { error: step } : step;
    if (delay > 0) await new Promise((resolve) => setTimeout(resolve, delay));
    if (error !== undefined && !after) throw error;
    const result = await work();
    if (error !== undefined) throw error;
    return result;
  }

  const { delete: remove, list } = store as StoreUnderTest;
  return {
    get: (id) => perform("get", id, () => store.get(id)),
    save: (...save) => perform("save", save[0], () => store.save(...save)),
    ...(remove !== undefined && { delete: remove.bind(store) }),
    ...(list !== undefined && { list: list.bind(store) }),
  };
}
