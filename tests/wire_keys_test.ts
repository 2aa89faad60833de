import { assertEquals } from "@std/assert";
import { type Answer, type Fixture, type Json, readFixtures } from "./wire/fixture.ts";
import { KEY, play } from "./wire/play.ts";

// Servers repeat the key that they were sent in whatever they complain about. The fixtures that end in
// an error are played once more, with the key in every word of complaint.

const folder = new URL("./fixtures/wire/", import.meta.url);
const WORDS = new Set([
  "message",
  "msg",
  "detail",
  "error",
  "raw",
  "reason",
  "status_msg",
  "Message",
]);

Deno.test("no error shows the key, whatever words of the server's have it", async () => {
  let played = 0;
  for await (const { name } of Deno.readDir(folder)) {
    if (!name.endsWith(".jsonl")) continue;
    for (const fixture of readFixtures(new URL(name, folder))) {
      if (fixture.expect.throws === undefined || fixture.client?.key !== undefined) continue;
      const { error, shown } = await play(withKey(fixture), false);
      // The text of an answer is the model's, not the server's.
      const words = shown.replaceAll(error?.partialText ?? KEY + KEY, "");
      assertEquals(words.includes(KEY), false, `${fixture.title}: ${words}`);
      played++;
    }
  }
  console.log(`no key in ${played} errors`);
  assertEquals(played > 100, true);
});

function withKey(fixture: Fixture): Fixture {
  return {
    ...fixture,
    server: fixture.server.map((answer): Answer => ({
      ...answer,
      ...(answer.json !== undefined && { json: complaining(answer.json) }),
      ...(typeof answer.text === "string" && { text: `${answer.text} ${KEY} ` }),
      ...(answer.stream !== undefined && {
        stream: answer.stream.map((item) =>
          typeof item === "string" && /error|message|broken/.test(item)
            ? item.replace(/\w(?=")|\n\n$/, (end) => `${KEY}${end}`)
            : complaining(item)
        ),
      }),
    })),
  };
}

function complaining(value: Json): Json {
  if (Array.isArray(value)) return value.map(complaining);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [
      key,
      typeof inner === "string" && WORDS.has(key) ? `${inner} ${KEY}` : complaining(inner),
    ]),
  );
}
