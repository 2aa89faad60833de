/**
 * The contract's cases about conversation ids: any well-formed string is one, and names one
 * conversation only.
 *
 * @module
 */

import { type Case, refuses, show, user } from "./contract_subject.ts";

/** Ids that stores have mixed up, lost, or followed out of their folder, by kind. */
const HOSTILE_IDS: Readonly<Record<string, readonly string[]>> = {
  "paths are names": [
    ...[
      "..",
      ".",
      "/",
      "\\",
      "~",
      "../escape",
      "../../escape",
      "./a",
      "a/",
      "a/../b",
      "b",
      "a/b/c",
    ],
    ...["/etc/passwd", "C:\\windows", "\\\\server\\share", "file:///a", "..\\escape", "a//b/c"],
  ],
  "upper and lower case are kept apart": ["Chat", "chat", "CHAT", "cHAT", "ÄRGER", "ärger"],
  "Unicode forms are kept apart": [
    ...["\u00e9", "e\u0301", "\u00c5", "\u212b", "A\u030a", "\ufb01", "fi", "1", "\uff11"],
    ...["ab", "a\u200bb", "a\u00adb", "\u{1f600}", "\u{10ffff}", "\uffff", "\u05d0", "\u202eabc"],
  ],
  "names that objects know are kept apart": [
    ...["__proto__", "constructor", "prototype", "toString", "valueOf", "hasOwnProperty", "then"],
    ...["__defineGetter__", "length", "size", "undefined", "null", "NaN", "true", "0", "-1", "00"],
  ],
  "control characters and white space are kept apart": [
    ...["a", "a\u0000", "a\u0000b", "a\u0000c", "\u0000", "a\n", "a\r\n", "a\t", " ", "  ", "\n"],
    ...["\u001b[31m", "\u007f", "\ufeffa", "\u2028", "\u0085", "\u00a0"],
  ],
  "device names are kept apart": [
    ...["con", "CON", "CON.json", "nul", "NUL.txt", "aux", "prn", "com1", "lpt9", "CONIN$"],
  ],
  "look-alikes are kept apart": [
    ...[
      "a/b",
      "a_b",
      "a.b",
      "a:b",
      "a-b",
      "a b",
      "a\\b",
      "a+b",
      "a|b",
      "a%2Fb",
      "a%2fb",
      "a%252Fb",
    ],
    ...[
      "x",
      "x.",
      "x..",
      "x ",
      " x",
      ".x",
      "_x",
      "x.json",
      "x.tmp",
      "x.lock",
      "x~",
      "%78",
      "&#120;",
    ],
  ],
  "characters with a meaning elsewhere are kept apart": [
    ...[
      "%",
      "_",
      "*",
      "?",
      "[a]",
      "{a}",
      "${a}",
      "$1",
      "'",
      '"',
      "`",
      "''",
      "a=b",
      "a&b",
      "#",
      ",",
    ],
    ...["'; DROP TABLE conversations; --", "-rf", "--help", "a,b", "a;b", "<a>", "$where", "a\\0"],
  ],
  "up to 1,024 bytes are kept apart": [
    ...["a".repeat(1_024), `${"a".repeat(1_023)}b`, "a".repeat(1_023), "é".repeat(512)],
    ...["\u{1f600}".repeat(256), "/".repeat(1_024), "a".repeat(255), "a".repeat(256)],
    ...["a".repeat(100), "a".repeat(101), "€".repeat(85), "€".repeat(86)],
  ],
};

const BAD_IDS: Readonly<Record<string, unknown>> = {
  "an empty id": "",
  "half of a surrogate pair as id": "a\ud800",
  "an id of 1,025 bytes": "a".repeat(1_025),
  "an id of 513 characters and 1,026 bytes": "é".repeat(513),
  "undefined as id": undefined,
  "null as id": null,
  "a number as id": 5,
  "an array as id": ["a"],
  "an object as id": { toString: () => "a" },
};

/** The cases about ids. */
export const idCases: readonly Case[] = [
  ...Object.entries(HOSTILE_IDS).map(([kind, ids]): Case => ({
    name: `ids: ${kind}`,
    async run(subject) {
      for (const id of ids) await subject.knowsNothingOf(id, "before it was saved");
      for (const id of ids) await subject.save(id, [user(`I am ${id}`)]);
      for (const id of ids) await subject.holds(id, [user(`I am ${id}`)], "beside its like");
      if (!subject.abilities.has("delete")) return;
      for (const [index, id] of ids.entries()) {
        await subject.delete(id);
        await subject.knowsNothingOf(id, "after delete()");
        const next = ids[index + 1];
        if (next === undefined) continue;
        await subject.holds(next, [user(`I am ${next}`)], `after delete(${show(id)})`);
      }
    },
  })),
  {
    name: "ids: what is no id is refused",
    expects: "validates",
    async run(subject) {
      const { store } = subject;
      for (const [what, bad] of Object.entries(BAD_IDS)) {
        const id = bad as string;
        await refuses(`get() with ${what}`, () => store.get(id));
        await refuses(`save() with ${what}`, () => store.save(id, [user("hello")]));
        if (store.delete) await refuses(`delete() with ${what}`, () => store.delete?.(id));
      }
    },
  },
];
