// A store in some other place: what all clients have in common, reached by operations.
import type { ConversationStore, Message } from "../../mod.ts";
import type { Library } from "./library.ts";
import type { Schedule } from "./schedule.ts";

/** `versioned` refuses stale writes, `plain` has two operations and no more. */
export type StoreKind = "versioned" | "plain";

/** What is kept under the one id, as JSON. */
export class Shelf {
  content: string;

  constructor(content: string) {
    this.content = content;
  }
}

const numbers = new Map<string, number>();

/** A number that stands for a transcript. */
export function numberOf(content: string): number {
  let number = numbers.get(content);
  if (number === undefined) numbers.set(content, number = numbers.size);
  return number;
}

/** A client's way to the shelf. */
export function storeOf(
  library: Library,
  schedule: Schedule,
  shelf: Shelf,
  kind: StoreKind,
): ConversationStore {
  const fail = (): never => {
    throw new Error("the disk is gone");
  };
  return {
    get(): Promise<Message[]> {
      const { actor } = schedule;
      return schedule.perform("get", {
        fail,
        does: "read",
        apply() {
          actor.log.push(`read ${numberOf(shelf.content)}`);
          return JSON.parse(shelf.content);
        },
      });
    },
    save(id, messages, base): Promise<void> {
      const { actor } = schedule;
      // As it is now: what the caller does to it later is not for the store.
      const content = JSON.stringify(messages);
      const before = base && JSON.stringify(base);
      return schedule.perform("save", {
        fail,
        does: "write",
        apply() {
          if (kind === "versioned" && before !== undefined && before !== shelf.content) {
            const isSame = library.equalMessages(JSON.parse(before), JSON.parse(shelf.content));
            if (!isSame) throw new library.ConversationConflictError(id);
          }
          shelf.content = actor.saved = content;
        },
      });
    },
  };
}
