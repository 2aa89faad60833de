// Stands in for jsr:@std/yaml where JSR cannot be reached: the same code, from npm.
// @ts-types="./mod.d.ts"
export * from "npm:deno-std@1.4.0/yaml/mod.js";
