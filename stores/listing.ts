/**
 * The `list` of the stores in this folder.
 *
 * @module
 */

import { StoreError } from "../mod.ts";
import type { Awaitable, ConversationInfo, ListOptions } from "../mod.ts";
import { checkWhole, reasonOf, shown } from "./operation.ts";

/** How a store finds its conversations. */
export interface Listing<Row> {
  /** Whatever may be a conversation whose id begins with the prefix. */
  rows(prefix: string): AsyncIterable<Row>;
  /** What a row tells; undefined when there is no conversation in it. */
  read(row: Row): Awaitable<ConversationInfo | undefined>;
}

/**
 * The `list` of a store. A row that cannot be read hides no other: it is told at the end.
 *
 * @throws {TypeError | RangeError} at once, if an option is wrong
 */
export function listed<Row>(
  options: ListOptions,
  listing: Listing<Row>,
): AsyncIterableIterator<ConversationInfo> {
  const { prefix = "", limit = Number.MAX_SAFE_INTEGER } = options;
  if (typeof prefix !== "string" || !prefix.isWellFormed()) {
    throw new TypeError(`prefix must be a well-formed string: ${shown(prefix)}`);
  }
  checkWhole("limit", limit, 0);
  return entries(prefix, limit, listing);
}

async function* entries<Row>(
  prefix: string,
  limit: number,
  { rows, read }: Listing<Row>,
): AsyncGenerator<ConversationInfo, void> {
  if (limit === 0) return;
  const damage: unknown[] = [];
  let left = limit;
  try {
    for await (const row of rows(prefix)) {
      let info: ConversationInfo | undefined;
      try {
        info = await read(row);
      } catch (cause) {
        damage.push(cause);
      }
      if (!info?.id.startsWith(prefix)) continue;
      yield info;
      if (--left === 0) return;
    }
  } catch (cause) {
    throw new StoreError("list", prefix, cause);
  }
  if (damage.length === 0) return;
  const reasons = damage.map(reasonOf).join("; ");
  const cause = damage.length === 1 ? damage[0] : new AggregateError(damage, reasons);
  throw new StoreError("list", prefix, cause);
}
