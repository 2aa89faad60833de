/**
 * The official MCP client. The one place that names it: whoever uses no MCP never loads it.
 *
 * @module
 */

export type {
  Client,
  ConnectOptions,
  ElicitResult,
  JSONRPCMessage,
  Tool as ServerTool,
  Transport,
} from "npm:@modelcontextprotocol/client@^2.4.0";

/** Loads the client. */
export function loadClient(): Promise<typeof import("npm:@modelcontextprotocol/client@^2.4.0")> {
  return import("npm:@modelcontextprotocol/client@^2.4.0");
}
