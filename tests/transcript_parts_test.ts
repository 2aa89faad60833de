import { assertEquals } from "@std/assert";
import { convertTranscript } from "../src/transcript/convert.ts";
import type { Message, StyleName } from "../src/types.ts";
import {
  assistant,
  call,
  calling,
  from,
  imageUrl,
  png,
  pngBlock,
  result,
  text,
  tool,
  use,
  user,
  webBlock,
  webImage,
} from "./messages_of_both_styles.ts";
import { assertSame, freeze } from "./transcripts.ts";

interface Row {
  name: string;
  to: StyleName;
  given: Message[];
  wanted: Message[];
}

const rows: Row[] = [
  {
    name: "images by data and by address",
    to: "anthropic",
    given: [from(text("see"), imageUrl(png), { type: "image_url", image_url: webImage })],
    wanted: [from(text("see"), pngBlock, webBlock)],
  },
  {
    name: "images by data and by address",
    to: "openai",
    given: [from(text("see"), pngBlock, webBlock)],
    wanted: [from(text("see"), imageUrl(png), imageUrl(webImage))],
  },
  {
    name: "images in results: in the result",
    to: "anthropic",
    given: [calling(call("a")), tool("a", [text("shot"), imageUrl(png)])],
    wanted: [assistant(use("a")), from(result("a", [text("shot"), pngBlock]))],
  },
  {
    name: "images in results: after all results of the round",
    to: "openai",
    given: [
      assistant(use("a"), use("b")),
      from(result("a", [text("shot"), pngBlock]), result("b"), text("and?")),
      assistant(use("c")),
      from(result("c", [webBlock])),
      user,
    ],
    wanted: [
      calling(call("a"), call("b")),
      tool("a", [text("shot"), text("[attachment: see the next message]")]),
      tool("b"),
      from(imageUrl(png), text("and?")),
      calling(call("c")),
      tool("c", "[attachment: see the next message]"),
      from(imageUrl(webImage)),
      user,
    ],
  },
  {
    name: "images in a tool message",
    to: "openai",
    given: [calling(call("a")), tool("a", [pngBlock]), user, calling(call("b")), {
      ...tool("b", [webBlock]),
    }],
    wanted: [
      calling(call("a")),
      tool("a", "[attachment: see the next message]"),
      from(imageUrl(png)),
      user,
      calling(call("b")),
      tool("b", "[attachment: see the next message]"),
      from(imageUrl(webImage)),
    ],
  },
  {
    name: "documents",
    to: "openai",
    given: [from(
      {
        type: "document",
        title: "a.pdf",
        source: { type: "base64", media_type: "application/pdf", data: "JVBE" },
      },
      { type: "document", source: { type: "text", media_type: "text/plain", data: "plain" } },
      { type: "document", source: { type: "url", url: "https://a.test/b.pdf" } },
    )],
    wanted: [from(
      { type: "file", file: { filename: "a.pdf", file_data: "data:application/pdf;base64,JVBE" } },
      text("plain"),
      text("[document: https://a.test/b.pdf]"),
    )],
  },
  {
    name: "documents",
    to: "anthropic",
    given: [from({
      type: "file",
      file: { filename: "a.pdf", file_data: "data:application/pdf;base64,JVBE" },
    }, { type: "file", file: { file_id: "file-1", filename: "b.docx" } })],
    wanted: [from({
      type: "document",
      source: { type: "base64", media_type: "application/pdf", data: "JVBE" },
      title: "a.pdf",
    }, text("[file: b.docx]"))],
  },
  {
    name: "parts without a place become notes",
    to: "anthropic",
    given: [from(
      { type: "input_audio", input_audio: { data: "AA", format: "wav" } },
      imageUrl("data:image/svg+xml,<svg/>"),
      imageUrl("blob:nothing"),
    )],
    wanted: [from(text("[input_audio]"), text("[image]"), text("[image]"))],
  },
  {
    name: "blocks without a place become notes",
    to: "openai",
    given: [
      from(
        { type: "container_upload", file_id: "f" },
        { type: "search_result", source: "s", title: "T", content: [text("what it says")] },
        { type: "image", source: { type: "file", file_id: "f" } },
      ),
      assistant({ type: "compaction", content: "Summary" }, { type: "new_kind", x: 1 }),
    ],
    wanted: [
      from(text("[container_upload]"), text("what it says"), text("[image]")),
      { role: "assistant", content: "Summary[new_kind]" },
    ],
  },
];

for (const { name, to, given, wanted } of rows) {
  Deno.test(`convertTranscript() to ${to}: ${name}`, () => {
    const converted = convertTranscript(freeze(given), to);
    assertEquals(converted, wanted);
    assertSame(convertTranscript(converted, to), converted);
  });
}
