/**
 * Adding up tokens.
 *
 * @module
 */

import type { Usage } from "./types.ts";

/** No tokens. */
export const NO_USAGE: Readonly<Usage> = { promptTokens: 0, completionTokens: 0, totalTokens: 0 };

/** The sum of two counts; a detail that neither has is left out. */
export function addUsage(a: Usage, b: Usage): Usage {
  const sum: Usage = {
    promptTokens: a.promptTokens + b.promptTokens,
    completionTokens: a.completionTokens + b.completionTokens,
    totalTokens: a.totalTokens + b.totalTokens,
  };
  for (const detail of ["cachedTokens", "cacheCreationTokens", "reasoningTokens"] as const) {
    if (a[detail] !== undefined || b[detail] !== undefined) {
      sum[detail] = (a[detail] ?? 0) + (b[detail] ?? 0);
    }
  }
  return sum;
}
