/** What the client needs to be allowed: the network, and nothing else. */
import { assertEquals, assertStringIncludes } from "@std/assert";
import { fromFileUrl } from "@std/path";

const path = (name: string) => fromFileUrl(new URL(name, import.meta.url));

/** Runs a program with these permissions alone; gives what it prints. */
async function run(program: string, ...flags: string[]): Promise<string> {
  const config = ["--no-lock", "--config", path("../deno.json")];
  const { success, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["run", "--no-prompt", "--cached-only", ...config, ...flags, path(program)],
    env: { NO_COLOR: "1" },
  }).output();
  const decode = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
  return success ? decode(stdout) : decode(stderr);
}

Deno.test("--allow-net of the one host is enough to ask, stream, use tools and remember", async () => {
  const output = await run("fixtures/ask_with_tools.ts", "--allow-net=127.0.0.1");
  assertEquals(output, "conversation_busy, 4 requests, 6 messages\n");
});

Deno.test("without the network the error is typed, and says what is missing", async () => {
  const output = await run("fixtures/ask_alone.ts");
  assertStringIncludes(output, "provider_error");
  assertStringIncludes(output, "--allow-net");
});

Deno.test("mod.ts needs no permission to load", async () => {
  assertEquals(await run("fixtures/load.ts"), "loaded\n");
});
