// What must hold when all clients are through, however they got there.
import type { Message, RunResult } from "../../mod.ts";
import { refusals } from "../strict.ts";
import type { Library } from "./library.ts";
import type { Plan, Style } from "./model.ts";
import type { Actor } from "./schedule.ts";
import { ID, type Play } from "./scenario.ts";
import { faultsOf, missing, type Turn, turnsOf } from "./transcript.ts";

/** What does not hold; empty when all does. */
export async function violationsOf(play: Play): Promise<string[]> {
  const { schedule, scenario, shelf, ran, stores, library } = play;
  const found = [...schedule.violations];
  const say = (what: string) => void found.push(what);
  const turns = turnsOf(JSON.parse(shelf.content));
  const isSafe = scenario.store === "versioned" || scenario.isOneProcess === true;

  for (const turn of turns) faultsOf(turn).forEach(say);
  const names = turns.map(({ name }) => name);
  const twice = names.find((name, index) => names.indexOf(name) < index);
  if (twice !== undefined) say(`turn ${twice} stands there twice`);
  const isRewritten = scenario.plans.some(({ isRewriting }) => isRewriting);
  if (isSafe) {
    for (const turn of isRewritten ? [] : turnsOf(play.seed)) {
      keeps(turn, turns, "the turn before", say);
    }
    for (const [call, times] of ran) if (times > 1) say(`${call} ran ${times} times`);
  }
  schedule.actors.forEach((actor, index) => {
    const plan = scenario.plans[index]!;
    if (!actor.isOver) return say(`${actor.name} hangs`);
    if (!actor.isDead) {
      outcome(play, actor, plan, say);
      if (library.busyConversations(stores[index]!) > 0) say(`${actor.name} left a queue`);
    }
    paidFor(actor, say);
    if (isSafe) kept(actor, turns, say);
  });
  if (isSafe) approvals(play, say);
  found.push(...await unsendable(library, shelf.content));
  return found;
}

type Say = (what: string) => void;

/** A turn that was there is still there. */
function keeps(turn: Turn, turns: readonly Turn[], whose: string, say: Say): void {
  const lost = missing(turn, turns.find(({ name }) => name === turn.name));
  if (lost !== undefined) {
    const { kind, name, output = "" } = lost;
    say(`${whose}, ${turn.name}, lost its ${kind} ${name} ${output}`.trim());
  }
}

/** What was handed back as saved, and what the store took, is still there. */
function kept(actor: Actor, turns: readonly Turn[], say: Say): void {
  const { result, error, saved, name } = actor;
  const last = (messages: readonly Message[]) => turnsOf(messages).at(-1)!;
  if (result !== undefined) {
    const turn = last(result.messages);
    const later = turns.find(({ name }) => name === turn.name);
    keeps(turn, turns, `the turn of ${name}`, say);
    if (result.status === "done" && JSON.stringify(later?.messages) !== stringOf(turn)) {
      say(`the turn of ${name} is not as it was handed back`);
    }
  }
  if (saved !== undefined) keeps(last(JSON.parse(saved)), turns, `the saved turn of ${name}`, say);
  const isUnsaved = error === undefined || error.suppressed !== undefined ||
    ["store_failed", "store_conflict", "stale_answer"].includes(error.code);
  if (isUnsaved || error.result === undefined) return;
  const turn = last(error.result.messages);
  // A prompt alone is not kept: asking again is safe.
  if (turn.parts.length > 1) keeps(turn, turns, `the failed turn of ${name}`, say);
}

function stringOf(turn: Turn): string {
  return JSON.stringify(turn.messages);
}

/** A client that nothing happened to has done its work; one with a fault says which. */
function outcome({ scenario }: Play, actor: Actor, plan: Plan, say: Say): void {
  const { result, error, fault, name } = actor;
  const suspends = plan.replies.flat().some((tool) => tool === "pay" || tool === "sign") ||
    scenario.seed === "suspended-twice" && plan.does === "answer";
  const done = suspends ? "pending" : "done";
  const allowed: string[] = plan.does === "ask"
    ? [done]
    : plan.does === "answer"
    ? [done, "stale_answer"]
    : ["done", "pending", "stale_answer"];
  // Who resumes may take a run for interrupted that is not: one of the two is told that it lost.
  if (scenario.plans.some(({ does }) => does === "resume")) allowed.push("store_conflict");
  // Where a hook has rewritten what others go on with, the two cannot be brought together.
  if (plan.isRewriting) allowed.push("store_conflict");
  if (fault === "aborts") allowed.push("aborted");
  if (fault === "fails" || fault === "unheard") {
    allowed.push("store_failed", "provider_error", "stream_truncated");
  }
  const became = result?.status ?? error?.code ?? String(error);
  if (!allowed.includes(became)) say(`${name} became ${became}: ${error?.message ?? ""}`);
  if (error !== undefined && error.code === undefined) say(`${name} threw ${error}`);
}

/** What was paid for is handed back: on the result, or on the error. */
function paidFor({ name, result, error, answers, paid }: Actor, say: Say): void {
  if (answers === 0 && paid.length === 0) return;
  if (error?.code === "stale_answer") return say(`${name} did work for a stale answer`);
  const given = result ?? error?.result;
  if (given === undefined) {
    if (error !== undefined) say(`the ${error.code} of ${name} carries no result`);
    return;
  }
  if (given.turns !== answers) say(`${name} is told of ${given.turns} answers of ${answers}`);
  const told = JSON.stringify(given.messages) + (error?.partialText ?? "");
  for (const text of paid) if (!told.includes(text)) say(`${name} is not given back ${text}`);
}

/** One answer is taken, and no other; none is refused without reason. */
function approvals({ scenario, schedule }: Play, say: Say): void {
  const answers = schedule.actors.filter((_, index) => scenario.plans[index]!.does === "answer");
  const took = (result: RunResult | undefined) =>
    result !== undefined && result.turns > 0 ||
    result?.status === "pending";
  const taken = answers.filter(({ result }) => took(result)).length;
  if (taken > 1) say(`${taken} answers were taken`);
  const isContested = scenario.plans.some(({ does }) => does !== "answer");
  const hasClaim = answers.some(({ saved }) => saved !== undefined);
  const lives = answers.some(({ fault }) => fault === undefined);
  if (lives && !isContested && taken === 0 && !hasClaim) say("no answer was taken");
}

/** What was found in transcripts before: many schedules end in the same one. */
const judged = new WeakMap<Library, Map<string, string[]>>();

/** Why clients of either style cannot go on from a transcript; empty when they can. */
async function unsendable(library: Library, content: string): Promise<string[]> {
  const before = judged.get(library) ?? new Map<string, string[]>();
  judged.set(library, before);
  const known = before.get(content);
  if (known !== undefined) return known;
  const found: string[] = [];
  for (const style of ["openai", "anthropic"] as const) {
    for (const does of ["ask", "resume"] as const) {
      await goOn(library, content, style, does, (what) => found.push(`${does}, ${style}: ${what}`));
    }
  }
  before.set(content, found);
  return found;
}

async function goOn(
  library: Library,
  content: string,
  style: Style,
  does: "ask" | "resume",
  say: Say,
): Promise<void> {
  const client = library.createClient({
    baseUrl: "http://model.test",
    style,
    model: "test",
    retries: 0,
    store: { get: () => JSON.parse(content), save: () => {} },
    fetch: (_input, init) => {
      const { messages } = JSON.parse(String(init?.body));
      refusals(style, messages).forEach((refusal) => say(`refused: ${refusal}`));
      const message = { role: "assistant", content: "well" };
      const answer = { ...message, stop_reason: "end_turn", choices: [{ message }] };
      return Promise.resolve(Response.json(answer));
    },
  });
  try {
    await (does === "ask" ? client.ask("go on", { id: ID }) : client.resume({ id: ID }));
  } catch (error) {
    const isNothing = content === "[]" && does === "resume";
    if (!isNothing) say(`cannot go on: ${error}`);
  }
}
