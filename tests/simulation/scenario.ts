// What is played: a conversation as it stands, and clients that come upon it at once.
import type { FakeTime } from "@std/testing/time";
import type { BeforeLLMChanges, BeforeLLMEvent, ConversationStore, Message } from "../../mod.ts";
import { type Library, library } from "./library.ts";
import { callId, modelOf, outputOf, type Plan, requestId, type Style, toolsOf } from "./model.ts";
import { Actor, Schedule, settled } from "./schedule.ts";
import { Shelf, type StoreKind, storeOf } from "./store.ts";
import { marksOf, promptOf, turnsOf } from "./transcript.ts";

/** The id of the one conversation. */
export const ID = "thread-1";

/** How the conversation stands: what an earlier client has left. */
export type Seed = "empty" | "greeted" | "suspended" | "suspended-twice" | "interrupted";

/** Clients on one conversation. */
export interface Scenario {
  name: string;
  seed: Seed;
  plans: readonly Plan[];
  store: StoreKind;
  checkpoint: "run" | "round";
  /** Whether all clients share one store object, and so the line in which asks wait. */
  isOneProcess?: boolean;
}

/** A scenario that is being played. */
export interface Play {
  scenario: Scenario;
  library: Library;
  schedule: Schedule;
  shelf: Shelf;
  stores: readonly ConversationStore[];
  /** How often a tool was run, by call. */
  ran: Map<string, number>;
  /** What the conversation was. */
  seed: readonly Message[];
}

const TOOLS = ["clock", "weather", "pay", "sign"];

/** Sets the clients off: each waits for the first thing that it needs. */
export async function play(
  scenario: Scenario,
  library: Library,
  clock: FakeTime,
  faults: number,
): Promise<Play> {
  const seed = seedOf(scenario.seed, scenario.plans[0]!.style);
  const actors = scenario.plans.map(({ name }) => new Actor(name));
  const mayDie = scenario.isOneProcess !== true;
  const schedule = new Schedule(clock, actors, { faults, mayDie });
  const shelf = new Shelf(seed);
  const newStore = () => storeOf(library, schedule, shelf, scenario.store);
  const one = newStore();
  const stores = actors.map(() => scenario.isOneProcess ? one : newStore());
  // What ran for the seed counts, too.
  const results = turnsOf(JSON.parse(seed)).flatMap(({ parts }) => parts);
  const ran = new Map(
    results.filter(({ name, output }) => output === outputOf(name)).map(({ name }) => [name, 1]),
  );
  scenario.plans.forEach((plan, index) => {
    const client = library.createClient({
      baseUrl: "http://model.test",
      style: plan.style,
      model: "test",
      retries: 0,
      store: stores[index],
      checkpoint: scenario.checkpoint,
      toolkit: toolsOf(library, schedule, TOOLS, ran),
      fetch: modelOf(schedule, plan),
      ...plan.isRewriting && { hooks: { beforeLLM: withoutGreeting } },
    });
    const { signal } = actors[index]!.controller;
    const options = { id: ID, signal, ...plan.isStreamed && { onText: () => {} } };
    schedule.start(actors[index]!, () => {
      if (plan.does === "ask") return client.ask(promptOf(plan.turn), options);
      const answer = { id: requestId(callId({ turn: plan.turn, name: "seed" }, "pay")), ok: true };
      return client.resume({ ...options, ...plan.does === "answer" && { answer } });
    });
  });
  await settled();
  return { scenario, library, schedule, shelf, stores, ran, seed: JSON.parse(seed) };
}

function withoutGreeting({ messages }: BeforeLLMEvent): BeforeLLMChanges {
  return { messages: messages.filter((message) => !marksOf(message).includes("g")) };
}

const seeds = new Map<string, string>();

/** A conversation as an earlier client leaves it, as JSON. */
function seedOf(seed: Seed, style: Style): string {
  return seeds.get(`${seed} ${style}`) ?? "[]";
}

/** Makes the seeds: by real clients of this project, that are left where a seed says. */
export async function makeSeeds(clock: FakeTime): Promise<void> {
  for (const style of ["openai", "anthropic"] as const) {
    const greeting: Plan = { name: "seed", style, does: "ask", turn: "g", replies: ["text"] };
    const calls: Partial<Record<Seed, string[]>> = {
      "suspended": ["weather", "pay"],
      "suspended-twice": ["pay", "sign", "weather"],
      "interrupted": ["clock"],
    };
    const greeted = await made(clock, greeting, "[]");
    seeds.set(`greeted ${style}`, greeted);
    for (const [seed, tools] of Object.entries(calls)) {
      const plan: Plan = { name: "seed", style, does: "ask", turn: "s", replies: [tools] };
      seeds.set(`${seed} ${style}`, await made(clock, plan, greeted, seed === "interrupted"));
    }
  }
}

/** What a client makes of a conversation; or what it leaves when it dies in the middle of a tool. */
async function made(clock: FakeTime, plan: Plan, content: string, dies = false): Promise<string> {
  const scenario: Scenario = {
    name: "seed",
    seed: "empty",
    plans: [plan],
    store: "versioned",
    checkpoint: "round",
  };
  const { shelf, schedule } = await play(scenario, library, clock, 0);
  shelf.content = content;
  for (let next; (next = schedule.choices()[0]) !== undefined;) {
    if (dies && next.startsWith(`${plan.name}.clock`)) break;
    await schedule.take(next);
  }
  return shelf.content;
}
