import { assertEquals, assertThrows } from "@std/assert";
import { balanceTranscript, INTERRUPTED, NOT_EXECUTED } from "../src/transcript/balance.ts";
import type { Message, StyleName } from "../src/types.ts";
import { assertSame, freeze } from "./transcripts.ts";

const call = (id: string, args = "{}") => ({
  id,
  type: "function",
  function: { name: "pay", arguments: args },
});
const calling = (...calls: unknown[]): Message => ({
  role: "assistant",
  content: null,
  tool_calls: calls,
});
const tool = (id: string, content = `result ${id}`): Message => ({
  role: "tool",
  tool_call_id: id,
  content,
});
const use = (id: string, input: unknown = {}) => ({ type: "tool_use", id, name: "pay", input });
const using = (...content: unknown[]): Message => ({ role: "assistant", content });
const result = (id: string, content = `result ${id}`) => ({
  type: "tool_result",
  tool_use_id: id,
  content,
});
const from = (...content: unknown[]): Message => ({ role: "user", content });
const closer = (id: string, content = INTERRUPTED) => ({ ...result(id, content), is_error: true });
const user: Message = { role: "user", content: "hello" };
const text = { type: "text", text: "hello" };
const bye: Message = { role: "assistant", content: "bye" };

interface Row {
  name: string;
  style: StyleName;
  given: Message[];
  /** Absent: nothing changes. */
  wanted?: Message[];
  closed?: string[];
  dropped?: string[];
}

const rows: Row[] = [
  // What is valid
  { name: "an empty transcript", style: "openai", given: [] },
  {
    name: "parallel calls answered in order",
    style: "openai",
    given: [user, calling(call("a"), call("b")), tool("a"), tool("b"), bye],
  },
  {
    name: "parallel calls answered first in one user message",
    style: "anthropic",
    given: [user, using(use("a"), use("b")), from(result("a"), result("b"), text), bye],
  },
  {
    name: "the same id in each round",
    style: "openai",
    given: [user, calling(call("lookup:0")), tool("lookup:0", "1"), calling(call("lookup:0")), {
      ...tool("lookup:0"),
      content: "2",
    }, bye],
  },
  {
    name: "one id twice in a message, answered twice",
    style: "openai",
    given: [calling(call("a"), call("a")), tool("a", "1"), tool("a", "2")],
  },
  {
    name: "the old function_call form",
    style: "openai",
    given: [
      { role: "assistant", content: null, function_call: { name: "pay", arguments: "{}" } },
      { role: "function", name: "pay", content: "ok" },
      user,
    ],
  },
  {
    name: "a suspended call with its marked placeholder",
    style: "anthropic",
    given: [
      user,
      using(use("a")),
      from({ ...result("a", "Pay?"), pending: { id: "pnd-1", kind: "approval", prompt: "Pay?" } }),
    ],
  },
  {
    name: "tools that the provider ran itself",
    style: "anthropic",
    given: [user, using({ type: "server_tool_use", id: "s", name: "web_search", input: {} })],
  },
  {
    name: "calls of one style answered in the other's shape",
    style: "anthropic",
    given: [user, using(use("a"), use("b")), tool("a"), tool("b"), user, calling(call("c")), {
      ...from(result("c"), text),
    }],
  },
  {
    name: "an answer written in an odd way",
    style: "openai",
    given: [{ role: "assistant", content: 7, tool_calls: "none" }, { role: "user" }],
  },
  // A call without a result
  {
    name: "the only call, at the end",
    style: "openai",
    given: [user, calling(call("a"))],
    wanted: [user, calling(call("a")), tool("a", INTERRUPTED)],
    closed: ["a"],
  },
  {
    name: "the only call, at the end, with blocks",
    style: "anthropic",
    given: [user, using(text, use("a"))],
    wanted: [user, using(text, use("a")), from(closer("a"))],
    closed: ["a"],
  },
  {
    name: "a call before a new question: the result goes first in it",
    style: "anthropic",
    given: [user, using(use("a")), user],
    wanted: [user, using(use("a")), from(closer("a"), text)],
    closed: ["a"],
  },
  {
    name: "a call before a new answer",
    style: "anthropic",
    given: [user, using(use("a")), bye],
    wanted: [user, using(use("a")), from(closer("a")), bye],
    closed: ["a"],
  },
  {
    name: "one of two, in the middle of the others' results",
    style: "openai",
    given: [calling(call("a"), call("b"), call("c")), tool("a"), tool("c"), user],
    wanted: [
      calling(call("a"), call("b"), call("c")),
      tool("a"),
      tool("b", INTERRUPTED),
      tool("c"),
      user,
    ],
    closed: ["b"],
  },
  {
    name: "arguments cut short: it cannot have run",
    style: "openai",
    given: [calling(call("a", '{"amount": 9'), call("b", "[1]"), call("c", ""))],
    wanted: [
      calling(call("a", '{"amount": 9'), call("b", "[1]"), call("c", "")),
      tool("a", NOT_EXECUTED),
      tool("b", NOT_EXECUTED),
      tool("c", INTERRUPTED),
    ],
    closed: ["a", "b", "c"],
  },
  {
    name: "the old function_call form",
    style: "openai",
    given: [
      { role: "assistant", content: null, function_call: { name: "pay", arguments: "{}" } },
      { role: "function", name: "look", content: "of another" },
    ],
    wanted: [
      { role: "assistant", content: null, function_call: { name: "pay", arguments: "{}" } },
      { role: "function", name: "pay", content: INTERRUPTED },
    ],
    closed: ["pay"],
    dropped: ["look"],
  },
  {
    name: "in either style, whichever is asked for: a closer has its call's shape",
    style: "openai",
    given: [user, using(use("a")), user, calling(call("b"))],
    wanted: [user, using(use("a")), from(closer("a"), text), calling(call("b")), {
      ...tool("b", INTERRUPTED),
    }],
    closed: ["a", "b"],
  },
  {
    name: "in both styles at once: the style asked for decides",
    style: "anthropic",
    given: [{ ...using(use("a"), use("b")), tool_calls: [call("a")] }],
    wanted: [
      { ...using(use("a"), use("b")), tool_calls: [call("a")] },
      from(closer("a"), closer("b")),
    ],
    closed: ["a", "b"],
  },
  // Results that do not belong
  {
    name: "a result whose call was trimmed away",
    style: "openai",
    given: [tool("gone"), user, bye],
    wanted: [user, bye],
    dropped: ["gone"],
  },
  {
    name: "a result block whose call is gone; the text beside it stays",
    style: "anthropic",
    given: [from(result("gone"), text), bye, from(result("gone"))],
    wanted: [from(text), bye],
    dropped: ["gone", "gone"],
  },
  {
    name: "a result of a call with another id",
    style: "anthropic",
    given: [using(use("A")), from(result("B"))],
    wanted: [using(use("A")), from(closer("A"))],
    closed: ["A"],
    dropped: ["B"],
  },
  {
    name: "a second result: the first wins",
    style: "openai",
    given: [calling(call("a")), tool("a", "1"), tool("a", "2"), user, tool("a", "3")],
    wanted: [calling(call("a")), tool("a", "1"), user],
    dropped: ["a", "a"],
  },
  {
    name: "a second result is not that of an earlier call with the same id",
    style: "openai",
    given: [calling(call("x")), user, calling(call("x")), tool("x", "1"), tool("x", "2")],
    wanted: [calling(call("x")), tool("x", INTERRUPTED), user, calling(call("x")), tool("x", "1")],
    closed: ["x"],
    dropped: ["x"],
  },
  {
    name: "a result before its call",
    style: "openai",
    given: [user, tool("a"), calling(call("a"))],
    wanted: [user, calling(call("a")), tool("a", INTERRUPTED)],
    closed: ["a"],
    dropped: ["a"],
  },
  // Results in the wrong place
  {
    name: "results out of order",
    style: "openai",
    given: [calling(call("a"), call("b")), tool("b"), tool("a"), user],
    wanted: [calling(call("a"), call("b")), tool("a"), tool("b"), user],
  },
  {
    name: "result blocks out of order, after a text",
    style: "anthropic",
    given: [using(use("a"), use("b")), from(text, result("b"), result("a"))],
    wanted: [using(use("a"), use("b")), from(result("a"), result("b"), text)],
  },
  {
    name: "parallel results in several user messages",
    style: "anthropic",
    given: [using(use("a"), use("b")), from(result("a")), from(result("b")), user],
    wanted: [using(use("a"), use("b")), from(result("a"), result("b")), user],
  },
  {
    name: "a user message between call and result",
    style: "openai",
    given: [calling(call("a")), user, tool("a"), bye],
    wanted: [calling(call("a")), tool("a"), user, bye],
  },
  {
    name: "a result that came late, in a later round",
    style: "anthropic",
    given: [using(use("a")), user, using(use("b")), from(result("b"), result("a"), text)],
    wanted: [using(use("a")), from(result("a"), text), using(use("b")), from(result("b"), text)],
  },
  {
    name: "a result in the call's own message",
    style: "anthropic",
    given: [using(use("a"), result("a")), user],
    wanted: [using(use("a")), from(result("a"), text)],
  },
  {
    name: "a round answered half in one shape, half in the other",
    style: "openai",
    given: [
      using(use("a"), use("b")),
      { ...tool("a"), pending: { id: "pnd-1" } },
      from(result("b"), text),
    ],
    wanted: [
      using(use("a"), use("b")),
      from({ ...result("a"), pending: { id: "pnd-1" } }, result("b"), text),
    ],
  },
  {
    name: "the same the other way",
    style: "openai",
    given: [
      calling(call("a"), call("b")),
      from({ ...result("b"), pending: { id: "pnd-1" } }, text),
      tool("a"),
    ],
    wanted: [
      calling(call("a"), call("b")),
      tool("a"),
      { ...tool("b"), pending: { id: "pnd-1" } },
      from(text),
    ],
  },
  {
    name: "results alone inside a message that makes calls",
    style: "openai",
    given: [user, { ...calling(call("a")), content: [result("z")] }],
    wanted: [user, { ...calling(call("a")), content: null }, tool("a", INTERRUPTED)],
    closed: ["a"],
    dropped: ["z"],
  },
];

for (const { name, style, given, wanted, closed = [], dropped = [] } of rows) {
  const does = wanted === undefined ? "leaves alone" : "mends";
  Deno.test(`balanceTranscript() ${does}: ${name} (${style})`, () => {
    const { messages, report } = balanceTranscript(freeze(given), style);
    assertEquals(messages, wanted ?? given);
    assertEquals(report, { closedCalls: closed, droppedResults: dropped });
    if (wanted === undefined) assertSame(messages, given);
    const again = balanceTranscript(messages, style);
    assertSame(again.messages, messages);
    assertEquals(again.report, { closedCalls: [], droppedResults: [] });
  });
}

Deno.test("balanceTranscript() keeps the objects of messages that need no mending", () => {
  const given = [user, calling(call("a"), call("b")), tool("b"), user, bye];
  const { messages } = balanceTranscript(given, "openai");
  assertSame(messages.filter((message) => given.includes(message)), [
    given[0]!,
    given[1]!,
    given[2]!,
    given[3]!,
    given[4]!,
  ]);
});

Deno.test("balanceTranscript() says what is wrong with what it is given", () => {
  const wrong = (messages: unknown, style: unknown) => () =>
    balanceTranscript(messages as Message[], style as StyleName);
  assertThrows(wrong(null, "openai"), TypeError, "messages must be an array: null");
  assertThrows(wrong([user, null], "openai"), TypeError, "messages[1] must be an object: null");
  assertThrows(wrong([], "gemini"), TypeError, 'style must be "openai" or "anthropic": "gemini"');
});
