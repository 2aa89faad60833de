/** How the arguments of an OpenAPI operation are written into its request. */
import { assertEquals } from "@std/assert";
import { httpToolsFromOpenAPI, type OpenAPIOptions } from "../src/sources/openapi.ts";
import { documentOf } from "./openapi_kit.ts";
import { Server } from "./http_tool_kit.ts";

const list = ["a,b", "c"];
const object = { R: 100, G: "x=y", none: null };

Deno.test("a path parameter has the style of RFC 6570 that the document names", async () => {
  const cases: [style: string | undefined, explode: boolean, value: unknown, path: string][] = [
    [undefined, false, "a b", "a%20b"],
    [undefined, false, list, "a%2Cb,c"],
    [undefined, false, object, "R,100,G,x%3Dy"],
    ["simple", true, object, "R=100,G=x%3Dy"],
    ["label", false, "a/b", ".a%2Fb"],
    ["label", false, list, ".a%2Cb,c"],
    ["label", true, list, ".a%2Cb.c"],
    ["label", true, object, ".R=100.G=x%3Dy"],
    ["matrix", false, "a;b", ";color=a%3Bb"],
    ["matrix", false, list, ";color=a%2Cb,c"],
    ["matrix", true, list, ";color=a%2Cb;color=c"],
    ["matrix", true, object, ";R=100;G=x%3Dy"],
  ];
  for (const [style, explode, color, path] of cases) {
    const parameter = { name: "color", in: "path", style, explode };
    const seen = await sent("/x/{color}/y", { get: { parameters: [parameter] } }, { color });
    assertEquals(seen?.path, `/x/${path}/y`);
  }
});

Deno.test("a list in the query has its separators, and its values have theirs encoded", async () => {
  const cases: [object, value: unknown, query: string][] = [
    [{}, list, "c[]=a%2Cb&c[]=c"],
    [{ explode: false }, list, "c[]=a%2Cb,c"],
    [{ explode: false }, object, "c[]=R,100,G,x%3Dy"],
    [{}, object, "R=100&G=x%3Dy"],
    [{ style: "spaceDelimited" }, list, "c[]=a%2Cb%20c"],
    [{ style: "pipeDelimited" }, list, "c[]=a%2Cb%7Cc"],
    [{ style: "deepObject" }, object, "c[][R]=100&c[][G]=x%3Dy"],
    [{ explode: false }, [], ""],
    [{ explode: false }, [null], ""],
    [{ explode: false }, { a: null }, ""],
    [{ content: { "application/json": {} } }, "x", "c[]=%22x%22"],
    [{ content: { "text/plain": {} } }, "x&y", "c[]=x%26y"],
  ];
  for (const [spec, value, query] of cases) {
    const parameter = { name: "c[]", in: "query", ...spec };
    const seen = await sent("/x", { get: { parameters: [parameter] } }, { "c__": value });
    const encoded = query.replaceAll("[", "%5B").replaceAll("]", "%5D");
    assertEquals(seen?.path, encoded === "" ? "/x" : `/x?${encoded}`);
  }
});

Deno.test("a header is not encoded, and is the same in capital letters", async () => {
  const parameters = [{ name: "X-Sizes", in: "header", required: true }];
  const own = [{ name: "x-sizes", in: "header", description: "Which", explode: true }];
  const args = { "x-sizes": { a: "1 2", b: 3 } };
  const seen = await sent("/x", { parameters, get: { parameters: own } }, args);
  assertEquals(seen?.headers.get("x-sizes"), "a=1 2,b=3");
});

Deno.test("cookies are sent together, those of the options too", async () => {
  const parameters = [
    { name: "sid", in: "cookie" },
    { name: "page", in: "cookie", content: { "text/plain": {} } },
    { name: "Cookie", in: "header" },
  ];
  const args = { sid: "a;b", page: "2", Cookie: "x=1" };
  const item = { get: { parameters } };
  assertEquals((await sent("/x", item, args))?.headers.get("cookie"), "x=1; sid=a%3Bb; page=2");
  const both = await sent("/x", item, { sid: "1" }, { headers: { cookie: "key=123456" } });
  assertEquals(both?.headers.get("cookie"), "key=123456; sid=1");
});

Deno.test("a form's property is JSON, or a list with separators, where its encoding says so", async () => {
  const encoding = {
    json: { contentType: "application/json" },
    list: { style: "form", explode: false },
    plain: { contentType: "text/plain" },
  };
  const schema = { properties: { json: {}, list: {}, plain: {}, deep: {} } };
  const content = { "application/x-www-form-urlencoded": { schema, encoding } };
  const args = { json: { x: [1] }, list, plain: ["a&b", null, "c"], deep: { k: [{ l: 1 }] } };
  const seen = await sent("/x", { post: { requestBody: { content } } }, args);
  assertEquals(
    seen?.body,
    "json=%7B%22x%22%3A%5B1%5D%7D&list=a%2Cb,c&plain=a%26b&plain=c&deep%5Bk%5D%5B0%5D%5Bl%5D=1",
  );
});

Deno.test("GET and HEAD have no body, whatever the document says", async () => {
  const schema = { properties: { q: { type: "string" } }, required: ["q"] };
  const requestBody = { required: true, content: { "application/json": { schema } } };
  for (const method of ["get", "head"]) {
    const seen = await sent("/x", { [method]: { requestBody } }, {});
    assertEquals([seen?.method, seen?.body], [method.toUpperCase(), ""]);
  }
  const removed = await sent("/x", { delete: { requestBody } }, { q: "a" });
  assertEquals(removed?.body, '{"q":"a"}');
});

/** What arrives of a call of the only operation. */
async function sent(
  path: string,
  item: object,
  args: Record<string, unknown>,
  options: OpenAPIOptions = {},
) {
  await using server = new Server();
  const [tool] = await httpToolsFromOpenAPI(documentOf(path, item), {
    baseUrl: server.url,
    ...options,
  });
  const { output, isError } = await tool!.execute(args);
  assertEquals([output, isError], ["", false]);
  return server.seen[0];
}
