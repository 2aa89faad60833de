/**
 * Checks what would be published: the docs of every entry point, then a dry run of `deno publish`.
 *
 * The dry run calls a linked package inside the package root an excluded module as soon as published
 * code imports it, so it works on a temporary copy whose links lie beside the package.
 */
import { basename, fromFileUrl, join } from "@std/path";

interface Config {
  exports: Record<string, string>;
  links: string[];
}

const root = fromFileUrl(new URL("..", import.meta.url));
const config: Config = JSON.parse(await Deno.readTextFile(join(root, "deno.json")));

await deno(root, "doc", "--quiet", "--lint", ...Object.values(config.exports));

const copy = await Deno.makeTempDir({ prefix: "toolnexus-publish-" });
try {
  const links: string[] = [];
  for (const link of config.links) {
    const beside = `links/${basename(link)}`;
    await copyFolder(join(root, link), join(copy, beside));
    links.push(`../${beside}`);
  }
  const published = join(copy, "package");
  await copyFolder(root, published);
  await Deno.remove(join(published, "tests"), { recursive: true });
  await Deno.writeTextFile(
    join(published, "deno.json"),
    JSON.stringify({ ...config, links, lock: false }),
  );
  await deno(published, "publish", "--dry-run", "--allow-dirty");
} finally {
  await Deno.remove(copy, { recursive: true });
}

async function deno(cwd: string, ...args: string[]): Promise<void> {
  const child = new Deno.Command(Deno.execPath(), { args, cwd, stdin: "null" }).spawn();
  const { code } = await child.status;
  if (code !== 0) throw new Error(`deno ${args[0]} failed with exit code ${code}`);
}

async function copyFolder(from: string, to: string): Promise<void> {
  await Deno.mkdir(to, { recursive: true });
  for await (const entry of Deno.readDir(from)) {
    const [source, target] = [join(from, entry.name), join(to, entry.name)];
    if (entry.isFile) await Deno.copyFile(source, target);
    else if (entry.isDirectory && !/^(\.|node_modules$)/.test(entry.name)) {
      await copyFolder(source, target);
    }
  }
}
