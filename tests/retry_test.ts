/** Requests that fail: which are sent again, when, how often, and what is told at the end. */
import { assert, assertEquals, assertGreater, assertLessOrEqual, assertRejects } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import {
  type ClientOptions,
  ProviderError,
  type RequestErrorInfo,
  RunAbortedError,
  StreamError,
} from "../mod.ts";
import { stubLlm } from "../src/testing/mod.ts";
import {
  answerOf,
  clientOf,
  clientOfFetch,
  countedSignal,
  deltas,
  eventsOf,
  lines,
  throughTime,
} from "./client_kit.ts";

/** When each request of an ask was sent, in milliseconds from the first, and how it ended. */
async function timesOf(
  answers: (() => Response | Promise<Response>)[],
  options: Partial<ClientOptions>,
): Promise<{ waits: number[]; text?: string; error?: ProviderError }> {
  using time = new FakeTime();
  const times: number[] = [];
  const client = clientOfFetch((_, call) => {
    times.push(time.now);
    return (answers[call - 1] ?? answers.at(-1)!)();
  }, options);
  const end = await throughTime(
    time,
    client.run("go").then(({ text }) => ({ text }), (error: ProviderError) => ({ error })),
  );
  return { waits: times.slice(1).map((at, index) => at - times[index]!), ...end };
}

/** A refusal. */
function refusal(
  status: number,
  headers: Record<string, string> = {},
  error: Record<string, unknown> = { message: "busy" },
): () => Response {
  return () => Response.json({ error }, { status, headers });
}

const ok = () => answerOf("ok");

for (const status of [408, 409, 425, 429, 500, 502, 503, 504, 520, 529, 599]) {
  Deno.test(`${status} is sent again`, async () => {
    const { waits, text } = await timesOf([refusal(status), ok], { retries: 2 });
    assertEquals([waits.length, text], [1, "ok"]);
  });
}

for (const status of [400, 401, 402, 403, 404, 405, 410, 413, 422, 451]) {
  Deno.test(`${status} is final`, async () => {
    const { waits, error } = await timesOf([refusal(status)], { retries: 2 });
    assertEquals([waits.length, error?.status, error?.retryable], [0, status, false]);
    assertEquals([error?.attempts, error?.message], [1, `LLM ${status}: busy`]);
  });
}

Deno.test("a refusal stands though its body never ends", async () => {
  const body = new ReadableStream({
    start: (controller) => controller.enqueue(new TextEncoder().encode("bad key")),
  });
  const client = clientOfFetch(() => new Response(body, { status: 401 }), { idleTimeoutMs: 50 });
  using time = new FakeTime();
  const refused = assertRejects(() => client.run("go"), ProviderError, "LLM 401: bad key");
  await time.tickAsync(50);
  assertEquals((await refused).retryable, false);
});

Deno.test("a connection that is refused, or reset, is tried again", async () => {
  await using server = stubLlm([{ sse: [], end: "reset" }, { sse: [""], end: "reset" }, "ok"]);
  const { text } = await clientOf(server, { retries: 2 }).run("go");
  assertEquals([text, server.requests.length], ["ok", 3]);
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = listener.addr;
  listener.close();
  const client = clientOf({ baseUrl: `http://127.0.0.1:${port}` }, { retries: 2 });
  const error = await assertRejects(() => client.run("go"), ProviderError, "LLM request failed");
  assertEquals([error.status, error.attempts, error.retryable], [0, 3, true]);
});

Deno.test("retries is how often at most; the last error is told, with the number of attempts", async () => {
  for (const retries of [0, 1, 2, 5]) {
    const { waits, error } = await timesOf([refusal(500), refusal(503)], { retries });
    assertEquals([waits.length, error?.attempts], [retries, retries + 1]);
    assertEquals(error?.status, retries === 0 ? 500 : 503);
  }
});

Deno.test("the default is two retries", async () => {
  const { waits } = await timesOf([refusal(500)], { retries: undefined, retryBaseMs: undefined });
  assertEquals(waits.length, 2);
});

Deno.test("waits double, with full jitter, up to the longest", async () => {
  const longest = [100, 200, 400, 800, 1000, 1000];
  const seen: number[][] = longest.map(() => []);
  const options = { retries: 6, retryBaseMs: 100, maxRetryDelayMs: 1000 };
  for (let round = 0; round < 40; round++) {
    const { waits } = await timesOf([refusal(500)], options);
    waits.forEach((wait, index) => seen[index]!.push(wait));
  }
  longest.forEach((most, index) => {
    const waits = seen[index]!;
    for (const wait of waits) assertLessOrEqual(wait, most);
    // All forty in one half would be a chance of one in 10¹².
    assertGreater(Math.max(...waits), most / 2);
    assert(Math.min(...waits) < most / 2);
  });
});

Deno.test("Retry-After in whole seconds is kept to, 0 means now", async () => {
  const rows: [Record<string, string>, number][] = [
    [{ "retry-after": "2" }, 2000],
    [{ "retry-after": "0" }, 0],
    [{ "retry-after": " 3 " }, 3000],
    [{ "retry-after-ms": "1500" }, 1500],
    [{ "retry-after-ms": "250", "retry-after": "9" }, 250],
    [{ "retry-after-ms": "soon", "retry-after": "1" }, 1000],
  ];
  for (const [headers, wait] of rows) {
    const { waits, text } = await timesOf([refusal(429, headers), ok], {
      retries: 1,
      retryBaseMs: 100_000,
      maxRetryDelayMs: 50_000,
    });
    assertEquals([waits, text], [[wait], "ok"], JSON.stringify(headers));
  }
});

Deno.test("any other form of Retry-After falls back to the backoff", async () => {
  const date = new Date(Date.now() + 30_000).toUTCString();
  for (
    const value of [date, "-1", "1.5", "1e3", "0x10", "soon", "", "99999999999", "2147483648", "٣"]
  ) {
    const headers: Record<string, string> = {};
    try {
      new Headers({ "retry-after": value });
      headers["retry-after"] = value;
    } catch {
      continue; // no header can be that
    }
    const { waits, text } = await timesOf([refusal(429, headers), ok], {
      retries: 1,
      retryBaseMs: 10,
    });
    assertEquals(text, "ok", value);
    assertLessOrEqual(waits[0]!, 10, value);
  }
});

Deno.test("a longer wait than allowed fails at once, with the delay on the error", async () => {
  const rows: [string, number][] = [["61", 61_000], ["2147483647", 2_147_483_647_000]];
  for (const [value, retryAfterMs] of rows) {
    const { waits, error } = await timesOf([refusal(429, { "retry-after": value })], {
      retries: 2,
    });
    assertEquals([waits.length, error?.retryAfterMs, error?.attempts], [0, retryAfterMs, 1]);
  }
  const { waits } = await timesOf([refusal(429, { "retry-after": "60" }), ok], { retries: 2 });
  assertEquals(waits, [60_000]);
});

Deno.test("a wait that no timer holds is slept through all the same", async () => {
  const seconds = 5_000_000; // 58 days; a timer holds 24.8
  const { waits, text } = await timesOf([refusal(429, { "retry-after": `${seconds}` }), ok], {
    retries: 1,
    maxRetryDelayMs: Infinity,
  });
  assertEquals([waits, text], [[seconds * 1000], "ok"]);
});

Deno.test("time limits that no timer holds do not end a run at once", async () => {
  const days = 60 * 24 * 60 * 60 * 1000;
  const limits = ["timeoutMs", "requestTimeoutMs", "idleTimeoutMs", "toolTimeoutMs"] as const;
  await using server = stubLlm(() => "ok");
  for (const limit of limits) {
    for (const value of [days, Number.MAX_SAFE_INTEGER, Infinity]) {
      const client = clientOf(server, { [limit]: value });
      assertEquals((await client.stream("go").result).text, "ok");
    }
  }
});

Deno.test("a long plain answer that comes bit by bit is not silent", async () => {
  using time = new FakeTime();
  const answer = JSON.stringify({ choices: [{ message: { content: "x".repeat(90_000) } }] });
  const bytes = new TextEncoder().encode(answer);
  let at = 0;
  const body = () =>
    new ReadableStream({
      async pull(controller) {
        await new Promise((resolve) => setTimeout(resolve, 80));
        controller.enqueue(bytes.slice(at, at += 10_000));
        if (at >= bytes.length) controller.close();
      },
    }, { highWaterMark: 0 });
  const headers = { "content-length": `${bytes.length}` };
  const client = clientOfFetch(() => new Response(body(), { headers }), { idleTimeoutMs: 100 });
  const { text } = await throughTime(time, client.run("go"));
  assertEquals(text.length, 90_000);
});

Deno.test("x-should-retry is obeyed, either way", async () => {
  const no = await timesOf([refusal(500, { "x-should-retry": "false" })], { retries: 2 });
  assertEquals([no.waits.length, no.error?.retryable], [0, false]);
  const yes = await timesOf([refusal(400, { "x-should-retry": "true" }), ok], { retries: 2 });
  assertEquals([yes.waits.length, yes.text], [1, "ok"]);
});

Deno.test("a used-up quota is final, however it is told", async () => {
  for (
    const error of [
      { message: "quota", code: "insufficient_quota" },
      { message: "quota", type: "insufficient_quota", code: null },
      { message: "quota", type: "insufficient_quota", code: "billing" },
    ]
  ) {
    const { waits, error: told } = await timesOf([refusal(429, {}, error)], { retries: 2 });
    assertEquals([waits.length, told?.retryable], [0, false], JSON.stringify(error));
  }
});

Deno.test("onError is told each failure, from attempt 0", async () => {
  const seen: RequestErrorInfo[] = [];
  const { waits, error } = await timesOf(
    [refusal(500), refusal(429, {}, { message: "slow", code: "rate_limited" }), refusal(400)],
    { retries: 5, onError: (info) => (seen.push(info), info.retryable ? "retry" : "fail") },
  );
  assertEquals(waits.length, 2);
  assertEquals(seen.map(({ error: _, ...rest }) => rest), [
    { status: 500, code: undefined, attempt: 0, retryable: true },
    { status: 429, code: "rate_limited", attempt: 1, retryable: true },
    { status: 400, code: undefined, attempt: 2, retryable: false },
  ]);
  assertEquals(seen.at(-1)?.error, error);
});

Deno.test("onError overrides both ways, within retries", async () => {
  const fail = await timesOf([refusal(500)], { retries: 5, onError: () => "fail" });
  assertEquals(fail.waits.length, 0);
  const retry = await timesOf([refusal(400)], { retries: 3, onError: () => "retry" });
  assertEquals([retry.waits.length, retry.error?.attempts], [3, 4]);
  const never = await timesOf([refusal(400)], { retries: 0, onError: () => "retry" });
  assertEquals(never.waits.length, 0);
});

Deno.test("onError is told of a failed connection, which has no status", async () => {
  const seen: RequestErrorInfo[] = [];
  const broken = () => Promise.reject<Response>(new TypeError("no route"));
  await timesOf([broken], { onError: (info) => (seen.push(info), "fail") });
  assertEquals([seen[0]?.status, seen[0]?.retryable, seen.length], [undefined, true, 1]);
  assert(seen[0]?.error instanceof ProviderError);
});

Deno.test("an abort bypasses onError, and ends a wait at once", async () => {
  using time = new FakeTime();
  const { controller, listeners } = countedSignal();
  let asked = 0, calls = 0;
  const client = clientOfFetch(() => (calls++, refusal(503, { "retry-after": "50" })()), {
    retries: 5,
    onError: () => (asked++, "retry"),
  });
  const asking = assertRejects(
    () => client.run("go", { signal: controller.signal }),
    RunAbortedError,
  );
  await time.tickAsync(1000);
  controller.abort();
  await asking;
  assertEquals([asked, calls, listeners()], [1, 1, 0]);
  // No timer is left.
  assertEquals(await time.nextAsync(), false);
});

Deno.test("a retried ask stores its user turn once", async () => {
  await using server = stubLlm([{ status: 503 }, { status: 503 }, "ok"]);
  const client = clientOf(server, { retries: 2 });
  const { messages } = await client.ask("go", { id: "a" });
  assertEquals(lines(messages), ["user: go", "assistant: ok"]);
  assertEquals(await client.conversationStore().get("a"), messages);
});

Deno.test("a stream is sent again only while nothing of it was shown", async () => {
  await using server = stubLlm([{ status: 503 }, { sse: [": wait\n\n"] }, "ok"]);
  const events = await eventsOf(clientOf(server, { retries: 2 }).stream("go"));
  assertEquals(events.map(({ type }) => type), ["text", "usage", "done"]);
  await using other = stubLlm([{ sse: [deltas("Hel")] }]);
  const error = await assertRejects(
    () => eventsOf(clientOf(other, { retries: 2, onError: () => "retry" }).stream("go")),
    StreamError,
  );
  assertEquals([error.code, error.partialText, other.requests.length], [
    "stream_truncated",
    "Hel",
    1,
  ]);
});

Deno.test("an error that comes first in a stream is sent again like the status it names", async () => {
  const carried = (error: unknown) => ({ sse: [`data: ${JSON.stringify({ error })}\n\n`] });
  await using server = stubLlm([
    carried({ message: "busy", type: "overloaded_error" }),
    carried({ message: "slow", code: 429 }),
    carried({ message: "no", type: "invalid_request_error" }),
  ]);
  const error = await assertRejects(
    () => eventsOf(clientOf(server, { retries: 5 }).stream("go")),
    ProviderError,
  );
  assertEquals([error.status, error.attempts], [400, 3]);
});

Deno.test("an error later in a stream is final, and carries what was said", async () => {
  const error = { error: { message: "busy", type: "overloaded_error" } };
  await using server = stubLlm([{ sse: [deltas("Hel"), `data: ${JSON.stringify(error)}\n\n`] }]);
  const told = await assertRejects(
    () => eventsOf(clientOf(server, { retries: 5 }).stream("go")),
    ProviderError,
  );
  assertEquals([told.partialText, told.retryable], ["Hel", false]);
});

Deno.test("a page, nothing, and no JSON are typed errors, quickly", async () => {
  const rows: [string, number, string][] = [
    ["<!doctype html><title>Log in</title>", 200, "an HTML page: Log in"],
    ["<html>502 Bad Gateway</html>", 404, "an HTML page"],
    ["", 200, "the answer is empty"],
    ["oops", 200, "the answer is no JSON object"],
    ["[]", 200, "the answer is no JSON object"],
    ["{", 200, "the answer is no JSON object"],
    ["{}", 200, "choices"],
    ['{"error":{"message":"no model"}}', 200, "no model"],
  ];
  for (const [body, status, says] of rows) {
    await using server = stubLlm([{ body, status }, { body, status }]);
    for (const way of ["run", "stream"] as const) {
      const client = clientOf(server);
      const go = way === "run" ? client.run("go") : client.stream("go").result;
      const error = await assertRejects(() => go, ProviderError, says);
      assertEquals(error.code, "provider_error");
    }
  }
});

Deno.test("a provider error tells what the provider said", async () => {
  const { error } = await timesOf([
    refusal(429, { "x-request-id": "req_7", "retry-after": "99" }, {
      message: "Rate limit reached",
      code: "rate_limit_exceeded",
    }),
  ], { retries: 0 });
  const { message, status, providerMessage, providerCode, requestId, retryAfterMs } = error!;
  assertEquals(message, "LLM 429: Rate limit reached");
  assertEquals([status, providerMessage, providerCode], [
    429,
    "Rate limit reached",
    "rate_limit_exceeded",
  ]);
  assertEquals([requestId, retryAfterMs], ["req_7", 99_000]);
});

Deno.test("a huge error body is cut, and not read to its end", async () => {
  let given = 0;
  const endless = () =>
    new Response(
      new ReadableStream({
        pull(controller) {
          given += 65_536;
          controller.enqueue(new Uint8Array(65_536).fill(120));
        },
      }),
      { status: 400 },
    );
  const { error } = await timesOf([endless], {});
  assertLessOrEqual(error!.body!.length, 2000);
  assertLessOrEqual(error!.message.length, 1100);
  assertLessOrEqual(given, 1_000_000);
});

Deno.test("the message of an error ends in no period, the provider's own words stay", async () => {
  const says = "Incorrect API key provided.";
  await using server = stubLlm([{ status: 401, body: { error: { message: says } } }]);
  const error = await assertRejects(() => clientOf(server).run("go"), ProviderError);
  assertEquals([error.message, error.providerMessage], [`LLM 401: ${says.slice(0, -1)}`, says]);
});
