/**
 * An OpenAPI document: its text, its references, its servers.
 *
 * @module
 */

import { parse as parseYaml } from "@std/yaml";
import $RefParser from "npm:@apidevtools/json-schema-ref-parser@^16.0.5";

/** An object of the document; its keys are what the author wrote, not what they should be. */
export type Node = Readonly<Record<string, unknown>>;

/** More is a cycle of references that lead to nothing. */
const MAX_REFERENCES = 50;

/** Whether a value is an object that is no list. */
export function isNode(value: unknown): value is Node {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The objects of a list, or of what should be one. */
export function nodesOf(value: unknown): Node[] {
  return Array.isArray(value) ? value.filter(isNode) : [];
}

/** The objects of a map by name, or of what should be one. */
export function entriesOf(value: unknown): [string, unknown][] {
  return isNode(value) ? Object.entries(value) : [];
}

/** A document whose references can be followed. It never reads a file or the network. */
export class SpecDocument {
  readonly root: Node;
  /** Whether what stands beside a reference in a schema has no meaning, as in OpenAPI 3.0. */
  readonly ignoresSiblings: boolean;
  readonly #get: (ref: string) => unknown;

  private constructor(root: Node, get: (ref: string) => unknown) {
    this.root = root;
    this.ignoresSiblings = /^3\.0/.test(String(root.openapi));
    this.#get = get;
  }

  /**
   * @throws {TypeError} if it is no OpenAPI document of version 3
   */
  static async read(spec: unknown): Promise<SpecDocument> {
    const root = typeof spec === "string" ? parse(spec) : spec;
    if (!isNode(root)) {
      throw new TypeError("spec must be an OpenAPI document: its JSON or YAML text, or an object");
    }
    const version = String(root.openapi ?? root.swagger ?? "none");
    if (root.openapi === undefined || !/^3(\.|$)/.test(version)) {
      throw new TypeError(`spec must be of OpenAPI 3.0 or 3.1: its version is ${version}`);
    }
    const refs = await $RefParser.resolve({ ...root }, { resolve: { external: false } });
    return new SpecDocument(root, (ref) => refs.get(ref));
  }

  /**
   * What a reference names.
   *
   * @throws {TypeError} if it leads nowhere, or out of the document
   */
  get(ref: string): unknown {
    if (!ref.startsWith("#")) {
      throw new TypeError(`$ref ${JSON.stringify(ref)} leads out of the document`);
    }
    try {
      return ref === "#" ? this.root : this.#get(ref);
    } catch (cause) {
      throw new TypeError(`$ref ${JSON.stringify(ref)} leads nowhere`, { cause });
    }
  }

  /**
   * An object with its reference followed; what stands beside the reference wins.
   *
   * @throws {TypeError} if the reference leads nowhere, or to itself
   */
  resolve(value: unknown): Node {
    let node = isNode(value) ? value : {};
    for (let count = 0; typeof node.$ref === "string"; count++) {
      const { $ref, ...beside } = node as { $ref: string };
      if (count === MAX_REFERENCES) {
        throw new TypeError(`$ref ${JSON.stringify($ref)} leads to itself`);
      }
      const target = this.get($ref);
      node = { ...(isNode(target) ? target : {}), ...beside };
    }
    return node;
  }
}

function parse(text: string): unknown {
  try {
    const plain = text.replace(/^\uFEFF/, "");
    return /^\s*\{/.test(plain) ? JSON.parse(plain) : parseYaml(plain, { schema: "core" });
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new TypeError(`spec is neither JSON nor YAML: ${reason}`, { cause });
  }
}

/**
 * The URL of the first server of a list, with its variables filled in; undefined if there is none.
 *
 * @throws {TypeError} if a variable has no value
 */
export function serverUrl(
  servers: unknown,
  values: Readonly<Record<string, string>>,
): string | undefined {
  const [server] = nodesOf(servers);
  if (typeof server?.url !== "string") return undefined;
  const variables = isNode(server.variables) ? server.variables : {};
  return server.url.replace(/\{([^{}]*)\}/g, (_, name: string) => {
    const variable = variables[name];
    const value = values[name] ?? (isNode(variable) ? variable.default : undefined);
    if (value === undefined) throw new TypeError(`server variable ${name} has no value`);
    return String(value);
  });
}
