// The model of the bench: a process of its own, with answers that are made before it listens. Prints
// its address, and ends when its standard input does.

export const DELTAS = 2_000;

const KIB = "The quick brown fox jumps over the lazy dog, says the old book.\n".repeat(16);
const encoder = new TextEncoder();

function answer(message: Record<string, unknown>, reason: string): Uint8Array<ArrayBuffer> {
  return encoder.encode(JSON.stringify({
    id: "chatcmpl-1",
    object: "chat.completion",
    created: 1764500000,
    model: "bench",
    choices: [{
      index: 0,
      message: { role: "assistant", ...message },
      logprobs: null,
      finish_reason: reason,
    }],
    usage: { prompt_tokens: 20, completion_tokens: 10, total_tokens: 30 },
  }));
}

const call = (id: string, name: string, args: unknown) => ({
  id,
  type: "function",
  function: { name, arguments: JSON.stringify(args) },
});
const calls = [
  call("call_1", "weather", { city: "Paris" }),
  call("call_2", "add", { a: 2, b: 3 }),
];
const plain = answer({ content: "Paris is the capital of France." }, "stop");
const called = answer({ content: null, tool_calls: calls }, "tool_calls");
const chat = answer({ content: KIB }, "stop");

function event(delta: unknown, reason: string | null, usage?: unknown): string {
  return `data: ${
    JSON.stringify({
      id: "chatcmpl-1",
      object: "chat.completion.chunk",
      created: 1764500000,
      model: "bench",
      choices: usage ? [] : [{ index: 0, delta, logprobs: null, finish_reason: reason }],
      ...(usage ? { usage } : {}),
    })
  }\n\n`;
}

const events = [
  event({ role: "assistant", content: "" }, null),
  ...Array.from({ length: DELTAS }, (_, index) => event({ content: `word${index % 10} ` }, null)),
  event({}, "stop"),
  event({}, null, { prompt_tokens: 20, completion_tokens: DELTAS, total_tokens: DELTAS + 20 }),
  "data: [DONE]\n\n",
];
const single = events.map((text) => encoder.encode(text));
const whole = encoder.encode(events.join(""));
const packed = Array.from(
  { length: Math.ceil(whole.length / 16_384) },
  (_, index) => whole.slice(index * 16_384, (index + 1) * 16_384),
);

function json(body: Uint8Array<ArrayBuffer>): Response {
  return new Response(body, { headers: { "content-type": "application/json" } });
}

function stream(chunks: readonly Uint8Array[]): Response {
  return new Response(ReadableStream.from(chunks), {
    headers: { "content-type": "text/event-stream" },
  });
}

if (import.meta.main) {
  const server = Deno.serve({
    hostname: "127.0.0.1",
    port: 0,
    onListen: ({ port }) => console.log(`http://127.0.0.1:${port}`),
  }, async (request) => {
    const [, scenario] = new URL(request.url).pathname.split("/");
    const body = await request.text();
    switch (scenario) {
      case "plain":
        return json(plain);
      case "tools":
        return json(body.includes('"role":"tool"') ? plain : called);
      case "chat":
        return json(chat);
      case "stream":
        return stream(single);
      case "packed":
        return stream(packed);
    }
    return new Response(null, { status: 404 });
  });
  for await (const _ of Deno.stdin.readable) { /* nothing is said */ }
  await server.shutdown();
}
