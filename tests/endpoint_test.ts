/** Where requests go, with which headers and which key, and that a key goes nowhere else. */
import {
  assert,
  assertEquals,
  assertRejects,
  assertStringIncludes,
  assertThrows,
} from "@std/assert";
import { fromFileUrl } from "@std/path";
import { type ClientOptions, createClient, ProviderError, type ToolnexusError } from "../mod.ts";
import { stubLlm } from "../src/testing/mod.ts";
import { answerOf, clientOf, clientOfFetch, deltas } from "./client_kit.ts";

const KEY = "sk-very+secret/key==0123456789";

/** The request that a client with these options would send. */
async function requestOf(options: Partial<ClientOptions>): Promise<Request> {
  let sent: Request | undefined;
  const style = options.style ?? "openai";
  const client = clientOfFetch((request) => {
    sent = request;
    return style === "openai" ? answerOf("ok") : Response.json({ content: "ok" });
  }, options);
  await client.run("go");
  return sent!;
}

const URLS: ["openai" | "anthropic", string, string][] = [
  ["openai", "https://a.test/v1", "https://a.test/v1/chat/completions"],
  ["openai", "https://a.test/v1/", "https://a.test/v1/chat/completions"],
  ["openai", "https://a.test/v1///", "https://a.test/v1/chat/completions"],
  ["openai", "https://a.test", "https://a.test/chat/completions"],
  ["openai", "https://a.test/v1/chat/completions", "https://a.test/v1/chat/completions"],
  ["openai", "https://a.test/v1/chat/completions/", "https://a.test/v1/chat/completions"],
  [
    "openai",
    "https://a.test/x?api-version=1&k=a%2Fb",
    "https://a.test/x/chat/completions?api-version=1&k=a%2Fb",
  ],
  ["openai", "http://127.0.0.1:8080/v1", "http://127.0.0.1:8080/v1/chat/completions"],
  ["anthropic", "https://a.test", "https://a.test/v1/messages"],
  ["anthropic", "https://a.test/", "https://a.test/v1/messages"],
  ["anthropic", "https://a.test/v1", "https://a.test/v1/messages"],
  ["anthropic", "https://a.test/v1/messages", "https://a.test/v1/messages"],
  ["anthropic", "https://a.test/proxy/?beta=true", "https://a.test/proxy/v1/messages?beta=true"],
];
for (const [style, baseUrl, url] of URLS) {
  Deno.test(`${baseUrl} is asked at ${url} (${style})`, async () => {
    const request = await requestOf({ style, baseUrl });
    assertEquals([request.url, request.method, request.redirect], [url, "POST", "manual"]);
  });
}

Deno.test("the headers of each style, with and without a key", async () => {
  const headers = async (options: Partial<ClientOptions>) =>
    Object.fromEntries((await requestOf(options)).headers);
  const json = { "content-type": "application/json" };
  const anthropic = { ...json, "anthropic-version": "2023-06-01" };
  assertEquals(await headers({}), json);
  assertEquals(await headers({ apiKey: KEY }), { ...json, authorization: `Bearer ${KEY}` });
  assertEquals(await headers({ style: "anthropic" }), anthropic);
  assertEquals(await headers({ style: "anthropic", apiKey: KEY }), {
    ...anthropic,
    "x-api-key": KEY,
  });
  assertEquals(await headers({ apiKey: "" }), json);
  assertEquals(await headers({ apiKey: " " }), json);
});

Deno.test("headers of one's own: added, replaced whatever their case, taken away by null", async () => {
  const headers = async (options: Partial<ClientOptions>) => (await requestOf(options)).headers;
  const added = await headers({ apiKey: KEY, headers: { "X-Title": "mine", "x-none": undefined } });
  assertEquals([added.get("x-title"), added.get("x-none")], ["mine", null]);
  assertEquals(added.get("authorization"), `Bearer ${KEY}`);
  const replaced = await headers({ apiKey: KEY, headers: { AUTHORIZATION: "Basic abc" } });
  assertEquals(replaced.get("authorization"), "Basic abc");
  const removed = await headers({ apiKey: KEY, headers: { Authorization: null, "api-key": KEY } });
  assertEquals([removed.get("authorization"), removed.get("api-key")], [null, KEY]);
});

for (const status of [301, 302, 303, 307, 308]) {
  Deno.test(`a redirect (${status}) is refused: the key does not travel`, async () => {
    let visits = 0;
    const other = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: () => {} }, () => {
      visits++;
      return answerOf("stolen");
    });
    const location = `http://127.0.0.1:${other.addr.port}/v1/chat/completions`;
    await using server = stubLlm([{ status, headers: { location } }]);
    const client = clientOf(server, { apiKey: KEY, retries: 2 });
    const error = await assertRejects(() => client.run("go"), ProviderError, "redirect");
    assertEquals([visits, error.retryable], [0, false]);
    await other.shutdown();
  });
}

// ---- keys of the environment ----

const KEYS = {
  OPENAI_API_KEY: "sk-openai-0123456789",
  ANTHROPIC_API_KEY: "sk-anthropic-0123456789",
  OPENROUTER_API_KEY: "sk-openrouter-0123456789",
};

/** The headers of the first request of a client in a process of its own, or its error. */
async function inProcess(
  options: Partial<ClientOptions>,
  flags: readonly string[],
  env: Record<string, string> = KEYS,
): Promise<Record<string, string>> {
  const path = (name: string) => fromFileUrl(new URL(name, import.meta.url));
  const program = [path("fixtures/first_request.ts"), JSON.stringify({ model: "m", ...options })];
  const config = ["--no-lock", "--config", path("../deno.json")];
  const { stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["run", "--no-prompt", ...config, ...flags, ...program],
    env: { NO_COLOR: "1", ...env },
  }).output();
  const decode = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
  assert(stdout.length > 0, decode(stderr));
  return JSON.parse(decode(stdout));
}

Deno.test("a well-known host gets the key that belongs to it, with that permission alone", async () => {
  const rows: [Partial<ClientOptions>, keyof typeof KEYS, string][] = [
    [{ style: "openai", baseUrl: "https://api.openai.com/v1" }, "OPENAI_API_KEY", "authorization"],
    [
      { style: "anthropic", baseUrl: "https://api.anthropic.com" },
      "ANTHROPIC_API_KEY",
      "x-api-key",
    ],
    [
      { style: "openai", baseUrl: "https://openrouter.ai/api/v1" },
      "OPENROUTER_API_KEY",
      "authorization",
    ],
  ];
  await Promise.all(rows.map(async ([options, variable, header]) => {
    const headers = await inProcess(options, [`--allow-env=${variable}`]);
    const prefix = header === "authorization" ? "Bearer " : "";
    assertEquals(headers[header], prefix + KEYS[variable]);
  }));
});

Deno.test("no other host gets a key, also one that looks like it", async () => {
  const hosts = [
    "http://api.openai.com/v1",
    "https://api.openai.com.evil.test/v1",
    "https://evil.test/api.openai.com/v1",
    "https://openai.com/v1",
    "https://evil-openrouter.ai/v1",
    "https://constructor/v1",
    "https://__proto__/v1",
  ];
  await Promise.all(hosts.map(async (baseUrl) => {
    const headers = await inProcess({ style: "openai", baseUrl }, ["--allow-env"]);
    assertEquals(headers, { "content-type": "application/json" }, baseUrl);
  }));
});

Deno.test("a key that is missing, empty or not allowed: the error names variable and flag", async () => {
  const options = { style: "openai", baseUrl: "https://api.openai.com/v1" } as const;
  const rows: [string[], Record<string, string>][] = [
    [[], KEYS],
    [["--allow-env=OPENAI_API_KEY"], { OPENAI_API_KEY: "" }],
    [["--allow-env=ANTHROPIC_API_KEY"], KEYS],
  ];
  await Promise.all(rows.map(async ([flags, env]) => {
    const { error } = await inProcess(options, flags, env);
    assertStringIncludes(error!, "TypeError: apiKey for api.openai.com is missing");
    assertStringIncludes(error!, "--allow-env=OPENAI_API_KEY");
  }));
});

Deno.test("whoever gives a key, or a header for it, needs no permission", async () => {
  const options = { style: "openai", baseUrl: "https://api.openai.com/v1" } as const;
  const given = await inProcess({ ...options, apiKey: "mine-0123456789" }, []);
  assertEquals(given.authorization, "Bearer mine-0123456789");
  const header = await inProcess({ ...options, headers: { Authorization: "Bearer own" } }, []);
  assertEquals(header.authorization, "Bearer own");
});

// ---- no key in what is shown ----

/** Everything that a log could show of a value. */
function shown(value: unknown): string {
  const texts = [Deno.inspect(value, { depth: 20, showHidden: true }), String(value)];
  for (let error = value; error instanceof Error; error = error.cause) {
    texts.push(error.message, error.stack ?? "", JSON.stringify(error));
  }
  return texts.join("\n");
}

/** Fails if a secret is shown, in any of the forms in which it travels. */
function assertHidden(value: unknown, secret = KEY): void {
  const text = shown(value);
  const encoded = [encodeURIComponent(secret), secret.replace("+", "%2B")];
  for (const form of [secret, ...encoded, JSON.stringify(secret).slice(1, -1)]) {
    assert(!text.includes(form), `${form} is shown in: ${text}`);
  }
}

const CARRIERS: Record<string, (base: string) => Partial<ClientOptions>> = {
  "apiKey": () => ({ apiKey: KEY }),
  "a header": () => ({ headers: { "api-key": KEY } }),
  "a bearer header": () => ({ headers: { authorization: `Bearer ${KEY}` } }),
  "the query": (base) => ({ baseUrl: `${base}?code=${encodeURIComponent(KEY)}` }),
  "the query, half encoded": (base) => ({ baseUrl: `${base}?code=${KEY.replace("+", "%2B")}` }),
};

for (const [carrier, optionsOf] of Object.entries(CARRIERS)) {
  Deno.test(`a key in ${carrier} is in no error, whatever the provider repeats`, async () => {
    const says = `Incorrect key ${KEY} (${encodeURIComponent(KEY)})`;
    await using server = stubLlm([
      { status: 401, body: { error: { message: says, code: KEY, type: says } } },
      { status: 401, body: says },
      { status: 401, body: `<title>${says}</title>` },
      { status: 200, body: says },
      { status: 200, body: { oops: says } },
      { status: 200, body: { error: { message: says } } },
      { status: 302, headers: { location: `/?code=${encodeURIComponent(KEY)}` } },
      { status: 401, headers: { "x-request-id": KEY } },
      { sse: [`data: ${says}\n\n`] },
      { sse: [`data: {"error":{"message":${JSON.stringify(says)}}}\n\n`] },
      { sse: [deltas("Hi"), `data: {"error":{"message":${JSON.stringify(says)}}}\n\n`] },
      { sse: [`event: error\ndata: {"${says}\n\n`] },
    ]);
    const client = clientOf(server, optionsOf(server.baseUrl));
    for (let reply = 0; reply < 12; reply++) {
      assertHidden(await assertRejects(() => client.stream("go").result));
    }
  });

  Deno.test(`a key in ${carrier} is in no error of the network, and not in the client`, async () => {
    const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
    const base = `http://127.0.0.1:${listener.addr.port}/v1`;
    const options = optionsOf(base);
    const client = clientOf({ baseUrl: base }, options);
    listener.close();
    assertHidden(await assertRejects(() => client.run("go"), ProviderError));
    const throwing = clientOfFetch((request) => {
      const key = request.headers.get("authorization") ?? request.headers.get("api-key");
      throw new TypeError(`cannot reach ${request.url} with ${key}`, {
        cause: new Error(request.url),
      });
    }, options);
    assertHidden(await assertRejects(() => throwing.run("go"), ProviderError));
    assertHidden(client);
    assertHidden(client.stream("go"));
    assertHidden(JSON.stringify(client));
    assertHidden(client.metrics());
  });
}

Deno.test("a key that begins with the value of a header is hidden whole", async () => {
  const apiKey = "acme-team-0123456789abcdef";
  await using server = stubLlm([{ status: 401, body: `bad key ${apiKey} of acme-team` }]);
  const client = clientOf(server, { apiKey, headers: { "x-team": "acme-team" } });
  const error = await assertRejects(() => client.run("go"), ProviderError);
  assertEquals(error.message, "LLM 401: bad key [redacted] of [redacted]");
});

Deno.test("a wrong base URL is named without its key", () => {
  for (
    const baseUrl of [
      `localhost:8080/v1?code=${KEY}`,
      `//a.test/v1?code=${KEY}`,
      `ftp://a.test/?code=${KEY}`,
      `https://user:${KEY}@a.test/v1`,
      `https://${encodeURIComponent(KEY)}@a.test:99999/v1`,
    ]
  ) {
    const error = assertThrows(
      () => createClient({ baseUrl, style: "openai", model: "m" }),
      TypeError,
      "baseUrl",
    );
    assertHidden(error);
  }
});

Deno.test("a wrong header or key is named without its value", () => {
  for (
    const wrong of [
      { headers: { "x-key": `${KEY}\n${KEY}` } },
      { headers: { "x key": KEY } },
      { apiKey: `${KEY}\u0000` },
      { apiKey: `${KEY} ✓` },
      { apiKey: [KEY] },
      { headers: [["authorization", `Bearer ${KEY}`]] },
      { headers: `authorization: Bearer ${KEY}` },
    ] as unknown as Partial<ClientOptions>[]
  ) {
    assertHidden(assertThrows(() => clientOf({ baseUrl: "http://a.test" }, wrong), TypeError));
  }
});

Deno.test("an error of a run in a stored conversation shows no key either", async () => {
  await using server = stubLlm([{ status: 401, body: `no ${KEY}` }]);
  const store = { get: () => [], save: () => {} };
  const client = clientOf(server, { apiKey: KEY, store });
  const error = await assertRejects(() => client.ask("go", { id: "a" }));
  assertHidden(error);
  assertEquals((error as ToolnexusError).code, "provider_error");
});

Deno.test("a key is hidden in whatever way a server writes it in JSON", async () => {
  const apiKey = "c2VjcmV0/a2V5+Zm9y";
  const escaped = apiKey.replaceAll("/", "\\/");
  const spelled = [...apiKey].map((letter) => `\\u00${letter.charCodeAt(0).toString(16)}`).join("");
  for (const written of [escaped, spelled]) {
    const body = `{"error":{"message":"bad key ${written}","key":"${written}"}}`;
    await using server = stubLlm([{ status: 401, body }]);
    const error = await assertRejects(() => clientOf(server, { apiKey }).run("go"), ProviderError);
    assertEquals(error.message, "LLM 401: bad key [redacted]");
    assertEquals(error.body, '{"error":{"message":"bad key [redacted]","key":"[redacted]"}}');
  }
});

Deno.test("a key from a file that ends in a newline is sent and hidden without it", async () => {
  await using server = stubLlm(({ headers }) => ({
    status: 401,
    body: `bad key ${headers.get("authorization")}`,
  }));
  const client = clientOf(server, { apiKey: `${KEY}\n` });
  const error = await assertRejects(() => client.run("go"), ProviderError);
  assertEquals(error.message, "LLM 401: bad key Bearer [redacted]");
});

Deno.test("a header that the host's fetch adds to a request is in no other request", async () => {
  const seen: (string | null)[] = [];
  const client = clientOf({ baseUrl: "http://model.test/v1" }, {
    fetch: (_, init) => {
      const headers = init!.headers as Record<string, string>;
      seen.push(headers["x-tenant"] ?? null);
      headers["x-tenant"] = "ann";
      return Promise.resolve(answerOf("ok"));
    },
  });
  await client.run("go");
  await client.run("go");
  assertEquals(seen, [null, null]);
});
