// What the two providers refuse in a list of messages, as far as a transcript can be blamed for it:
// shapes, ids, and the pairing of calls with results. Blank texts and neighbours of one role are
// not looked at; they are cleaned up when a request is written.

// deno-lint-ignore no-explicit-any
type Json = any;

/** What a provider of `style` would object to; empty for a transcript that it accepts. */
export function refusals(style: "openai" | "anthropic", messages: readonly Json[]): string[] {
  return style === "openai" ? openaiRefusals(messages) : anthropicRefusals(messages);
}

function openaiRefusals(messages: readonly Json[]): string[] {
  const found: string[] = [];
  // The results that must come next, in this order.
  let due: string[] = [];
  for (const [index, message] of messages.entries()) {
    const say = (what: string) => void found.push(`message ${index}: ${what}`);
    if (message.role === "tool" || message.role === "function") {
      const result = `${message.role} ${message.tool_call_id ?? message.name}`;
      const next = due.shift();
      if (result !== next) say(`result of ${result} where ${next} was due`);
    } else {
      for (const missing of due) say(`no result of ${missing} before it`);
      due = openaiCalls(message, say);
    }
    openaiContent(message, say);
  }
  for (const missing of due) found.push(`the end: no result of ${missing}`);
  return found;
}

/** The results that a message asks for. */
function openaiCalls(message: Json, say: (what: string) => void): string[] {
  const { role, tool_calls: calls, function_call: legacy } = message;
  const due: string[] = [];
  if (!["system", "developer", "user", "assistant"].includes(role)) say(`role ${role}`);
  if (role === "assistant" && legacy) {
    if (typeof legacy.arguments !== "string") say("arguments are no string");
    due.push(`function ${legacy.name}`);
  }
  if (calls === undefined || role !== "assistant") return due;
  if (!Array.isArray(calls) || calls.length === 0) {
    say("odd tool_calls");
    return due;
  }
  for (const call of calls) {
    if (typeof call.id !== "string" || call.id === "") say(`call id ${JSON.stringify(call.id)}`);
    if (due.includes(`tool ${call.id}`)) say(`call id ${call.id} twice`);
    if (call.type !== "function") say(`call type ${call.type}`);
    if (typeof call.function?.arguments !== "string") say("arguments are no string");
    if (!call.function?.name) say("a call without a name");
    due.push(`tool ${call.id}`);
  }
  return due;
}

function openaiContent(message: Json, say: (what: string) => void): void {
  const { role, content } = message;
  if (typeof content === "string") return;
  if (!Array.isArray(content)) {
    const instead = message.tool_calls || message.function_call || message.refusal;
    if (role !== "assistant" || !instead) say(`content is ${JSON.stringify(content)}`);
    return;
  }
  const known = role === "user"
    ? ["text", "image_url", "input_audio", "file"]
    : ["text", "refusal"];
  for (const part of content) if (!known.includes(part?.type)) say(`part of type ${part?.type}`);
}

function anthropicRefusals(messages: readonly Json[]): string[] {
  const found: string[] = [];
  const used = new Set<string>();
  let due: string[] = [];
  for (const [index, message] of messages.entries()) {
    const say = (what: string) => void found.push(`message ${index}: ${what}`);
    const { role, content, ...rest } = message;
    if (role !== "user" && role !== "assistant") say(`role ${role}`);
    for (const key of Object.keys(rest)) say(`unknown key ${key}`);
    if (typeof content !== "string" && !(Array.isArray(content) && content.length > 0)) {
      say(`content is ${JSON.stringify(content)}`);
    }
    const blocks: Json[] = Array.isArray(content) ? content : [];
    const results = blocks.filter((block) => block?.type === "tool_result");
    if (blocks.slice(0, results.length).some((block) => block?.type !== "tool_result")) {
      say("results do not come first");
    }
    const answered = results.map((block) => block.tool_use_id);
    if (JSON.stringify(answered) !== JSON.stringify(due)) say(`${due} answered by ${answered}`);
    for (const block of blocks) anthropicBlock(role, block, say);
    due = blocks.filter((block) => block?.type === "tool_use").map((block) => block.id);
    for (const id of due) {
      if (used.has(id)) say(`call id ${id} twice`);
      used.add(id);
    }
  }
  if (due.length > 0) found.push(`the end: no results of ${due}`);
  return found;
}

function anthropicBlock(role: string, block: Json, say: (what: string) => void): void {
  const type = block?.type;
  const by: Record<string, string[]> = {
    user: ["text", "image", "document", "tool_result", "search_result", "container_upload"],
    assistant: ["text", "thinking", "redacted_thinking", "tool_use", "server_tool_use"],
  };
  if (!by[role]?.includes(type) && !matches(/_tool_result$/, type)) say(`${type} from ${role}`);
  if (type === "text" && typeof block.text !== "string") say("text block without text");
  if (type === "thinking" && !block.signature) say("thinking without its signature");
  if ((type === "image" || type === "document") && !block.source?.type) {
    say(`${type} without source`);
  }
  if (type === "tool_use") {
    if (!matches(/^[a-zA-Z0-9_-]+$/, block.id)) say(`call id ${JSON.stringify(block.id)}`);
    if (!matches(/^[a-zA-Z0-9_-]{1,128}$/, block.name)) say(`name ${JSON.stringify(block.name)}`);
    const isObject = typeof block.input === "object" && block.input && !Array.isArray(block.input);
    if (!isObject) say(`input is ${JSON.stringify(block.input)}`);
  }
  if (type === "tool_result") {
    const { content } = block;
    if (typeof content !== "string" && !Array.isArray(content)) say("result content");
    if (!Array.isArray(content)) return;
    for (const part of content) {
      if (!["text", "image", "document"].includes(part?.type)) say(`${part?.type} in a result`);
    }
  }
}

function matches(pattern: RegExp, value: unknown): boolean {
  return typeof value === "string" && pattern.test(value);
}
