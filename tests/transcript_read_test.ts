import { assertEquals, assertStrictEquals } from "@std/assert";
import { callsOf, parseArguments, resultsOf, styleOf, textOf } from "../src/transcript/read.ts";
import type { Message, StyleName } from "../src/types.ts";
import {
  assistant,
  call,
  calling,
  found,
  from,
  imageUrl,
  png,
  pngBlock,
  result,
  search,
  text,
  thinking,
  tool,
  use,
  user,
} from "./messages_of_both_styles.ts";

Deno.test("styleOf() tells the style of a message, undefined where it is the same in both", () => {
  const wanted: [StyleName | undefined, Message][] = [
    [undefined, user],
    [undefined, { role: "assistant", content: "hi" }],
    [undefined, from(text("a"), { ...text("b"), cache_control: {} })],
    ["openai", tool("a")],
    ["openai", { role: "system", content: "s" }],
    ["openai", calling(call("a"))],
    ["openai", calling({ id: "a", function: {} })],
    ["openai", from(imageUrl(png))],
    ["openai", { role: "assistant", content: "hi", refusal: null }],
    ["openai", { role: "assistant", content: [{ type: "thinking", thinking: [] }] }],
    ["anthropic", assistant(text("hi"))],
    ["anthropic", assistant(thinking)],
    ["anthropic", assistant(use("a", "cut"))],
    ["anthropic", from(result("a"))],
    ["anthropic", from(pngBlock)],
  ];
  for (const [style, message] of wanted) assertEquals(styleOf(message), style);
});

Deno.test("callsOf(), resultsOf() and textOf() read either style", () => {
  const read = { id: "a", name: "lookup", arguments: '{"q":"x"}' };
  assertEquals(callsOf(calling(call("a"), null)), [read]);
  assertEquals(callsOf(assistant(search, use("a"))), [{ ...read, arguments: { q: "x" } }]);
  assertEquals(
    callsOf({ role: "assistant", function_call: { name: "lookup", arguments: "" } }),
    [{ id: "", name: "lookup", arguments: "" }],
  );
  assertEquals(callsOf({ ...calling(call("a")), role: "user" }), []);
  assertEquals(resultsOf(tool("a")), [{ id: "a", content: "ok", isError: false }]);
  assertEquals(resultsOf({ role: "function", name: "f", content: "ok" }), [
    { id: "", content: "ok", isError: false },
  ]);
  assertEquals(resultsOf(from(text("x"), { ...result("a"), is_error: true }, found)), [
    { id: "a", content: "ok", isError: true },
  ]);
  assertEquals(textOf(user), "hello");
  assertEquals(textOf(assistant(thinking, text("a"), null, text("b"))), "ab");
  assertEquals(textOf({ role: "assistant", content: null }), "");
});

Deno.test("parseArguments() takes an object or nothing, and makes up no arguments", () => {
  const given = { q: "x" };
  assertStrictEquals(parseArguments(given), given);
  assertEquals(parseArguments('{"q":"x"}'), given);
  for (const none of ["", " \n", undefined, null]) assertEquals(parseArguments(none), {});
  for (const bad of ["null", [], "[]", '"{}"', '{"q":', "{}{}", 5, "5", true]) {
    assertEquals(parseArguments(bad), undefined);
  }
});
