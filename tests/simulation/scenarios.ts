// The scenarios: who comes upon which conversation, in which style, with which store.
import type { Plan, Style } from "./model.ts";
import type { Scenario, Seed } from "./scenario.ts";

/** What happens side by side, whatever the store and the styles. */
interface Case {
  name: string;
  seed: Seed;
  plans: readonly Plan[];
}

/** The styles of the clients in turn; the first one's style is that of what was said before. */
const STYLES: readonly (readonly Style[])[] = [
  ["openai", "anthropic"],
  ["anthropic", "openai"],
  ["openai"],
  ["anthropic"],
];

/** A client that asks; the tools of its one round, if it has one. */
function ask(name: string, ...tools: string[]): Plan {
  const replies = tools.length > 0 ? [tools, "text" as const] : ["text" as const];
  return { name, style: "openai", does: "ask", turn: name, replies };
}

/** A client whose ask ends at a tool that waits for a human. */
function suspending(name: string, ...tools: string[]): Plan {
  return { ...ask(name), replies: [tools] };
}

/** A client that brings the answer that the last turn waits for. */
function answer(name: string): Plan {
  return { name, style: "openai", does: "answer", turn: "s", replies: ["text"] };
}

/** A client that goes on with the last turn. */
function resume(name: string): Plan {
  return { name, style: "openai", does: "resume", turn: "s", replies: ["text"] };
}

const PAIRS: readonly Case[] = [
  { name: "ask beside ask", seed: "greeted", plans: [ask("a", "clock"), ask("b", "weather")] },
  {
    name: "first ask beside first ask",
    seed: "empty",
    plans: [ask("a", "clock", "weather"), ask("b")],
  },
  {
    name: "streamed ask beside ask",
    seed: "greeted",
    plans: [{ ...ask("a"), isStreamed: true }, ask("b")],
  },
  {
    name: "ask that rewrites history beside ask",
    seed: "greeted",
    plans: [{ ...ask("a", "clock"), isRewriting: true }, ask("b")],
  },
  {
    name: "ask that suspends beside ask",
    seed: "greeted",
    plans: [suspending("a", "clock", "pay"), ask("b")],
  },
  { name: "answer beside ask", seed: "suspended", plans: [answer("a"), ask("b", "clock")] },
  {
    name: "answer to one of two requests beside ask",
    seed: "suspended-twice",
    plans: [answer("a"), ask("b")],
  },
  { name: "answer beside answer", seed: "suspended", plans: [answer("a"), answer("b")] },
  {
    name: "answer beside answer to one of two requests",
    seed: "suspended-twice",
    plans: [answer("a"), answer("b")],
  },
  {
    name: "resume of an interrupted turn beside ask",
    seed: "interrupted",
    plans: [resume("a"), ask("b", "weather")],
  },
  {
    name: "resume beside resume of an interrupted turn",
    seed: "interrupted",
    plans: [resume("a"), resume("b")],
  },
  {
    name: "resume beside the ask that it takes for interrupted",
    seed: "empty",
    plans: [resume("a"), ask("b", "clock")],
  },
  {
    name: "resume beside the answer that it takes for interrupted",
    seed: "suspended",
    plans: [resume("a"), answer("b")],
  },
];

const TRIPLES: readonly Case[] = [
  {
    name: "three asks",
    seed: "greeted",
    plans: [ask("a", "clock"), ask("b", "weather"), ask("c")],
  },
  { name: "three answers", seed: "suspended", plans: [answer("a"), answer("b"), answer("c")] },
  {
    name: "two answers and an ask",
    seed: "suspended-twice",
    plans: [answer("a"), answer("b"), ask("c", "clock")],
  },
  {
    name: "a resume and two asks",
    seed: "interrupted",
    plans: [resume("a"), ask("b", "clock"), ask("c")],
  },
];

/** Two clients in two processes. */
export const pairs: readonly Scenario[] = PAIRS.flatMap((pair) => variants(pair));

/** Three clients in three processes. */
export const triples: readonly Scenario[] = TRIPLES.flatMap((triple) => variants(triple));

/** Two clients of one store object. */
export const inOneProcess: readonly Scenario[] = PAIRS.flatMap((pair) =>
  variants(pair, "in one process").map((scenario) => ({ ...scenario, isOneProcess: true }))
);

/** Every scenario, by name. */
export const scenarios: ReadonlyMap<string, Scenario> = new Map(
  [...pairs, ...triples, ...inOneProcess].map((scenario) => [scenario.name, scenario]),
);

function variants({ name, seed, plans }: Case, ...more: string[]): Scenario[] {
  return (["versioned", "plain"] as const).flatMap((store) =>
    (["run", "round"] as const).flatMap((checkpoint) =>
      STYLES.map((styles) => ({
        name: [name, ...more, store, checkpoint, styles.join("+")].join(", "),
        seed,
        store,
        checkpoint,
        plans: plans.map((plan, index) => ({ ...plan, style: styles[index % styles.length]! })),
      }))
    )
  );
}
