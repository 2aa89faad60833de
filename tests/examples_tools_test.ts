/** Runs the examples of tools as their headers say, with the permissions that they name. */
import { assert, assertEquals } from "@std/assert";
import { fromFileUrl } from "@std/path";

const root = fromFileUrl(new URL("..", import.meta.url));

Deno.test("typed_tools.ts checks calls with four kinds of schema", async () => {
  assertEquals(await outputOf("typed_tools.ts"), [
    "ran weather: 3 sunny days in Paris",
    "refused convert: invalid arguments for convert: celsius must be a number (was a string)",
    "ran remind: Ann will be reminded on 2026-12-24",
    "refused roll: invalid arguments for roll: sides: 1 is less than 2",
    "ran convert: 70 °F",
    "ran roll: 6 of 6",
    "Done.",
  ]);
});

Deno.test("openapi.ts makes tools of an API's document", async () => {
  assertEquals(await outputOf("openapi.ts"), [
    "tools: addTask, getTask",
    'addTask({"title":"release"}): {"id":3,"title":"release"}',
    'getTask({"id":2}): {"id":2,"title":"test"}',
    'getTask({"id":9}): HTTP 404: no task 9',
    "health({}): 200 fine",
    "The task is there, number 9 is not.",
  ]);
});

/** The lines that an example prints when it is run by the command in its header. */
async function outputOf(name: string): Promise<string[]> {
  const text = await Deno.readTextFile(`${root}examples/${name}`);
  const [, flags] = new RegExp(`^// +deno run (.*) examples/${name}$`, "m").exec(text) ?? [];
  assert(flags !== undefined, `${name} names no command in its header`);
  const args = ["run", "--no-prompt", ...flags.split(" "), `examples/${name}`];
  const command = new Deno.Command(Deno.execPath(), { args, cwd: root, env: { NO_COLOR: "1" } });
  const { success, stdout, stderr } = await command.output();
  assert(success, new TextDecoder().decode(stderr));
  return new TextDecoder().decode(stdout).trimEnd().split("\n");
}
