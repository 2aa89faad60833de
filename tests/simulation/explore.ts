// All schedules of a scenario, by replay: from the start, the same choices lead to the same place.
import { FakeTime } from "@std/testing/time";
import { violationsOf } from "./invariants.ts";
import { type Library, library } from "./library.ts";
import { makeSeeds, type Play, play, type Scenario } from "./scenario.ts";
import { numberOf } from "./store.ts";

/** What an exploration has come to. */
export interface Exploration {
  /** Schedules that the explored ones stand for, all different. */
  schedules: number;
  /** Schedules that were played, from the start to the end or to a state that was known. */
  played: number;
  /** States, and those in which a schedule ends. */
  states: number;
  ends: Set<string>;
  /** Faults that were injected, each in another state. */
  faults: number;
  ms: number;
  /** By what does not hold, the shortest schedule that shows it. */
  failures: Map<string, string[]>;
}

/** How to explore. */
export interface ExploreOptions {
  /** How many clients have a fault, at most. @default 1 */
  faults?: number;
  library?: Library;
  /** Whether to leave a schedule where it comes to a state that is known. @default true */
  prune?: boolean;
  /** Whether the first failure is enough. @default false */
  stopAtFailure?: boolean;
}

interface State {
  next: Set<string>;
  schedules?: number;
}

/**
 * Plays every schedule of a scenario. A state is the stored transcript and what each client was told,
 * in order. Nothing else decides what can follow: a client's code is deterministic (its waits are
 * passed over), and clients meet in nothing but the store. So a schedule that comes to a known state
 * is left there: all that can follow was, or will be, played from the schedule that came there first.
 */
export async function explore(
  scenario: Scenario,
  options: ExploreOptions = {},
): Promise<Exploration> {
  const { faults = 1, prune = true, stopAtFailure = false } = options;
  // In one process clients meet in the line of the conversation, too.
  const localFirst = prune && !scenario.isOneProcess;
  const started = performance.now();
  using clock = new FakeTime();
  await makeSeeds(clock);
  const states = new Map<string, State>();
  const found = { played: 0, faults: 0, ends: new Set<string>(), failures: new Map() };
  const open: string[][] = [[]];
  let full = 0;
  for (let prefix; (prefix = open.pop()) !== undefined;) {
    if (stopAtFailure && found.failures.size > 0) break;
    found.played++;
    const current = await play(scenario, options.library ?? library, clock, faults);
    const { schedule } = current;
    let before: State | undefined;
    for (const [index, choice] of prefix.entries()) {
      if (index === prefix.length - 1) before = states.get(keyOf(current));
      await schedule.take(choice);
    }
    for (;;) {
      const key = keyOf(current);
      before?.next.add(key);
      let state = states.get(key);
      if (state !== undefined && prune) break;
      if (state === undefined) states.set(key, state = { next: new Set() });
      const [first, ...others] = schedule.choices(localFirst);
      if (first === undefined) {
        full++;
        found.ends.add(key);
        for (const violation of await violationsOf(current)) {
          note(found.failures, violation, schedule.taken);
        }
        break;
      }
      found.faults += others.filter((choice) => choice.includes("=")).length;
      open.push(...others.map((choice) => [...schedule.taken, choice]));
      before = state;
      await schedule.take(first);
    }
  }
  const schedules = prune ? count(states, states.keys().next().value!) : full;
  return { ...found, schedules, states: states.size, ms: performance.now() - started };
}

/** Plays schedules at random: the same ones for the same seed. */
export async function sample(
  scenario: Scenario,
  options: { schedules: number; faults: number; seed: number; library?: Library },
): Promise<Exploration> {
  const started = performance.now();
  using clock = new FakeTime();
  await makeSeeds(clock);
  const random = randomOf(options.seed);
  const pick = <Value>(values: readonly Value[]) => values[Math.floor(random() * values.length)]!;
  const found = { faults: 0, states: 0, ends: new Set<string>(), failures: new Map() };
  const seen = new Set<string>();
  for (let index = 0; index < options.schedules; index++) {
    const current = await play(scenario, options.library ?? library, clock, options.faults);
    const { schedule } = current;
    for (let choices; (choices = schedule.choices()).length > 0;) {
      const well = choices.filter((choice) => !choice.includes("="));
      const ill = choices.filter((choice) => choice.includes("="));
      const isFault = well.length === 0 || (ill.length > 0 && random() < 0.1);
      if (isFault) found.faults++;
      await schedule.take(pick(isFault ? ill : well));
    }
    seen.add(schedule.taken.join(" "));
    found.ends.add(keyOf(current));
    for (const violation of await violationsOf(current)) {
      note(found.failures, violation, schedule.taken);
    }
  }
  const ms = performance.now() - started;
  return { ...found, schedules: seen.size, played: options.schedules, ms };
}

/** Plays one schedule again and, where it stops before the end, on to it; tells each step. */
export async function replay(
  scenario: Scenario,
  choices: readonly string[],
  tell: (line: string) => void,
  driven: Library = library,
): Promise<string[]> {
  using clock = new FakeTime();
  await makeSeeds(clock);
  const current = await play(scenario, driven, clock, Infinity);
  tell(`${scenario.name}: ${current.shelf.content}`);
  const { schedule, shelf } = current;
  const left = [...choices];
  const next = () => left.shift() ?? schedule.choices().find((choice) => !choice.includes("="));
  for (let choice; (choice = next()) !== undefined;) {
    const before = shelf.content;
    await schedule.take(choice);
    tell(shelf.content === before ? choice : `${choice}: ${shelf.content}`);
  }
  for (const { name, result, error, isDead } of schedule.actors) {
    const became = result?.status ?? error?.message ?? (isDead ? "dead" : "open");
    tell(`${name} became ${became}: ${JSON.stringify((result ?? error?.result)?.messages)}`);
  }
  const violations = await violationsOf(current);
  violations.forEach(tell);
  return violations;
}

/** The state that a schedule has come to. */
function keyOf({ shelf, schedule }: Play): string {
  const told = schedule.actors.map(({ log }) => log.join(","));
  return [numberOf(shelf.content), ...told].join("; ");
}

function note(failures: Map<string, string[]>, violation: string, taken: readonly string[]): void {
  const shortest = failures.get(violation);
  if (shortest === undefined || taken.length < shortest.length) {
    failures.set(violation, [...taken]);
  }
}

/** How many ways lead from a state to an end. */
function count(states: Map<string, State>, key: string): number {
  const state = states.get(key);
  if (state === undefined) return 1;
  if (state.next.size === 0) return state.schedules = 1;
  return state.schedules ??= [...state.next].reduce((sum, next) => sum + count(states, next), 0);
}

/** Numbers in [0, 1) that are the same for the same seed (mulberry32). */
function randomOf(seed: number): () => number {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
