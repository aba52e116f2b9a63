/**
 * What no transaction of the shop's database reaches: a card processor and a mail server. These two only pretend, but
 * they fail as the real ones do, and always for the same customers.
 */
import { createHash } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';

/** The number of a card that is always declined, and of one that never is. */
export const cards = { good: '4242 4242 4242 4242', declined: '4000 0000 0000 0002' };

export class CardDeclinedError extends Error {
  override name = 'CardDeclinedError';
}

/** @throws CardDeclinedError */
export async function charge(card: string): Promise<void> {
  await delay(2);
  if (card === cards.declined) throw new CardDeclinedError('The card was declined');
}

export class MailServerError extends Error {
  override name = 'MailServerError';
  constructor(
    /** As in SMTP: 4xx may pass, 5xx will not. */
    readonly code: number,
    text: string,
  ) {
    super(`${code} ${text}`);
  }
}

/** How often a server puts a sender off before it takes a mail. */
const refusals: Readonly<Record<string, number>> = { 'greylist.example': 1, 'busy.example': 2 };

export interface Mail {
  readonly to: string;
  /** A mail server that sees the same key again answers the id that it gave before, and sends nothing. */
  readonly idempotencyKey: string;
  /** A real mail server would count for itself; this one has no memory. */
  readonly attempt: number;
}

/**
 * Delivers a mail and returns its message id.
 *
 * @throws MailServerError
 */
export async function deliver({ to, idempotencyKey, attempt }: Mail, signal: AbortSignal): Promise<string> {
  await delay(15 + Math.random() * 30, undefined, { signal });
  const [mailbox = '', host = ''] = to.split('@');
  if (mailbox === 'nobody') throw new MailServerError(550, 'No such mailbox');
  if (attempt <= (refusals[host] ?? 0)) throw new MailServerError(451, 'Try again later');
  return `msg-${createHash('sha256').update(idempotencyKey).digest('base64url').slice(0, 8)}`;
}
