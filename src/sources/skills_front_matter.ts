/**
 * The front matter of a `SKILL.md` file.
 *
 * @module
 */

import { parse } from "@std/yaml";

/** A `SKILL.md` file in its two parts. */
export interface SkillFile {
  /** The fields between the `---` lines; empty where there are no such lines. */
  frontMatter: Record<string, unknown>;
  /** What follows them. */
  body: string;
  /** Why the front matter as it stands is no YAML mapping, though one could be made of it. */
  mended?: string | undefined;
}

/**
 * Takes a `SKILL.md` file apart. Front matter that is no YAML only because of values that should have
 * been quoted, such as `description: Use when: x`, is read as if they were.
 *
 * @throws {Error} if the front matter cannot be read at all
 */
export function parseSkillFile(text: string): SkillFile {
  const lines = text.replace(/^\uFEFF/, "").split(/\r?\n/);
  if (!isFence(lines[0])) return { frontMatter: {}, body: lines.join("\n") };
  const end = lines.findIndex((line, index) => index > 0 && isFence(line));
  if (end < 0) throw new Error("the front matter has no closing ---");
  const fields = lines.slice(1, end);
  const body = lines.slice(end + 1).join("\n");
  try {
    return { frontMatter: parseMapping(fields), body };
  } catch (error) {
    try {
      const mended = error instanceof Error ? error.message : String(error);
      return { frontMatter: parseMapping(quoteBrokenFields(fields)), body, mended };
    } catch {
      throw error; // the file's own mistake, not that of the mending
    }
  }
}

function isFence(line: string | undefined): boolean {
  return line !== undefined && /^---[ \t]*$/.test(line);
}

/** `core` knows no dates: a skill called 2024-01-01 keeps its name. */
function parseMapping(lines: readonly string[]): Record<string, unknown> {
  const value = parse(lines.join("\n"), { schema: "core" }) ?? {};
  if (typeof value !== "object" || Array.isArray(value)) {
    throw new Error("the front matter is no YAML mapping");
  }
  return value as Record<string, unknown>;
}

/** Every field that is no YAML by itself becomes the quoted text of its lines; a name is not guessed. */
function quoteBrokenFields(lines: readonly string[]): string[] {
  const fields: string[][] = [];
  for (const line of lines) {
    const last = fields.at(-1);
    if (last === undefined || /^[^\s#]/.test(line)) fields.push([line]);
    else last.push(line);
  }
  return fields.flatMap((field) => {
    try {
      parseMapping(field);
      return field;
    } catch {
      const [, key, first] = /^([\w-]+):[ \t]+([^|>].*)$/.exec(field[0] ?? "") ?? [];
      if (key === undefined || first === undefined || key === "name") return field;
      const words = [first, ...field.slice(1)].map((line) => line.trim()).filter(Boolean);
      return [`${key}: ${JSON.stringify(words.join(" "))}`];
    }
  });
}
