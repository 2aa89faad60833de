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
  const versions = writers.map((_, index) => conversation(`writer ${index}`, 15 + 10 * index));
  await writers[0]?.save("a", versions[0] ?? []);
  let writing = writers.length;
  const write = async (writer: Subject, version: Message[]) => {
    try {
      for (let count = 0; count < 20; count++) await writer.save("a", version);
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
    ...writers.map((writer, index) => write(writer, versions[index] ?? [])),
    ...readers.map(read),
  ]);
  for (const reader of readers) await read(reader);
}

/** Whole turns are appended while others read: every read must end where a turn ends. */
async function neverHalfATurn(writer: Subject, readers: readonly Subject[]): Promise<void> {
  const turns = 20, transcript = conversation("a", turns);
  await writer.save("a", []);
  let isWriting = true;
  const write = async () => {
    try {
      for (let turn = 1, saved: Message[] = []; turn <= turns; turn++) {
        const next = transcript.slice(0, 2 * turn);
        if (writer.abilities.has("base")) await writer.save("a", next, saved);
        else await writer.save("a", next);
        saved = next;
      }
    } finally {
      isWriting = false;
    }
  };
  const read = async (reader: Subject) => {
    do {
      await turnOfOthers();
      const found = await reader.get("a") ?? [];
      const difference = differenceOf(transcript.slice(0, found.length), found);
      check(difference === undefined, `get() during an append is wrong: ${difference}`);
      check(
        found.length % 2 === 0,
        `get() during an append returned half a turn: ${found.length} messages, … ${
          show(found.at(-1))
        }`,
      );
    } while (isWriting);
  };
  await all([write(), ...readers.map(read)]);
  for (const reader of readers) await reader.holds("a", transcript, "after the last append");
}

/** Each writer tries again until its turns are in: they must all be there. */
async function allTurnsKept(subjects: readonly Subject[]): Promise<void> {
  const write = async (subject: Subject, name: string) => {
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
  const names = subjects.map((_, index) => `writer ${index}`);
  await all(subjects.map((subject, index) => write(subject, names[index] ?? "")));
  for (const subject of subjects) {
    const texts = (await subject.get("a") ?? []).map((message) => message.content);
    for (const name of names) {
      const turns = texts.filter((text) => String(text).startsWith(name));
      const expected = Array.from({ length: 5 }, (_, turn) => `${name} turn ${turn}`);
      check(show(turns) === show(expected), `${name} has left ${show(turns)}`);
    }
    const count = 5 * names.length;
    check(texts.length === count, `${count} turns were saved and ${texts.length} are there`);
  }
}

/** Saves that all build on the same: exactly one may go through. */
async function oneWins(subjects: readonly Subject[], base: readonly Message[]): Promise<void> {
  const attempts = subjects.map((_, index) => {
    return [...base, user(`writer ${index}`), assistant(`answer ${index}`)];
  });
  const outcomes = await Promise.allSettled(
    subjects.map((subject, index) => subject.save("a", attempts[index] ?? [], base)),
  );
  const won = attempts.filter((_, index) => outcomes[index]?.status === "fulfilled");
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
  return Array.from({ length: count }, (_, index) => index % 2 === 0 ? subject : other);
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
    name: "writers: a read during appends ends where a turn ends",
    async run(subject) {
      await neverHalfATurn(subject, [subject, subject]);
    },
  },
  {
    name: "writers: parallel saves of different ids do not mix",
    async run(subject) {
      const ids = Array.from({ length: 32 }, (_, index) => `conversation ${index}`);
      await all(ids.map(async (id) => {
        for (let turns = 1; turns <= 5; turns++) await subject.save(id, conversation(id, turns));
      }));
      for (const id of ids) await subject.holds(id, conversation(id, 5), "after parallel saves");
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
      await allTurnsKept(Array<Subject>(8).fill(subject));
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
    name: "reopen: a read through another handle during appends ends where a turn ends",
    needs: ["reopen"],
    async run(subject) {
      await neverHalfATurn(subject, [await subject.reopen()]);
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
  {
    name: "reopen: of 16 parallel appends through two handles exactly one goes through",
    needs: ["base", "reopen"],
    async run(subject) {
      await subject.save("a", conversation("a", 2), []);
      await oneWins(await twoHandles(subject, 16), conversation("a", 2));
    },
  },
  {
    name: "reopen: with retries no turn of 8 parallel writers through two handles is lost",
    needs: ["base", "reopen"],
    async run(subject) {
      await allTurnsKept(await twoHandles(subject, 8));
    },
  },
];
