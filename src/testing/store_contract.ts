/**
 * The suite that proves a conversation store.
 *
 * @module
 */

import type { Awaitable, Message } from "../../mod.ts";
import { abilityCases } from "./contract_abilities.ts";
import { baseCases } from "./contract_base.ts";
import { dataCases } from "./contract_data.ts";
import { idCases } from "./contract_ids.ts";
import {
  assistant,
  check,
  errorOf,
  type StoreAbility,
  type StoreUnderTest,
  Subject,
  user,
} from "./contract_subject.ts";
import { writerCases } from "./contract_writers.ts";

/** A store that must be closed, or that can be opened again. */
export interface OpenedStore {
  /** The store. */
  store: StoreUnderTest;
  /** Releases everything, what `reopen` opened included. Called once. */
  close?: (() => Awaitable<unknown>) | undefined;
  /** Opens a second handle on the same data, as another process would. */
  reopen?: (() => Awaitable<StoreUnderTest>) | undefined;
}

/** Options of {@linkcode conversationStoreContract}. */
export interface StoreContractOptions {
  /**
   * What the store offers beyond `get` and `save`. When given, the store must offer exactly this,
   * and only the cases that go with it are returned.
   *
   * @default found out when the cases run: those about something that the store does not offer pass
   * without trying anything, and one line says which that is
   */
  abilities?: readonly StoreAbility[] | undefined;
  /**
   * Whether the store copies what it is given and what it gives. False leaves those cases out, for
   * a `Map` between two closures whose caller promises to change nothing.
   *
   * @default true
   */
  copies?: boolean | undefined;
  /**
   * Whether the store itself refuses bad ids and values that are no JSON, and drops undefined keys, as
   * those of this package do. The client checks ids and prompts before it calls a store.
   *
   * @default false
   */
  validates?: boolean | undefined;
  /** Takes the one line about abilities. @default console.info */
  report?: ((line: string) => void) | undefined;
}

/** One case of the contract, ready for a test runner. */
export interface StoreContractCase {
  /** What is right. */
  readonly name: string;
  /** The abilities that it is about. */
  readonly needs: readonly StoreAbility[];
  /**
   * Opens a store, tries it, and closes it. Depends on no other case.
   *
   * @throws {Error} that says what the store did wrong
   */
  readonly run: () => Promise<void>;
}

const ABILITIES: readonly StoreAbility[] = ["base", "delete", "list", "reopen"];

/**
 * Everything that the client expects of a conversation store, as cases for a test runner: whole
 * round trips, hostile ids, sizes past the usual limits, Unicode, values that are no JSON, several
 * writers.
 *
 * `open` is called for every case and gives a store **with nothing in it**: a new folder, table or
 * key prefix. It may give the store alone, or with `close` and `reopen`.
 *
 * A store that offers `base`, `delete`, `list` or `reopen` must get them right. It offers `delete`
 * and `list` by having the method, `reopen` through `open`, and `base` by a third parameter of
 * `save` or by refusing a stale write.
 *
 * @example Prove your own store
 * ```ts
 * import { InMemoryConversationStore } from "@toolnexus/client";
 * import { conversationStoreContract } from "@toolnexus/client/testing";
 *
 * const contract = conversationStoreContract(() => new InMemoryConversationStore(), {
 *   abilities: ["base", "delete", "list"],
 *   validates: true,
 * });
 * // In a test file: for (const { name, run } of contract) Deno.test(`my store: ${name}`, run);
 * for (const { run } of contract) await run();
 * ```
 *
 * @example A plain map, which does not even copy
 * ```ts
 * import type { Message } from "@toolnexus/client";
 * import { conversationStoreContract } from "@toolnexus/client/testing";
 *
 * const open = () => {
 *   const map = new Map<string, readonly Message[]>();
 *   return {
 *     get: (id: string) => map.get(id),
 *     save: (id: string, messages: readonly Message[]) => void map.set(id, messages),
 *   };
 * };
 * const options = { abilities: [], copies: false };
 * for (const { run } of conversationStoreContract(open, options)) await run();
 * ```
 */
export function conversationStoreContract(
  open: () => Awaitable<StoreUnderTest | OpenedStore>,
  options: StoreContractOptions = {},
): StoreContractCase[] {
  const { abilities: declared, copies = true, validates = false, report = console.info } = options;
  const expected = { copies, validates };

  const withStore = async (
    work: (opened: OpenedStore) => Promise<void>,
  ): Promise<void> => {
    const given = await open();
    const opened = "save" in given ? { store: given } : given;
    try {
      await work(opened);
    } catch (error) {
      await errorOf(() => opened.close?.()); // the first failure is the one to show
      throw error;
    }
    await opened.close?.();
  };

  let detected: Promise<ReadonlySet<StoreAbility>> | undefined;
  const detect = () =>
    detected ??= (async () => {
      const offered = new Set<StoreAbility>();
      await withStore(async (opened) => {
        for (const ability of ABILITIES) {
          if (await offers(opened, ability)) offered.add(ability);
        }
      });
      return offered;
    })();

  const abilities: StoreContractCase = {
    needs: [],
    name: declared === undefined
      ? "abilities: what the store offers is reported"
      : `abilities: the store offers ${declared.join(", ") || "get and save alone"}`,
    run: async () => {
      const offered = [...await detect()];
      const missing = ABILITIES.filter((ability) => !offered.includes(ability));
      if (declared === undefined) {
        report(
          `the store offers ${offered.join(", ") || "get and save alone"}` +
            (missing.length > 0 ? `; not tried, since not offered: ${missing.join(", ")}` : ""),
        );
        return;
      }
      const lacking = declared.filter((ability) => missing.includes(ability));
      check(lacking.length === 0, `the store does not offer ${lacking.join(", ")}`);
      const extra = offered.filter((ability) => !declared.includes(ability));
      check(extra.length === 0, `the store offers ${extra.join(", ")}, too: name it in abilities`);
    },
  };

  const cases = [...dataCases, ...idCases, ...baseCases, ...writerCases, ...abilityCases]
    .filter(({ needs = [], expects }) =>
      (expects === undefined || expected[expects]) &&
      (declared === undefined || needs.every((ability) => declared.includes(ability)))
    )
    .map(({ name, needs = [], run }): StoreContractCase => ({
      name,
      needs,
      run: async () => {
        const offered = declared === undefined ? await detect() : new Set(declared);
        if (!needs.every((ability) => offered.has(ability))) return;
        await withStore(({ store, reopen }) => run(new Subject(store, offered, reopen)));
      },
    }));
  return [abilities, ...cases];
}

/** Whether a store offers something. It is asked in a store of its own, since asking may write. */
async function offers({ store, reopen }: OpenedStore, ability: StoreAbility): Promise<boolean> {
  switch (ability) {
    case "delete":
    case "list":
      return typeof store[ability] === "function";
    case "reopen":
      return reopen !== undefined;
    case "base": {
      if (store.save.length >= 3) return true;
      const question: Message[] = [user("question")];
      const answered = [...question, assistant("answer")];
      await store.save("a", answered);
      return await errorOf(() => store.save("a", answered, question)) !== undefined ||
        await errorOf(() => store.save("a", answered, [])) !== undefined;
    }
  }
}
