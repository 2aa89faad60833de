/**
 * The real client through every order of events: two clients on one conversation, and each order
 * again with a failure, an abort or a death at each single step.
 *
 * With a versioned store, or in one process, no turn may be lost, doubled or torn, and an approved
 * tool runs once. With a store of two operations two processes can overwrite each other's turns, and
 * both can claim one approval: there a turn must be whole or gone, and is handed back.
 *
 * A schedule that fails prints the line that replays it. `TOOLNEXUS_SIMULATION=long` plays every
 * pairing of styles with faults, two faults at once, and more of three clients.
 */
import { assert, assertEquals } from "@std/assert";
import { explore, replay, sample } from "./simulation/explore.ts";
import { Report } from "./simulation/report.ts";
import type { Scenario } from "./simulation/scenario.ts";
import { inOneProcess, pairs, scenarios, triples } from "./simulation/scenarios.ts";

const isLong = Deno.env.get("TOOLNEXUS_SIMULATION") === "long";
const line = Deno.env.get("TOOLNEXUS_SCHEDULE");

/** How many schedules of three clients are played, of each scenario. */
const SAMPLED = isLong ? 5_000 : 150;

/** Larger than all others together: without the long run, with faults in one pairing of styles. */
const LARGE = ["ask beside ask", "answer beside ask"];

if (line !== undefined) {
  Deno.test("a schedule is played again", async () => {
    const [name = "", choices = ""] = line.split(": ");
    const scenario = scenarios.get(name);
    assert(
      scenario !== undefined,
      `no scenario ${name}; there are\n${[...scenarios.keys()].join("\n")}`,
    );
    assertEquals(await replay(scenario, choices.match(/\S+/g) ?? [], console.log), []);
  });
} else {
  for (const [name, group] of Map.groupBy(pairs, caseOf)) {
    Deno.test(`${name}: every order, and every order with a fault`, () => exploreAll(group));
  }

  Deno.test("in one process no turn is lost, whatever the store: every order, and with a fault", () =>
    exploreAll(inOneProcess));

  for (const [name, group] of Map.groupBy(triples, caseOf)) {
    Deno.test(`${name}: a sample of the orders, with up to two faults`, async () => {
      using report = new Report();
      for (const [index, scenario] of group.entries()) {
        const options = { schedules: SAMPLED, faults: 2, seed: index + 1 };
        report.add(scenario, await sample(scenario, options));
      }
    });
  }

  Deno.test("orders that are left where they come to a known state end as those played to the end", async () => {
    using report = new Report();
    const small = ["streamed ask beside ask", "answer beside answer"];
    for (const scenario of pairs) {
      const { name, checkpoint } = scenario;
      if (!small.includes(caseOf(scenario)) || checkpoint === "round") continue;
      if (!name.endsWith("openai+anthropic")) continue;
      const whole = await explore(scenario, { prune: false });
      report.add(scenario, whole);
      assertEquals([...(await explore(scenario)).ends].sort(), [...whole.ends].sort());
    }
  });
}

function caseOf({ name }: Scenario): string {
  return name.split(", ")[0]!;
}

async function exploreAll(group: readonly Scenario[]): Promise<void> {
  using report = new Report();
  for (const scenario of group) {
    report.add(scenario, await explore(scenario, { faults: faultsOf(scenario) }));
  }
}

/** How many clients have a fault in one schedule: what a fault does hardly depends on the styles. */
function faultsOf(scenario: Scenario): number {
  const { name, store, checkpoint } = scenario;
  const isLarge = LARGE.includes(caseOf(scenario)) && checkpoint === "round";
  if (isLong) return checkpoint === "round" ? 1 : 2;
  if (name.endsWith("openai+anthropic")) return 1;
  return name.endsWith("anthropic+openai") && !(isLarge && store === "versioned") ? 1 : 0;
}
