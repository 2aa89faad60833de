/** What an HTTP tool is defined by is checked when it is defined. */
import { assert, assertThrows } from "@std/assert";
import { httpTool } from "../mod.ts";

Deno.test("a wrong definition is told at once, without header values", () => {
  const right = { name: "t", description: "", method: "GET", url: "http://api.test/{id}" };
  const properties = { id: { type: "string" } };
  const id = { type: "object", properties, additionalProperties: false } as const;
  const wrong: [Record<string, unknown>, typeof TypeError | typeof RangeError, string][] = [
    [{ url: "api.test/x" }, TypeError, 'url must be an http or https URL: "api.test/x"'],
    [{ url: "file:///etc/passwd" }, TypeError, "url must be an http or https URL"],
    [{ url: undefined }, TypeError, "url must be an http or https URL: undefined"],
    [{ url: "http://api.test\\@evil.test/" }, TypeError, "url must be an http or https URL"],
    [{ url: "http://{host}/x" }, TypeError, "url must have no placeholder before its path"],
    [{ url: "http://api.test:{port}/" }, TypeError, "url must have no placeholder before"],
    [{ url: "http://api.{tld}" }, TypeError, "url must have no placeholder before"],
    [{ url: "http://u:p@api.test/" }, TypeError, "url must not carry a user name or password"],
    [{ url: "http://api.test/{}" }, TypeError, "url has a placeholder without a name or end"],
    [{ url: "http://api.test/{id" }, TypeError, "url has a placeholder without a name or end"],
    [{ url: "http://api.test/{id}/{other}" }, TypeError, "url of tool t has {other}"],
    [{ method: "" }, TypeError, 'method must be an HTTP method: ""'],
    [{ method: "GET /x" }, TypeError, "method must be an HTTP method"],
    [{ method: "trace" }, TypeError, "method TRACE cannot be sent"],
    [{ body: "json" }, TypeError, "body is not allowed with the method GET"],
    [{ method: "POST", body: "xml" }, TypeError, 'body must be "json", "form" or "raw": "xml"'],
    [{ headers: { "a b": "c" } }, TypeError, 'header "a b" has a name or value'],
    [{ headers: { key: "secret\n" + "x" } }, TypeError, 'header "key" has a name or value'],
    [{ headers: { key: 7 } }, TypeError, 'header "key" has a name or value'],
    [{ query: "id" }, TypeError, 'query must be an array of strings: "id"'],
    [{ query: [7] }, TypeError, "query must be an array of strings: [7]"],
    [{ resultMode: "xml" }, TypeError, 'resultMode must be "text", "json" or "status+text": "xml"'],
    [{ maxResponseBytes: "5" }, TypeError, 'maxResponseBytes must be a number: "5"'],
    [{ maxResponseBytes: 0 }, RangeError, "maxResponseBytes must be above 0: 0"],
    [{ maxResponseBytes: NaN }, RangeError, "maxResponseBytes must be above 0: NaN"],
    [{ request: {} }, TypeError, "request must be a function: {}"],
    [{ fetch: {} }, TypeError, "fetch must be a function: {}"],
    [{ timeoutMs: -1 }, RangeError, "timeoutMs of tool t must be above 0: -1"],
    [{ name: "" }, TypeError, "tool name must be a non-empty string"],
  ];
  for (const [change, kind, message] of wrong) {
    const definition = { ...right, inputSchema: id, ...change } as typeof right;
    const error = assertThrows(() => httpTool(definition), kind, message);
    assert(!error.message.includes("secret"), error.message);
  }
});
