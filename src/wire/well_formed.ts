/**
 * Text that comes in pieces, as well-formed Unicode: a character whose two halves come in two pieces
 * is put together again, and a half without its other half becomes U+FFFD.
 *
 * @module
 */

/** Keeps the first half of a character until its second half comes. */
export class WellFormedPieces {
  #half = "";

  /** The next piece as it can be shown; empty while there is only half a character. */
  next(piece: string): string {
    if (this.#half === "" && piece.isWellFormed()) return piece;
    const text = this.#half + piece;
    const last = text.charCodeAt(text.length - 1);
    const isHalf = last >= 0xd800 && last <= 0xdbff;
    this.#half = isHalf ? text.slice(-1) : "";
    return (isHalf ? text.slice(0, -1) : text).toWellFormed();
  }

  /** What is left at the end. */
  end(): string {
    const rest = this.#half.toWellFormed();
    this.#half = "";
    return rest;
  }
}
