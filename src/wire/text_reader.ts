/**
 * Reads a body as text, piece by piece.
 *
 * @module
 */

/**
 * The size of the one buffer that is used again for each piece. A default reader costs a new buffer
 * of 64 KiB for each piece, five times the price of the piece itself.
 */
const BUFFER_BYTES = 16_384;

/** A reader of UTF-8 text that ends with its signal. Dispose it: that lets go of the body. */
export class TextReader implements Disposable {
  /** Deno's decoder drops a byte order mark wherever a piece begins with it, so it is told not to. */
  readonly #decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  #isAtStart = true;
  readonly #signal: AbortSignal;
  readonly #byob: ReadableStreamBYOBReader | undefined;
  readonly #plain: ReadableStreamDefaultReader<Uint8Array> | undefined;
  readonly #cancel: () => void;
  #buffer = new ArrayBuffer(BUFFER_BYTES);

  constructor(body: ReadableStream<Uint8Array>, signal: AbortSignal) {
    try {
      this.#byob = body.getReader({ mode: "byob" });
    } catch {
      // A stream that some other fetch made need not be a byte stream.
      this.#plain = body.getReader();
    }
    this.#signal = signal;
    this.#cancel = () => (this.#byob ?? this.#plain)!.cancel().catch(() => {});
    if (signal.aborted) this.#cancel();
    else signal.addEventListener("abort", this.#cancel, { once: true });
  }

  /** The next piece, which may be empty; undefined at the end. Rejects with the signal's reason. */
  async read(): Promise<string | undefined> {
    const { done, value } = this.#byob !== undefined
      ? await this.#byob.read(new Uint8Array(this.#buffer))
      : await this.#plain!.read();
    if (this.#byob !== undefined && value !== undefined) this.#buffer = value.buffer as ArrayBuffer;
    if (!done) {
      const text = this.#decoder.decode(value, { stream: true });
      if (!this.#isAtStart || text === "") return text;
      this.#isAtStart = false;
      return text.startsWith("\ufeff") ? text.slice(1) : text;
    }
    if (this.#signal.aborted) throw this.#signal.reason;
    // A character that was cut off at the end shows as U+FFFD.
    return this.#decoder.decode() || undefined;
  }

  [Symbol.dispose](): void {
    this.#signal.removeEventListener("abort", this.#cancel);
    this.#cancel();
  }
}
