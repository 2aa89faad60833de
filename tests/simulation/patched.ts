// Copies of the client with a bug: what the simulation is worth is shown by what it finds in them.
import { assertEquals } from "@std/assert";
import { fromFileUrl, join, toFileUrl } from "@std/path";
import type { Library } from "./library.ts";

/** A change of one place of a source file. */
export interface Patch {
  /** The file, under `src`. */
  file: string;
  /** The text that is replaced; it must stand there exactly once. */
  find: string;
  replace: string;
}

/** The client of this project with changes, loaded from a copy in a folder. */
export async function patched(folder: string, patches: readonly Patch[]): Promise<Library> {
  const root = fromFileUrl(new URL("../../", import.meta.url));
  await copyFolder(join(root, "src"), join(folder, "src"));
  await Deno.copyFile(join(root, "mod.ts"), join(folder, "mod.ts"));
  for (const { file, find, replace } of patches) {
    const path = join(folder, "src", file);
    const parts = (await Deno.readTextFile(path)).split(find);
    assertEquals(parts.length - 1, 1, `src/${file} must have this once, to be broken: ${find}`);
    await Deno.writeTextFile(path, parts.join(replace));
  }
  const client = await import(toFileUrl(join(folder, "mod.ts")).href);
  const queue = await import(toFileUrl(join(folder, "src/queue.ts")).href);
  return { ...client, busyConversations: queue.busyConversations };
}

async function copyFolder(from: string, to: string): Promise<void> {
  await Deno.mkdir(to, { recursive: true });
  for await (const { name, isDirectory } of Deno.readDir(from)) {
    // What mod.ts does not need.
    if (isDirectory && ["sources", "ui", "testing"].includes(name)) continue;
    const copy = isDirectory ? copyFolder : Deno.copyFile;
    await copy(join(from, name), join(to, name));
  }
}
