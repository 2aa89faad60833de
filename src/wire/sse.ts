/**
 * Server-sent events, to the byte: https://html.spec.whatwg.org/multipage/server-sent-events.html
 *
 * @module
 */

/** Gets each event: its data, and the name of its `event:` line or `""`. */
export type SseListener = (data: string, event: string) => void;

/**
 * Parses an event stream that comes in pieces of any size. Each character is looked at once, so an
 * event costs time in proportion to its length however it is cut.
 */
export class SseParser {
  readonly #listener: SseListener;
  /** The start of a line whose end has not come yet. */
  #line = "";
  /** The last piece ended in CR: an LF that follows belongs to it. */
  #afterCarriageReturn = false;
  #event = "";
  #data: string | undefined;

  constructor(listener: SseListener) {
    this.#listener = listener;
  }

  /** Takes the next piece of decoded text. */
  push(text: string): void {
    if (text === "") return;
    let start = 0;
    if (this.#afterCarriageReturn) {
      this.#afterCarriageReturn = false;
      if (text.startsWith("\n")) start = 1;
    }
    let lineFeed = text.indexOf("\n", start);
    let carriageReturn = text.indexOf("\r", start);
    while (lineFeed >= 0 || carriageReturn >= 0) {
      const isReturn = carriageReturn >= 0 && (lineFeed < 0 || carriageReturn < lineFeed);
      const end = isReturn ? carriageReturn : lineFeed;
      this.#endLine(text.slice(start, end));
      start = end + 1;
      if (isReturn) {
        if (start === text.length) this.#afterCarriageReturn = true;
        else if (lineFeed === start) start++;
        carriageReturn = text.indexOf("\r", start);
      }
      if (lineFeed < start) lineFeed = lineFeed < 0 ? -1 : text.indexOf("\n", start);
    }
    if (start < text.length) this.#line += text.slice(start);
  }

  /** The stream has ended: an event without its blank line still counts. */
  end(): void {
    if (this.#line !== "") this.#endLine("");
    this.#dispatch();
  }

  #endLine(rest: string): void {
    const line = this.#line === "" ? rest : this.#line + rest;
    this.#line = "";
    if (line === "") return this.#dispatch();
    if (line.startsWith("data:")) {
      const value = line.slice(line.charCodeAt(5) === 32 ? 6 : 5);
      this.#data = this.#data === undefined ? value : `${this.#data}\n${value}`;
    } else if (line.startsWith("event:")) {
      this.#event = line.slice(line.charCodeAt(6) === 32 ? 7 : 6);
    } else if (line === "data") {
      this.#data = this.#data === undefined ? "" : `${this.#data}\n`;
    } else if (line === "event") this.#event = "";
    // Comments, `id`, `retry` and unknown fields say nothing to this client.
  }

  #dispatch(): void {
    const data = this.#data, event = this.#event;
    this.#data = undefined;
    this.#event = "";
    if (data !== undefined) this.#listener(data, event);
  }
}
