/**
 * Makes a test runner show what failed when two things did.
 *
 * @module
 */

/**
 * When a test has failed and disposing fails as well, both errors come as one `SuppressedError`, of
 * which Deno prints only the place: no assertion, no difference. It does print a `cause`, so this
 * gives that class one, of both errors. To be called by a disposer that is about to throw.
 */
export function showSuppressedErrors(): void {
  if ("cause" in SuppressedError.prototype) return;
  Object.defineProperty(SuppressedError.prototype, "cause", {
    configurable: true,
    get(this: SuppressedError): unknown {
      return new AggregateError([this.suppressed, this.error], "both failed");
    },
  });
}
