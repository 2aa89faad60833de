// Any API with an OpenAPI document is a set of tools: one for each operation, over plain HTTP.
//
//   deno run --allow-net=127.0.0.1 examples/openapi.ts

import { createClient, httpTool } from "@toolnexus/client";
import { httpToolsFromOpenAPI } from "@toolnexus/client/openapi";
import { stubLlm } from "@toolnexus/client/testing";

// The API: a list of tasks, and a health page that its document does not mention.
const tasks = new Map([[1, "write"], [2, "test"]]);
await using api = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, async (request) => {
  const { pathname } = new URL(request.url);
  if (pathname === "/health") return new Response("fine");
  const id = Number(pathname.split("/")[2]);
  if (request.method === "POST") {
    const { title } = await request.json();
    tasks.set(tasks.size + 1, title);
    return Response.json({ id: tasks.size, title }, { status: 201 });
  }
  const title = tasks.get(id);
  if (title === undefined) return new Response(`no task ${id}`, { status: 404 });
  if (request.method === "DELETE") tasks.delete(id);
  return Response.json({ id, title });
});
const document = `
openapi: 3.1.0
info: { title: Tasks, version: "1" }
paths:
  /tasks:
    post:
      operationId: addTask
      summary: Adds a task
      requestBody:
        required: true
        content: { application/json: { schema: { $ref: "#/components/schemas/Task" } } }
  /tasks/{id}:
    parameters: [{ name: id, in: path, required: true, schema: { type: integer } }]
    get: { operationId: getTask, summary: One task }
    delete: { operationId: removeTask, summary: Removes a task }
components:
  schemas:
    Task: { type: object, required: [title], properties: { title: { type: string } } }
`;

const baseUrl = `http://127.0.0.1:${api.addr.port}`;
const operations = await httpToolsFromOpenAPI(document, {
  baseUrl,
  // A key would go here: { authorization: "Bearer ${TASKS_TOKEN}" }, run with --allow-env=TASKS_TOKEN.
  headers: { "user-agent": "openapi-example" },
  filter: ({ method }) => method !== "DELETE", // what the model must not do is no tool
});
// What has no document is one tool at a time.
const health = httpTool({
  name: "health",
  description: "How the API is",
  method: "GET",
  url: `${baseUrl}/health`,
  resultMode: "status+text",
});

await using server = stubLlm([
  {
    toolCalls: [
      { name: "addTask", args: { title: "release" } },
      { name: "getTask", args: { id: 2 } },
      { name: "getTask", args: { id: 9 } },
      { name: "health", args: {} },
    ],
  },
  "The task is there, number 9 is not.",
]);
const client = createClient({
  baseUrl: server.baseUrl,
  style: "openai",
  model: "test",
  toolkit: [...operations, health],
});
const { text, toolCalls } = await client.run("Add a task, look at 2 and 9");

console.log(`tools: ${operations.map(({ name }) => name).join(", ")}`);
for (const { name, args, output } of toolCalls) {
  console.log(`${name}(${JSON.stringify(args)}): ${output.replace("\n", " ")}`);
}
console.log(text);
