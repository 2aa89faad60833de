// What explorations tell: how much was played, and the lines that replay what went wrong.
import { assertEquals } from "@std/assert";
import type { Exploration } from "./explore.ts";
import type { Scenario } from "./scenario.ts";

/** How many failures are shown. */
const MOST_SHOWN = 6;

/** Explorations, told when disposed: one line for all styles; throws if anything failed. */
export class Report implements Disposable {
  readonly #groups = new Map<string, Exploration[]>();
  readonly #failures: string[] = [];

  add({ name }: Scenario, exploration: Exploration): void {
    const group = name.split(", ").slice(0, -1).join(", ");
    this.#groups.set(group, [...this.#groups.get(group) ?? [], exploration]);
    for (const [violation, choices] of exploration.failures) {
      this.#failures.push(
        `${violation}\n  TOOLNEXUS_SCHEDULE='${name}: ${choices.join(" ")}' ` +
          "deno test -P=test tests/simulation_test.ts",
      );
    }
  }

  [Symbol.dispose](): void {
    for (const [group, explorations] of this.#groups) {
      const sum = (of: (exploration: Exploration) => number) =>
        explorations.reduce((total, exploration) => total + of(exploration), 0);
      console.log(
        `${group}: ${sum(({ schedules }) => schedules)} schedules, ` +
          `${sum(({ played }) => played)} played, ${
            sum(({ faults }) => faults)
          } faults injected, ` +
          `${(sum(({ ms }) => ms) / 1000).toFixed(1)} s`,
      );
    }
    for (const failure of this.#failures.slice(0, MOST_SHOWN)) console.log(failure);
    assertEquals(this.#failures.length, 0, "a schedule ends as it must not: see its line above");
  }
}
