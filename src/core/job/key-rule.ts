import type { Debounce, GivenOptions, Replace, Throttle } from './enqueue-options.ts';
import { checkOptions, namesOf } from './known-options.ts';
import { checkBoolean, checkDurationMs, checkText, MAX_UNIQUE_KEY_BYTES } from './limits.ts';
import { shown } from './shown.ts';

/** What an enqueue does where its key is taken, other than to leave the job with its unique key alone. */
export type KeyRule = { readonly key: string } & (
  | { readonly type: 'debounce'; readonly maxWaitMs: number | null }
  | { readonly type: 'replace'; readonly keepRunAt: boolean }
  /** Unique until the first claim. */
  | { readonly type: 'waiting' }
  /** Unique for a time. */
  | { readonly type: 'period'; readonly forMs: number }
  | { readonly type: 'throttle'; readonly perMs: number; readonly trailing: boolean }
);

/** Before the key of a trailing throttle, which it shares with no job that waits by another rule. */
export const THROTTLED = 'throttle:';
const ESCAPED = 'key:';

/** The key of a rule as it is stored: where jobs wait by it, none has the form of a trailing throttle's. */
export function storedKeyOf({ type, key }: KeyRule): string {
  return type === 'throttle' || type === 'period' ? key : waitingKeyOf(key);
}

/** All forms in which the job may have this key that waits by a rule. */
export function waitingKeysOf(key: string): readonly string[] {
  return [waitingKeyOf(key), `${THROTTLED}${key}`];
}

function waitingKeyOf(key: string): string {
  return key.startsWith(THROTTLED) || key.startsWith(ESCAPED) ? `${ESCAPED}${key}` : key;
}

const DEBOUNCE = namesOf<Debounce>({ key: true, delayMs: true, maxWaitMs: true });
const THROTTLE = namesOf<Throttle>({ key: true, perMs: true, trailing: true });
const REPLACE = namesOf<Replace>({ key: true, runAt: true });
const UNIQUE = namesOf<{ forMs: number }>({ forMs: true });
const RULES = ['debounce', 'throttle', 'replace', 'uniqueKey'] as const;

/**
 * The rule of an enqueue; `undefined` for none, as with a plain `uniqueKey`.
 *
 * @throws RangeError | TypeError naming what is wrong
 */
export function keyRuleOf(kind: string, options: GivenOptions): KeyRule | undefined {
  const { unique, uniqueKey, debounce, throttle, replace } = options;
  const what = (option: string) => `enqueue('${kind}'): ${option}`;
  const given = RULES.filter((name) => options[name] !== undefined);
  if (given.length > 1) throw new TypeError(`${what(given.join(' and '))} cannot be combined`);
  if (unique !== undefined && uniqueKey === undefined) {
    throw new TypeError(`${what('unique')} needs uniqueKey: it says for how long the key counts`);
  }
  if (debounce !== undefined) {
    if (options.delayMs !== undefined || options.runAt !== undefined) {
      throw new TypeError(`${what('debounce')} sets when the job is due: leave out delayMs and runAt`);
    }
    checkOptions(what('debounce'), debounce, DEBOUNCE);
    const delayMs = debounceMs(kind, debounce);
    const { maxWaitMs } = debounce;
    return {
      type: 'debounce',
      key: checkKey(what('debounce.key'), debounce.key),
      maxWaitMs:
        maxWaitMs === undefined ? null : checkDurationMs(what('debounce.maxWaitMs'), maxWaitMs, delayMs),
    };
  }
  if (throttle !== undefined) {
    checkOptions(what('throttle'), throttle, THROTTLE);
    return {
      type: 'throttle',
      key: checkKey(what('throttle.key'), throttle.key),
      perMs: checkDurationMs(what('throttle.perMs'), throttle.perMs, 1),
      trailing: checkBoolean(what('throttle.trailing'), throttle.trailing ?? false),
    };
  }
  if (replace !== undefined) {
    checkOptions(what('replace'), replace, REPLACE);
    if (replace.runAt !== undefined && replace.runAt !== 'keep') {
      throw new TypeError(
        `${what('replace.runAt')} can only be 'keep', got ${shown(replace.runAt)}; ` +
          'runAt or delayMs of the enqueue is the new time',
      );
    }
    return {
      type: 'replace',
      key: checkKey(what('replace.key'), replace.key),
      keepRunAt: replace.runAt === 'keep',
    };
  }
  if (uniqueKey === undefined || unique === undefined || unique === 'live') return undefined;
  const key = checkKey(what('uniqueKey'), uniqueKey);
  if (unique === 'waiting') return { type: 'waiting', key };
  if (typeof unique !== 'object' || unique === null) {
    throw new TypeError(`${what('unique')} must be 'live', 'waiting' or { forMs }, got ${shown(unique)}`);
  }
  checkOptions(what('unique'), unique, UNIQUE);
  return { type: 'period', key, forMs: checkDurationMs(what('unique.forMs'), unique.forMs, 1) };
}

/** How long after a debounced call its job is due. @throws RangeError */
export function debounceMs(kind: string, debounce: NonNullable<GivenOptions['debounce']>): number {
  return checkDurationMs(`enqueue('${kind}'): debounce.delayMs`, debounce.delayMs, 1);
}

function checkKey(what: string, key: string): string {
  return checkText(what, key, MAX_UNIQUE_KEY_BYTES);
}
