/**
 * The contract's cases about `base`: what a save was built on is what must be there.
 *
 * @module
 */

import type { Message } from "../../mod.ts";
import { bothStyles, type Part } from "./contract_data.ts";
import { assistant, type Case, conversation, user } from "./contract_subject.ts";

/** What may be all that tells a stale base from the transcript. */
const DIFFERENCES: Readonly<Record<string, (messages: Message[]) => void>> = {
  "another text in its first message": (messages) => {
    Object.assign((messages[0]?.content as Part)[0] as Part, { text: "other" });
  },
  "another tool call": (messages) => {
    Object.assign((messages[1]?.tool_calls as Part)[0]?.function as Part, { arguments: "[]" });
  },
  "a message without its tool call": (messages) => void delete messages[1]?.tool_calls,
  "another message in the middle": (messages) => void (messages[2] = user("other")),
  "a result of another call": (messages) => {
    Object.assign(messages[2] as Message, { tool_call_id: "c2" });
  },
  "another value deep in its last message": (messages) => {
    Object.assign((messages[3]?.content as Part)[0]?.citations as Part, { 0: { at: 2 } });
  },
  "one key more": (messages) => void Object.assign(messages[3] as Message, { refusal: null }),
};

/** The cases about `base`. */
export const baseCases: readonly Case[] = [
  {
    name: "base: an append keeps what was there",
    needs: ["base"],
    async run(subject) {
      let saved: Message[] = [];
      for (let turns = 1; turns <= 5; turns++) {
        const next = conversation("a", turns);
        await subject.save("a", next, saved);
        await subject.holds("a", next, `after turn ${turns}`);
        saved = next;
      }
    },
  },
  {
    name: "base: what get returned is a base",
    needs: ["base"],
    async run(subject) {
      await subject.save("a", conversation("a", 1));
      for (let turns = 2; turns <= 5; turns++) {
        const base = await subject.get("a") ?? [];
        await subject.save("a", [...base, ...conversation("a", turns).slice(-2)], base);
      }
      await subject.holds("a", conversation("a", 5), "after four appends to what get() returned");
    },
  },
  {
    name: "base: an equal copy is a base, whatever the order of its keys",
    needs: ["base"],
    async run(subject) {
      await subject.save("a", conversation("a", 1));
      await subject.save("a", conversation("a", 2), conversation("a", 1));
      const reordered = conversation("a", 2).map(({ role, content }) => ({ content, role }));
      await subject.save("a", conversation("a", 3), reordered);
      await subject.holds("a", conversation("a", 3), "after appends to equal copies");
    },
  },
  {
    name: "base: a stale one is refused and changes nothing",
    needs: ["base"],
    async run(subject) {
      const now = conversation("a", 3);
      await subject.save("a", now);
      const mine = [...conversation("a", 2), user("mine"), assistant("too late")];
      const first = [user("other"), ...now.slice(1)];
      const last = [...now.slice(0, -1), assistant("other")];
      const refused: [string, Message[]][] = [
        ["a base that someone has appended to", conversation("a", 2)],
        ["a base that is longer than the transcript", conversation("a", 4)],
        ["a base with another first message", first],
        ["a base with another last message", last],
        ["a base of another conversation", conversation("b", 3)],
        ["a base in another order", now.toReversed()],
      ];
      for (const [what, base] of refused) {
        await subject.conflicts("a", mine, base, `a transcript with ${what}`);
        await subject.conflicts("a", [...base, user("more")], base, `by append to ${what}`);
      }
      await subject.save("a", conversation("a", 4), now);
      await subject.holds("a", conversation("a", 4), "after a good base followed stale ones");
    },
  },
  {
    name: "base: one that differs in a single value is refused",
    needs: ["base"],
    async run(subject) {
      await subject.save("a", bothStyles());
      for (const [what, change] of Object.entries(DIFFERENCES)) {
        const base = bothStyles();
        change(base);
        await subject.conflicts("a", [...base, user("more")], base, `a base with ${what}`);
      }
      await subject.save("a", [...bothStyles(), user("more")], bothStyles());
      await subject.holds("a", [...bothStyles(), user("more")], "after a good base");
    },
  },
  {
    name: "base: an old one stays stale after several saves",
    needs: ["base"],
    async run(subject) {
      await subject.save("a", conversation("a", 1), []);
      const old = await subject.get("a") ?? [];
      await subject.save("a", conversation("a", 2), old);
      await subject.save("a", conversation("a", 3), conversation("a", 2));
      await subject.conflicts("a", [...old, user("mine")], old, "two later turns");
    },
  },
  {
    name: "base: [] means only if nothing is there",
    needs: ["base"],
    async run(subject) {
      await subject.save("a", conversation("a", 1), []);
      await subject.holds("a", conversation("a", 1), "after a first save with base []");
      await subject.conflicts("a", conversation("b", 1), [], "what was there, with base []");
      await subject.save("empty", []);
      await subject.save("empty", conversation("a", 1), []);
      await subject.holds("empty", conversation("a", 1), "after base [] on an empty transcript");
    },
  },
  {
    name: "base: a base of an unknown id is refused",
    needs: ["base"],
    async run(subject) {
      const base = conversation("a", 1);
      await subject.conflicts("a", [...base, user("more")], base, "an id that is not there");
    },
  },
  {
    name: "base: that of another conversation is refused, be it the very array",
    needs: ["base"],
    async run(subject) {
      for (const id of ["a", "b"]) await subject.save(id, conversation(id, 1), []);
      // Numbers of versions must not be mistaken for each other, whichever is ahead.
      for (const [ahead, other] of [["a", "b"], ["b", "a"]] as const) {
        for (let turns = 2; turns <= 5; turns++) {
          const base = await subject.get(ahead) ?? [];
          const next = conversation(ahead, turns);
          const mine = [...base, user("mine")];
          await subject.conflicts(other, mine, base, "what was there, with another's base");
          await subject.save(ahead, next, base);
          await subject.conflicts(other, mine, next, "what was there, with what another saved");
        }
      }
      await subject.holds("a", conversation("a", 5), "after another's base was refused");
    },
  },
  {
    name: "base: a rewrite is kept",
    needs: ["base"],
    async run(subject) {
      const rewrites = [
        conversation("long", 30),
        conversation("a", 3),
        conversation("a", 1),
        [user("summary"), ...conversation("a", 3)],
        [...conversation("a", 3), ...conversation("b", 2)],
        [...conversation("a", 2), ...conversation("b", 2)],
        [],
        conversation("a", 3),
      ];
      let saved: Message[] = [];
      for (const [index, rewrite] of rewrites.entries()) {
        await subject.save("a", rewrite, saved);
        await subject.holds("a", rewrite, `after rewrite ${index}`);
        saved = rewrite;
      }
      await subject.save("a", saved, saved);
      await subject.holds("a", saved, "after a save of what was there");
    },
  },
  {
    name: "base: without one a save still overwrites",
    needs: ["base"],
    async run(subject) {
      await subject.save("a", conversation("a", 3), []);
      await subject.save("a", conversation("b", 2));
      await subject.holds("a", conversation("b", 2), "after a save without base");
      await subject.conflicts(
        "a",
        conversation("a", 4),
        conversation("a", 3),
        "the overwritten one",
      );
    },
  },
  {
    name: "base: changing an array that served as base changes nothing in the store",
    needs: ["base"],
    expects: "copies",
    async run(subject) {
      await subject.save("a", conversation("a", 1));
      const base = await subject.get("a") as Message[];
      const next = [...base, ...conversation("a", 2).slice(2)];
      await subject.save("a", next, base);
      for (const message of next) message.content = "stranger";
      base.length = 0;
      next.length = 0;
      await subject.holds("a", conversation("a", 2), "after base and messages were changed");
      await subject.save("a", conversation("a", 3), conversation("a", 2));
      await subject.holds("a", conversation("a", 3), "after one more append");
    },
  },
];
