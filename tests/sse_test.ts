import { assertEquals } from "@std/assert";
import { createClient } from "../mod.ts";
import { SseParser } from "../src/wire/sse.ts";
import { TextReader } from "../src/wire/text_reader.ts";
import { Random } from "./wire/random.ts";

/** Data and event name of each event, from text in pieces. */
function parse(...pieces: string[]): [data: string, event: string][] {
  const events: [string, string][] = [];
  const parser = new SseParser((data, event) => events.push([data, event]));
  for (const piece of pieces) parser.push(piece);
  parser.end();
  return events;
}

/** The same from bytes in chunks, through the reader that decodes them. */
async function parseBytes(chunks: Iterable<Uint8Array>): Promise<[string, string][]> {
  const events: [string, string][] = [];
  const parser = new SseParser((data, event) => events.push([data, event]));
  using reader = new TextReader(ReadableStream.from(chunks), new AbortController().signal);
  for (let text; (text = await reader.read()) !== undefined;) parser.push(text);
  parser.end();
  return events;
}

const encoder = new TextEncoder();

function* singleBytes(text: string): Generator<Uint8Array> {
  for (const byte of encoder.encode(text)) yield Uint8Array.of(byte);
}

Deno.test("a line ends in LF, CR or CRLF, and in nothing else", () => {
  for (const end of ["\n", "\r", "\r\n"]) {
    const text = ["event: a", "data: 1", "data: 2", "", "data: 3", "", ""].join(end);
    assertEquals(parse(text), [["1\n2", "a"], ["3", ""]]);
    assertEquals(parse(...text), [["1\n2", "a"], ["3", ""]]);
  }
  const inside = "a\u2028b\u2029c\u0085d\v\f\0e";
  assertEquals(parse(`data: ${inside}\n\n`), [[inside, ""]]);
});

Deno.test("a CRLF that two pieces share is one line end, wherever the cut falls", () => {
  const text = "data: a\r\ndata: b\r\n\r\ndata: c\r\n\r\n";
  for (let cut = 0; cut <= text.length; cut++) {
    assertEquals(parse(text.slice(0, cut), text.slice(cut)), [["a\nb", ""], ["c", ""]]);
    assertEquals(parse(text.slice(0, cut), "", text.slice(cut)), [["a\nb", ""], ["c", ""]]);
  }
  assertEquals(parse("data: a\r", "\r", "data: b"), [["a", ""], ["b", ""]]);
});

Deno.test("one space after the colon belongs to the field, and none is needed", () => {
  assertEquals(parse("data:a\n\n"), [["a", ""]]);
  assertEquals(parse("data:  a \n\n"), [[" a ", ""]]);
  assertEquals(parse("data:\ta\n\n"), [["\ta", ""]]);
  assertEquals(parse("event:x\ndata:a:b\n\n"), [["a:b", "x"]]);
});

Deno.test("data lines are joined by LF; empty ones count, and so does a field without a colon", () => {
  assertEquals(parse("data: a\ndata:\ndata\ndata: b\n\n"), [["a\n\n\nb", ""]]);
  assertEquals(parse("data\n\n"), [["", ""]]);
  assertEquals(parse("data:\n\n"), [["", ""]]);
});

Deno.test("comments, other fields and events without data say nothing", () => {
  const nothing =
    ": hi\n\n:\n\nid: 1\nretry: 5\nfoo: bar\nfoo\n Data: x\ndata : x\n\nevent: lonely\n\n";
  assertEquals(parse(nothing), []);
  assertEquals(parse(`${nothing}data: a\n: between\ndata: b\n\n${nothing}`), [["a\nb", ""]]);
});

Deno.test("the event name holds for one event, and the last one wins", () => {
  assertEquals(parse("event: a\nevent: b\ndata: 1\n\ndata: 2\n\n"), [["1", "b"], ["2", ""]]);
  assertEquals(parse("event: a\nevent\ndata: 1\n\n"), [["1", ""]]);
});

Deno.test("a last event counts without its blank line, and without its line end", () => {
  assertEquals(parse("data: a\n\ndata: b\n"), [["a", ""], ["b", ""]]);
  assertEquals(parse("data: a\n\nevent: e\ndata: b"), [["a", ""], ["b", "e"]]);
  assertEquals(parse("data: a\n\ndata: b\r"), [["a", ""], ["b", ""]]);
  assertEquals(parse("data: a\n\nevent: e\n"), [["a", ""]]);
});

Deno.test("a byte order mark is skipped at the start of the bytes alone", async () => {
  assertEquals(await parseBytes([encoder.encode("\ufeffdata: a\n\n")]), [["a", ""]]);
  assertEquals(await parseBytes(singleBytes("\ufeffdata: a\n\n")), [["a", ""]]);
  assertEquals(await parseBytes(singleBytes("data: \ufeffa\n\n")), [["\ufeffa", ""]]);
});

Deno.test("characters that chunks cut are whole, and broken ones become U+FFFD", async () => {
  const text = "data: aé€🌍👩‍👩‍👧‍👦z\n\n";
  assertEquals(await parseBytes(singleBytes(text)), [["aé€🌍👩‍👩‍👧‍👦z", ""]]);
  const bytes = encoder.encode(text);
  for (let cut = 0; cut <= bytes.length; cut++) {
    const chunks = [bytes.subarray(0, cut), bytes.subarray(cut)];
    assertEquals(await parseBytes(chunks), [["aé€🌍👩‍👩‍👧‍👦z", ""]]);
  }
  const broken = [
    encoder.encode("data: a"),
    Uint8Array.of(0xff, 0xe2, 0x82),
    encoder.encode("b\n\n"),
  ];
  assertEquals(await parseBytes(broken), [["a\ufffd\ufffdb", ""]]);
  const cutOff = [encoder.encode("data: a"), Uint8Array.of(0xf0, 0x9f)];
  assertEquals(await parseBytes(cutOff), [["a\ufffd", ""]]);
});

Deno.test("generated streams mean the same whole, in pieces of any size, and byte by byte", async () => {
  const random = new Random(20_260_101);
  const bits = ["data: ", "data:", "data", "event: e", "id: 7", ": c", ":", "x", " ", "é", "🌍"];
  const ends = ["\n", "\r", "\r\n", "\n\n", "\r\r", "\r\n\r\n"];
  for (let run = 0; run < 500; run++) {
    const text = Array.from(
      { length: random.below(40) },
      () => random.below(3) === 0 ? random.of(ends) : random.of(bits),
    ).join("");
    const whole = parse(text);
    assertEquals(parse(...random.pieces(text)), whole, JSON.stringify(text));
    assertEquals(await parseBytes(singleBytes(text)), whole, JSON.stringify(text));
    assertEquals(whole, byTheBook(text), JSON.stringify(text));
  }
});

/** The standard's grammar, read off as simply as it is written; slow. */
function byTheBook(text: string): [string, string][] {
  const events: [string, string][] = [];
  let data: string[] = [], event = "";
  const dispatch = () => {
    if (data.length > 0) events.push([data.join("\n"), event]);
    data = [];
    event = "";
  };
  for (const line of text.split(/\r\n|\r|\n/)) {
    const [, field, value = ""] = /^([^:]*)(?:: ?(.*))?$/su.exec(line)!;
    if (line === "") dispatch();
    else if (field === "data") data.push(value);
    else if (field === "event") event = value;
  }
  // Beyond the standard: what the end of the body leaves open counts.
  dispatch();
  return events;
}

Deno.test("an event costs time in proportion to its length, however small its chunks are", () => {
  const seconds = (length: number) => {
    const piece = "a".repeat(64);
    let best = Infinity;
    for (let round = 0; round < 5; round++) {
      const started = performance.now();
      let size = 0;
      const parser = new SseParser((data) => size = data.length);
      parser.push("data: ");
      for (let k = 0; k < length; k += piece.length) parser.push(piece);
      parser.push("\n\n");
      assertEquals(size, length);
      best = Math.min(best, performance.now() - started);
    }
    return best / 1000;
  };
  seconds(2 ** 16);
  // Sixteen times the length: 16 times the time if it is linear, 256 times if it is quadratic.
  const ratio = seconds(2 ** 22) / seconds(2 ** 18);
  assertEquals(ratio < 80, true, `an event 16 times as long took ${ratio} times as long`);
});

Deno.test("2,000 deltas in chunks of one byte are the exact text", async () => {
  const random = new Random(2_000);
  const words = ["Hello", " ", "wörld", "🌍", "\n", '"', "\\", "{}", "data: ", "\u2028", "日本"];
  const deltas = Array.from({ length: 2_000 }, () => random.of(words));
  const chunk = (choice: unknown) => `data: ${JSON.stringify({ choices: [choice] })}\n\n`;
  const body = deltas.map((content) => chunk({ index: 0, delta: { content } })).join("") +
    chunk({ index: 0, delta: {}, finish_reason: "stop" }) + "data: [DONE]\n\n";
  const client = createClient({
    baseUrl: "http://127.0.0.1:1/v1",
    style: "openai",
    model: "m",
    fetch: () =>
      Promise.resolve(
        new Response(ReadableStream.from(singleBytes(body)), {
          headers: { "content-type": "text/event-stream" },
        }),
      ),
  });
  const seen: string[] = [];
  const stream = client.stream("hello");
  for await (const event of stream) if (event.type === "text") seen.push(event.delta);
  assertEquals(seen, deltas);
  assertEquals((await stream.result).text, deltas.join(""));
});
