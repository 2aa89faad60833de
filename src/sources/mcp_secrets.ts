/**
 * What of a server's configuration must not be shown.
 *
 * @module
 */

/** Shorter values are words, not secrets. */
const MIN_LENGTH = 6;

/** The secrets of one server. */
export class ServerSecrets {
  readonly #forms: readonly string[];

  /**
   * Takes whole values, and the part after a scheme such as `Bearer`; of a URL its name, password and
   * the values of its query.
   */
  constructor(values: readonly string[], url?: URL) {
    // The white space around a value is not sent, so it does not come back.
    const plain = values.map((value) => value.trim())
      .flatMap((value) => [value, value.replace(/^\w+\s+/, "")]);
    const forms = new Set([...plain, ...secretsOf(url)].flatMap(formsOf));
    // The longest first: one secret may be a part of another.
    this.#forms = [...forms].sort((a, b) => b.length - a.length);
  }

  /** Takes every secret out of a text. */
  redact(text: string): string {
    return this.#forms.reduce((text, secret) => text.replaceAll(secret, "[redacted]"), text);
  }

  /** Whether the error shows none. */
  isClean(error: unknown): boolean {
    const all = { depth: 100, iterableLimit: Infinity, strAbbreviateSize: Infinity };
    const shown = Deno.inspect(error, all);
    return !this.#forms.some((secret) => shown.includes(secret));
  }
}

/** As they stand in the URL, and decoded. */
function secretsOf(url: URL | undefined): string[] {
  if (url === undefined) return [];
  const { username, password, search } = url;
  const values = search.slice(1).split("&").map((pair) => pair.slice(pair.indexOf("=") + 1));
  return [username, password, ...values]
    .flatMap((raw) => [raw, new URLSearchParams(`=${raw}`).get("") ?? ""]);
}

/** As it is, in JSON, and in a URL. */
function formsOf(secret: string): string[] {
  if (secret.length < MIN_LENGTH) return [];
  const json = JSON.stringify(secret).slice(1, -1);
  // Some servers escape the slash, as JSON allows.
  return [secret, json, json.replaceAll("/", "\\/"), encodeURIComponent(secret.toWellFormed())];
}
