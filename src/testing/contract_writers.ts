/**
 * The contract's cases about several writers: no torn transcript, and with `base` no lost turn.
 *
 * @module
 */

import { ConversationConflictError, type Message } from "../../mod.ts";
import {
  assistant,
  type Case,
  check,
  conversation,
  differenceOf,
  show,
  type Subject,
  turnOfOthers,
  user,
} from "./contract_subject.ts";

/** Runs all to their end, even if one fails, then throws the first failure. */
async function all(work: readonly Promise<void>[]): Promise<void> {
  for (const outcome of await Promise.allSettled(work)) {
    if (outcome.status === "rejected") throw outcome.reason;
  }
}

/** Whole transcripts overwrite each other while others read: every read must be one of them. */
async function neverTorn(writers: readonly Subject[], readers: readonly Subject[]): Promise<void> {
  const versions = writers.map((_, i) => conversation(`writer ${i}`, 15 + 10 * i));
  await writers[0]?.save("a", versions[0] ?? []);
  let writing = writers.length;
  const write = async (writer: Subject, version: Message[]) => {
    try {
      for (let i = 0; i < 20; i++) await writer.save("a", version);
    } finally {
      writing--;
    }
  };
  const read = async (reader: Subject) => {
    do {
      await turnOfOthers();
      const found = await reader.get("a");
      check(
        versions.some((version) => differenceOf(version, found) === undefined),
        `get() during a save returned a transcript that nobody saved: ${found?.length} messages, ${
          show(found?.[0])
        } … ${show(found?.at(-1))}`,
      );
    } while (writing > 0);
  };
  await all([
    ...writers.map((writer, i) => write(writer, versions[i] ?? [])),
    ...readers.map(read),
  ]);
  for (const reader of readers) await read(reader);
}

/** Saves that all build on the same: exactly one may go through. */
async function oneWins(subjects: readonly Subject[], base: readonly Message[]): Promise<void> {
  const attempts = subjects.map((_, i) => [...base, user(`writer ${i}`), assistant(`answer ${i}`)]);
  const outcomes = await Promise.allSettled(
    subjects.map((subject, i) => subject.save("a", attempts[i] ?? [], base)),
  );
  const won = attempts.filter((_, i) => outcomes[i]?.status === "fulfilled");
  for (const outcome of outcomes) {
    if (outcome.status === "fulfilled") continue;
    check(
      outcome.reason instanceof ConversationConflictError,
      `a parallel save failed with ${show(outcome.reason)} instead of a ConversationConflictError`,
    );
  }
  check(
    won.length === 1,
    `${won.length} of ${subjects.length} saves on the same base went through`,
  );
  for (const subject of subjects) await subject.holds("a", won[0] ?? [], "after parallel saves");
}

/** Two handles on the same data, in turns. */
async function twoHandles(subject: Subject, count: number): Promise<Subject[]> {
  const other = await subject.reopen();
  return Array.from({ length: count }, (_, i) => i % 2 === 0 ? subject : other);
}

/** The cases about several writers. */
export const writerCases: readonly Case[] = [
  {
    name: "writers: without base the last one wins",
    async run(subject) {
      await subject.save("a", conversation("first", 3));
      await subject.save("a", conversation("second", 3));
      await subject.holds("a", conversation("second", 3), "after a second writer");
    },
  },
  {
    name: "writers: a read during saves is whole",
    async run(subject) {
      await neverTorn([subject, subject], [subject, subject]);
    },
  },
  {
    name: "writers: parallel saves of different ids do not mix",
    async run(subject) {
      const ids = Array.from({ length: 32 }, (_, i) => `conversation ${i}`);
      await all(ids.map(async (id) => {
        for (let turns = 1; turns <= 5; turns++) await subject.save(id, conversation(id, turns));
      }));
      for (const id of ids) await subject.holds(id, conversation(id, 5), "after parallel saves");
    },
  },
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
      for (const [i, rewrite] of rewrites.entries()) {
        await subject.save("a", rewrite, saved);
        await subject.holds("a", rewrite, `after rewrite ${i}`);
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
  {
    name: "base: of 16 parallel first saves exactly one goes through",
    needs: ["base"],
    async run(subject) {
      await oneWins(Array<Subject>(16).fill(subject), []);
    },
  },
  {
    name: "base: of 16 parallel appends exactly one goes through",
    needs: ["base"],
    async run(subject) {
      await subject.save("a", conversation("a", 2));
      await oneWins(Array<Subject>(16).fill(subject), conversation("a", 2));
    },
  },
  {
    name: "base: with retries no turn of 8 parallel writers is lost",
    needs: ["base"],
    async run(subject) {
      const writer = async (name: string) => {
        let refused = 0;
        for (let turn = 0; turn < 5;) {
          const base = await subject.get("a") ?? [];
          try {
            await subject.save("a", [...base, user(`${name} turn ${turn}`)], base);
            turn++;
          } catch (error) {
            if (!(error instanceof ConversationConflictError)) throw error;
            check(++refused < 1_000, `${name} was refused ${refused} times in ${turn + 1} turns`);
            await turnOfOthers();
          }
        }
      };
      const names = Array.from({ length: 8 }, (_, i) => `writer ${i}`);
      await all(names.map(writer));
      const texts = (await subject.get("a") ?? []).map((message) => message.content);
      for (const name of names) {
        const turns = texts.filter((text) => String(text).startsWith(name));
        const expected = Array.from({ length: 5 }, (_, turn) => `${name} turn ${turn}`);
        check(show(turns) === show(expected), `${name} has left ${show(turns)}`);
      }
      check(texts.length === 40, `40 turns were saved and ${texts.length} are there`);
    },
  },
  {
    name: "reopen: a read through another handle during saves is whole",
    needs: ["reopen"],
    async run(subject) {
      const other = await subject.reopen();
      await neverTorn([subject, other], [subject, other]);
    },
  },
  {
    name: "reopen: another handle's turn makes a base stale",
    needs: ["base", "reopen"],
    async run(subject) {
      const other = await subject.reopen();
      await subject.save("a", conversation("a", 1), []);
      const mine = await subject.get("a") ?? [];
      await other.save("a", conversation("a", 2), await other.get("a") ?? []);
      await subject.conflicts("a", [...mine, user("mine")], mine, "the other handle's turn");
      await subject.save("a", conversation("a", 3), conversation("a", 2));
      await other.holds("a", conversation("a", 3), "through the other handle");
    },
  },
  {
    name: "reopen: of 16 parallel first saves through two handles exactly one goes through",
    needs: ["base", "reopen"],
    async run(subject) {
      await oneWins(await twoHandles(subject, 16), []);
    },
  },
];
