// One schedule: clients whose every outside operation waits until it is chosen to complete.
//
// An operation takes effect in the moment in which it completes. That leaves no order of events out:
// a client goes on only when it has its answer, and nobody else sees an answer on its way. An effect
// whose answer never arrives, or a client that is gone before the effect, are faults of their own.
import { AsyncLocalStorage } from "node:async_hooks";
import { setImmediate } from "node:timers";
import type { FakeTime } from "@std/testing/time";
import type { RunResult, ToolnexusError } from "../../mod.ts";

/** The longest wait of a client that is passed over, in milliseconds: longer ones are time limits. */
const LONGEST_WAIT_MS = 1_000;

/**
 * What can go wrong: an operation fails before its effect or after it, a caller aborts, a process
 * dies and its last save never arrives or arrives later.
 */
export type Fault = "fails" | "unheard" | "aborts" | "dies" | "dies-late";

/** What an operation does when it completes. */
export interface Work<Value> {
  apply(): Value;
  /** How it fails: by a throw, or by a value that tells of it. */
  fail(): Value;
  /** What it does to what the clients have in common. @default nothing */
  does?: "read" | "write";
  /** What the client has paid for when it completes. */
  paid?: string | undefined;
  /** Whether an answer of the model is whole then. */
  isAnswer?: boolean;
}

interface Operation extends Work<unknown> {
  name: string;
  actor: Actor;
  resolve(value: unknown): void;
  reject(error: unknown): void;
}

/** A client that does one thing, and what became of it. */
export class Actor {
  readonly name: string;
  readonly controller = new AbortController();
  /** All that this client was told, in order: it decides what the client does next. */
  readonly log: string[] = [];
  readonly counts: Record<string, number> = {};
  /** Texts that it was given by the model and by tools: what must not be lost. */
  readonly paid: string[] = [];
  /** Whole answers of the model. */
  answers = 0;
  /** The last transcript that the store took from it, as JSON. */
  saved: string | undefined;
  fault: Fault | undefined;
  result: RunResult | undefined;
  error: ToolnexusError | undefined;

  constructor(name: string) {
    this.name = name;
  }

  get isDead(): boolean {
    return this.fault === "dies" || this.fault === "dies-late";
  }

  /** Whether nothing more is to come from it. */
  get isOver(): boolean {
    return this.isDead || this.result !== undefined || this.error !== undefined;
  }
}

/** Clients side by side, one step after another. */
export class Schedule {
  readonly actors: readonly Actor[];
  /** Choices that were made, in order. */
  readonly taken: string[] = [];
  /** What was seen on the way and must not be. */
  readonly violations: string[] = [];
  readonly #context = new AsyncLocalStorage<Actor>();
  readonly #clock: FakeTime;
  readonly #faults: number;
  readonly #mayDie: boolean;
  #pending: Operation[] = [];

  constructor(
    clock: FakeTime,
    actors: readonly Actor[],
    options: { faults: number; mayDie: boolean },
  ) {
    this.#clock = clock;
    this.actors = actors;
    this.#faults = options.faults;
    this.#mayDie = options.mayDie;
  }

  /** Starts what an actor does. */
  start(actor: Actor, run: () => Promise<RunResult>): void {
    this.#context.run(actor, run).then(
      (result) => void (actor.result = result),
      (error) => void (actor.error = error),
    );
  }

  /** The actor whose code is running. */
  get actor(): Actor {
    return this.#context.getStore()!;
  }

  /** An operation of the running actor: it completes when it is chosen. */
  perform<Value>(kind: string, work: Work<Value>): Promise<Value> {
    const { actor } = this;
    const count = actor.counts[kind] = (actor.counts[kind] ?? 0) + 1;
    const { promise, resolve, reject } = Promise.withResolvers<Value>();
    const name = `${actor.name}.${kind}${count}`;
    // A dead client can at most wake up from a wait.
    if (!actor.isDead) {
      this.#pending.push({ ...work, name, actor, resolve: resolve as () => void, reject });
    }
    return promise;
  }

  /**
   * What can happen next: first what goes well, then what does not; empty at the end.
   *
   * With `localFirst`, only one client's choices where it has nothing under way that others see. What
   * it does with its model and its tools, and whether it is aborted or dies meanwhile, is the same
   * whatever others do before or after: one order stands for all.
   */
  choices(localFirst = false): string[] {
    const all = this.#pending.filter(({ actor }) => actor.isDead || !actor.isOver);
    const ownOf = (actor: Actor) => all.filter((operation) => operation.actor === actor);
    const local = localFirst
      ? this.actors.find((actor) => ownOf(actor).length > 0 && !ownOf(actor).some(isSeen))
      : undefined;
    const open = local === undefined ? all : ownOf(local);
    const choices = open.map(({ name }) => name);
    const faults = this.actors.filter(({ fault }) => fault !== undefined).length;
    if (faults >= this.#faults) return choices;
    for (const actor of local === undefined ? this.actors : [local]) {
      if (actor.isOver || actor.fault !== undefined) continue;
      const own = ownOf(actor);
      for (const { name, does } of own) {
        choices.push(`${name}=fails`);
        if (does === "write") choices.push(`${name}=unheard`);
      }
      choices.push(`${actor.name}=aborts`);
      if (!this.#mayDie) continue;
      choices.push(`${actor.name}=dies`);
      if (own.some(({ does }) => does === "write")) choices.push(`${actor.name}=dies-late`);
    }
    return choices;
  }

  /** Makes a choice, and lets the clients go on until each waits again. */
  async take(choice: string): Promise<void> {
    this.taken.push(choice);
    const [subject, fault] = choice.split("=") as [string, Fault | undefined];
    const operation = this.#pending.find(({ name }) => name === subject);
    const actor = operation?.actor ?? this.actors.find(({ name }) => name === subject);
    if (actor === undefined) throw new Error(`no choice ${choice} after ${this.taken.join(" ")}`);
    if (fault !== undefined) actor.fault = fault;
    const isWaiting = operation !== undefined && this.#complete(operation, fault);
    if (operation === undefined) {
      actor.log.push(fault!);
      if (fault === "aborts") actor.controller.abort();
      else {
        // Of what a dead process has sent, only what others see can still arrive.
        this.#pending = this.#pending.filter((operation) =>
          operation.actor !== actor || (fault === "dies-late" && operation.does === "write")
        );
      }
    }
    await settled();
    if (!isWaiting) return;
    this.#clock.tick(LONGEST_WAIT_MS);
    await settled();
  }

  /** Completes an operation; whether it threw, so that the client may wait before the next. */
  #complete(operation: Operation, fault: Fault | undefined): boolean {
    const { actor, name, paid, isAnswer } = operation;
    this.#pending = this.#pending.filter((other) => other !== operation);
    const isHeard = !actor.controller.signal.aborted && !actor.isDead;
    try {
      const value = fault === "fails" ? operation.fail() : operation.apply();
      if (fault === "unheard") throw new Error("the connection was lost");
      actor.log.push(fault === undefined ? `${name}` : `${name}=${fault}`);
      if (isHeard && fault === undefined) {
        if (paid !== undefined) actor.paid.push(paid);
        if (isAnswer) actor.answers++;
      }
      if (!actor.isDead) operation.resolve(value);
      return false;
    } catch (error) {
      actor.log.push(`${name}=${fault ?? "refused"}`);
      if (!actor.isDead) operation.reject(error);
      return true;
    }
  }
}

/** Whether it matters when an operation happens beside those of others. */
function isSeen({ does }: Operation): boolean {
  return does !== undefined;
}

/** Resolves when all that is ready has run: no client does more than await between two operations. */
export function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
