import type { Child } from './html.ts';

/** Texts that change by themselves, and the times of the page: they make no other page of it. */
const TICKING = /(<time [^>]*>)[^<]*|data-now="\d+"|name="asof" value="\d+"/g;
const MIN_GZIP = 1_024;

/** An element as the text of a page. */
export async function textOf(page: Child | Promise<Child>): Promise<string> {
  return `<!doctype html>${String(await page)}`;
}

/**
 * A page with a tag of what it says, without the times that tick: a request with that tag gets 304 and no
 * body.
 */
export async function pageAnswer(request: Request, html: string, status = 200): Promise<Response> {
  const etag = `W/"${await digest(html.replace(TICKING, '$1'))}"`;
  const headers = new Headers({
    'content-type': 'text/html; charset=utf-8',
    'cache-control': 'no-store',
    vary: 'accept-encoding, cookie, authorization',
    etag,
  });
  if (status === 200 && request.headers.get('if-none-match') === etag) {
    return new Response(null, { status: 304, headers });
  }
  if (html.length < MIN_GZIP || !takesGzip(request)) return new Response(html, { status, headers });
  headers.set('content-encoding', 'gzip');
  return new Response(await gzipped(html), { status, headers });
}

/** The beginning of a text's SHA-256, in hexadecimal digits. */
export async function digest(text: string): Promise<string> {
  const hash = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text));
  return [...new Uint8Array(hash).slice(0, 12)].map((byte) => byte.toString(16).padStart(2, '0')).join('');
}

export function takesGzip(request: Request): boolean {
  const accepted = request.headers.get('accept-encoding') ?? '';
  return typeof CompressionStream === 'function' && /\bgzip\b(?!\s*;\s*q=0(\.0*)?\s*(,|$))/i.test(accepted);
}

async function gzipped(text: string): Promise<ArrayBuffer> {
  const compressed = new Blob([text]).stream().pipeThrough(new CompressionStream('gzip'));
  return await new Response(compressed).arrayBuffer();
}
