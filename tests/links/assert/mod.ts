// Stands in for jsr:@std/assert where JSR cannot be reached: the same code, from npm.
// @ts-types="./mod.d.ts"
export * from "npm:deno-std@1.4.0/assert/mod.js";
