import { assert, assertEquals, assertStrictEquals, assertThrows } from "@std/assert";
import { convertTranscript } from "../src/transcript/convert.ts";
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
import { refusals } from "./strict.ts";
import { assertSame, freeze } from "./transcripts.ts";

interface Row {
  name: string;
  to: StyleName;
  given: Message[];
  wanted: Message[];
}

const rows: Row[] = [
  // Calls and results
  {
    name: "parallel calls and their results",
    to: "anthropic",
    given: [
      user,
      { ...calling(call("a"), call("b", "")), content: "Looking" },
      tool("a", "1"),
      tool("b", "2"),
      { role: "assistant", content: "done" },
    ],
    wanted: [
      user,
      assistant(text("Looking"), use("a"), use("b", {})),
      from(result("a", "1"), result("b", "2")),
      { role: "assistant", content: "done" },
    ],
  },
  {
    name: "parallel calls and their results, with text beside the results",
    to: "openai",
    given: [
      user,
      assistant(text("Look"), text("ing"), use("a"), use("b", {})),
      from(result("a", "1"), result("b", "2"), text("and?")),
      assistant(text("done")),
    ],
    wanted: [
      user,
      { ...calling(call("a"), call("b", "{}")), content: "Looking" },
      tool("a", "1"),
      tool("b", "2"),
      { role: "user", content: "and?" },
      { role: "assistant", content: "done" },
    ],
  },
  {
    name: "arguments that are no JSON object",
    to: "anthropic",
    given: [calling(call("a", '{"q":'), call("b", "null"), call("c", "[1]"), call("d", '"{}"'))],
    wanted: [assistant(use("a", {}), use("b", {}), use("c", {}), use("d", {}))],
  },
  {
    name: "an old function_call and its result",
    to: "anthropic",
    given: [
      user,
      { role: "assistant", content: null, function_call: { name: "ping", arguments: "{}" } },
      { role: "function", name: "ping", content: "pong" },
      { role: "assistant", content: null, function_call: { name: "ping", arguments: "{}" } },
      { role: "function", name: "ping", content: "pong" },
    ],
    wanted: [
      user,
      assistant(use("call_ping", {}, "ping")),
      from(result("call_ping", "pong")),
      assistant(use("call_ping_2", {}, "ping")),
      from(result("call_ping_2", "pong")),
    ],
  },
  {
    name: "errors: the text tells, and an empty one says at least that",
    to: "openai",
    given: [
      assistant(use("a"), use("b")),
      from({ ...result("a", "no such file"), is_error: true }, {
        type: "tool_result",
        tool_use_id: "b",
        is_error: true,
      }),
    ],
    wanted: [calling(call("a"), call("b")), tool("a", "no such file"), tool("b", "error")],
  },
  {
    name: "the mark of a suspended call goes along",
    to: "openai",
    given: [assistant(use("a")), from({ ...result("a", "Pay?"), pending: { id: "pnd-1" } })],
    wanted: [calling(call("a")), { ...tool("a", "Pay?"), pending: { id: "pnd-1" } }],
  },
  {
    name: "the mark of a suspended call goes along",
    to: "anthropic",
    given: [calling(call("a")), { ...tool("a", "Pay?"), pending: { id: "pnd-1" } }],
    wanted: [assistant(use("a")), from({ ...result("a", "Pay?"), pending: { id: "pnd-1" } })],
  },
  {
    name: "tool names that a model made up",
    to: "anthropic",
    given: [calling(call("a", "{}", "multi_tool_use.parallel"), call("b", "{}", ""))],
    wanted: [assistant(use("a", {}, "multi_tool_use_parallel"), use("b", {}, "unknown"))],
  },
  {
    name: "a call that a gateway tells in both styles",
    to: "anthropic",
    given: [{ ...assistant(text("hm"), use("a")), tool_calls: [call("a")] }, tool("a")],
    wanted: [assistant(text("hm"), use("a")), from(result("a"))],
  },
  {
    name: "a call that a gateway tells in both styles",
    to: "openai",
    given: [{ ...assistant(text("hm"), use("a"), use("b")), tool_calls: [call("a")] }],
    wanted: [{ ...calling(call("a"), call("b")), content: "hm" }],
  },
  // Ids
  {
    name: "ids that Anthropic refuses, and one used in each round",
    to: "anthropic",
    given: [
      calling(call("lookup:0"), call("lookup:1")),
      tool("lookup:0", "1"),
      tool("lookup:1", "2"),
      calling(call("lookup:0")),
      tool("lookup:0", "3"),
      assistant(use("lookup_0")),
      from(result("lookup_0", "4")),
    ],
    wanted: [
      assistant(use("lookup_0"), use("lookup_1")),
      from(result("lookup_0", "1"), result("lookup_1", "2")),
      assistant(use("lookup_0_2")),
      from(result("lookup_0_2", "3")),
      assistant(use("lookup_0_3")),
      from(result("lookup_0_3", "4")),
    ],
  },
  {
    name: "different ids that look alike once made legal",
    to: "anthropic",
    given: [calling(call("a:1"), call("a.1"), call("a_1")), tool("a:1", "1"), tool("a.1", "2"), {
      ...tool("a_1", "3"),
    }],
    wanted: [
      assistant(use("a_1"), use("a_1_2"), use("a_1_3")),
      from(result("a_1", "1"), result("a_1_2", "2"), result("a_1_3", "3")),
    ],
  },
  {
    name: "empty ids, and one id twice in a message: paired by order",
    to: "openai",
    given: [calling(call(""), call(""), call("a"), call("a")), tool("", "1"), tool("", "2"), {
      ...tool("a", "3"),
    }, tool("a", "4")],
    wanted: [
      calling(call("call_lookup"), call("call_lookup_2"), call("a"), call("a_2")),
      tool("call_lookup", "1"),
      tool("call_lookup_2", "2"),
      tool("a", "3"),
      tool("a_2", "4"),
    ],
  },
  {
    name: "an id longer than OpenAI takes",
    to: "openai",
    given: [assistant(use("x".repeat(64))), from(result("x".repeat(64)))],
    wanted: [calling(call("x".repeat(40))), tool("x".repeat(40))],
  },
  // Reasoning and the provider's own tools
  {
    name: "thinking, signatures, server tools",
    to: "openai",
    given: [
      user,
      assistant(
        thinking,
        { type: "redacted_thinking", data: "x" },
        search,
        found,
        { ...text("It is "), citations: [{ url: "https://a.test" }] },
        text("so"),
      ),
    ],
    wanted: [user, { role: "assistant", content: "It is so" }],
  },
  {
    name: "a message of nothing but reasoning",
    to: "openai",
    given: [user, assistant(thinking), user, assistant()],
    wanted: [user, user],
  },
  {
    name: "reasoning fields, nulls and extras",
    to: "anthropic",
    given: [
      {
        role: "assistant",
        content: "hi",
        refusal: null,
        reasoning: "r",
        reasoning_content: "r",
        reasoning_details: [{}],
        annotations: [],
        extra_content: { google: { thought_signature: "x" } },
      },
      { role: "assistant", content: [{ type: "thinking", thinking: [text("r")] }, text("hi")] },
      { role: "assistant", content: null, reasoning_content: "cut off" },
    ],
    wanted: [{ role: "assistant", content: "hi" }, assistant(text("hi"))],
  },
  {
    name: "a refusal is text",
    to: "anthropic",
    given: [{ role: "assistant", content: null, refusal: "I can't" }, {
      ...assistant({ type: "refusal", refusal: "No" }),
    }],
    wanted: [assistant(text("I can't")), assistant(text("No"))],
  },
  // System messages and names
  {
    name: "system messages at the start stay, later ones are user texts",
    to: "anthropic",
    given: [
      { role: "system", content: "Be brief" },
      { role: "developer", content: "Be kind" },
      { role: "user", name: "ann", content: "hello" },
      { role: "system", content: "Now be long" },
      { role: "developer", content: [text("or not")] },
    ],
    wanted: [
      { role: "system", content: "Be brief" },
      { role: "developer", content: "Be kind" },
      user,
      { role: "user", content: "Now be long" },
      from(text("or not")),
    ],
  },
  // What is not as it should be
  {
    name: "arguments given as an object, a call without a type",
    to: "openai",
    given: [calling({ id: "a", function: { name: "lookup", arguments: { q: "x" } }, extra: 1 })],
    wanted: [calling({ ...call("a"), extra: 1 })],
  },
  {
    name: "a function_call beside tool_calls, and an empty one beside a text",
    to: "openai",
    given: [
      { ...calling(call("a")), function_call: call("a").function },
      tool("a"),
      { role: "assistant", content: "hi", function_call: { name: "", arguments: "" } },
    ],
    wanted: [calling(call("a")), tool("a"), { role: "assistant", content: "hi" }],
  },
  {
    name: "a call without a name",
    to: "openai",
    given: [calling(call("a", "{}", ""))],
    wanted: [calling(call("a", "{}", "unknown"))],
  },
  {
    name: "an input that is no object, a result without content",
    to: "anthropic",
    given: [assistant(text("hm"), use("a", '{"q":"x"}'), use("b", [1])), {
      ...from(result("a", null), result("b", 5)),
    }],
    wanted: [assistant(text("hm"), use("a"), use("b", {})), {
      ...from(result("a", ""), result("b", [text("5")])),
    }],
  },
];

for (const { name, to, given, wanted } of rows) {
  Deno.test(`convertTranscript() to ${to}: ${name}`, () => {
    const converted = convertTranscript(freeze(given), to);
    assertEquals(converted, wanted);
    assertSame(convertTranscript(converted, to), converted);
  });
}

Deno.test("convertTranscript() keeps the objects of messages in the target style", () => {
  const openai = [
    { role: "system", content: "Be brief" },
    user,
    { ...calling(call("a:0")), content: "", reasoning_content: "r", extra_content: {} },
    { ...tool("a:0"), pending: { id: "pnd-1" } },
    from(text("see"), imageUrl(png)),
    { role: "assistant", content: null, refusal: "No" },
    assistant({ type: "refusal", refusal: "No" }),
    calling(call("a:0")),
    tool("a:0"),
  ];
  assertSame(convertTranscript(freeze(openai), "openai"), openai);
  const anthropic = [
    user,
    assistant(thinking, search, found, text("hm"), use("a"), { type: "new_kind" }),
    from({ ...result("a", [text("x"), pngBlock]), is_error: true, cache_control: {} }, text("b")),
    { ...assistant(text("c")), id: "msg_1", stop_reason: "end_turn" },
  ];
  assertSame(convertTranscript(freeze(anthropic), "anthropic"), anthropic);
  const mixed = [...openai.slice(1, 2), anthropic[1]!, anthropic[2]!, ...openai.slice(2, 4)];
  const converted = convertTranscript(freeze(mixed), "openai");
  assert(converted.includes(mixed[0]!) && converted.includes(mixed[3]!));
});

Deno.test("convertTranscript() shows a thinking block either to its own provider or to none", () => {
  const given = [user, assistant(thinking, use("u1")), from(result("u1")), user];
  assert(!JSON.stringify(convertTranscript(given, "openai")).includes("U0lH"));
  assertStrictEquals(convertTranscript(given, "anthropic")[1], given[1]);
});

Deno.test("convertTranscript() leaves a transcript of OpenAI style acceptable to Anthropic", () => {
  const given: Message[] = [
    { role: "user", content: "Find x" },
    { ...calling(call("call|1"), call("call|2")), content: "\n", refusal: null },
    tool("call|1"),
    tool("call|2", ""),
    { role: "assistant", content: "Found" },
    { role: "user", content: "Thanks" },
  ];
  assertEquals(refusals("anthropic", given).length > 0, true);
  assertEquals(refusals("anthropic", convertTranscript(given, "anthropic")), []);
});

Deno.test("convertTranscript() says what is wrong with what it is given", () => {
  assertThrows(() => convertTranscript({} as Message[], "openai"), TypeError, "messages must be");
  assertThrows(() => convertTranscript([user], "gemini" as StyleName), TypeError, '"gemini"');
});
