/**
 * An LLM client for Deno: any OpenAI or Anthropic style endpoint, the whole loop of tool calls, and
 * conversations that survive.
 *
 * - {@linkcode createClient} makes a {@linkcode Client}; `ask(prompt, { id })` continues the
 *   conversation named `id`.
 * - {@linkcode defineTool} makes a tool of a function, {@linkcode createToolkit} puts tools together.
 * - A {@linkcode ConversationStore} keeps conversations: {@linkcode InMemoryConversationStore},
 *   `@toolnexus/client/stores/fs`, `@toolnexus/client/stores/kv`, or two closures of your own.
 * - {@linkcode ToolnexusError} and its subclasses say what went wrong and carry what was completed.
 *
 * @example
 * ```ts
 * import { createClient, defineTool } from "@toolnexus/client";
 * import { stubLlm } from "@toolnexus/client/testing";
 *
 * await using server = stubLlm([
 *   { toolCalls: [{ name: "weather", args: { city: "Paris" } }] },
 *   "It is sunny in Paris",
 * ]);
 * const weather = defineTool({
 *   name: "weather",
 *   description: "The weather in a city",
 *   inputSchema: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
 *   run: ({ city }) => `Sunny in ${city}`,
 * });
 * const client = createClient({
 *   baseUrl: server.baseUrl,
 *   style: "openai",
 *   model: "test",
 *   toolkit: [weather],
 * });
 * for await (const event of client.stream("What is the weather in Paris?", { id: "thread-1" })) {
 *   if (event.type === "text") console.log(event.delta);
 * }
 * ```
 *
 * @module
 */

export { Client, Conversation, createClient } from "./src/client.ts";
export type {
  AskOptions,
  ConversationOptions,
  ConversationResumeOptions,
  Prompt,
  ResumeOptions,
  ResumeStreamOptions,
  RunOptions,
  SendOptions,
  StreamOptions,
} from "./src/client.ts";
export type { CallOptions, ClientOptions } from "./src/options.ts";
export type { RequestErrorInfo } from "./src/wire/request.ts";
export type {
  ToolChoice,
  ToolDeclaration,
  TranslateRequest,
  TranslateResult,
} from "./src/translate.ts";
export { createInProcessClient } from "./src/in_process.ts";
export type {
  InProcessOptions,
  InProcessRequest,
  InProcessResponse,
  InProcessToolCall,
} from "./src/in_process.ts";
export { RunStream } from "./src/run_stream.ts";
export type {
  AfterLLMEvent,
  AfterToolChanges,
  AfterToolEvent,
  BeforeLLMChanges,
  BeforeLLMEvent,
  BeforeToolChanges,
  BeforeToolEvent,
  Hooks,
} from "./src/hooks.ts";
export { compactor } from "./src/compactor.ts";
export type { Compactor, CompactorOptions } from "./src/compactor.ts";
export { trimTurns } from "./src/trim_turns.ts";
export type { MetricEvent } from "./src/metrics.ts";
export type { SpanAttributes, Tracer, TracerSpan } from "./src/tracer.ts";
export { InMemoryConversationStore } from "./src/memory_store.ts";
export { checkConversationId } from "./src/conversation_id.ts";
export { copyMessages, decodeMessage, encodeMessages, equalMessages } from "./src/messages.ts";
export { authRequired, pending, pendingOf } from "./src/pending.ts";
export type { PendingInit } from "./src/pending.ts";
export { defineTool } from "./src/tools/define_tool.ts";
export type { ArgumentsOf, DefinedTool, ToolDefinition } from "./src/tools/define_tool.ts";
export { httpTool } from "./src/tools/http_tool.ts";
export type { HttpRequestParts, HttpToolDefinition } from "./src/tools/http_tool.ts";
export type { QueryPairs } from "./src/tools/url_template.ts";
export { expandEnvHeaders } from "./src/tools/env_headers.ts";
export type { FromSchema } from "./src/tools/from_schema.ts";
export type {
  StandardIssue,
  StandardJsonSchema,
  StandardResult,
} from "./src/tools/standard_schema.ts";
export { createToolkit, Toolkit } from "./src/tools/toolkit.ts";
export type { ToolkitOptions, ToolSourceProvider } from "./src/tools/toolkit.ts";
export { sanitize, toAnthropic, toGemini, toOpenAI } from "./src/tools/declarations.ts";
export type { AnthropicTool, GeminiTools, OpenAITool } from "./src/tools/declarations.ts";
export { balanceTranscript } from "./src/transcript/balance.ts";
export { convertTranscript } from "./src/transcript/convert.ts";
export {
  ConversationBusyError,
  ConversationConflictError,
  HookError,
  ProviderError,
  RunAbortedError,
  StaleAnswerError,
  StoreError,
  StreamError,
  ToolnexusError,
} from "./src/errors.ts";
export type { ErrorCode, ProviderErrorDetails, StoreOperation } from "./src/errors.ts";
export type {
  Answer,
  Awaitable,
  ConversationInfo,
  ConversationStore,
  JsonSchema,
  ListOptions,
  Message,
  MessageInput,
  PendingRequest,
  RepairReport,
  RunResult,
  StreamEvent,
  StyleName,
  Tool,
  ToolCallRecord,
  ToolContext,
  ToolResult,
  ToolSource,
  Usage,
} from "./src/types.ts";
