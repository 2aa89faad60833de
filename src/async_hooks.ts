/**
 * What the client uses of `node:async_hooks`. Asked for by name and not imported: it needs no
 * permission, and a runtime without it goes without.
 *
 * @module
 */

/** A value that goes along with the work that it was given to. */
export interface AsyncContext<Value> {
  run<Result>(value: Value, work: () => Result): Result;
  getStore(): Value | undefined;
}

interface AsyncHooks {
  AsyncLocalStorage: {
    new <Value>(): AsyncContext<Value>;
    /** Gives a function that does work in the context in which `snapshot` was called. */
    snapshot?(): <Result>(work: () => Result) => Result;
  };
}

/** A new context; undefined where the runtime has none. */
export function asyncContext<Value>(): AsyncContext<Value> | undefined {
  const hooks = asyncHooks();
  return hooks && new hooks.AsyncLocalStorage();
}

/** The module; undefined where the runtime has none. */
export function asyncHooks(): AsyncHooks | undefined {
  const { process } = globalThis as {
    process?: { getBuiltinModule?: (name: string) => AsyncHooks | undefined };
  };
  return process?.getBuiltinModule?.("node:async_hooks");
}
