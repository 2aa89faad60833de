import { assert, assertEquals, assertMatch, assertNotEquals, assertRejects } from "@std/assert";
import type { Message } from "../mod.ts";
import {
  conversationStoreContract,
  flakyStore,
  type StoreContractCase,
  type StoreContractOptions,
  type StoreUnderTest,
} from "../src/testing/mod.ts";
import { RightStore } from "./fixtures/right_store.ts";
import { WRONG_STORES } from "./fixtures/wrong_stores.ts";

/** A store of two closures, as the README has it. */
function closures(): StoreUnderTest {
  const map = new Map<string, readonly Message[]>();
  return {
    get: (id) => map.get(id),
    save: (id, messages) => void map.set(id, messages),
  };
}

/** The case of a name. */
function named(contract: readonly StoreContractCase[], name: string): StoreContractCase {
  const found = contract.filter((each) => each.name === name);
  assertEquals(found.length, 1, `there are ${found.length} cases named ${name}`);
  return found[0] as StoreContractCase;
}

/** The names of the cases that fail. */
async function failing(contract: readonly StoreContractCase[]): Promise<string[]> {
  const names: string[] = [];
  for (const { name, run } of contract) await run().catch(() => names.push(name));
  return names;
}

const quick = ({ name }: StoreContractCase) => !/1,000|1,001|5 MiB/.test(name);
const openRight = () => {
  const store = new RightStore();
  return { store, reopen: () => new RightStore(store.rows) };
};

for (
  const { name, run } of conversationStoreContract(openRight, {
    abilities: ["base", "delete", "list", "reopen"],
    validates: true,
  })
) Deno.test(`the contract passes a right store: ${name}`, run);

for (
  const { name, run } of conversationStoreContract(closures, {
    abilities: [],
    copies: false,
  })
) Deno.test(`the contract passes two closures over a map: ${name}`, run);

for (const { does, open, caughtBy } of WRONG_STORES) {
  Deno.test(`the contract catches a store that ${does}`, async () => {
    const contract = conversationStoreContract(open, { validates: true });
    const meant = caughtBy.map((name) => named(contract, name));
    assertEquals(await failing(meant), [...caughtBy]);
  });
}

Deno.test("what a map without copies and checks gets wrong is what the two options leave out", async () => {
  const options: StoreContractOptions = { abilities: [], validates: true };
  assertEquals(await failing(conversationStoreContract(closures, options).filter(quick)), [
    "copies: changing what get returned changes nothing in the store",
    "copies: changing what was saved changes nothing in the store",
    "copies: changing what is being saved changes nothing in the store",
    "JSON: undefined keys are dropped",
    "JSON: what JSON cannot hold is refused, and the old transcript stays",
    "ids: what is no id is refused",
  ]);
});

Deno.test("the contract says what a store offers, and tries nothing that it does not", async () => {
  const lines: string[] = [];
  const report = (line: string) => void lines.push(line);
  const detect = async (open: () => StoreUnderTest) => {
    const contract = conversationStoreContract(open, { report });
    await named(contract, "abilities: what the store offers is reported").run();
  };
  await detect(closures);
  await detect(() => new RightStore());
  await detect(() => flakyStore(new RightStore(), {})); // its save takes rest parameters
  await detect(() => ({ ...closures(), save: (_id, _messages, _base) => {} }));
  assertEquals(lines, [
    "the store offers get and save alone; not tried, since not offered: base, delete, list, reopen",
    "the store offers base, delete, list; not tried, since not offered: reopen",
    "the store offers base, delete, list; not tried, since not offered: reopen",
    "the store offers base; not tried, since not offered: delete, list, reopen",
  ]);
});

Deno.test("a declared ability must be there, and one that is there must be declared", async () => {
  const abilitiesCase = (open: () => StoreUnderTest, options: StoreContractOptions) =>
    conversationStoreContract(open, options)[0] as StoreContractCase;
  const lacking = abilitiesCase(closures, { abilities: ["base", "list"] });
  assertEquals(lacking.name, "abilities: the store offers base, list");
  await assertRejects(lacking.run, Error, "the store does not offer base, list");
  const quiet = abilitiesCase(() => new RightStore(), { abilities: ["base"] });
  await assertRejects(quiet.run, Error, "the store offers delete, list, too");
});

Deno.test("cases of abilities that were not declared are not there", () => {
  const all = conversationStoreContract(openRight);
  const few = conversationStoreContract(openRight, { abilities: ["delete"] });
  assert(few.length < all.length);
  assertEquals(
    few.slice(1).map(({ name }) => name),
    all.slice(1).filter(({ needs }) => needs.every((each) => each === "delete"))
      .map(({ name }) => name),
  );
  assertEquals(new Set(all.map(({ name }) => name)).size, all.length, "a name is there twice");
});

Deno.test("a store may have a field named store", async () => {
  class Wrapping extends RightStore {
    readonly store = new RightStore();
  }
  const name = "round trip: get returns what was saved";
  await named(conversationStoreContract(() => new Wrapping()), name).run();
  class Failing extends Wrapping {
    override save(): Promise<void> {
      return Promise.reject(new Error("it is this one that is tried"));
    }
  }
  const failing = conversationStoreContract(() => new Failing(), { abilities: [] });
  await assertRejects(named(failing, name).run, Error, "it is this one that is tried");
});

Deno.test("every case opens a store of its own and closes it, failed or not", async () => {
  let opened = 0;
  let closed = 0;
  const open = async () => {
    opened++;
    await Promise.resolve();
    return { store: closures(), close: () => void closed++ };
  };
  const contract = conversationStoreContract(open, { abilities: [] }).filter(quick);
  const failed = await failing(contract);
  assertNotEquals(failed, []);
  assertEquals([opened, closed], [contract.length, contract.length]);
});

Deno.test("a store that cannot be opened or closed fails the case; the first failure is shown", async () => {
  const name = "round trip: get returns what was saved";
  const cannotOpen = conversationStoreContract(() => Promise.reject(new Error("no database")));
  await assertRejects(named(cannotOpen, name).run, Error, "no database");
  const close = () => Promise.reject(new Error("cannot close"));
  const right = conversationStoreContract(() => ({ store: new RightStore(), close }));
  await assertRejects(named(right, name).run, Error, "cannot close");
  const store = { get: () => undefined, save: () => {} };
  const wrong = conversationStoreContract(() => ({ store, close }), { abilities: [] });
  await assertRejects(named(wrong, name).run, Error, 'get("a") returned undefined after save()');
});

Deno.test("a failure says what the store did wrong", async () => {
  const said = async (does: string) => {
    const wrong = WRONG_STORES.find((each) => each.does === does);
    assert(wrong, `no store ${does}`);
    const { run } = named(
      conversationStoreContract(wrong.open, { validates: true }),
      wrong.caughtBy[0],
    );
    return (await assertRejects(run, Error)).message;
  };
  const mixed = await said("sanitises ids");
  assertMatch(
    mixed,
    /^get\("a\/b"\) is wrong beside its like: message 0 should be .*I am a\/b.* and is /,
  );
  assertEquals(
    await said("takes a base and ignores it"),
    'save("a", …, base) overwrote a transcript with a base that someone has appended to',
  );
  assertMatch(
    await said("writes message by message"),
    /^get\(\) during a save returned a transcript/,
  );
  assertEquals(
    await said("drops what JSON.stringify drops"),
    "a transcript with a function was accepted instead of a TypeError",
  );
  assertMatch(await said("lists one page"), /^list\(\) left out 1: \["conversation \d+"\]$/);
});
