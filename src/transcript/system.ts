/**
 * The system messages that a transcript begins with.
 *
 * @module
 */

import type { Message } from "../types.ts";
import { textOf } from "./read.ts";

/** How many system messages a transcript begins with. */
export function leadingSystem(messages: readonly Message[]): number {
  const first = messages.findIndex(({ role }) => role !== "system" && role !== "developer");
  return first < 0 ? messages.length : first;
}

/** What they say; empty if there are none. */
export function systemText(messages: readonly Message[]): string {
  return messages.slice(0, leadingSystem(messages)).map(textOf).join("\n\n");
}
