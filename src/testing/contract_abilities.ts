/**
 * The contract's cases about `delete`, `list`, and opening a store again.
 *
 * @module
 */

import type { ListOptions } from "../../mod.ts";
import { type Case, check, conversation, pause, show, type Subject } from "./contract_subject.ts";

const DAY_MS = 86_400_000;

/** Saves one turn under each id, some at a time. */
async function saveAll(subject: Subject, ids: readonly string[]): Promise<void> {
  for (let start = 0; start < ids.length; start += 50) {
    await Promise.all(
      ids.slice(start, start + 50).map((id) => subject.save(id, conversation(id, 1))),
    );
  }
}

/** `list` with these options must show exactly these ids. */
async function lists(
  subject: Subject,
  options: ListOptions | undefined,
  expected: readonly string[],
): Promise<void> {
  const found = new Set((await subject.list(options)).keys());
  const call = `list(${options === undefined ? "" : show(options)})`;
  const missing = expected.filter((id) => !found.has(id));
  const wrong = [...found].filter((id) => !expected.includes(id));
  check(missing.length === 0, `${call} left out ${missing.length}: ${show(missing)}`);
  check(wrong.length === 0, `${call} showed ${wrong.length} too many: ${show(wrong)}`);
}

/** The cases about optional methods. */
export const abilityCases: readonly Case[] = [
  {
    name: "delete: a deleted conversation is unknown, and the others stay",
    needs: ["delete"],
    async run(subject) {
      await saveAll(subject, ["a", "ab", "b"]);
      await subject.save("a", conversation("a", 200));
      await subject.delete("a");
      await subject.knowsNothingOf("a", "after delete()");
      await subject.holds("ab", conversation("ab", 1), "after delete() of another id");
      await subject.holds("b", conversation("b", 1), "after delete() of another id");
      await subject.save("a", conversation("again", 1));
      await subject.holds("a", conversation("again", 1), "after delete() and a new save()");
    },
  },
  {
    name: "delete: an unknown id is no error",
    needs: ["delete"],
    async run(subject) {
      await subject.delete("never saved");
      await subject.save("a", []);
      await subject.delete("a");
      await subject.knowsNothingOf("a", "after delete() of an empty transcript");
      await subject.delete("a");
    },
  },
  {
    name: "delete: a base of before is stale, and [] is not",
    needs: ["delete", "base"],
    async run(subject) {
      await subject.save("a", conversation("a", 2));
      const base = await subject.get("a") ?? [];
      await subject.delete("a");
      await subject.conflicts("a", conversation("a", 3), base, "a deleted conversation");
      await subject.save("a", conversation("new", 1), []);
      await subject.holds("a", conversation("new", 1), "after delete() and a save with base []");
      await subject.conflicts("a", conversation("a", 3), base, "a conversation begun anew");
    },
  },
  {
    name: "list: every conversation is shown once, with its time and its count",
    needs: ["list"],
    async run(subject) {
      await lists(subject, undefined, []);
      await subject.save("a", conversation("a", 1));
      await subject.save("b", conversation("b", 200));
      await subject.save("empty", []);
      const first = await subject.list();
      await lists(subject, {}, ["a", "b", "empty"]);
      await subject.save("a", conversation("a", 3));
      await subject.save("b", conversation("b", 2));
      const second = await subject.list();
      for (const [id, count] of Object.entries({ a: 6, b: 4, empty: 0 })) {
        const { messageCount, updatedAt } = second.get(id) ?? {};
        check(
          messageCount === count,
          `list() showed ${messageCount} messages of ${show(id)} instead of ${count}`,
        );
        check(
          updatedAt instanceof Date && Math.abs(Date.now() - updatedAt.getTime()) < DAY_MS,
          `list() showed ${show(updatedAt)} as the time of ${show(id)} instead of a Date of today`,
        );
        const before = first.get(id)?.updatedAt.getTime() ?? NaN;
        check(updatedAt.getTime() >= before, `a save moved the time of ${show(id)} back`);
      }
    },
  },
  {
    name: "list: a save moves the time of its conversation, and nothing else does",
    needs: ["list"],
    async run(subject) {
      const times = async () => {
        const listed = await subject.list();
        return ["a", "b"].map((id) => listed.get(id)?.updatedAt.getTime() ?? NaN) as [
          number,
          number,
        ];
      };
      await saveAll(subject, ["a", "b"]);
      const [savedA, savedB] = await times();
      // Some clocks count in milliseconds, some in seconds.
      for (const wait of [5, 50, 1_000]) {
        await pause(wait);
        await subject.save("a", conversation("a", 2));
        const [a, b] = await times();
        check(b === savedB, `the time of "b" moved by ${b - savedB} ms, and nobody saved it`);
        if (a > savedA) return;
      }
      check(false, `the time of "a" has not moved since its first save`);
    },
  },
  {
    name: "list: a prefix is taken literally",
    needs: ["list"],
    async run(subject) {
      const ids = [
        ..."user:1 user:2 user_1 user%1 User:1 use % %a _ _a * *a a\\b a/b a/ [a]".split(" "),
        ..."\u{1f600}a \u{1f600} \u00e9a e\u0301a __proto__ . .. ../x \uffffa".split(" "),
        ..."\u{10ffff}a $ ^a a\u0000b a\u0000 a\uffffz a\u{10ffff}z".split(" "),
      ];
      await saveAll(subject, ids);
      const prefixes = [
        ..."user: user_ user% USER % _ * a\\ a/ [ \u{1f600} e \u00e9 . ../ \uffff".split(" "),
        ..."\u{10ffff} $ ^ a\u0000 __ nothing a".split(" "),
        "",
      ];
      for (const prefix of prefixes) {
        await lists(subject, { prefix }, ids.filter((id) => id.startsWith(prefix)));
      }
    },
  },
  {
    name: "list: limit is the most that it shows",
    needs: ["list"],
    async run(subject) {
      const ids = ["a1", "a2", "a3", "b1", "b2"];
      await saveAll(subject, ids);
      for (
        const [options, count] of [
          [{ limit: 0 }, 0],
          [{ limit: 1 }, 1],
          [{ limit: 4 }, 4],
          [{ limit: 5 }, 5],
          [{ limit: 2_000 }, 5],
          [{ prefix: "a", limit: 2 }, 2],
          [{ prefix: "b", limit: 3 }, 2],
          [{ prefix: "c", limit: 1 }, 0],
          [{ prefix: "a", limit: 0 }, 0],
        ] as const
      ) {
        const found = await subject.list(options);
        check(
          found.size === count,
          `list(${show(options)}) showed ${found.size} conversations instead of ${count}`,
        );
      }
    },
  },
  {
    name: "list: 1,001 conversations are all shown",
    needs: ["list"],
    async run(subject) {
      const ids = Array.from({ length: 1_001 }, (_, index) => `conversation ${index}`);
      await saveAll(subject, ids);
      await lists(subject, undefined, ids);
      await lists(subject, { prefix: "conversation " }, ids);
    },
  },
  {
    name: "list: ids of every kind come back as they are",
    needs: ["list"],
    async run(subject) {
      const ids = [
        ..."Chat chat ../x a/b a_b \u00e9 e\u0301 con __proto__ a\u0000b x.json %2F 0".split(" "),
        ...["a".repeat(1_024), "\u{1f600}".repeat(256), " ", "\n"],
      ];
      await saveAll(subject, ids);
      await lists(subject, undefined, ids);
    },
  },
  {
    name: "list: it can be left early",
    needs: ["list"],
    async run(subject) {
      await saveAll(subject, ["a", "b", "c"]);
      for await (const { id } of subject.store.list?.() ?? []) {
        check(["a", "b", "c"].includes(id), `list() showed ${show(id)}`);
        break;
      }
      await subject.save("d", conversation("d", 1));
      await lists(subject, undefined, ["a", "b", "c", "d"]);
    },
  },
  {
    name: "list: a deleted conversation is not shown",
    needs: ["list", "delete"],
    async run(subject) {
      await saveAll(subject, ["a", "b"]);
      await subject.delete("a");
      await lists(subject, undefined, ["b"]);
    },
  },
  {
    name: "reopen: what was saved is there, through either handle",
    needs: ["reopen"],
    async run(subject) {
      const ids = ["a", "Chat", "chat", "../x", "a/b", "\u00e9", "__proto__", "a\u0000b", "con"];
      await saveAll(subject, ids);
      await subject.save("empty", []);
      const other = await subject.reopen();
      for (const id of ids) await other.holds(id, conversation(id, 1), "after it was opened again");
      await other.holds("empty", [], "after it was opened again");
      await other.knowsNothingOf("later", "after it was opened again");
      await subject.save("later", conversation("later", 1));
      await other.holds("later", conversation("later", 1), "after another handle saved it first");
      await subject.holds("a", conversation("a", 1), "before another handle saved it");
      await other.save("a", conversation("a", 2));
      await subject.holds("a", conversation("a", 2), "after another handle saved it");
      if (!subject.abilities.has("delete")) return;
      await other.delete("a");
      await subject.knowsNothingOf("a", "after another handle deleted it");
    },
  },
];
