/**
 * The files below a folder, within bounds and always in the same order.
 *
 * @module
 */

import { join } from "@std/path";

/** How many levels below the starting folder are looked at. */
const MAX_DEPTH = 6;
/** How many folders are looked at in all. */
const MAX_FOLDERS = 2_000;

const LEFT_OUT: ReadonlySet<string> = new Set(["node_modules", ".git"]);

/** What {@linkcode listFiles} found. */
export interface FileList {
  /** Paths relative to the folder, with `/`, the shallower first, then by name. */
  files: string[];
  /** Folders that could not be read, or not all of what is below them, with the reason. */
  unreadable: { path: string; reason: string }[];
}

/**
 * Lists the files below `root`, through links too, each folder once; links in a circle therefore end.
 * `.git` and `node_modules` are left out, and so is whatever lies beyond {@linkcode MAX_DEPTH} levels.
 * Of more than {@linkcode MAX_FOLDERS} folders the rest is not looked at; then `root` is unreadable.
 */
export async function listFiles(root: string): Promise<FileList> {
  const found: FileList = { files: [], unreadable: [] };
  const seen = new Set<string>();
  let level = [""];
  for (let depth = 0; level.length > 0 && depth <= MAX_DEPTH; depth++) {
    const below: string[] = [];
    const files: string[] = [];
    for (const folder of level) {
      try {
        const path = join(root, folder);
        const real = await Deno.realPath(path);
        if (seen.has(real)) continue;
        if (seen.size === MAX_FOLDERS) {
          const reason = `more than ${MAX_FOLDERS} folders: the rest is not looked at`;
          found.unreadable.push({ path: root, reason });
          below.length = 0;
          break;
        }
        seen.add(real);
        for await (const entry of Deno.readDir(path)) {
          const relative = folder === "" ? entry.name : `${folder}/${entry.name}`;
          const { isFile, isDirectory } = await target(entry, join(root, relative));
          if (isFile) files.push(relative);
          else if (isDirectory && !LEFT_OUT.has(entry.name)) below.push(relative);
        }
      } catch (error) {
        const reason = error instanceof Error ? error.message : String(error);
        found.unreadable.push({ path: join(root, folder), reason });
      }
    }
    found.files.push(...files.sort());
    level = below.sort();
  }
  return found;
}

/** What the entry is, or what it links to; a link to nowhere, or to where we may not look, is neither. */
async function target(
  entry: Deno.DirEntry,
  path: string,
): Promise<{ isFile: boolean; isDirectory: boolean }> {
  if (!entry.isSymlink) return entry;
  try {
    return await Deno.stat(path);
  } catch {
    return { isFile: false, isDirectory: false };
  }
}
