// What a failed run leaves: a typed error with what was completed, and a conversation that can be
// asked again.
//
//   deno run --allow-net=127.0.0.1 examples/errors.ts

import { createClient, defineTool, ProviderError, ToolnexusError } from "@toolnexus/client";
import { stubLlm } from "@toolnexus/client/testing";

await using server = stubLlm([
  { toolCalls: [{ name: "book_flight" }] },
  { status: 400, body: { error: { message: "the model is on holiday", code: "on_holiday" } } },
  ({ body }) => `I know from ${body.messages.length} messages that the flight is booked.`,
  { status: 429, headers: { "retry-after": "0" } },
  "After one retry: bon voyage.",
]);
let booked = 0;
const bookFlight = defineTool({
  name: "book_flight",
  description: "Books the flight",
  run: () => `booking number ${++booked}`,
});
const { baseUrl } = server;
const client = createClient({ baseUrl, style: "openai", model: "test", toolkit: [bookFlight] });

try {
  await client.ask("Book my flight.", { id: "trip-1" });
} catch (error) {
  if (!(error instanceof ToolnexusError)) throw error;
  console.log(`${error.code}: ${error.message}`);
  if (error instanceof ProviderError) {
    const { status, providerCode, retryable, attempts } = error;
    console.log(
      `status ${status}, ${providerCode}, retryable: ${retryable}, ${attempts} attempt(s)`,
    );
  }
  // The tool ran before the failure: its result is on the error, and in the store.
  console.log(`completed: ${error.result?.toolCalls.map(({ output }) => output)}`);
}

// Asking again goes on from there: the flight is not booked twice.
console.log((await client.ask("Well?", { id: "trip-1" })).text);
// What can pass by itself is tried again, here after 429 Too Many Requests.
console.log((await client.ask("Thanks.", { id: "trip-1" })).text);
console.log(`flights booked: ${booked}`);

// Wrong arguments are told before any work.
try {
  await client.ask("Hello", { id: "" });
} catch (error) {
  console.log(String(error));
}
