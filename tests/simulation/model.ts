// The model and the tools of a client: each does what its plan says, when it is chosen.
import type { DefinedTool } from "../../mod.ts";
import { refusals } from "../strict.ts";
import type { Library } from "./library.ts";
import type { Schedule } from "./schedule.ts";

export type Style = "openai" | "anthropic";

/** What a client does to the conversation. */
export interface Plan {
  name: string;
  style: Style;
  /** A new turn, the last turn with an answer, or the last turn without one. */
  does: "ask" | "answer" | "resume";
  /** The turn that it adds to; every text of a turn has its mark, `of-<turn>`. */
  turn: string;
  /** What the model answers: tools that it calls, or a text. */
  replies: readonly (readonly string[] | "text")[];
  /** Whether a hook takes the first turn out of the history. */
  isRewriting?: boolean;
  /** Whether answers come in two pieces. */
  isStreamed?: boolean;
}

/** The tools that a human must approve; all others are free to run. */
const APPROVED: readonly string[] = ["pay", "sign"];

/** The id of the request for a call. */
export function requestId(callId: string): string {
  return `pnd-${callId}`;
}

/** The id of a call. */
export function callId(plan: Pick<Plan, "name" | "turn">, tool: string, round = 1): string {
  return `${tool}${round}-of-${plan.turn}-by-${plan.name}`;
}

/** The endpoint of one client. */
export function modelOf(schedule: Schedule, plan: Plan): typeof fetch {
  let asked = 0;
  return (_input, init) => {
    const { actor } = schedule;
    const body = JSON.parse(String(init?.body));
    for (const refusal of refusals(plan.style, body.messages)) {
      schedule.violations.push(`a request of ${actor.name} is refused: ${refusal}`);
    }
    const reply = plan.replies[asked++];
    if (reply === undefined) {
      schedule.violations.push(`${actor.name} asked the model ${asked} times`);
    }
    const fail = () => new Response("overloaded", { status: 503 });
    const isText = reply === undefined || reply === "text";
    const calls = isText ? [] : reply.map((tool) => ({ id: callId(plan, tool, asked), tool }));
    // Who resumes goes on with whatever turn is the last one.
    const turn = [...init!.body!.toString().matchAll(/prompt of-(\w+)/g)].at(-1)?.[1];
    const text = isText ? `answer of-${turn} by ${plan.name}` : "";
    if (body.stream && isText && plan.style === "openai") return streamed(schedule, text, fail);
    return schedule.perform("model", {
      fail,
      paid: text || undefined,
      isAnswer: true,
      apply: () => json(answerIn(plan.style, text, calls)),
    });
  };
}

/** An answer in two pieces, each of them an operation. */
function streamed(schedule: Schedule, text: string, fail: () => Response): Promise<Response> {
  const half = text.slice(0, text.length / 2);
  const delta = (content: string) =>
    `data: ${JSON.stringify({ choices: [{ delta: { content } }] })}\n\n`;
  const encoder = new TextEncoder();
  const body = new TransformStream<Uint8Array, Uint8Array>();
  const writer = body.writable.getWriter();
  const write = (text: string) => void writer.write(encoder.encode(text)).catch(() => {});
  const first = schedule.perform("model", {
    fail,
    paid: half,
    apply() {
      write(delta(half));
      return new Response(body.readable, { headers: { "content-type": "text/event-stream" } });
    },
  });
  first.then(async ({ ok }) => {
    if (!ok) return;
    try {
      await schedule.perform("rest", {
        paid: text,
        isAnswer: true,
        apply() {},
        fail() {
          throw new Error("the connection was lost");
        },
      });
      write(`${delta(text.slice(half.length))}data: [DONE]\n\n`);
      writer.close().catch(() => {});
    } catch (error) {
      writer.abort(error).catch(() => {});
    }
  });
  return first;
}

function json(value: unknown): Response {
  const text = JSON.stringify(value);
  const headers = { "content-type": "application/json", "content-length": String(text.length) };
  return new Response(text, { headers });
}

function answerIn(style: Style, text: string, calls: { id: string; tool: string }[]): unknown {
  if (style === "anthropic") {
    const uses = calls.map(({ id, tool }) => ({ type: "tool_use", id, name: tool, input: {} }));
    const content = [...text === "" ? [] : [{ type: "text", text }], ...uses];
    return { content, stop_reason: uses.length > 0 ? "tool_use" : "end_turn" };
  }
  const tool_calls = calls.map(({ id, tool }) => ({
    id,
    type: "function",
    function: { name: tool, arguments: "{}" },
  }));
  const message = { role: "assistant", content: text || null };
  return { choices: [{ message: calls.length > 0 ? { ...message, tool_calls } : message }] };
}

/** What a tool gives for a call. */
export function outputOf(callId: string): string {
  return `ran ${callId}`;
}

/** The tools of a client. `ran` counts, by call, how often a tool was run. */
export function toolsOf(
  library: Library,
  schedule: Schedule,
  names: readonly string[],
  ran: Map<string, number>,
): DefinedTool[] {
  return names.map((name) =>
    library.defineTool({
      name,
      description: `does ${name}`,
      run(_args, { callId, answer }) {
        if (APPROVED.includes(name) && answer === undefined) {
          return library.pending({
            id: requestId(callId),
            kind: "approval",
            prompt: `may ${callId} run?`,
          });
        }
        ran.set(callId, (ran.get(callId) ?? 0) + 1);
        return schedule.perform(name, {
          paid: outputOf(callId),
          apply: () => outputOf(callId),
          fail() {
            throw new Error(`${name} is out of order`);
          },
        });
      },
    })
  );
}
