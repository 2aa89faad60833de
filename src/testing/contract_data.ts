/**
 * The contract's cases about transcripts: they come back as they went in, whatever JSON they hold.
 *
 * @module
 */

import type { Message } from "../../mod.ts";
import {
  assistant,
  type Case,
  check,
  conversation,
  refuses,
  show,
  type Subject,
  user,
} from "./contract_subject.ts";

/** A transcript of both styles with something nested in every message. */
export function bothStyles(): Message[] {
  return [
    { role: "user", content: [{ type: "text", text: "What time is it?" }] },
    {
      role: "assistant",
      content: null,
      tool_calls: [{ id: "c1", type: "function", function: { name: "clock", arguments: "{}" } }],
    },
    { role: "tool", tool_call_id: "c1", content: "noon" },
    { role: "assistant", content: [{ type: "text", text: "It is noon.", citations: [{ at: 1 }] }] },
  ];
}

/** Any part of a message, to be reached into. */
export interface Part {
  [key: string | number]: Part;
}

/** What a careless caller does to an array it was given or has given away. */
const CARELESS: Readonly<Record<string, (messages: Message[]) => void>> = {
  "adding a message to": (messages) => void messages.push(user("stranger")),
  "emptying": (messages) => void (messages.length = 0),
  "changing a message of": (messages) => void ((messages[2] as Message).content = "stranger"),
  "changing a content block of": (messages) => {
    Object.assign((messages[0]?.content as Part)[0] as Part, { text: "stranger" });
  },
  "changing a tool call of": (messages) => {
    Object.assign((messages[1]?.tool_calls as Part)[0]?.function as Part, { name: "stranger" });
  },
  "changing what is deepest in": (messages) =>
    Object.assign((messages[3]?.content as Part)[0]?.citations as Part, { 0: "stranger" }),
};

/** Does it, or fails to: frozen data is as good as a copy. */
function carelessly(change: (messages: Message[]) => void, messages: readonly Message[]): void {
  try {
    change(messages as Message[]);
  } catch { /* frozen */ }
}

/** A message whose JSON text has exactly this many bytes. */
function messageOf(bytes: number, character: string): Message {
  const size = new TextEncoder().encode(character).length;
  const frame = JSON.stringify(user("")).length;
  const repeats = Math.floor((bytes - frame) / size);
  return user(character.repeat(repeats) + "x".repeat(bytes - frame - repeats * size));
}

const TEXTS: readonly string[] = [
  ...[
    "",
    " ",
    "a\u0000b",
    "\u0000",
    "\u{1f600}\u{1f468}\u200d\u{1f469}",
    "\u2028\u2029",
    "\ufeffa",
  ],
  ...[
    "half \ud83d of a pair",
    "\udc00\ud800",
    "\uffff\ufffe",
    "caf\u00e9 cafe\u0301",
    "\u202e\u05d0",
  ],
  ...["\r\n\t\b\f\v\u001b[31m\u007f\u0085", `"quoted" \\u0000 \\ / </script>`, "%s %00 ${x} {{x}}"],
];

class Impostor {
  role = "user";
}

/** What JSON cannot hold: as content of a message, as a message, as a transcript. */
const NOT_JSON: Readonly<Record<string, () => unknown>> = {
  "a BigInt": () => [{ role: "user", content: 1n }],
  "a function": () => [{ role: "user", content: "x", helper: () => {} }],
  "a symbol": () => [{ role: "user", content: Symbol("x") }],
  "NaN": () => [{ role: "user", content: NaN }],
  "Infinity": () => [{ role: "user", content: [{ score: Infinity }] }],
  "a Date": () => [{ role: "user", content: [new Date(0)] }],
  "a Map": () => [{ role: "user", content: { map: new Map() } }],
  "bytes": () => [{ role: "user", content: new Uint8Array(2) }],
  "a hole in an array": () => [{ role: "user", content: ["x", , "y"] }],
  "undefined in an array": () => [{ role: "user", content: ["x", undefined] }],
  "a cycle": () => {
    const message: Message = { role: "user" };
    message.content = [{ back: message }];
    return [message];
  },
  "a message of a class": () => [new Impostor()],
  "a string as message": () => ["hello"],
  "null as message": () => [null],
  "an array as message": () => [[user("x")]],
  "a hole in the transcript": () => [user("x"), , user("y")],
  "an object as transcript": () => ({ 0: user("x"), length: 1 }),
  "null as transcript": () => null,
  "a string as transcript": () => "hello",
};

/** The cases about what a transcript holds. */
export const dataCases: readonly Case[] = [
  {
    name: "round trip: get returns what was saved",
    async run(subject) {
      await subject.save("a", bothStyles());
      await subject.save("b", conversation("b", 3));
      await subject.holds("a", bothStyles(), "after save()");
      await subject.holds("b", conversation("b", 3), "after save()");
      await subject.holds("a", bothStyles(), "when read again");
    },
  },
  {
    name: "round trip: an unknown id is null or undefined",
    async run(subject) {
      await subject.knowsNothingOf("never saved", "in an empty store");
      await subject.save("saved", bothStyles());
      await subject.knowsNothingOf("never saved", "after another id was saved");
    },
  },
  {
    name: "round trip: a save replaces the whole transcript",
    async run(subject) {
      await subject.save("a", conversation("first", 20));
      await subject.save("a", conversation("second", 2));
      await subject.holds("a", conversation("second", 2), "after a shorter one was saved");
      await subject.save("a", conversation("third", 30));
      await subject.holds("a", conversation("third", 30), "after a longer one was saved");
    },
  },
  {
    name: "round trip: an empty transcript is kept, and is not an unknown id",
    async run(subject) {
      await subject.save("a", []);
      await subject.holds("a", [], "after an empty transcript was saved");
      await subject.save("b", bothStyles());
      await subject.save("b", []);
      await subject.holds("b", [], "after an empty transcript replaced another");
    },
  },
  {
    name: "copies: changing what get returned changes nothing in the store",
    expects: "copies",
    async run(subject) {
      for (const [what, change] of Object.entries(CARELESS)) {
        await subject.save(what, bothStyles());
        const found = await subject.get(what) ?? [];
        carelessly(change, found);
        await subject.holds(what, bothStyles(), `after ${what} what get() had returned`);
      }
    },
  },
  {
    name: "copies: changing what was saved changes nothing in the store",
    expects: "copies",
    async run(subject) {
      for (const [what, change] of Object.entries(CARELESS)) {
        const given = bothStyles();
        await subject.save(what, given);
        carelessly(change, given);
        await subject.holds(what, bothStyles(), `after ${what} what had been given to save()`);
      }
    },
  },
  {
    name: "copies: changing what is being saved changes nothing in the store",
    expects: "copies",
    async run(subject) {
      for (const [what, change] of Object.entries(CARELESS)) {
        const given = bothStyles();
        const saving = subject.save(what, given);
        carelessly(change, given);
        await saving;
        await subject.holds(what, bothStyles(), `after ${what} what save() was still writing`);
      }
    },
  },
  {
    name: "copies: save leaves what it was given as it was",
    async run(subject) {
      const given = Object.freeze(bothStyles().map((message) => Object.freeze(message)));
      await subject.save("a", given);
      await subject.holds("a", bothStyles(), "after a frozen transcript was saved");
    },
  },
  ...["x", "é", "€", "\u{1f600}"].map((character): Case => ({
    name: `sizes: messages around 64 KiB, of ${
      new TextEncoder().encode(character).length
    }-byte characters`,
    async run(subject) {
      for (const bytes of [65_535, 65_536, 65_537, 131_073]) {
        const id = `${bytes} bytes`;
        await subject.save(id, [messageOf(bytes, character)]);
        await subject.holds(id, [messageOf(bytes, character)], `with one message of ${id}`);
        const many = [user("before"), messageOf(bytes, character), assistant("after")];
        await subject.save(id, many);
        await subject.holds(id, many, `with a message of ${id} among others`);
      }
    },
  })),
  {
    name: "sizes: transcripts around 64 KiB",
    async run(subject) {
      for (const bytes of [65_534, 65_535, 65_536, 65_537]) {
        // Each message is followed by one byte, a comma or a line end, and brackets take two.
        const messages = [...Array<number>(7).fill(8_191), bytes - 7 * 8_192 - 2]
          .map((size) => messageOf(size, "x"));
        await subject.save(`${bytes}`, messages);
        await subject.holds(`${bytes}`, messages, `with ${bytes} bytes in all`);
      }
    },
  },
  {
    name: "sizes: a transcript of 5 MiB",
    async run(subject) {
      const messages = [
        ...Array.from({ length: 4 }, (_, index) => messageOf(1_048_576 + index, "é")),
        ...Array.from({ length: 1_024 }, (_, index) => messageOf(1_024 + index % 3, "x")),
      ];
      await subject.save("a", messages);
      await subject.holds("a", messages, "with 5 MiB in all");
      await subject.save("a", [user("short")]);
      await subject.holds("a", [user("short")], "after a short one replaced 5 MiB");
    },
  },
  {
    name: "sizes: 1,000 turns appended one by one",
    async run(subject) {
      let saved: Message[] = [];
      for (const [turn, question] of conversation("a", 1_000).entries()) {
        if (turn % 2 === 1) continue;
        const next = [...saved, question, assistant(`answer ${turn}`)];
        if (subject.abilities.has("base")) await subject.save("a", next, saved);
        else await subject.save("a", next);
        saved = next;
      }
      await subject.holds("a", saved, "after 1,000 turns");
    },
  },
  {
    name: "Unicode: every text comes back exactly",
    async run(subject) {
      for (const [index, text] of TEXTS.entries()) {
        await subject.save(`${index}`, [
          { role: "user", content: [{ type: "text", text }] },
          user(text),
        ]);
      }
      for (const [index, text] of TEXTS.entries()) {
        const expected = [{ role: "user", content: [{ type: "text", text }] }, user(text)];
        await subject.holds(`${index}`, expected, `with the text ${show(text)}`);
      }
    },
  },
  {
    name: "JSON: keys of every kind are kept",
    async run(subject) {
      const keys = [
        "",
        " ",
        "constructor",
        "toString",
        "length",
        "toJSON",
        "lc",
        "$ref",
        "a.b",
        "0",
      ];
      const message: Message = { role: "user", content: "x" };
      for (const key of [...keys, ...TEXTS]) message[key] = { [key]: "kept" };
      await subject.save("a", [message]);
      await subject.holds("a", [message], "with unusual keys");
    },
  },
  {
    name: "JSON: a key __proto__ is data",
    async run(subject) {
      const text = '{"role":"user","content":"x","__proto__":{"admin":true,"n":[{"__proto__":1}]}}';
      await subject.save("a", [JSON.parse(text)]);
      await subject.holds("a", [JSON.parse(text)], "with a key __proto__");
      const found = (await subject.get("a"))?.[0];
      check(found?.admin === undefined, "a key __proto__ became the prototype of a message");
    },
  },
  {
    name: "JSON: values of every kind are kept",
    async run(subject) {
      const values = {
        numbers: [0, 1, -1, 0.1, 1e21, 1.5e-7, 2 ** 53, Number.MAX_VALUE, Number.MIN_VALUE],
        others: [true, false, null, "", "null", "1", [], {}, [[]], [{}], [[[{ a: [null] }]]]],
        date: "2026-01-01T00:00:00.000Z",
        class: { lc: 2, type: "constructor", id: ["a", "b"] },
      };
      const messages = [{ role: "a role of its own", content: values, values }, { role: "" }];
      await subject.save("a", messages);
      await subject.holds("a", messages, "with values of every kind");
    },
  },
  {
    name: "JSON: deep values are kept",
    async run(subject) {
      let content: unknown = "deep";
      for (let depth = 0; depth < 200; depth++) content = depth % 2 ? [content] : { content };
      await subject.save("a", [{ role: "user", content }]);
      await subject.holds("a", [{ role: "user", content }], "with 200 levels");
    },
  },
  {
    name: "JSON: undefined keys are dropped",
    expects: "validates",
    async run(subject) {
      await subject.save("a", [{
        role: "user",
        content: { text: "x", b: undefined },
        c: undefined,
      }]);
      const found = (await subject.get("a"))?.[0] ?? {};
      check(
        !("c" in found),
        `an undefined key of a message came back: ${show(Object.keys(found))}`,
      );
      const content = (found as Message).content as object;
      check(!("b" in content), `an undefined key came back: ${show(Object.keys(content))}`);
    },
  },
  {
    name: "JSON: what JSON cannot hold is refused, and the old transcript stays",
    expects: "validates",
    async run(subject: Subject) {
      await subject.save("a", bothStyles());
      for (const [what, make] of Object.entries(NOT_JSON)) {
        await refuses(`a transcript with ${what}`, () => subject.save("a", make() as Message[]));
        await subject.holds("a", bothStyles(), `after a transcript with ${what}`);
        await refuses(`a first one with ${what}`, () => subject.save("new", make() as Message[]));
        await subject.knowsNothingOf("new", `after a first transcript with ${what}`);
      }
      await subject.save("a", conversation("a", 1));
      await subject.holds("a", conversation("a", 1), "after refusals");
    },
  },
];
