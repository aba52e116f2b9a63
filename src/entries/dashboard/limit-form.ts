import type { LimitName, LimitOverride, Limits } from '../../index.ts';
import { withinTime } from '../../internal.ts';
import type { Fields } from './form-fields.ts';
import type { Visit } from './visit.ts';

const SET_MS = 5_000;

/** The user's input cannot be a limit. */
export class RefusedLimitError extends Error {}

/**
 * Sets the limit that a form describes, or removes what was set, in a transaction: the change and what tells
 * the workers of it are there together. Another open transaction that sets the same is waited for, 5 seconds.
 *
 * @throws RefusedLimitError for input that is not a limit, or a limit that no worker would obey
 */
export async function setLimit(
  { settings: { db, queue } }: Visit,
  limits: Limits,
  fields: Fields,
  remove: boolean,
): Promise<void> {
  try {
    const [name, override] = [nameOf(fields), remove ? null : overrideOf(fields)];
    const set = await withinTime(db, queue.tables, SET_MS, ({ runner }) =>
      limits.set(runner, name, override),
    );
    if (set === undefined)
      throw new RangeError('Another transaction is setting this limit right now. Try again.');
  } catch (error) {
    if (!(error instanceof TypeError || error instanceof RangeError)) throw error;
    throw new RefusedLimitError(error.message);
  }
}

/** What was set, for the audit. */
export function limitText({ concurrency, rate, per, weight }: Fields): string {
  const parts = { concurrency, rate: rate && `${rate} in ${per} s`, weight };
  const set = Object.entries(parts).filter(([, value]) => value !== undefined && value !== '');
  return `set ${set.map(([name, value]) => `${name} ${value}`).join(', ')}`;
}

function nameOf({ queue = '', kind = '', group = '' }: Fields): LimitName {
  if (kind !== '' && group !== '')
    throw new TypeError('a limit applies to a kind or to a group, not to both');
  return kind !== '' ? { queue, kind } : group !== '' ? { queue, group } : { queue };
}

/** An empty field is not set. */
function overrideOf({ concurrency = '', rate = '', per = '', weight = '' }: Fields): LimitOverride {
  if ((rate === '') !== (per === ''))
    throw new TypeError('a rate needs both a number of jobs and a number of seconds');
  return {
    ...(concurrency !== '' && { concurrency: numberIn(concurrency) }),
    ...(rate !== '' && { rate: { limit: numberIn(rate), perMs: Math.round(numberIn(per) * 1_000) } }),
    ...(weight !== '' && { weight: numberIn(weight) }),
  };
}

/** A text that is not a plain number becomes `NaN`, which the check of the limit refuses. */
function numberIn(text: string): number {
  return /^\d{1,12}(\.\d{1,6})?$/.test(text.trim()) ? Number(text) : Number.NaN;
}
