// Skills: the model sees a catalog and loads the instructions that a task needs.
//
//   deno run --allow-net=127.0.0.1 --allow-read=tests/fixtures/skills examples/skills.ts
//
// A skill is a folder with a SKILL.md, as in tests/fixtures/skills, or data, as below.

import { createClient, createToolkit } from "@toolnexus/client";
import { listSkills, loadSkills } from "@toolnexus/client/skills";
import { stubLlm } from "@toolnexus/client/testing";

const dirs = new URL("../tests/fixtures/skills", import.meta.url);
const skills = await loadSkills({
  dirs,
  skills: [{
    name: "greetings",
    description: "How we greet",
    content: "Say hello, then the name.",
  }],
});
await using toolkit = createToolkit({ sources: [skills] });
console.log(toolkit.prompt());

await using server = stubLlm([
  { toolCalls: [{ name: "skill", args: { name: "pdf-forms" } }] },
  "First I list the fields of the form.",
]);
const { baseUrl } = server;
const client = createClient({ baseUrl, style: "openai", model: "test", toolkit });
const { text, toolCalls } = await client.run("Please fill in this form.");
console.log(`The model loaded ${toolCalls[0]?.output.split("\n")[1]}`);
console.log(text);

// For whoever writes skills: what is left out, and which rules of the format are broken.
const { skipped, warnings } = await listSkills(dirs);
for (const { reason } of skipped) console.log(`left out: ${reason}`);
for (const { message } of warnings) console.log(`warning: ${message}`);
