/** Signatures after Standard Webhooks, https://www.standardwebhooks.com: HMAC-SHA256 over the id, the time and the body. */
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';

/** How old, or how far ahead, a timestamp may be: a request that somebody has recorded is soon worth nothing. */
const TOLERANCE_SECONDS = 5 * 60;

const MIN_KEY_BYTES = 24;

export interface WebhookHeaders extends Record<string, string> {
  'webhook-id': string;
  'webhook-timestamp': string;
  'webhook-signature': string;
}

export function newSecret(): string {
  return `whsec_${randomBytes(24).toString('base64')}`;
}

/**
 * The headers of one attempt. The id is the event's, and the same in all attempts; the time is that of the attempt.
 * Where a secret is being replaced, give both: receivers accept either signature.
 */
export function signedHeaders(
  secrets: readonly string[],
  id: string,
  body: string,
  at = new Date(),
): WebhookHeaders {
  const timestamp = String(Math.floor(at.getTime() / 1_000));
  return {
    'webhook-id': id,
    'webhook-timestamp': timestamp,
    'webhook-signature': secrets.map((secret) => `v1,${sign(secret, id, timestamp, body)}`).join(' '),
  };
}

/** Whether who knows the secret has sent this body, and lately. `body` is the text as it came, before it is parsed. */
export function isSigned(
  secret: string,
  headers: Readonly<Record<string, string | string[] | undefined>>,
  body: string,
  at = new Date(),
): boolean {
  const { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signatures } = headers;
  if (typeof id !== 'string' || typeof timestamp !== 'string' || typeof signatures !== 'string') return false;
  const age = Math.abs(at.getTime() / 1_000 - Number(timestamp));
  // Not `age > …`: a timestamp that is no number must not pass.
  if (!(age <= TOLERANCE_SECONDS)) return false;
  const expected = Buffer.from(`v1,${sign(secret, id, timestamp, body)}`);
  return signatures.split(' ').some((signature) => {
    const given = Buffer.from(signature);
    return given.length === expected.length && timingSafeEqual(given, expected);
  });
}

function sign(secret: string, id: string, timestamp: string, body: string): string {
  const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64');
  // An empty key, of a variable that was never set, is one that everybody knows.
  if (key.length < MIN_KEY_BYTES) throw new TypeError('A secret is whsec_ and at least 24 bytes in base64');
  return createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64');
}
