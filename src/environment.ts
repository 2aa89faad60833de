/**
 * Environment variables, as every runtime has them.
 *
 * @module
 */

/**
 * Reads a variable.
 *
 * @throws {TypeError} if it is not set or must not be read: `need` and how to give it
 */
export function readVariable(name: string, need: string): string {
  const { process } = globalThis as { process?: { env?: Record<string, string | undefined> } };
  let value: string | undefined;
  let cause: unknown;
  try {
    value = process?.env?.[name];
  } catch (error) {
    cause = error;
  }
  if (value?.trim()) return value;
  throw new TypeError(`${need} set ${name} and allow --allow-env=${name}`, { cause });
}
