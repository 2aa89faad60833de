/**
 * What of a server's configuration must not be shown.
 *
 * @module
 */

/** Shorter values are words, not secrets. */
const MIN_LENGTH = 6;

/** Shorter steps of a path are words; some servers are known by a key in their path. */
const MIN_STEP_LENGTH = 16;

/** The secrets of one server. */
export class ServerSecrets {
  readonly #forms: readonly string[];

  /**
   * Takes whole values, and the part after a scheme such as `Bearer`; of a URL its name, password,
   * the values of its query and the long steps of its path.
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
  const { username, password, pathname, search } = url;
  const steps = pathname.split("/").filter((step) => step.length >= MIN_STEP_LENGTH);
  const values = search.slice(1).split("&").map((pair) => pair.slice(pair.indexOf("=") + 1));
  return [username, password, ...steps, ...values]
    .flatMap((raw) => [raw, new URLSearchParams(`=${raw}`).get("") ?? ""]);
}

/** As it is, in JSON, and in a URL. */
function formsOf(secret: string): string[] {
  if (secret.length < MIN_LENGTH) return [];
  const json = JSON.stringify(secret).slice(1, -1);
  // Some servers escape the slash, as JSON allows.
  return [secret, json, json.replaceAll("/", "\\/"), encodeURIComponent(secret.toWellFormed())];
}
