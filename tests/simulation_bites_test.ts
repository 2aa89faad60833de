/** The simulation finds bugs: each of these, put into a copy of the client, makes schedules fail. */
import { assert, assertEquals } from "@std/assert";
import { explore, replay } from "./simulation/explore.ts";
import { type Patch, patched } from "./simulation/patched.ts";
import { scenarios } from "./simulation/scenarios.ts";

/** A bug, and the scenario in which it must show. */
interface Bug extends Patch {
  name: string;
  scenario: string;
}

const BUGS: readonly Bug[] = [
  {
    name: "asks do not wait in line",
    file: "queue.ts",
    find: "if (before !== undefined) await abortable(before.isOver, signal);",
    replace: "",
    scenario: "ask beside ask, in one process, plain, run, openai",
  },
  {
    name: "saves tell no base",
    file: "transaction.ts",
    find: "await this.#store.save(this.#id, messages, this.#base);",
    replace: "await this.#store.save(this.#id, messages);",
    scenario: "ask beside ask, versioned, run, openai",
  },
  {
    name: "the tool runs before the claim is saved",
    file: "beginning.ts",
    find: "if (await transaction.claim([...prompt, ...claimed(round)])) return beginning;",
    replace: "void claimed(round); return beginning;",
    scenario: "answer beside answer, versioned, run, openai",
  },
  {
    name: "a claim that came too late counts",
    file: "transaction.ts",
    find: "if (isConflict(error)) return false;",
    replace: "if (isConflict(error)) return true;",
    scenario: "answer beside answer, versioned, run, anthropic",
  },
  {
    name: "a claim drops the results of its siblings",
    file: "beginning.ts",
    find: "round.outcomes.with(index,",
    replace: "round.outcomes.map(() => undefined).with(index,",
    scenario: "answer beside answer, versioned, run, openai+anthropic",
  },
  {
    name: "a sibling that has a result runs again",
    file: "beginning.ts",
    find: "if (stored === undefined || stored.pending !== undefined) return undefined;",
    replace: "if (stored !== results) return undefined;",
    scenario: "answer beside answer, versioned, run, anthropic",
  },
  {
    name: "a rebase leaves the own earlier checkpoint in",
    file: "transaction.ts",
    find: "current.toSpliced(own.start, own.end - own.start)",
    replace: "current",
    scenario: "first ask beside first ask, versioned, round, openai",
  },
  {
    name: "a rebase forgets what others have said",
    file: "transaction.ts",
    find: "this.#front = front;\n    this.#rear",
    replace: "this.#rear",
    scenario: "ask beside ask, versioned, run, anthropic",
  },
];

Deno.test("a copy without a bug passes where the bugs are found", async () => {
  await using folder = await temporaryFolder();
  const library = await patched(folder.path, []);
  for (const { scenario } of BUGS) {
    const { failures } = await explore(scenarios.get(scenario)!, { library });
    assertEquals([...failures], []);
  }
});

for (const { name, scenario, ...patch } of BUGS) {
  Deno.test(`the simulation finds it when ${name}`, async () => {
    await using folder = await temporaryFolder();
    const library = await patched(folder.path, [patch]);
    const found = scenarios.get(scenario)!;
    const { failures, played } = await explore(found, { library, stopAtFailure: true });
    const [failure] = failures;
    assert(failure !== undefined, "no schedule failed");
    const [violation, choices] = failure;
    console.log(`found in schedule ${played}: ${violation} (${choices.join(" ")})`);
    // The schedule is to blame, not the exploration: played alone it fails the same way.
    assert((await replay(found, choices, () => {}, library)).includes(violation));
  });
}

/** A folder that is gone at the end. */
async function temporaryFolder(): Promise<{ path: string } & AsyncDisposable> {
  const path = await Deno.makeTempDir();
  return { path, [Symbol.asyncDispose]: () => Deno.remove(path, { recursive: true }) };
}
