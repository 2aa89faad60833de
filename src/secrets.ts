/**
 * What must not be shown: keys, and whatever else a stranger could repeat.
 *
 * @module
 */

/** Shorter values are words, not secrets. */
const MIN_SECRET_LENGTH = 6;

/** Secrets, and texts without them. */
export class Secrets {
  readonly #forms = new Set<string>();
  /** The longest first: one secret may be a part of another. */
  #sorted: readonly string[] = [];

  /**
   * Takes note of a value, in the forms in which it may come back: as it is, in JSON, in a URL; without
   * the white space around it, which is not sent.
   */
  add(given: string | null | undefined): void {
    const value = given?.trim();
    if (!value || value.length < MIN_SECRET_LENGTH) return;
    const json = JSON.stringify(value).slice(1, -1);
    // Some servers escape the slash, as JSON allows.
    this.#forms.add(value).add(json).add(json.replaceAll("/", "\\/"));
    this.#forms.add(encodeURIComponent(value.toWellFormed()));
    this.#sorted = [...this.#forms].sort((a, b) => b.length - a.length);
    // `Bearer` and the key in it.
    this.add(/^\w+\s+(\S+)$/.exec(value)?.[1]);
  }

  /** The length in UTF-16 units of the longest form of a secret. */
  get longest(): number {
    return this.#sorted[0]?.length ?? 0;
  }

  /** Takes every secret out of a text. */
  redact(text: string): string {
    return this.#sorted.reduce((text, secret) => text.replaceAll(secret, "[redacted]"), text);
  }
}
