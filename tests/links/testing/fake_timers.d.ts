export interface Clock {
  readonly now: number;
  countTimers(): number;
  tick(milliseconds: number): number;
  next(): number;
  uninstall(): void;
}

export function install(options: { now: number; toFake: readonly string[] }): Clock;
