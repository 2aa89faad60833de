/**
 * One exchange with a server that is not trusted: redirects and the size of the answer are bounded.
 *
 * @module
 */

import { quote } from "../errors.ts";
import type { Secrets } from "../secrets.ts";

/** More is a loop. */
const MAX_REDIRECTS = 5;

/**
 * Sends a request, and again where a redirect points within the origin; headers never go elsewhere.
 * Of a redirect that is not followed, the answer says why.
 */
export async function send(
  url: URL,
  init: { method: string; headers: Headers; body?: BodyInit },
  signal: AbortSignal,
  fetch: typeof globalThis.fetch = globalThis.fetch,
): Promise<Response> {
  for (let redirects = 0;; redirects++) {
    const response = await fetch(url, { ...init, signal, redirect: "manual" });
    const { status } = response;
    const isRedirect = [301, 302, 303, 307, 308].includes(status);
    const location = response.headers.get("location");
    // A browser shows neither the status of a redirect nor where it leads.
    const isHidden = response.type === "opaqueredirect";
    if (!isHidden && (!isRedirect || location === null)) return response;
    await response.body?.cancel();
    const refused = (reason: string) => new Response(reason, { status: status || 302 });
    const target = URL.parse(location ?? "", url);
    if (target?.origin !== url.origin) {
      const place = target === null ? quote(location) : target.origin;
      return refused(`redirect to ${place} is not followed: another origin`);
    }
    if (redirects === MAX_REDIRECTS) return refused(`more than ${MAX_REDIRECTS} redirects`);
    url = target;
    init = redirected(init, status);
  }
}

/** As `fetch` does (Fetch standard, HTTP-redirect fetch): a POST becomes a GET without its body. */
function redirected(init: Parameters<typeof send>[1], status: number): Parameters<typeof send>[1] {
  const { method } = init;
  const becomesGet = status === 303
    ? method !== "GET" && method !== "HEAD"
    : status < 303 && method === "POST";
  if (!becomesGet) return init;
  const headers = new Headers(init.headers);
  for (const name of ["content-encoding", "content-language", "content-location", "content-type"]) {
    headers.delete(name);
  }
  return { method: "GET", headers };
}

/** The text of a body without secrets, at most `maxBytes` of UTF-8; a note says what was cut. */
export async function readText(
  response: Response,
  maxBytes: number,
  secrets: Secrets,
): Promise<string> {
  // A secret across the cut is read whole: a unit of UTF-16 takes up to three bytes.
  const { bytes, isWhole } = await readBytes(response, maxBytes + 3 * secrets.longest);
  const type = response.headers.get("content-type") ?? "";
  if (bytes.includes(0) && !/charset=utf-?(16|32)/i.test(type)) {
    return `[binary body of type ${type || "unknown"}, not shown]`;
  }
  const text = secrets.redact(decoderOf(type).decode(bytes, { stream: !isWhole }));
  const encoded = new TextEncoder().encode(text);
  if (isWhole && encoded.length <= maxBytes) return text;
  // In a stream, a character cut in two is left out.
  const kept = new TextDecoder().decode(encoded.subarray(0, maxBytes), { stream: true });
  return `${kept}\n[cut: the body is longer than ${maxBytes} bytes]`;
}

async function readBytes(
  { body }: Response,
  limit: number,
): Promise<{ bytes: Uint8Array; isWhole: boolean }> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  const reader = body?.getReader();
  let isWhole = reader === undefined;
  while (reader !== undefined && length <= limit) {
    const { value } = await reader.read();
    if (value === undefined) {
      isWhole = true;
      break;
    }
    chunks.push(value);
    length += value.length;
  }
  if (!isWhole) await reader?.cancel();
  const bytes = new Uint8Array(length);
  let offset = 0;
  for (const chunk of chunks) {
    bytes.set(chunk, offset);
    offset += chunk.length;
  }
  return { bytes, isWhole };
}

/** By the charset of the content type; UTF-8 where there is none that is known. */
function decoderOf(type: string): TextDecoder {
  try {
    return new TextDecoder(/charset="?([^\s;"]+)/i.exec(type)?.[1] ?? "utf-8");
  } catch {
    return new TextDecoder();
  }
}
