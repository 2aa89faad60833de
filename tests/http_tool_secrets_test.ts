/** What an HTTP tool must not give away: header values from the environment, and headers to another host. */
import { assert, assertEquals, assertStringIncludes, assertThrows } from "@std/assert";
import { expandEnvHeaders } from "../mod.ts";
import { Server, toolOf, variable } from "./http_tool_kit.ts";

Deno.test("${NAME} in a header is read at the call, and never shown", async () => {
  await using server = new Server((request) => {
    const sent = request.headers.get("authorization") ?? "";
    const url = encodeURIComponent(sent);
    return new Response(`you sent ${sent}, ${JSON.stringify({ sent })}, ${url}`, { status: 401 });
  });
  const tool = toolOf({
    url: server.url,
    headers: { Authorization: "Bearer ${TOOLNEXUS_HTTP_TOKEN}" },
  });
  using _token = variable("TOOLNEXUS_HTTP_TOKEN", 'to"ken 1 secret');
  const { output } = await tool.execute({});
  assertEquals(server.seen[0]?.headers.get("authorization"), 'Bearer to"ken 1 secret');
  assertEquals(
    output,
    'HTTP 401: you sent [redacted], {"sent":"[redacted]"}, [redacted]',
  );
});

Deno.test("a secret that a server escaped is not shown by reading its JSON", async () => {
  const token = "sk/live+abc123";
  await using server = new Server((request) => {
    const units = Array.from(request.headers.get("x-token") ?? "", (unit) => unit.charCodeAt(0));
    const escaped = units.map((code) => `\\u${code.toString(16).padStart(4, "0")}`).join("");
    return new Response(`{ "sent": "${escaped}", "path": "\\/a" }`);
  });
  const headers = { "x-token": token };
  const { output } = await toolOf({ url: server.url, headers, resultMode: "json" }).execute({});
  assertEquals(server.seen[0]?.headers.get("x-token"), token);
  assertEquals(output, '{"sent":"[redacted]","path":"/a"}');
});

Deno.test("a secret that ends in a line break, as mounted ones do, is sent and hidden without it", async () => {
  await using server = new Server((request) => Response.json(Object.fromEntries(request.headers)));
  using _token = variable("TOOLNEXUS_HTTP_TOKEN", "s3cr3t-token\n");
  const headers = {
    authorization: "Token ${TOOLNEXUS_HTTP_TOKEN}, v=1",
    "x-api-key": "k-123456\n",
  };
  const { output } = await toolOf({ url: server.url, headers }).execute({});
  assertEquals(server.seen[0]?.headers.get("authorization"), "Token s3cr3t-token, v=1");
  assertEquals(server.seen[0]?.headers.get("x-api-key"), "k-123456");
  assert(!/s3cr3t|k-123/.test(output), output);
});

Deno.test("a secret across the cut is not shown in part", async () => {
  await using server = new Server((request) =>
    new Response("x".repeat(95) + request.headers.get("x-id") + "y".repeat(500))
  );
  using _token = variable("TOOLNEXUS_HTTP_TOKEN", "s3cr3t-s3cr3t-s3cr3t");
  const tool = toolOf({
    url: server.url,
    headers: { "x-id": "${TOOLNEXUS_HTTP_TOKEN}" },
    maxResponseBytes: 100,
  });
  const { output } = await tool.execute({});
  assertEquals(output, "x".repeat(95) + "[reda\n[cut: the body is longer than 100 bytes]");
});

Deno.test("a key written into a credential header is not shown either, other headers are", async () => {
  await using server = new Server((request) => Response.json(Object.fromEntries(request.headers)));
  const headers = { "x-api-key": "k-123456", accept: "application/json", "user-agent": "mine/1.0" };
  const { output } = await toolOf({ url: server.url, headers }).execute({});
  assert(!output.includes("k-123456"), output);
  assertEquals(server.seen[0]?.headers.get("x-api-key"), "k-123456");
  const echoed = JSON.parse(output);
  assertEquals([echoed.accept, echoed["user-agent"]], ["application/json", "mine/1.0"]);
});

Deno.test("a variable that is not there is named, with the flag it needs", async () => {
  await using server = new Server();
  const tool = toolOf({
    url: server.url,
    headers: { Authorization: "Bearer ${TOOLNEXUS_NOT_SET}" },
  });
  const { output, isError } = await tool.execute({});
  assertEquals(
    output,
    'header "Authorization" needs an environment variable: set TOOLNEXUS_NOT_SET and allow ' +
      "--allow-env=TOOLNEXUS_NOT_SET",
  );
  assertEquals([isError, server.seen.length], [true, 0]);
});

Deno.test({
  name: "a variable that must not be read is the same error",
  permissions: { env: false, net: ["127.0.0.1"] },
  async fn() {
    await using server = new Server();
    const headers = { Authorization: "${TOOLNEXUS_HTTP_TOKEN}" };
    const { output } = await toolOf({ url: server.url, headers }).execute({});
    assertStringIncludes(output, "allow --allow-env=TOOLNEXUS_HTTP_TOKEN");
    assertEquals(server.seen.length, 0);
  },
});

Deno.test("expandEnvHeaders() fills in variables, several in one value", () => {
  using _user = variable("TOOLNEXUS_USER", "ann");
  using _token = variable("TOOLNEXUS_HTTP_TOKEN", "secret");
  const headers = { a: "${TOOLNEXUS_USER}:${TOOLNEXUS_HTTP_TOKEN}", b: "$HOME {x} ${}" };
  assertEquals(expandEnvHeaders(headers), { a: "ann:secret", b: "$HOME {x} ${}" });
  assertEquals(expandEnvHeaders(undefined), {});
  assertThrows(
    () => expandEnvHeaders({ a: "${TOOLNEXUS_NOT_SET}" }),
    TypeError,
    "TOOLNEXUS_NOT_SET",
  );
});

Deno.test("a variable with a line break never reaches an error", async () => {
  await using server = new Server();
  using _token = variable("TOOLNEXUS_HTTP_TOKEN", "secret\r\nx-evil: 1");
  const headers = { "x-token": "${TOOLNEXUS_HTTP_TOKEN}" };
  const { output, isError } = await toolOf({ url: server.url, headers }).execute({});
  assertEquals(output, 'header "x-token" has a name or value that HTTP does not allow');
  assertEquals([isError, server.seen.length], [true, 0]);
});

Deno.test("a redirect within the origin is followed", async () => {
  await using server = new Server((request) => {
    const { pathname } = new URL(request.url);
    if (pathname === "/here") return new Response("arrived");
    const status = Number(pathname.slice(1));
    return new Response("moved", { status, headers: { location: "/here?x=1" } });
  });
  const headers = { "x-api-key": "k-123456" };
  for (const status of [301, 302, 303, 307, 308]) {
    const tool = toolOf({ method: "POST", url: `${server.url}/${status}`, headers });
    assertEquals((await tool.execute({ a: 1 })).output, "arrived", String(status));
  }
  const arrivals = server.seen.filter(({ path }) => path === "/here?x=1");
  assertEquals(arrivals.map(({ method }) => method), ["GET", "GET", "GET", "POST", "POST"]);
  assertEquals(arrivals.map(({ body }) => body), ["", "", "", '{"a":1}', '{"a":1}']);
  assertEquals(arrivals.map(({ headers }) => headers.has("content-type")), [
    false,
    false,
    false,
    true,
    true,
  ]);
  assert(arrivals.every(({ headers }) => headers.get("x-api-key") === "k-123456"));
});

Deno.test("a redirect to another origin is not followed: headers never reach it", async () => {
  await using other = new Server(() => new Response("got you"));
  await using server = new Server((request) => {
    const location = new URL(request.url).searchParams.get("to") ?? "";
    return new Response(null, { status: 302, headers: { location } });
  });
  using _token = variable("TOOLNEXUS_HTTP_TOKEN", "s3cr3t-token");
  const tool = toolOf({
    url: `${server.url}/go`,
    headers: { authorization: "Bearer ${TOOLNEXUS_HTTP_TOKEN}" },
  });
  for (const to of [`${other.url}/x?k=1`, server.otherUrl, server.url.replace("http:", "https:")]) {
    assertEquals(await tool.execute({ to }), {
      output: `HTTP 302: redirect to ${new URL(to).origin} is not followed: another origin`,
      isError: true,
      metadata: { status: 302 },
    });
  }
  const { output } = await tool.execute({ to: "http://" });
  assertEquals(output, 'HTTP 302: redirect to "http://" is not followed: another origin');
  assertEquals(other.seen, []);
});

Deno.test("redirects are bounded", async () => {
  await using server = new Server(() =>
    new Response(null, { status: 302, headers: { location: "/again" } })
  );
  const { output, isError } = await toolOf({ url: server.url }).execute({});
  assertEquals([output, isError], ["HTTP 302: more than 5 redirects", true]);
  assertEquals(server.seen.length, 6);
});
