/**
 * What the client's own tests stand on, for yours: a model server that answers as told
 * ({@linkcode stubLlm}), a store that fails as told ({@linkcode flakyStore}), and the suite that
 * proves a store ({@linkcode conversationStoreContract}).
 *
 * @module
 */

export { conversationStoreContract } from "./store_contract.ts";
export type { OpenedStore, StoreContractCase, StoreContractOptions } from "./store_contract.ts";
export type { StoreAbility, StoreUnderTest } from "./contract_subject.ts";
export { flakyStore } from "./flaky_store.ts";
export type { FlakyPlan, FlakyStep } from "./flaky_store.ts";
export { refusalsOf } from "./strict.ts";
export { stubLlm } from "./stub_llm.ts";
export type { StubLlm, StubLlmOptions } from "./stub_llm.ts";
export type {
  StubAnswer,
  StubEventStream,
  StubRawReply,
  StubReply,
  StubReplyFunction,
  StubRequest,
  StubRequestBody,
  StubToolCall,
} from "./stub_replies.ts";
