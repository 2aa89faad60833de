/**
 * Finding skills, on disk and as data.
 *
 * @module
 */

import { fromFileUrl, join, resolve } from "@std/path";
import { listFiles } from "./skills_files.ts";
import { parseSkillFile } from "./skills_front_matter.ts";

/** A skill given as data. */
export interface SkillDefinition {
  /** Its name. */
  name: string;
  /** What it is for; without it the skill is not in the catalog. */
  description?: string | undefined;
  /** The instructions, Markdown. */
  content: string;
  /** Names of its resources, as the model is to be told of them. @default [] */
  resources?: readonly string[] | undefined;
  /** Where the resources are. @default skill://<name>/ */
  base?: string | undefined;
}

/** A skill that was found. */
export interface SkillInfo {
  /** Its name. */
  readonly name: string;
  /** What it is for, where that is said. */
  readonly description?: string | undefined;
  /** The path of its `SKILL.md`; of a skill given as data, its base. */
  readonly location: string;
  /** The instructions: what follows the front matter. */
  readonly content: string;
  /** Whether it is a folder, or was given as data. */
  readonly origin: "folder" | "data";
  /** All fields of the front matter, `license` and `allowed-tools` among them. */
  readonly frontMatter: Readonly<Record<string, unknown>>;
  /** The resources of a skill given as data. */
  readonly resources?: readonly string[] | undefined;
}

/** Why something is no skill. */
export type SkillSkipReason =
  | "missing-name"
  | "malformed-frontmatter"
  | "duplicate-name"
  | "unreadable";

/** Something that was found and is no skill. */
export interface SkillSkip {
  /** The path, or the base of a skill given as data. */
  readonly location: string;
  /** Why. */
  readonly reason: SkillSkipReason;
  /** What exactly is wrong, for a human. */
  readonly detail?: string | undefined;
}

/** A rule of the format that a skill breaks. */
export interface SkillWarning {
  /** The skill's location. */
  readonly location: string;
  /** The rule. */
  readonly message: string;
}

/** What `listSkills` reports. */
export interface SkillInventory {
  /** The skills, in the order in which they were found. */
  readonly skills: readonly SkillInfo[];
  /** What is no skill. */
  readonly skipped: readonly SkillSkip[];
  /** Rules of the format that the skills break. */
  readonly warnings: readonly SkillWarning[];
}

/** Where skills come from and how they are shown. */
export interface LoadSkillsOptions {
  /**
   * Folders to search for `SKILL.md` files, 6 levels down and through links, 2,000 folders in all,
   * `.git` and `node_modules` left out; in a folder the shallower skill comes first, then the one
   * earlier in the alphabet.
   */
  dirs?: string | URL | readonly (string | URL)[] | undefined;
  /** Skills as data; they come after those of the folders. */
  skills?: readonly SkillDefinition[] | undefined;
  /**
   * The skills to take: by name, where one `true` means only those that are true and otherwise all but
   * the `false` ones are taken; or by a function.
   *
   * @default all
   */
  filter?: Readonly<Record<string, boolean>> | ((skill: SkillInfo) => boolean) | undefined;
  /** How many files the `skill` tool names: 0 is 10, -1 leaves the list out. @default 0 */
  sampleLimit?: number | undefined;
}

/** What a search found. */
export interface FoundSkills {
  /** By name, in the order in which they were found. */
  found: Map<string, SkillInfo>;
  /** The rest. */
  skipped: SkillSkip[];
}

/** Longer files are not read. */
const MAX_FILE_BYTES = 1_048_576;

/**
 * Finds the skills that the options name; a lenient search takes front matter that had to be mended.
 *
 * @throws {TypeError} if an option is wrong
 */
export async function findSkills(
  options: LoadSkillsOptions,
  mode: "lenient" | "strict",
): Promise<FoundSkills> {
  const dirs = pathsOf(options.dirs);
  const given = (options.skills ?? []).map(fromDefinition);
  const found = new Map<string, SkillInfo>();
  const skipped: SkillSkip[] = [];
  const add = (candidate: SkillInfo | SkillSkip) => {
    if ("reason" in candidate) return skipped.push(candidate);
    const { name, location } = candidate;
    const first = found.get(name);
    if (first === undefined) return found.set(name, candidate);
    const detail = `${name} is at ${first.location} already`;
    return skipped.push({ location, reason: "duplicate-name", detail });
  };
  for (const dir of dirs) for await (const candidate of searchFolder(dir, mode)) add(candidate);
  given.forEach(add);
  return { found, skipped };
}

function pathsOf(dirs: LoadSkillsOptions["dirs"]): string[] {
  const list: readonly unknown[] = dirs === undefined ? [] : Array.isArray(dirs) ? dirs : [dirs];
  return list.map((dir) => {
    if (dir instanceof URL) return fromFileUrl(dir);
    if (typeof dir === "string" && dir !== "") return resolve(dir);
    throw new TypeError(`dirs must be paths or file URLs: ${JSON.stringify(dir)}`);
  });
}

function fromDefinition(definition: SkillDefinition): SkillInfo | SkillSkip {
  const { name, description, content, resources, base } = definition;
  if (!name) return { location: base ?? "skill://", reason: "missing-name" };
  const wrong = [
    typeof name === "string" || "name must be a string",
    typeof content === "string" || "content must be a string",
    ["string", "undefined"].includes(typeof description) || "description must be a string",
    resources === undefined || Array.isArray(resources) || "resources must be an array",
  ].find((problem) => problem !== true);
  if (wrong) throw new TypeError(`skill ${JSON.stringify(name)}: ${wrong}`);
  return {
    name,
    description: description?.trim() || undefined,
    location: base || `skill://${name}/`,
    content,
    origin: "data",
    frontMatter: { name, description },
    resources: resources ?? [],
  };
}

async function* searchFolder(
  dir: string,
  mode: "lenient" | "strict",
): AsyncGenerator<SkillInfo | SkillSkip> {
  const { files, unreadable } = await listFiles(dir);
  for (const { path, reason } of unreadable) {
    yield { location: path, reason: "unreadable", detail: reason };
  }
  for (const file of files) {
    if (/(^|\/)SKILL\.md$/.test(file)) yield await readSkill(join(dir, file), mode);
  }
}

async function readSkill(
  location: string,
  mode: "lenient" | "strict",
): Promise<SkillInfo | SkillSkip> {
  const skip = (reason: SkillSkipReason, error: unknown) => {
    return { location, reason, detail: error instanceof Error ? error.message : String(error) };
  };
  let text: string;
  try {
    const { size } = await Deno.stat(location);
    if (size > MAX_FILE_BYTES) throw new RangeError(`${size} bytes, more than ${MAX_FILE_BYTES}`);
    text = await Deno.readTextFile(location);
  } catch (error) {
    return skip("unreadable", error);
  }
  try {
    const { frontMatter, body, mended } = parseSkillFile(text);
    if (mended !== undefined && mode === "strict") return skip("malformed-frontmatter", mended);
    const name = scalar(frontMatter["name"]);
    if (name === undefined) return { location, reason: "missing-name" };
    const description = scalar(frontMatter["description"]);
    return { name, description, location, content: body, origin: "folder", frontMatter };
  } catch (error) {
    return skip("malformed-frontmatter", error);
  }
}

/** YAML reads an unquoted 2024 or true as what it looks like; the author meant the word. */
function scalar(value: unknown): string | undefined {
  if (!["string", "number", "boolean"].includes(typeof value)) return undefined;
  return String(value).trim() || undefined;
}
