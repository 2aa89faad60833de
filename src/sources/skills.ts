/**
 * Agent Skills as tools: folders with a `SKILL.md` file, or the same as data. The model sees a catalog
 * in the system prompt and loads what it needs with one tool called `skill`.
 *
 * Needs `--allow-read` of the folders, and nothing for skills given as data. The format is that of
 * https://agentskills.io/specification.
 *
 * @example
 * ```ts
 * import { createToolkit } from "@toolnexus/client";
 * import { loadSkills } from "@toolnexus/client/skills";
 * import { assertStringIncludes } from "@std/assert";
 *
 * const skills = await loadSkills({
 *   skills: [{ name: "greet", description: "How we greet", content: "Say hello, then the name." }],
 * });
 * await using toolkit = createToolkit({ sources: [skills] });
 * assertStringIncludes(toolkit.prompt(), "- **greet**: How we greet");
 * ```
 *
 * @module
 */

import { dirname, join, toFileUrl } from "@std/path";
import type { Tool, ToolResult, ToolSourceProvider } from "../../mod.ts";
import { findSkills } from "./skills_discovery.ts";
import type {
  LoadSkillsOptions,
  SkillInfo,
  SkillInventory,
  SkillSkip,
  SkillWarning,
} from "./skills_discovery.ts";
import { listFiles } from "./skills_files.ts";

export type {
  LoadSkillsOptions,
  SkillDefinition,
  SkillInfo,
  SkillInventory,
  SkillSkip,
  SkillSkipReason,
  SkillWarning,
} from "./skills_discovery.ts";

/** The lines that stand before the catalog in the system prompt. */
export const SKILLS_PROMPT_PREAMBLE: string =
  "A skill is a set of instructions, and sometimes files, for one kind of task.\n" +
  "When a task matches the description of a skill below, load it with the skill tool first.";

const DESCRIPTION =
  "Loads a skill: the instructions for one kind of task, where its files are, and " +
  "what some of them are called. Call it before you begin a task that matches the description of a " +
  "skill in the system prompt, with the name given there.";

const DEFAULT_SAMPLE = 10;

/** Folders to search, or folders and more. */
export type SkillsInput = string | URL | readonly (string | URL)[] | LoadSkillsOptions;

/** Loaded skills, a source of tools for `createToolkit({ sources: [skills] })`. */
export interface SkillSource extends ToolSourceProvider {
  /** The skills by name. */
  readonly skills: Readonly<Record<string, SkillInfo>>;
  /** The tool that loads one of them. */
  readonly tool: Tool;
  /** What was found and is no skill, with the reason. */
  readonly skipped: readonly SkillSkip[];
  /** The tool; none when there are no skills. */
  tools(): Tool[];
  /** The catalog for the system prompt, sorted by name; empty when no skill has a description. */
  prompt(): string;
}

/**
 * Finds skills and makes their tool. It is lenient: front matter is mended where that is possible, a
 * name need not be that of the folder, and what cannot be loaded is left out with a warning on the
 * console. The files themselves are read now, the list of files beside them when the skill is loaded.
 *
 * The first skill of a name wins. One without a description can be loaded but is not in the catalog.
 *
 * @throws {TypeError | RangeError} if an option is wrong
 */
export async function loadSkills(
  input: SkillsInput,
): Promise<SkillSource> {
  const options = optionsOf(input);
  const { found, skipped } = await findSkills(options, "lenient");
  const skills = filterSkills(found, options.filter);
  for (const { location, reason, detail } of skipped) {
    console.warn(`skill left out (${reason}): ${location}${detail ? `: ${detail}` : ""}`);
  }
  const tool = skillTool(skills, options.sampleLimit || DEFAULT_SAMPLE);
  return {
    skills,
    tool,
    skipped,
    tools: () => Object.keys(skills).length > 0 ? [tool] : [],
    prompt: () => catalog(Object.values(skills)),
  };
}

/**
 * Finds skills as {@linkcode loadSkills} does and reports on them, for whoever writes them: nothing is
 * mended, nothing is filtered, and what breaks a rule of the format without keeping the skill from
 * being loaded is a warning.
 *
 * @throws {TypeError | RangeError} if an option is wrong
 *
 * @example
 * ```ts
 * import { listSkills } from "@toolnexus/client/skills";
 * import { assertEquals } from "@std/assert";
 *
 * const { skills, warnings } = await listSkills({ skills: [{ name: "Greet", content: "Hi" }] });
 * assertEquals(skills.length, 1);
 * assertEquals(warnings.map(({ message }) => message), [
 *   'name "Greet" must be lowercase letters, digits and single hyphens',
 *   "description is missing",
 * ]);
 * ```
 */
export async function listSkills(
  input: SkillsInput,
): Promise<SkillInventory> {
  const { found, skipped } = await findSkills(optionsOf(input), "strict");
  const skills = [...found.values()];
  return { skills, skipped, warnings: skills.flatMap(brokenRules) };
}

function optionsOf(input: SkillsInput): LoadSkillsOptions {
  const options = isOptions(input) ? input : { dirs: input };
  const limit = options.sampleLimit ?? 0;
  if (!Number.isInteger(limit) || limit < -1) {
    throw new RangeError(`sampleLimit must be -1 or a whole number from 0: ${limit}`);
  }
  return options;
}

function isOptions(input: SkillsInput): input is LoadSkillsOptions {
  return typeof input !== "string" && !(input instanceof URL) && !Array.isArray(input);
}

/** With a `true` in it, only what is true; without, all that is not false. */
function filterSkills(
  found: ReadonlyMap<string, SkillInfo>,
  filter: LoadSkillsOptions["filter"] = {},
): Record<string, SkillInfo> {
  const skills: Record<string, SkillInfo> = Object.create(null);
  if (typeof filter === "function") {
    for (const [name, skill] of found) if (filter(skill)) skills[name] = skill;
    return skills;
  }
  const wanted = new Map(Object.entries(filter));
  const onlyTrue = [...wanted.values()].includes(true);
  for (const name of wanted.keys()) {
    if (!found.has(name)) console.warn(`skill filter names an unknown skill: ${name}`);
  }
  for (const [name, skill] of found) {
    if (wanted.get(name) ?? !onlyTrue) skills[name] = skill;
  }
  return skills;
}

function catalog(skills: readonly SkillInfo[]): string {
  const lines = skills.filter(({ description }) => description !== undefined)
    .sort((a, b) => a.name < b.name ? -1 : 1)
    .map(({ name, description }) => `- **${oneLine(name)}**: ${oneLine(description ?? "")}`);
  if (lines.length === 0) return "";
  return [SKILLS_PROMPT_PREAMBLE, "", "## Available Skills", ...lines].join("\n");
}

/** A line break in a description would end its line in the catalog. */
function oneLine(text: string): string {
  return text.replace(/\s*[\r\n]\s*/g, " ");
}

function skillTool(skills: Readonly<Record<string, SkillInfo>>, sampleLimit: number): Tool {
  return {
    name: "skill",
    description: DESCRIPTION,
    inputSchema: {
      type: "object",
      properties: { name: { type: "string", description: "The skill's name" } },
      required: ["name"],
      additionalProperties: false,
    },
    source: "skill",
    async execute(args): Promise<ToolResult> {
      const name = String(args["name"] ?? "");
      const skill = skills[name];
      if (skill === undefined) {
        const names = Object.keys(skills).sort().join(", ") || "none";
        const output = `Skill "${name}" not found. Available skills: ${names}`;
        return { output, isError: true };
      }
      const folder = skill.origin === "folder" ? dirname(skill.location) : undefined;
      const output = skillContent(
        skill,
        folder === undefined ? skill.location : toFileUrl(folder).href,
        await sampleFiles(skill, folder, sampleLimit),
      );
      return { output, isError: false, metadata: { name, dir: folder ?? skill.location } };
    },
  };
}

/** The files to name; undefined where the list has no place. */
async function sampleFiles(
  skill: SkillInfo,
  folder: string | undefined,
  limit: number,
): Promise<string[] | undefined> {
  if (limit < 0) return undefined;
  if (folder === undefined) {
    const resources = skill.resources?.filter(isHarmless) ?? [];
    return resources.length > 0 ? resources.slice(0, limit) : undefined;
  }
  const { files } = await listFiles(folder);
  return files.filter((file) => !/(^|\/)SKILL\.md$/.test(file)).sort()
    .map((file) => join(folder, file)).filter(isHarmless).slice(0, limit);
}

/** The name of a file, or of a folder above it, must not be able to end the list. */
function isHarmless(path: string): boolean {
  return !/[<>\r\n]/.test(path);
}

function skillContent(
  skill: SkillInfo,
  base: string,
  files: readonly string[] | undefined,
): string {
  const lines = [
    `<skill_content name="${skill.name.replaceAll(/["<>\r\n]/g, "_")}">`,
    `# Skill: ${oneLine(skill.name)}`,
    "",
    skill.content.trim(),
    "",
    `Base directory for this skill: ${base}`,
    "Paths in the text above, such as scripts/run.sh, start from there.",
  ];
  if (files !== undefined) {
    lines.push("Note: file list is sampled.", "", "<skill_files>");
    lines.push(...files.map((file) => `<file>${file}</file>`), "</skill_files>");
  }
  return [...lines, "</skill_content>"].join("\n");
}

/** The rules of https://agentskills.io/specification that a loaded skill can break. */
function brokenRules(skill: SkillInfo): SkillWarning[] {
  const { name, description, location, frontMatter } = skill;
  const messages: string[] = [];
  const tell = (isBroken: boolean, message: string) => void (isBroken && messages.push(message));
  const folder = skill.origin === "folder" ? dirname(location).split(/[\\/]/).at(-1) : name;
  tell(typeof frontMatter["name"] !== "string", `name ${name} must be a string: quote it`);
  tell(
    !/^[\p{Ll}\p{Lo}\p{N}]+(-[\p{Ll}\p{Lo}\p{N}]+)*$/u.test(name),
    `name "${name}" must be lowercase letters, digits and single hyphens`,
  );
  tell(name.length > 64, `name is longer than 64 characters: ${name.length}`);
  tell(folder !== name, `name "${name}" must be that of its folder: "${folder}"`);
  tell(!description, "description is missing");
  tell((description?.length ?? 0) > 1_024, "description is longer than 1,024 characters");
  const { compatibility } = frontMatter;
  tell(
    typeof compatibility === "string" && compatibility.length > 500,
    "compatibility is longer than 500 characters",
  );
  return messages.map((message) => ({ location, message }));
}
