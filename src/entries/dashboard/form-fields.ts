import type { Context } from 'hono';
import { MAX_MADE_NAME_BYTES, MAX_NAME_BYTES, unstorableIn } from '../../internal.ts';

/** What a form sent. */
export type Fields = Readonly<Record<string, string>>;

/**
 * What a form may send: the longest filter, of which a form writes each character in up to nine, beside 100
 * ids; and far less than would hurt.
 */
const MAX_FORM = 24_576;

/** Where the jobs are listed. */
export const JOBS = '/jobs';

/**
 * What a form sent; `undefined` when it is not a form, is too large, or holds what PostgreSQL cannot store.
 */
export async function fieldsOf(c: Context): Promise<Fields | undefined> {
  if (!/^application\/x-www-form-urlencoded\b/i.test(c.req.header('content-type') ?? '')) return undefined;
  if (Number(c.req.header('content-length') ?? 0) > MAX_FORM) return undefined;
  const body = await textUpTo(c.req.raw, MAX_FORM);
  if (body === undefined) return undefined;
  const fields = Object.fromEntries(new URLSearchParams(body));
  const bad = Object.values(fields).some((value) => unstorableIn(value) !== undefined);
  return bad ? undefined : fields;
}

/** The body of a request, read up to this many bytes; `undefined` where there are more. */
async function textUpTo({ body }: Request, bytes: number): Promise<string | undefined> {
  if (body === null) return '';
  // Without a content-length the length is unknown.
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let [text, left] = ['', bytes];
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return text + decoder.decode();
    left -= value.byteLength;
    if (left < 0) {
      await reader.cancel();
      return undefined;
    }
    text += decoder.decode(value, { stream: true });
  }
}

/** Where a form leads back to: `/jobs` means the jobs of its own filter, which need not be sent twice. */
export function backOf({ back, q }: Fields): string | undefined {
  return back === JOBS && q !== undefined ? `${JOBS}?${new URLSearchParams({ q })}` : back;
}

/** A whole number that a form sent; `undefined` for anything else. */
export function numberOf(text: string | undefined): number | undefined {
  const number = text !== undefined && /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN;
  return Number.isSafeInteger(number) ? number : undefined;
}

/** What PostgreSQL and `Date` both write with four digits of a year. */
const MAX_TIME = Date.UTC(9999, 0);

/** The time of such a number, in milliseconds since 1970. */
export function timeOf(ms: number): Date {
  return new Date(Math.min(ms, MAX_TIME));
}

/** A name that a form or a URL sent, as PostgreSQL can keep one; `undefined` for anything else. */
export function nameIn(text: string | undefined): string | undefined {
  return nameUpTo(MAX_NAME_BYTES, text);
}

/** The name of a step, which may be made of that of another one. */
export function stepIn(text: string | undefined): string | undefined {
  return nameUpTo(MAX_MADE_NAME_BYTES, text);
}

function nameUpTo(bytes: number, text: string | undefined): string | undefined {
  if (text === undefined || text === '' || unstorableIn(text) !== undefined) return undefined;
  return new TextEncoder().encode(text).byteLength <= bytes ? text : undefined;
}
