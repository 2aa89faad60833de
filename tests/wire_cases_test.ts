import { assertEquals } from "@std/assert";
import { differences } from "./wire/expect.ts";
import { hasStream, readFixtures } from "./wire/fixture.ts";
import { play } from "./wire/play.ts";

// Failures that servers, gateways and networks really have, each with what a right client does. The
// sanitizers of the test runner see to it that no timer, connection or reader is left.
const folder = new URL("./fixtures/wire/", import.meta.url);
const kinds = [...Deno.readDirSync(folder)].map(({ name }) => name)
  .filter((name) => name.endsWith(".jsonl")).sort();

for (const file of kinds) {
  const kind = file.replace(".jsonl", "").replaceAll("_", " ");
  for (const fixture of readFixtures(new URL(file, folder))) {
    for (const byteByByte of hasStream(fixture) ? [false, true] : [false]) {
      const how = byteByByte ? ", one byte at a time" : "";
      Deno.test(`${kind} (${fixture.style}): ${fixture.title}${how}`, async () => {
        assertEquals(differences(fixture, await play(fixture, byteByByte)), []);
      });
    }
  }
}
