import type { Context } from 'hono';
import { HALF_SURROGATE } from '../job/stored-json.ts';

/** What a form sent. */
export type Fields = Readonly<Record<string, string>>;

/** What a form may send: more than any name, and far less than would hurt. */
const MAX_FORM = 16_384;

/** What a form sent; `undefined` when it is no form, too large, or holds what PostgreSQL cannot keep. */
export async function fieldsOf(c: Context): Promise<Fields | undefined> {
  if (!/^application\/x-www-form-urlencoded\b/i.test(c.req.header('content-type') ?? '')) return undefined;
  if (Number(c.req.header('content-length') ?? 0) > MAX_FORM) return undefined;
  const body = await c.req.text();
  if (body.length > MAX_FORM) return undefined;
  const fields = Object.fromEntries(new URLSearchParams(body));
  const bad = Object.values(fields).some((value) => value.includes('\0') || HALF_SURROGATE.test(value));
  return bad ? undefined : fields;
}
