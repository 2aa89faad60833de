// A transcript as the invariants see it: turns, each a list of parts, whatever the style.
import type { Message } from "../../mod.ts";

/** A part of a turn: a text, a call, or a result. */
export interface Part {
  kind: "prompt" | "text" | "call" | "result";
  /** The id of a call, else the text. */
  name: string;
  /** What a result says. */
  output?: string;
  /** Whether a result stands for one that is still to come. */
  isOpen?: boolean;
}

/** A turn: what stands from one prompt to the next. */
export interface Turn {
  name: string;
  messages: Message[];
  parts: Part[];
}

/** The text of a prompt; the mark in it names the turn. */
export function promptOf(turn: string): string {
  return `prompt of-${turn}`;
}

/** The turns of a transcript, in order. */
export function turnsOf(messages: readonly Message[]): Turn[] {
  const turns: Turn[] = [];
  for (const message of messages) {
    const parts = partsOf(message);
    const prompt = parts.find(({ kind }) => kind === "prompt");
    if (prompt !== undefined || turns.length === 0) {
      turns.push({ name: prompt?.name.replace("prompt of-", "") ?? "", messages: [], parts: [] });
    }
    const turn = turns.at(-1)!;
    turn.messages.push(message);
    turn.parts.push(...parts);
  }
  return turns;
}

/** The turns whose marks a message bears. */
export function marksOf(message: Message): string[] {
  return [...JSON.stringify(message).matchAll(/of-(\w+)/g)].map(([, mark]) => mark!);
}

function partsOf(message: Message): Part[] {
  const { role, content, tool_calls, tool_call_id, pending } = message;
  if (role === "tool") return [resultOf(String(tool_call_id), content, pending)];
  const blocks = typeof content === "string" ? [{ type: "text", text: content }] : content ?? [];
  const parts = (blocks as Record<string, unknown>[]).map((block): Part => {
    if (block.type === "tool_use") return { kind: "call", name: String(block.id) };
    if (block.type === "tool_result") {
      return resultOf(String(block.tool_use_id), block.content, block.pending);
    }
    return { kind: role === "user" ? "prompt" : "text", name: String(block.text) };
  });
  const calls = (tool_calls ?? []) as { id: string }[];
  return [...parts, ...calls.map(({ id }): Part => ({ kind: "call", name: id }))];
}

function resultOf(name: string, content: unknown, pending: unknown): Part {
  const output = String(content);
  return {
    kind: "result",
    name,
    output,
    isOpen: pending !== undefined || output.startsWith("resuming:"),
  };
}

/** The first part of a turn that is not in what has become of it, in the same order. */
export function missing(turn: Turn, later: Turn | undefined): Part | undefined {
  let index = 0;
  return turn.parts.find((part) => {
    while (index < (later?.parts.length ?? 0)) {
      const found = later!.parts[index++]!;
      const isSame = found.kind === part.kind && found.name === part.name;
      if (isSame && (part.isOpen || found.output === part.output)) return false;
    }
    return true;
  });
}

/** What is wrong with the shape of a turn: empty when it is whole and in one piece. */
export function faultsOf(turn: Turn): string[] {
  const faults: string[] = [];
  const say = (what: string) => void faults.push(`turn ${turn.name}: ${what}`);
  const [first, ...rest] = turn.parts;
  if (first?.kind !== "prompt") say("it has no prompt");
  for (const message of turn.messages) {
    const others = marksOf(message).filter((mark) => mark !== turn.name);
    if (others.length > 0) say(`a message of turn ${others[0]} stands in it`);
  }
  const called = new Set<string>();
  const answered = new Set<string>();
  rest.forEach(({ kind, name }, index) => {
    if (kind === "text" && index < rest.length - 1) say(`it goes on after ${name}`);
    if (kind === "call") {
      if (called.has(name)) say(`call ${name} stands there twice`);
      called.add(name);
    }
    if (kind !== "result") return;
    if (answered.has(name)) say(`call ${name} is answered twice`);
    if (!called.has(name)) say(`a result of ${name} without its call`);
    answered.add(name);
  });
  return faults;
}
