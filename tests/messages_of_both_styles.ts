// Short ways to write messages and their parts in either style.

import type { Message } from "../src/types.ts";

export const call = (id: string, args: unknown = '{"q":"x"}', name = "lookup") => ({
  id,
  type: "function",
  function: { name, arguments: args },
});
export const use = (id: string, input: unknown = { q: "x" }, name = "lookup") => ({
  type: "tool_use",
  id,
  name,
  input,
});
export const text = (value: string) => ({ type: "text", text: value });
export const result = (id: string, content: unknown = "ok") => ({
  type: "tool_result",
  tool_use_id: id,
  content,
});
export const user: Message = { role: "user", content: "hello" };
export const assistant = (...content: unknown[]): Message => ({ role: "assistant", content });
export const calling = (...calls: unknown[]): Message => ({
  role: "assistant",
  content: null,
  tool_calls: calls,
});
export const tool = (id: string, content: unknown = "ok"): Message => ({
  role: "tool",
  tool_call_id: id,
  content,
});
export const from = (...content: unknown[]): Message => ({ role: "user", content });

export const thinking = { type: "thinking", thinking: "t", signature: "U0lH" };
export const search = {
  type: "server_tool_use",
  id: "s1",
  name: "web_search",
  input: { query: "x" },
};
export const found = { type: "web_search_tool_result", tool_use_id: "s1", content: [] };
export const png = "data:image/png;base64,AAAA";
export const pngBlock = {
  type: "image",
  source: { type: "base64", media_type: "image/png", data: "AAAA" },
};
export const webImage = "https://pictures.test/a.jpg";
export const webBlock = { type: "image", source: { type: "url", url: webImage } };
export const imageUrl = (url: string) => ({ type: "image_url", image_url: { url } });
