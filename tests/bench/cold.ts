// A program that asks once: what a cold start costs.  cold.ts <origin> <floor|client>

import { client, floor } from "./subjects.ts";

const [origin, name] = Deno.args as [string, string];
const subject = name === "floor" ? floor(origin) : await client(origin);
await subject.once();
