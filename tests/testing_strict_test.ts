import { assert, assertEquals } from "@std/assert";
import { refusalsOf } from "../src/testing/mod.ts";

const HELLO = [{ role: "user", content: "hello" }];

const call = (id: string, name = "f", args = "{}") => ({
  id,
  type: "function",
  function: { name, arguments: args },
});
const calls = (...tool_calls: unknown[]) => ({ role: "assistant", content: null, tool_calls });
const result = (tool_call_id: string, content: unknown = "r") => ({
  role: "tool",
  tool_call_id,
  content,
});

const OPENAI: [what: string, messages: unknown[], refusal?: RegExp][] = [
  ["a conversation", [...HELLO, { role: "assistant", content: "hi" }, ...HELLO]],
  ["a tool round", [...HELLO, calls(call("a"), call("b")), result("a"), result("b")]],
  ["content parts", [{ role: "user", content: [{ type: "text", text: "x" }] }]],
  ["a refusal in place of content", [...HELLO, { role: "assistant", refusal: "no" }]],
  ["a legacy call", [
    ...HELLO,
    { role: "assistant", content: null, function_call: { name: "f", arguments: "{}" } },
    { role: "function", name: "f", content: "r" },
  ]],
  ["no message", [], /^messages: must be a non-empty array$/],
  ["an unknown role", [{ role: "bot", content: "x" }], /^messages\[0\]\.role: must be one of/],
  ["a message that is none", [null], /^messages\[0\]\.role/],
  ["no content", [{ role: "user" }], /^messages\[0\]\.content: is required$/],
  ["a number as content", [{ role: "user", content: 5 }], /must be a string or an array of parts/],
  ["an empty list as content", [{ role: "user", content: [] }], /must not be an empty array/],
  [
    "an empty answer",
    [...HELLO, { role: "assistant", content: null }],
    /no tool call in its place/,
  ],
  [
    "an empty list of calls",
    [...HELLO, { role: "assistant", content: "x", tool_calls: [] }],
    /^messages\[1\]\.tool_calls: must not be an empty array$/,
  ],
  [
    "calls that are no list",
    [...HELLO, { role: "assistant", content: "x", tool_calls: {} }],
    /^messages\[1\]\.tool_calls: must be an array$/,
  ],
  [
    "a call without id",
    [...HELLO, calls(call("")), result("")],
    /tool_calls\[0\]\.id: is required/,
  ],
  ...["", "functions.weather", "get weather", "wetter_für", "n".repeat(65)].map((name) =>
    [
      `a call named ${name.slice(0, 20)}`,
      [...HELLO, calls(call("a", name)), result("a")],
      /^messages\[1\]\.tool_calls\[0\]\.function\.name: must be 1 to 64 letters, digits, _ and -$/,
    ] as [string, unknown[], RegExp]
  ),
  ["a call with the longest name", [...HELLO, calls(call("a", "n".repeat(64))), result("a")]],
  ["a legacy call of an odd name", [
    ...HELLO,
    { role: "assistant", content: null, function_call: { name: "f.g", arguments: "{}" } },
    { role: "function", name: "f.g", content: "r" },
  ], /^messages\[1\]\.function_call\.name: must be 1 to 64 letters/],
  [
    "a call of no type",
    [...HELLO, calls({ ...call("a"), type: "x" }), result("a")],
    /type: must be/,
  ],
  ["arguments that are no string", [
    ...HELLO,
    calls({ id: "a", type: "function", function: { name: "f", arguments: {} } }),
    result("a"),
  ], /function\.arguments: must be a string/],
  [
    "one id for two calls",
    [...HELLO, calls(call("a"), call("a")), result("a"), result("a")],
    /tool_calls\[1\]\.id: a is used twice/,
  ],
  [
    "a call without result",
    [...HELLO, calls(call("a"), call("b")), result("a"), ...HELLO],
    /^messages\[1\]: the calls \["a","b"\] need one result each right after them, not \["a"\]$/,
  ],
  ["a call at the end", [...HELLO, calls(call("a"))], /need one result each/],
  ["a result of another call", [...HELLO, calls(call("a")), result("b")], /not \["b"\]$/],
  ["two results of one call", [...HELLO, calls(call("a")), result("a"), result("a")], /need one/],
  [
    "results in another order",
    [...HELLO, calls(call("a"), call("b")), result("b"), result("a")],
    /need one result each/,
  ],
  [
    "a result after something else",
    [...HELLO, calls(call("a")), ...HELLO, result("a")],
    /^messages\[3\]: a tool result with no call before it$/,
  ],
  [
    "a result that is no text",
    [...HELLO, calls(call("a")), result("a", null)],
    /^messages\[2\]\.content: must be a string/,
  ],
  ["a legacy call without result", [
    ...HELLO,
    { role: "assistant", content: null, function_call: { name: "f", arguments: "{}" } },
  ], /^messages\[1\]\.function_call: must be followed by the message of its function$/],
  [
    "half of a surrogate pair",
    [{ role: "user", content: [{ type: "text", text: "a\ud800" }] }],
    /^messages\[0\]\.content\[0\]\.text: has half of a surrogate pair$/,
  ],
];

for (const [what, messages, refusal] of OPENAI) {
  Deno.test(`openai style: ${what} is ${refusal ? "refused" : "accepted"}`, () => {
    const reasons = refusalsOf("openai", { model: "m", messages });
    if (refusal) assert(reasons.some((reason) => refusal.test(reason)), reasons.join("\n"));
    else assertEquals(reasons, []);
  });
}

const use = (id: string, name = "f", input: unknown = {}) => ({
  type: "tool_use",
  id,
  name,
  input,
});
const uses = (...content: unknown[]) => ({ role: "assistant", content });
const toolResult = (tool_use_id: string, rest: object = { content: "r" }) => ({
  type: "tool_result",
  tool_use_id,
  ...rest,
});
const results = (...content: unknown[]) => ({ role: "user", content });
const text = (text: string) => ({ type: "text", text });

const ANTHROPIC: [what: string, messages: unknown[], refusal?: RegExp][] = [
  ["a conversation", [...HELLO, { role: "assistant", content: "hi" }, ...HELLO]],
  ["a tool round with more text", [
    ...HELLO,
    uses({ type: "thinking", thinking: "", signature: "s" }, text("x"), use("a"), use("b")),
    results(toolResult("a"), toolResult("b"), text("and?")),
  ]],
  ["an empty result", [...HELLO, uses(use("a")), results(toolResult("a", {}))]],
  ["two messages of one side", [...HELLO, ...HELLO]],
  ["no message", [], /^messages: must be a non-empty array$/],
  ["a system message", [{ role: "system", content: "x" }], /must be user or assistant/],
  ["an answer first", [uses(text("x")), ...HELLO], /the first message must be from the user/],
  ["no content", [{ role: "user" }], /^messages\[0\]\.content: must be a string or a non-empty/],
  ["an empty list as content", [results()], /must be a string or a non-empty array of blocks/],
  [
    "blank content",
    [{ role: "user", content: " \n" }],
    /^messages\[0\]\.content: must not be blank$/,
  ],
  [
    "a blank text block",
    [results(text(""))],
    /^messages\[0\]\.content\[0\]\.text: must not be blank$/,
  ],
  ["a block without type", [results({ text: "x" })], /must be an object with a type/],
  [
    "a call without result",
    [...HELLO, uses(use("a")), ...HELLO],
    /^messages\[2\]: the calls \["a"\] need one result each right after them, not \[\]$/,
  ],
  ["a call at the end", [...HELLO, uses(use("a"))], /^messages: the calls \["a"\] need/],
  [
    "a call before another answer",
    [...HELLO, uses(use("a")), uses(text("x"))],
    /^messages\[2\]: the/,
  ],
  ["a result without call", [results(toolResult("a"))], /^messages\[0\]: the calls \[\] need/],
  ["results in another order", [
    ...HELLO,
    uses(use("a"), use("b")),
    results(toolResult("b"), toolResult("a")),
  ], /need one result each/],
  [
    "a result after text",
    [...HELLO, uses(use("a")), results(text("x"), toolResult("a"))],
    /tool results must come before all else/,
  ],
  [
    "a result from the assistant",
    [...HELLO, uses(toolResult("a"))],
    /only the user gives tool res/,
  ],
  ["a call from the user", [results(use("a")), ...HELLO], /only the assistant calls tools/],
  [
    "an id with a dot",
    [...HELLO, uses(use("a.b")), results(toolResult("a.b"))],
    /id: must be letters/,
  ],
  ...["", "functions.weather", "get weather", "wetter_für", "n".repeat(129)].map((name) =>
    [
      `a call named ${name.slice(0, 20)}`,
      [...HELLO, uses(use("a", name)), results(toolResult("a"))],
      /^messages\[1\]\.content\[0\]\.name: must be 1 to 128 letters, digits, _ and -$/,
    ] as [string, unknown[], RegExp]
  ),
  ["a call with the longest name", [
    ...HELLO,
    uses(use("a", "n".repeat(128))),
    results(toolResult("a")),
  ]],
  [
    "an input that is no object",
    [...HELLO, uses(use("a", "f", "{}")), results(toolResult("a"))],
    /input: must be an object/,
  ],
  ["one id in two rounds", [
    ...[...HELLO, uses(use("a")), results(toolResult("a"))],
    ...[uses(use("a")), results(toolResult("a"))],
  ], /id: a is used twice/],
  ["an error without content", [
    ...HELLO,
    uses(use("a")),
    results(toolResult("a", { is_error: true, content: "" })),
  ], /content: must not be empty where is_error is true/],
  ["a result that is no text", [
    ...HELLO,
    uses(use("a")),
    results(toolResult("a", { content: {} })),
  ], /content: must be a string or an array of blocks/],
  [
    "thinking without signature",
    [...HELLO, uses({ type: "thinking", thinking: "x" }), ...HELLO],
    /signature: is required/,
  ],
  [
    "hidden thinking without data",
    [...HELLO, uses({ type: "redacted_thinking" }), ...HELLO],
    /data: is required/,
  ],
  [
    "a last answer that ends in white space",
    [...HELLO, { role: "assistant", content: "hi " }],
    /must not end in white space/,
  ],
  ["half of a surrogate pair", [{ role: "user", content: "\udc00" }], /half of a surrogate pair/],
];

for (const [what, messages, refusal] of ANTHROPIC) {
  Deno.test(`anthropic style: ${what} is ${refusal ? "refused" : "accepted"}`, () => {
    const reasons = refusalsOf("anthropic", { model: "m", max_tokens: 1, messages });
    if (refusal) assert(reasons.some((reason) => refusal.test(reason)), reasons.join("\n"));
    else assertEquals(reasons, []);
  });
}

Deno.test("a request without model, tokens or well-shaped tools is refused", () => {
  const openai = (body: object) => refusalsOf("openai", { model: "m", messages: HELLO, ...body });
  const anthropic = (body: object) =>
    refusalsOf("anthropic", { model: "m", max_tokens: 1, messages: HELLO, ...body });
  const parameters = { type: "object", properties: {} };
  const declared = { type: "function", function: { name: "f", parameters } };
  const tool = { name: "f", input_schema: parameters };
  assertEquals(openai({ tools: [declared, { type: "web_search" }], tool_choice: "auto" }), []);
  assertEquals(openai({ model: "" }), ["model: a model is required"]);
  assertEquals(openai({ tools: [] }), ["tools: must be a non-empty array"]);
  for (const rest of [{ tool_choice: "auto" }, { parallel_tool_calls: false }]) {
    const [key] = Object.keys(rest);
    assertEquals(openai(rest), [`${key}: only allowed with tools`]);
    assertEquals(openai({ tools: [declared], ...rest }), []);
  }
  assertEquals(anthropic({ tool_choice: { type: "auto" } }), [
    "tool_choice: only allowed with tools",
  ]);
  assertEquals(openai({ tools: [tool] }), ["tools[0]: must be an object with a type"]);
  assertEquals(openai({ tools: [{ type: "function", function: { name: "a b" } }] }), [
    "tools[0].function.name: must be 1 to 64 letters, digits, _ and -",
  ]);
  assertEquals(openai({ tools: [{ type: "function", function: { name: "f", parameters: {} } }] }), [
    "tools[0].function.parameters: must be a JSON Schema of type object",
  ]);
  assertEquals(anthropic({ tools: [tool, { type: "bash_20250124", name: "bash" }] }), []);
  assertEquals(anthropic({ system: [text("be brief")] }), []);
  assertEquals(anthropic({ max_tokens: undefined }), [
    "max_tokens: a positive whole number is required",
  ]);
  assertEquals(anthropic({ tools: [tool, tool] }), ["tools[1].name: f is used twice"]);
  assertEquals(anthropic({ tools: [declared] }).length, 1);
  assertEquals(anthropic({ tools: [{ name: "f" }] }), [
    "tools[0].input_schema: must be a JSON Schema of type object",
  ]);
  assertEquals(anthropic({ system: [text(" ")] }), [
    "system[0]: must be a text block that is not blank",
  ]);
  assertEquals(refusalsOf("openai", []), ["the body is not a JSON object"]);
});
