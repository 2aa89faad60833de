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
  Transport,
} from "npm:@modelcontextprotocol/client@^2.4.0";

/** Loads the client, and what checks the schemas that servers send. */
export async function loadClient() {
  const [client, validator] = await Promise.all([
    import("npm:@modelcontextprotocol/client@^2.4.0"),
    import("npm:@modelcontextprotocol/client@^2.4.0/validators/cf-worker"),
  ]);
  return { ...client, ...validator };
}
