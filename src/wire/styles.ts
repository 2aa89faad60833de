/**
 * The wire styles that there are.
 *
 * @module
 */

import type { StyleName } from "../types.ts";
import { anthropic } from "./anthropic.ts";
import { openai } from "./openai.ts";
import type { Style } from "./style.ts";

/** The styles by name. */
export const STYLES: Readonly<Record<StyleName, Style>> = { openai, anthropic };
