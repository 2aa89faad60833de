/** HTTP endpoints as tools: what is sent, what the model gets, and when a call ends. */
import { assert, assertEquals, assertMatch } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import * as z from "npm:zod@4.6.7";
import { httpTool, pendingOf, type ToolContext } from "../mod.ts";
import { stubLlm } from "../src/testing/mod.ts";
import { clientOf } from "./client_kit.ts";
import { Server, toolOf, variable } from "./http_tool_kit.ts";

Deno.test("a model calls an HTTP endpoint as a tool", async () => {
  await using server = new Server(() => Response.json({ sky: "sunny" }));
  await using llm = stubLlm([
    { toolCalls: [{ name: "weather", args: { city: "São Paulo", days: 2 } }] },
    "Sunny",
  ]);
  const weather = httpTool({
    name: "weather",
    description: "The weather in a city",
    method: "GET",
    url: `${server.url}/weather/{city}`,
    inputSchema: z.object({ city: z.string(), days: z.number().default(1) }),
  });
  assertEquals(weather.source, "http");
  const { toolCalls } = await clientOf(llm, { toolkit: [weather] }).run("Weather?");
  assertEquals(toolCalls[0]?.output, '{"sky":"sunny"}');
  assertEquals(toolCalls[0]?.metadata, { status: 200 });
  assertEquals(server.paths, ["GET /weather/S%C3%A3o%20Paulo?days=2"]);
});

Deno.test("arguments are checked by a schema that validates, before anything is sent", async () => {
  await using server = new Server();
  const tool = httpTool({
    name: "user",
    description: "",
    method: "GET",
    url: `${server.url}/users/{id}`,
    inputSchema: z.object({ id: z.number().int() }),
  });
  const { output, isError } = await tool.execute({ id: "7; drop" });
  assertMatch(output, /^invalid arguments for user: id: /);
  assertEquals([isError, server.seen.length], [true, 0]);
});

for (const method of ["GET", "HEAD", "DELETE"]) {
  Deno.test(`${method} sends the remaining arguments as the query`, async () => {
    await using server = new Server();
    const tool = toolOf({ method, url: `${server.url}/a/{id}?fixed=1` });
    const args = { id: 7, q: "x&y=z", tags: ["a", "b"], none: null, filter: { on: true } };
    await tool.execute(args);
    const [seen] = server.seen;
    assertEquals(seen?.method, method);
    assertEquals(
      seen?.path,
      "/a/7?fixed=1&q=x%26y%3Dz&tags=a&tags=b&filter=%7B%22on%22%3Atrue%7D",
    );
    assertEquals([seen?.body, seen?.headers.get("content-type")], ["", null]);
  });
}

for (const method of ["POST", "PUT", "PATCH"]) {
  Deno.test(`${method} sends the remaining arguments as a JSON body`, async () => {
    await using server = new Server();
    const tool = toolOf({ method, url: `${server.url}/a/{id}`, query: ["dry"] });
    await tool.execute({ id: 7, dry: true, name: "Ann", tags: [1] });
    const [seen] = server.seen;
    assertEquals([seen?.method, seen?.path], [method, "/a/7?dry=true"]);
    assertEquals(JSON.parse(seen?.body ?? ""), { name: "Ann", tags: [1] });
    assertEquals(seen?.headers.get("content-type"), "application/json");
  });
}

Deno.test("the body can be a form, or one argument as it is, also of a DELETE", async () => {
  await using server = new Server();
  const { url } = server;
  await toolOf({ method: "POST", url, body: "form" }).execute({ a: "x y", b: [1, 2] });
  await toolOf({ method: "POST", url, body: "raw" }).execute({ body: "<order/>" });
  await toolOf({ method: "DELETE", url, body: "json" }).execute({ ids: [1] });
  await toolOf({ method: "POST", url }).execute({});
  assertEquals(server.seen.map(({ body }) => body), [
    "a=x+y&b=1&b=2",
    "<order/>",
    '{"ids":[1]}',
    "",
  ]);
  assertMatch(server.seen[0]?.headers.get("content-type") ?? "", /^application\/x-www-form-url/);
});

Deno.test("a raw body that is no string is JSON", async () => {
  await using server = new Server();
  const tool = toolOf({ method: "POST", url: server.url, body: "raw" });
  for (const body of [[{ a: 1 }], [1, 2], { a: [1] }, 7, null]) await tool.execute({ body });
  assertEquals(server.seen.map(({ body }) => body), [
    '[{"a":1}]',
    "[1,2]",
    '{"a":[1]}',
    "7",
    "null",
  ]);
  const types = new Set(server.seen.map(({ headers }) => headers.get("content-type")));
  assertEquals([...types], ["application/json"]);
});

Deno.test("request() makes the parts of the request itself", async () => {
  await using server = new Server();
  const tool = toolOf({
    method: "POST",
    url: `${server.url}/{place}?v={version}`,
    headers: { "X-Fixed": "ours" },
    request: ({ query, ...variables }) => ({
      path: { place: "graphql", version: 2 },
      query: [["trace", "a"], ["trace", "b"]],
      headers: { "content-type": "application/graphql+json", "x-fixed": "theirs", "x-own": "1" },
      body: JSON.stringify({ query, variables }),
    }),
  });
  await tool.execute({ query: "{ me }", id: 7 });
  const { path, headers, body } = server.seen[0]!;
  assertEquals(path, "/graphql?v=2&trace=a&trace=b");
  assertEquals(body, '{"query":"{ me }","variables":{"id":7}}');
  assertEquals(headers.get("content-type"), "application/graphql+json");
  assertEquals([headers.get("x-own"), headers.get("x-fixed")], ["1", "ours"]);
});

Deno.test("request() can encode the URL itself, and still not leave a segment", async () => {
  await using server = new Server();
  const tool = toolOf({
    url: `${server.url}/a/{list}/b`,
    request: ({ list, query }) => ({
      path: { list },
      query: [["q", String(query)]],
      isEncoded: true,
    }),
  });
  await tool.execute({ list: ";x=1%2C5,2;y=é", query: "a|b,%26c" });
  await tool.execute({ list: "../x?y#z\\", query: "a&b#c" });
  assertEquals(server.paths, [
    "GET /a/;x=1%2C5,2;y=%C3%A9/b?q=a%7Cb,%26c",
    "GET /a/..%2Fx%3Fy%23z%5C/b?q=a%26b%23c",
  ]);
  for (const list of ["..", "%2e%2E"]) {
    const { output } = await tool.execute({ list, query: "" });
    assertEquals(output, "argument list must not lead to another path");
  }
  assertEquals(server.seen.length, 2);
});

Deno.test("cookies of a call are sent beside those of the definition", async () => {
  await using server = new Server();
  const request = () => ({ headers: { Cookie: "page=2" } });
  await toolOf({ url: server.url, headers: { cookie: "session=abc" }, request }).execute({});
  await toolOf({ url: server.url, request }).execute({});
  const cookies = server.seen.map(({ headers }) => headers.get("cookie"));
  assertEquals(cookies, ["session=abc; page=2", "page=2"]);
});

Deno.test("an argument cannot leave its path segment, whatever it is", async () => {
  await using server = new Server();
  const tool = toolOf({ url: `${server.url}/files/{name}/meta` });
  const kept: [unknown, string][] = [
    ["a/b", "/files/a%2Fb/meta"],
    ["a?admin=1#x", "/files/a%3Fadmin%3D1%23x/meta"],
    ["http://evil.test/", "/files/http%3A%2F%2Fevil.test%2F/meta"],
    ["@evil.test", "/files/%40evil.test/meta"],
    ["\r\nHost: evil.test", "/files/%0D%0AHost%3A%20evil.test/meta"],
    ["...", "/files/.../meta"],
    ["../etc", "/files/..%2Fetc/meta"],
    ["..\\x", "/files/..%5Cx/meta"],
    ["%2e%2e", "/files/%252e%252e/meta"],
    ["..%2fadmin", "/files/..%252fadmin/meta"],
    ["v1.2", "/files/v1.2/meta"],
    ["\ud800", "/files/%EF%BF%BD/meta"],
    [["a", "b"], "/files/a%2Cb/meta"],
    [0, "/files/0/meta"],
    [false, "/files/false/meta"],
  ];
  for (const [name] of kept) await tool.execute({ name });
  assertEquals(server.seen.map(({ path }) => path), kept.map(([, path]) => path));
  for (const name of [".", ".."]) {
    const { output, isError } = await tool.execute({ name });
    assertEquals([output, isError], ["argument name must not lead to another path", true], name);
  }
  assertEquals(server.seen.length, kept.length, "nothing else was sent");
});

Deno.test("two placeholders cannot make dots together", async () => {
  await using server = new Server();
  const { isError } = await toolOf({ url: `${server.url}/a/{x}{y}/b` })
    .execute({ x: ".", y: "." });
  const joined = await toolOf({ url: `${server.url}/a/.{x}/b` }).execute({ x: "." });
  assertEquals([isError, joined.isError, server.seen.length], [true, true, 0]);
});

Deno.test("a missing path argument is an error result, a missing query argument is left out", async () => {
  await using server = new Server();
  const tool = toolOf({ url: `${server.url}/users/{id}?page={page}&sort={sort}` });
  for (const id of [undefined, null, "", []]) {
    const { output, isError } = await tool.execute({ id, page: 1 });
    assertEquals([output, isError], ["argument id is missing: the URL needs it", true]);
  }
  assertEquals(server.seen.length, 0);
  await tool.execute({ id: 1, sort: "a&b" });
  assertEquals(server.paths, ["GET /users/1?sort=a%26b"]);
});

Deno.test("a status other than 2xx is an error result with its body", async () => {
  await using server = new Server((request) => {
    const status = Number(new URL(request.url).pathname.slice(1));
    return new Response(status === 304 ? null : "no such user", { status });
  });
  for (const status of [400, 404, 429, 500, 503]) {
    const result = await toolOf({ url: `${server.url}/${status}` }).execute({});
    assertEquals(result, {
      output: `HTTP ${status}: no such user`,
      isError: true,
      metadata: { status },
    });
  }
  const notModified = await toolOf({ url: `${server.url}/304` }).execute({});
  assertEquals([notModified.output, notModified.isError], ["HTTP 304: ", true]);
});

Deno.test("resultMode chooses what the model gets", async () => {
  await using server = new Server((request) =>
    new Response(request.url.endsWith("json") ? '{ "a": [ 1 ] }' : "plain", { status: 201 })
  );
  const get = async (path: string, resultMode: "text" | "json" | "status+text") =>
    (await toolOf({ url: `${server.url}/${path}`, resultMode }).execute({})).output;
  assertEquals(await get("json", "text"), '{ "a": [ 1 ] }');
  assertEquals(await get("json", "json"), '{"a":[1]}');
  assertEquals(await get("text", "json"), '"plain"');
  assertEquals(await get("text", "status+text"), "201\nplain");
});

Deno.test("an empty answer is an empty output", async () => {
  await using server = new Server(() => new Response(null, { status: 204 }));
  const result = await toolOf({ url: server.url }).execute({});
  assertEquals(result, { output: "", isError: false, metadata: { status: 204 } });
});

Deno.test("a long body is cut with a note, and an endless one is not waited for", async () => {
  let cancelled = false;
  await using server = new Server((request) => {
    if (request.url.endsWith("exact")) return new Response("x".repeat(1000));
    const body = new ReadableStream({
      pull: (controller) => controller.enqueue(new TextEncoder().encode("é".repeat(300))),
      cancel: () => void (cancelled = true),
    });
    return new Response(body, { status: request.url.endsWith("failed") ? 500 : 200 });
  });
  const get = async (path: string) =>
    (await toolOf({ url: `${server.url}/${path}`, maxResponseBytes: 1000 }).execute({})).output;
  assertEquals(await get("exact"), "x".repeat(1000));
  const note = "\n[cut: the body is longer than 1000 bytes]";
  assertEquals(await get("endless"), "é".repeat(500) + note);
  assertEquals(await get("failed"), "HTTP 500: " + "é".repeat(500) + note);
  assert(cancelled, "the server was told to stop");
  const odd = await toolOf({ url: `${server.url}/endless`, maxResponseBytes: 1001 }).execute({});
  assertEquals(odd.output, "é".repeat(500) + "\n[cut: the body is longer than 1001 bytes]");
});

Deno.test("a body is cut at 100,000 bytes unless told otherwise", async () => {
  await using server = new Server(() => new Response("x".repeat(200_000)));
  const { output } = await toolOf({ url: server.url }).execute({});
  assertEquals(output, "x".repeat(100_000) + "\n[cut: the body is longer than 100000 bytes]");
});

Deno.test("a binary body is named, not shown; a foreign charset is read", async () => {
  await using server = new Server((request) =>
    request.url.endsWith("png")
      ? new Response(new Uint8Array([137, 80, 78, 71, 0, 0]), {
        headers: { "content-type": "image/png" },
      })
      : new Response(new Uint8Array([0x63, 0x61, 0x66, 0xe9]), {
        headers: { "content-type": 'text/plain; charset="iso-8859-1"' },
      })
  );
  const get = async (path: string) =>
    (await toolOf({ url: `${server.url}/${path}` }).execute({})).output;
  assertEquals(await get("png"), "[binary body of type image/png, not shown]");
  assertEquals(await get("latin"), "café");
});

Deno.test("a call ends with its signal, while it waits and while it reads", async () => {
  for (const phase of ["headers", "body"]) {
    const started = Promise.withResolvers<void>();
    const stop = Promise.withResolvers<Response>();
    await using server = new Server(() => {
      started.resolve();
      if (phase === "headers") return stop.promise;
      return new Response(new ReadableStream({ start: (c) => c.enqueue(new Uint8Array([65])) }));
    });
    const controller = new AbortController();
    const context: ToolContext = { signal: controller.signal, callId: "c", turn: 1 };
    const result = toolOf({ url: server.url }).execute({}, context);
    await started.promise;
    controller.abort(new Error("the user left"));
    assertEquals(await result, { output: "the user left", isError: true });
    stop.resolve(new Response());
  }
});

Deno.test("a call ends after timeoutMs, 30 seconds unless told otherwise", async () => {
  // Not a real server: its timers would be those of the test.
  const never: typeof fetch = (_, init) =>
    new Promise((_, reject) => {
      const { signal } = init!;
      signal!.addEventListener("abort", () => reject(signal!.reason), { once: true });
    });
  using time = new FakeTime();
  const url = "http://api.test";
  for (const [timeoutMs, limit] of [[undefined, 30_000], [50, 50]] as const) {
    let isOver = false;
    const result = toolOf({ url, timeoutMs, fetch: never }).execute({}).finally(() =>
      isOver = true
    );
    await time.tickAsync(limit - 1);
    assertEquals(isOver, false);
    await time.tickAsync(1);
    assertEquals(await result, { output: `timed out after ${limit} ms`, isError: true });
  }
});

Deno.test("a server that cannot be reached is an error result", async () => {
  const url = await (async () => {
    await using server = new Server();
    return server.url;
  })();
  using _token = variable("TOOLNEXUS_HTTP_TOKEN", "s3cr3t-token");
  const headers = { authorization: "${TOOLNEXUS_HTTP_TOKEN}" };
  const { output, isError } = await toolOf({ url, headers }).execute({});
  assertEquals(isError, true);
  assert(!output.includes("s3cr3t-token"), output);
});

Deno.test({
  name: "a host that must not be reached is an error result that names the permission",
  permissions: { net: false },
  async fn() {
    const { output, isError } = await toolOf({ url: "http://api.test/x" }).execute({});
    assertEquals(isError, true);
    assertMatch(output, /Requires net access to "api\.test:80"/);
  },
});

Deno.test("an HTTP tool can need approval", async () => {
  await using server = new Server(() => new Response("deleted"));
  const tool = toolOf({ method: "DELETE", url: `${server.url}/{id}`, needsApproval: true });
  const asked = await tool.execute({ id: 7 });
  assertEquals(pendingOf(asked)?.kind, "approval");
  assertEquals(server.seen.length, 0);
});

Deno.test("the host of the template stays, also with an empty first segment", async () => {
  await using server = new Server();
  await toolOf({ url: `${server.url}//{x}/y` }).execute({ x: "evil.test" });
  assertEquals(server.paths, ["GET //evil.test/y"]);
});

Deno.test("fetch can be replaced", async () => {
  const urls: string[] = [];
  const fetch: typeof globalThis.fetch = (input) => {
    urls.push(String(input));
    return Promise.resolve(new Response("cached"));
  };
  const { output } = await toolOf({ url: "https://api.test/a?b={c}", fetch }).execute({ c: 1 });
  assertEquals([output, urls], ["cached", ["https://api.test/a?b=1"]]);
});
