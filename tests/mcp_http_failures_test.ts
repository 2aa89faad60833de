/**
 * Remote MCP servers that do what they should not, in every phase. With `TOOLNEXUS_MCP_TABLE=1` the
 * tests print what became of each.
 */
import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { pendingOf } from "@toolnexus/client";
import { connectMcp } from "@toolnexus/client/mcp";
import { loadClient } from "../src/sources/mcp_package.ts";
import { call, freePort, withWarnings } from "./fixtures/mcp/kit.ts";
import { type Handler, never, serve } from "./fixtures/mcp/http_server.ts";

// Loaded beforehand, so that no server's time is spent on it.
await loadClient();

const timeout = 600;
/** Nothing here may take longer than its time and this: much less than the 30 s of a server. */
const slack = 6_000;
const secret = "sesame-open-12345";

/** Connects with a second server beside it, which has to work. */
async function connect(url: string, options: Record<string, unknown> = {}) {
  await using good = serve(() => undefined);
  const started = performance.now();
  const { value: mcp } = await withWarnings(() =>
    connectMcp({ it: { url, timeout, ...options }, good: { url: good.url } })
  );
  const elapsed = performance.now() - started;
  assertEquals((await call(mcp, "good_work")).output, "worked");
  return { mcp, elapsed };
}

const endless = () =>
  new Response(
    new ReadableStream({ pull: (controller) => controller.enqueue(new Uint8Array(1_048_576)) }),
    { headers: { "content-type": "application/json" } },
  );

const failures: [name: string, phase: string, reason: string, handle: Handler][] = [
  ["a server that answers nothing", "initialize", "no answer within 600 ms", never],
  ["a server that is down", "initialize", "500", () => new Response("oops", { status: 500 })],
  ["a server that wants a login", "initialize", "401", () => new Response("", { status: 401 })],
  [
    "a page instead of a server",
    "initialize",
    "",
    () => new Response("<html>", { headers: { "content-type": "text/html" } }),
  ],
  ["an address without a server", "initialize", "404", () => new Response("", { status: 404 })],
  ["an answer without an end", "initialize", "longer than", endless],
  [
    "a list that never comes",
    "tools/list",
    "no answer within 600 ms",
    (_, { method }) => method === "tools/list" ? never() : undefined,
  ],
];

for (const [name, phase, reason, handle] of failures) {
  Deno.test(`${name} fails that server alone, within its time`, async () => {
    await using server = serve(handle);
    const { mcp, elapsed } = await connect(server.url, { headers: { authorization: secret } });
    const { message } = mcp.errors()["it"]!;
    assertEquals(mcp.status(), { it: "failed", good: "connected" });
    assertStringIncludes(message, `MCP server it failed at ${phase}: `);
    assertStringIncludes(message, reason);
    assert(!message.includes(secret));
    assert(elapsed < timeout + slack, `gave up after ${elapsed} ms`);
    await mcp.close();
    row("http", name, phase, "failed, the other one works", elapsed, 0);
  });
}

Deno.test("a port without a server fails at once", async () => {
  const { mcp, elapsed } = await connect("http://127.0.0.1:1/mcp");
  assertStringIncludes(mcp.errors()["it"]!.message, "failed at initialize");
  await mcp.close();
  row("http", "a port without a server", "initialize", "failed", elapsed, 0);
});

Deno.test("a header goes to no other origin: by a redirect, or where an SSE server points", async () => {
  await using thief = serve(() => undefined);
  await using redirecting = serve(() => Response.redirect(thief.url, 307));
  await using pointing = serve(({ method }) =>
    method === "GET"
      ? new Response(`event: endpoint\ndata: ${thief.url}\n\n`, {
        headers: { "content-type": "text/event-stream" },
      })
      : undefined
  );
  const wrong: [url: string, type: string, reason: RegExp][] = [
    [redirecting.url, "http", /redirect/i],
    [redirecting.url, "sse", /redirect/i],
    [pointing.url, "sse", /origin does not match/],
  ];
  for (const [url, type, reason] of wrong) {
    const { mcp } = await connect(url, { type, headers: { "x-api-key": secret } });
    assertEquals(mcp.status()["it"], "failed");
    assertMatch(mcp.errors()["it"]!.message, reason);
    await mcp.close();
  }
  assertEquals(thief.seen.length, 0);
});

Deno.test("a key in a server's URL is in no error, whatever it is that fails", async () => {
  const keys = ["tvly sesame/1", "p@ss-sesame", "sesame-alone"];
  const [query, password, alone] = keys.map(encodeURIComponent);
  // One that repeats what it was asked for, as it came and decoded.
  await using echo = serve((request) => {
    const { search } = new URL(request.url);
    const said = `${search} ${decodeURIComponent(search)} user:${keys[1]}`;
    return new Response(`cannot POST ${said}`, { status: 404 });
  });
  const { port } = new URL(echo.url);
  const closed = freePort();
  for (const [type, to] of [["http", port], ["sse", port], ["http", closed], ["sse", closed]]) {
    const url = `http://user:${password}@127.0.0.1:${to}/mcp/path-key?key=${query}&${alone}`;
    const { mcp } = await connect(url, { type });
    const shown = Deno.inspect(mcp.errors(), { depth: 10 }) + mcp.errors()["it"]!.message;
    for (const key of [...keys, query!, password!, ...to === closed ? ["path-key"] : []]) {
      assert(!shown.includes(key), `${key} in ${shown}`);
    }
    await mcp.close();
  }
});

Deno.test("a key in the path of a server's URL is in no error, though the server repeats the path", async () => {
  const key = "NGQ0YTk2Y2EtZmY5";
  await using echo = serve((request) => {
    const { pathname } = new URL(request.url);
    return new Response(`Cannot POST ${pathname}`, { status: 404 });
  });
  const { mcp } = await connect(new URL(`/mcp/s/${key}/mcp`, echo.url).href, { type: "http" });
  const shown = Deno.inspect(mcp.errors(), { depth: 10 });
  assertStringIncludes(shown, "/mcp/s/[redacted]/mcp");
  assert(!shown.includes(key), shown);
  await mcp.close();
});

Deno.test("a server that cannot be reached is told with the reason", async () => {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const closing = (async () => {
    for await (const connection of listener) connection.close();
  })();
  const { port } = listener.addr;
  const unreachable: [url: string, reason: RegExp][] = [
    [
      `http://127.0.0.1:${freePort()}/mcp`,
      /: error sending request: .*tcp connect error: .*refused/,
    ],
    [`http://127.0.0.1:${port}/mcp`, /: error sending request: .*connection/],
    [`https://127.0.0.1:${port}/mcp`, /: error sending request: .*tls/],
  ];
  for (const [url, reason] of unreachable) {
    for (const type of ["http", "sse"]) {
      const { mcp } = await connect(url, { type });
      assertMatch(mcp.errors()["it"]!.message, reason);
      await mcp.close();
    }
  }
  listener.close();
  await closing;
});

for (const lineEnd of ["\n", "\r\n", "\r"]) {
  Deno.test(`a stream may be longer than one message, in any pieces: ${JSON.stringify(lineEnd)}`, async () => {
    const message = { jsonrpc: "2.0", method: "notifications/message", params: {} };
    const data = JSON.stringify({ ...message, params: { level: "info", data: "x".repeat(6e6) } });
    const result = { content: [{ type: "text", text: "after 18 MB" }] };
    await using server = serve((_, { id, method }) => {
      if (method !== "tools/call") return undefined;
      const events = [data, data, data, JSON.stringify({ jsonrpc: "2.0", id, result })];
      const pieces = events.flatMap((event) => [`data: ${event}`, ...lineEnd, ...lineEnd]);
      pieces.push(`:${lineEnd}`); // a return at the very end may be half of a line's end
      const body = ReadableStream.from(pieces).pipeThrough(new TextEncoderStream());
      return new Response(body, { headers: { "content-type": "text/event-stream" } });
    });
    const { mcp } = await connect(server.url, { timeout: 10_000 });
    assertEquals((await call(mcp, "it_work")).output, "after 18 MB");
    await mcp.close();
  });
}

Deno.test("a redirect within the origin is followed", async () => {
  await using server = serve((request) => {
    return request.url.endsWith("/mcp") ? Response.redirect(`${request.url}/`, 307) : undefined;
  });
  const { mcp } = await connect(server.url);
  assertEquals((await call(mcp, "it_work")).output, "worked");
  await mcp.close();
});

Deno.test("headers take their values from the environment, and a missing one fails alone", async () => {
  await using server = serve(() => undefined);
  Deno.env.set("TOOLNEXUS_MCP_KEY", secret);
  const { mcp } = await connect(server.url, {
    headers: { authorization: "Bearer ${TOOLNEXUS_MCP_KEY}" },
  });
  Deno.env.delete("TOOLNEXUS_MCP_KEY");
  for (const { headers } of server.seen) {
    assertEquals(headers.get("authorization"), `Bearer ${secret}`);
  }
  await mcp.close();
  const { mcp: without } = await connect(server.url, {
    headers: { authorization: "Bearer ${TOOLNEXUS_MCP_KEY}" },
  });
  assertStringIncludes(without.errors()["it"]!.message, "TOOLNEXUS_MCP_KEY");
  await without.close();
});

const calls: [name: string, reason: string, handle: () => Response | Promise<Response>][] = [
  ["a call without an answer", "no answer within 600 ms", never],
  ["a call that is refused", "503", () => new Response("busy", { status: 503 })],
  [
    "an answer that is cut short",
    "",
    () =>
      new Response('{"jsonrpc": "2.0", "id', { headers: { "content-type": "application/json" } }),
  ],
  ["a result without an end", "longer than", endless],
];

for (const [name, reason, handle] of calls) {
  Deno.test(`${name} is an error result, and the next call works`, async () => {
    let isFirst = true;
    await using server = serve((_, { method }) => {
      if (method !== "tools/call" || !isFirst) return undefined;
      isFirst = false;
      return handle();
    });
    const { mcp } = await connect(server.url);
    const started = performance.now();
    const { isError, output } = await call(mcp, "it_work");
    const elapsed = performance.now() - started;
    assertEquals(isError, true);
    assertStringIncludes(output, "MCP server it, tool work: ");
    assertStringIncludes(output, reason);
    assert(elapsed < timeout + slack, `gave up after ${elapsed} ms`);
    assertEquals((await call(mcp, "it_work")).output, "worked");
    await mcp.close();
    row("http", name, "tools/call", "error result, the next call works", elapsed, 0);
  });
}

Deno.test("a session is ended on closing, and a server that does not answer that is left", async () => {
  for (const hangs of [false, true]) {
    await using server = serve(({ method }) => {
      if (method !== "DELETE") return undefined;
      return hangs ? never() : new Response(null, { status: 200 });
    });
    const { mcp } = await connect(server.url);
    const started = performance.now();
    await mcp.close();
    const elapsed = performance.now() - started;
    const ends = server.seen.filter(({ method }) => method === "DELETE");
    assertEquals(ends.map(({ headers }) => headers.get("mcp-session-id")), ["s-1"]);
    assert(elapsed < 1_000 + slack, `closed after ${elapsed} ms`);
    if (hangs) row("http", "a server that does not end a session", "close", "left", elapsed, 0);
  }
});

Deno.test("a tool that wants a login first suspends the run", async () => {
  const data = { elicitations: [{ mode: "url", url: "https://login.test/", message: "Log in" }] };
  await using server = serve((_, { id, method }) =>
    method === "tools/call"
      ? Response.json({ jsonrpc: "2.0", id, error: { code: -32042, message: "login", data } })
      : undefined
  );
  const { mcp } = await connect(server.url);
  const result = await call(mcp, "it_work");
  assertEquals(result.output, "Log in\nhttps://login.test/");
  assertEquals(pendingOf(result)?.kind, "authorization");
  await mcp.close();
});

function row(...cells: [string, string, string, string, number, number]): void {
  if (!Deno.env.get("TOOLNEXUS_MCP_TABLE")) return;
  const texts = cells.map((cell) => typeof cell === "number" ? String(Math.round(cell)) : cell);
  console.log(`| ${texts.join(" | ")} |`);
}
