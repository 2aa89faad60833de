// Ways in which an answer is damaged on its way, from none at all to a bit that flips.

import type { Json } from "./fixture.ts";
import type { Random } from "./random.ts";

/** What can happen to the events of a stream before they are written. */
export const eventDamages = {
  none: (events: Json[]) => events,
  "an event repeated": (events: Json[], random: Random) =>
    events.toSpliced(random.below(events.length), 0, random.of(events)),
  "an event lost": (events: Json[], random: Random) =>
    events.toSpliced(random.below(events.length), 1),
  "two events swapped": (events: Json[], random: Random) => {
    const [a, b] = [random.below(events.length), random.below(events.length)];
    return events.with(a, events[b]).with(b, events[a]);
  },
  "a value of another type": (events: Json[], random: Random) => {
    const at = random.below(events.length);
    return events.with(at, typeConfused(events[at], random));
  },
} satisfies Record<string, (events: Json[], random: Random) => Json[]>;

/** What can happen to bytes. */
export const byteDamages = {
  none: (bytes: Uint8Array) => bytes,
  cut: (bytes: Uint8Array, random: Random) => bytes.slice(0, random.below(bytes.length)),
  "bits flipped": (bytes: Uint8Array, random: Random) => {
    const flipped = bytes.slice();
    for (let count = 1 + random.below(3); count > 0; count--) {
      flipped[random.below(flipped.length)]! ^= 1 << random.below(8);
    }
    return flipped;
  },
  "a stretch repeated": (bytes: Uint8Array, random: Random) => {
    const [start, end] = stretch(bytes, random);
    return joined(bytes.subarray(0, end), bytes.subarray(start));
  },
  "a stretch lost": (bytes: Uint8Array, random: Random) => {
    const [start, end] = stretch(bytes, random);
    return joined(bytes.subarray(0, start), bytes.subarray(end));
  },
  "rubbish put in": (bytes: Uint8Array, random: Random) => {
    const at = random.below(bytes.length);
    const rubbish = Uint8Array.from({ length: 1 + random.below(8) }, () => random.below(256));
    return joined(bytes.subarray(0, at), rubbish, bytes.subarray(at));
  },
} satisfies Record<string, (bytes: Uint8Array, random: Random) => Uint8Array>;

const OTHERS: readonly Json[] = [
  null,
  undefined,
  "",
  "x",
  "{}",
  0,
  -1,
  1.5,
  true,
  [],
  [null],
  ["x"],
  {},
  { type: "text", text: "y" },
];

/** A copy in which one value, somewhere, is of another type or is gone. */
export function typeConfused(value: Json, random: Random): Json {
  if (typeof value !== "object" || value === null || random.below(8) === 0) {
    return random.of(OTHERS);
  }
  const keys = Object.keys(value);
  if (keys.length === 0) return random.of(OTHERS);
  const key = random.of(keys);
  const copy: Json = Array.isArray(value) ? [...value] : { ...value };
  copy[key] = typeConfused(value[key], random);
  return copy;
}

function stretch(bytes: Uint8Array, random: Random): [start: number, end: number] {
  const start = random.below(bytes.length);
  return [start, Math.min(bytes.length, start + 1 + random.below(random.of([4, 40, 400])))];
}

function joined(...parts: Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
