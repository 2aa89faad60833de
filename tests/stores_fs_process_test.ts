/** The file store among processes: several writers, killed writers, full disks, read-only folders. */
import { assert, assertEquals, assertGreater } from "@std/assert";
import { join } from "@std/path";
import type { Message } from "../mod.ts";
import { FsConversationStore } from "../stores/fs.ts";
import { TemporaryFolder } from "./fixtures/fs_folder.ts";
import {
  fourWriters,
  killed,
  type Kills,
  report,
  run,
  twoHundredKills,
} from "./fixtures/processes.ts";

const unix = Deno.build.os !== "windows";

Deno.test("four processes append 250 messages each to one conversation: all 1,000 are kept", async () => {
  await using folder = await TemporaryFolder.create();
  const store = new FsConversationStore(folder.path);
  await fourWriters(store, "one/Chat", "fs_append", folder.path);
  assertEquals((await folder.names()).length, 1);
});

Deno.test("200 kills at random instants: the old or the new transcript, nothing acknowledged lost", async () => {
  const lanes = [["chat", "a/b"], ["Chat", "con"], ["thread-1", "../x"], ["THREAD", "é"]];
  await twoHundredKills(lanes.map((ids) => async (totals) => {
    for (const id of ids) {
      await using folder = await TemporaryFolder.create();
      for (let turn = 0; turn < 25; turn++) await killOnce(folder, id, totals);
    }
  }));
});

/** Runs a program that saves without end, kills it, and checks what it left. */
async function killOnce(folder: TemporaryFolder, id: string, totals: Kills): Promise<void> {
  const store = new FsConversationStore(folder.path);
  const before = (await store.get(id).catch(() => null))?.length ?? 0;
  const acknowledged = Number((await killed("fs_save_loop", [folder.path, id], 20)).at(-1));
  const messages = await store.get(id) ?? [];
  const unacknowledged = messages.length - acknowledged;
  assert(unacknowledged === 0 || unacknowledged === 1, `${messages.length} of ${acknowledged}`);
  for (const [index, { content }] of messages.entries()) {
    const text = String(content);
    assert(text.startsWith(`${index} `) && text.endsWith(" end"), `torn message ${index}`);
  }
  totals.kills++;
  totals.saves += messages.length - before;
  totals.unacknowledged += unacknowledged;

  const leftovers = (await folder.names()).length - 1;
  totals.leftovers += leftovers;
  assert(leftovers <= 1, `${leftovers} leftovers`);
  await store.save(id, messages, messages);
  assertEquals((await folder.names()).length, 1);
}

Deno.test({
  name: "no room: the error says so, the old transcript stays whole, nothing is left behind",
  ignore: !unix,
  fn: async (t) => {
    const fill = async (how: string, folder: TemporaryFolder, id: string, under?: string[]) => {
      const args = [folder.path, id, "20000", "200"];
      const { saved, error } = JSON.parse(await run("fs_fill", args, under && { under }));
      report(`${how}: ${saved} messages fit, then ${error.name}: ${error.message}`);
      assertEquals(error.name, "StoreError");
      assert(/No space left|File too large/.test(error.message), error.message);
      assertGreater(saved, 0);

      const store = new FsConversationStore(folder.path);
      const messages = await store.get(id);
      assertEquals(messages?.length, saved);
      assertEquals((await folder.names()).length, 1);
      await store.save(id, [], messages!);
      await store.save(id, messages!, []);
      assertEquals(await store.get(id), messages);
    };

    await t.step("a limit on file size (ulimit -f)", async () => {
      await using folder = await TemporaryFolder.create();
      // The signal that goes with the limit is ignored: the write fails, as on a full disk.
      const script = `trap "" XFSZ; ulimit -f 1000; exec "$@"`;
      await fill("ulimit -f", folder, "chat", ["sh", "-c", script, "sh"]);
    });

    await using folder = await TemporaryFolder.create();
    await using disk = await mountSmallDisk(folder);
    await t.step({
      name: disk ? "a full disk (tmpfs)" : "a full disk (not run: tmpfs cannot be mounted here)",
      ignore: !disk,
      fn: () => fill("tmpfs", folder, "full/Disk"),
    });
  },
});

Deno.test({
  name: "a read-only folder is read; a save is an error, and nothing is lost",
  ignore: !unix,
  fn: async () => {
    await using folder = await TemporaryFolder.create();
    const store = new FsConversationStore(folder.path);
    const messages: Message[] = [{ role: "user", content: "kept" }];
    await store.save("chat", messages);
    await Deno.chmod(folder.path, 0o555);
    try {
      // The superuser could write all the same, but for this.
      const under = await mayWrite(folder.path) ? ["setpriv", "--bounding-set", "-all"] : [];
      for (const [id, count] of [["chat", 1], ["new", 0], ["New/1", 0]] as const) {
        const printed = await run("fs_fill", [folder.path, id, "10", "2"], { under });
        const { saved, error } = JSON.parse(printed);
        assertEquals([saved, error.name], [count, "StoreError"]);
        assert(/denied/.test(error.message), error.message);
      }
    } finally {
      await Deno.chmod(folder.path, 0o755);
    }
    assertEquals(await store.get("chat"), messages);
    assertEquals(await folder.names(), ["chat.json"]);
  },
});

/** A disk of 2 MiB at the place of the folder, where one can be mounted. */
async function mountSmallDisk(folder: TemporaryFolder): Promise<AsyncDisposable | undefined> {
  await Deno.mkdir(folder.path);
  if (!await succeeds("mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", folder.path)) {
    return undefined;
  }
  return {
    async [Symbol.asyncDispose]() {
      assert(await succeeds("umount", folder.path), `umount ${folder.path} failed`);
    },
  };
}

async function succeeds(command: string, ...args: string[]): Promise<boolean> {
  try {
    return (await new Deno.Command(command, { args, stderr: "null" }).output()).success;
  } catch {
    return false;
  }
}

async function mayWrite(dir: string): Promise<boolean> {
  const path = join(dir, "attempt");
  return await Deno.writeTextFile(path, "").then(() => Deno.remove(path)).then(
    () => true,
    () => false,
  );
}
