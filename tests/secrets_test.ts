/** What must not be shown is found in whatever form it comes back. The MCP entry point has its own copy. */
import { assertEquals } from "@std/assert";
import { Secrets } from "../src/secrets.ts";
import { ServerSecrets } from "../src/sources/mcp_secrets.ts";

/** A value of the host's, what a server says, and what is shown of it. */
const CASES: Record<string, [value: string, said: string, shown: string]> = {
  "a value": ["sesame-1", "not sesame-1", "not [redacted]"],
  "a word": ["short", "too short", "too short"],
  "a value that ends in a line break": ["sesame-1\n", "not sesame-1!", "not [redacted]!"],
  "a scheme and its key": ["Bearer sesame-1", "not Bearer sesame-1", "not [redacted]"],
  "the key of a scheme": ["Bearer sesame-1", "not sesame-1", "not [redacted]"],
  "the key behind two blanks": ["Bearer  sesame-1", "not sesame-1", "not [redacted]"],
  "the key behind a tab": ["Bearer\tsesame-1\n", "not sesame-1", "not [redacted]"],
  "a value in JSON": ['sesame"1', '{"not":"sesame\\"1"}', '{"not":"[redacted]"}'],
  "a value with slashes in JSON": ["ses/ame", '{"not":"ses\\/ame"}', '{"not":"[redacted]"}'],
  "a value in a URL": ["ses/ame+1", "?not=ses%2Fame%2B1", "?not=[redacted]"],
};

for (const [what, [value, said, shown]] of Object.entries(CASES)) {
  Deno.test(`${what} is hidden as far as it is a secret`, () => {
    const secrets = new Secrets();
    secrets.add(value);
    assertEquals(secrets.redact(said), shown);
    assertEquals(new ServerSecrets([value]).redact(said), shown);
  });
}

Deno.test("a short key is hidden where it stands alone", () => {
  const secrets = new Secrets();
  secrets.add("Bearer sk-k", true);
  assertEquals(
    secrets.redact('bad "sk-k", not task-k or sk-kin: sk-k.'),
    'bad "[redacted]", not task-k or sk-kin: [redacted].',
  );
});

Deno.test("of two secrets the longer one is hidden whole", () => {
  const [short, long] = ["sesame-1", "sesame-1-of-production"];
  const secrets = new Secrets();
  secrets.add(short);
  secrets.add(long);
  for (const each of [secrets, new ServerSecrets([short, long])]) {
    assertEquals(each.redact(`${long}, ${short}`), "[redacted], [redacted]");
  }
});
