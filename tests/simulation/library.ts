// The client that is driven: the one of this project, or a copy of it with a bug.
import * as client from "../../mod.ts";
import { busyConversations } from "../../src/queue.ts";

/** What the simulation needs of a client. */
export type Library = typeof client & { busyConversations: typeof busyConversations };

/** The client of this project. */
export const library: Library = { ...client, busyConversations };
