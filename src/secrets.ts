/**
 * What must not be shown: keys, and whatever else a stranger could repeat.
 *
 * @module
 */

/** Shorter values are words, not secrets. */
const MIN_SECRET_LENGTH = 6;

/** A key that is shorter is hidden where it stands as a word, down to this length. */
const MIN_KEY_LENGTH = 3;

/** Headers whose values are secret, wherever they come from. */
const SECRET_NAME = /auth|cookie|credential|key|password|secret|signature|token/i;

/** Whether a header of this name carries a key. */
export function isSecretName(name: string): boolean {
  return SECRET_NAME.test(name);
}

/** Secrets, and texts without them. */
export class Secrets {
  readonly #forms = new Set<string>();
  /** The longest first: one secret may be a part of another. */
  #sorted: readonly string[] = [];
  readonly #shortKeys = new Set<string>();

  /**
   * Takes note of a value, in the forms in which it may come back: as it is, in JSON, in a URL; without
   * the white space around it, which is not sent. A key may be shorter than other values.
   */
  add(given: string | null | undefined, isKey = false): void {
    const value = given?.trim() ?? "";
    if (value.length < MIN_SECRET_LENGTH) {
      if (isKey && value.length >= MIN_KEY_LENGTH) this.#shortKeys.add(value);
      return;
    }
    const json = JSON.stringify(value).slice(1, -1);
    // Some servers escape the slash, as JSON allows.
    this.#forms.add(value).add(json).add(json.replaceAll("/", "\\/"));
    this.#forms.add(encodeURIComponent(value.toWellFormed()));
    this.#sorted = [...this.#forms].sort((a, b) => b.length - a.length);
    // `Bearer` and the key in it.
    this.add(/^\w+\s+(\S+)$/.exec(value)?.[1], isKey);
  }

  /** The length in UTF-16 units of the longest form of a secret. */
  get longest(): number {
    return this.#sorted[0]?.length ?? 0;
  }

  /** Takes every secret out of a text. */
  redact(text: string): string {
    const hidden = this.#sorted
      .reduce((text, secret) => text.replaceAll(secret, "[redacted]"), text);
    if (this.#shortKeys.size === 0) return hidden;
    return hidden.replace(/[\w-]+/g, (word) => this.#shortKeys.has(word) ? "[redacted]" : word);
  }
}
