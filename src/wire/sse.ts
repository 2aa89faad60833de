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
      this.#endLine(text, start, end);
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
    if (this.#line !== "") this.#endLine("", 0, 0);
    this.#dispatch();
  }

  /** A line ends: what was kept of it, and the text between `start` and `end`. */
  #endLine(text: string, start: number, end: number): void {
    if (this.#line !== "") {
      const line = this.#line + text.slice(start, end);
      this.#line = "";
      return this.#endLine(line, 0, line.length);
    }
    if (start === end) return this.#dispatch();
    if (text.startsWith("data:", start)) this.#addData(valueOf(text, start + 5, end));
    else if (text.startsWith("event:", start)) this.#event = valueOf(text, start + 6, end);
    else {
      const line = text.slice(start, end);
      if (line === "data") this.#addData("");
      else if (line === "event") this.#event = "";
      // Comments, `id`, `retry` and unknown fields say nothing to this client.
    }
  }

  #addData(value: string): void {
    this.#data = this.#data === undefined ? value : `${this.#data}\n${value}`;
  }

  #dispatch(): void {
    const data = this.#data, event = this.#event;
    this.#data = undefined;
    this.#event = "";
    if (data !== undefined) this.#listener(data, event);
  }
}

/** The value of a field: one space after the colon does not belong to it. */
function valueOf(text: string, start: number, end: number): string {
  return text.slice(text.charCodeAt(start) === 32 ? start + 1 : start, end);
}
