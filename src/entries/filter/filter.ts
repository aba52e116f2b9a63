import type { JobState } from '../../index.ts';
import { type JobSearch, type OwnColumn, type OwnWanted, ownWanted, unstorableIn } from '../../internal.ts';
import { isoTime, readValue, TAKEN, timeAgo } from './read-value.ts';

export const STATES: readonly (JobState | 'retrying')[] = [
  'due',
  'running',
  'scheduled',
  'retrying',
  'waiting',
  'completed',
  'discarded',
  'cancelled',
];

/** What a user wrote into the filter bar. */
export interface Filter {
  readonly search: JobSearch;
  /** What could not be understood, one sentence each; such a filter finds nothing. */
  readonly problems: readonly string[];
  /** As it was written, in its words. */
  readonly words: readonly Word[];
}

/** `key:value`; a bare word has the key that it stands for. */
export interface Word {
  readonly key: string;
  readonly value: string;
  readonly text: string;
}

/** How long a filter may be that a user writes. */
const MAX_FILTER = 2_000;
/** The times that {@link pinned} writes: they are not counted, so that its filter may be used again. */
const PINNED = /(?<=\b(?:after|before):)\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/g;
/** The same with both of them. */
export const MAX_PINNED = MAX_FILTER + 2 * '2026-11-20T10:00:00.000Z'.length;

// A key of a payload may have any characters; other words with a colon, such as a URL, may be a kind.
const WORD = /(?:(payload\.[^\s":]+|[\p{L}\p{M}\p{N}_.$-]+):)?("(?:[^"\\]|\\.)*"|\S+)/gu;

/** The words of a filter; a value in quotes may contain spaces. */
export function wordsOf(text: string): Word[] {
  return [...text.matchAll(WORD)].map(([whole, key, raw = '']) => {
    const value = raw.startsWith('"') && raw.endsWith('"') ? unquoted(raw) : raw;
    return { key: key ?? (/^#?\d+$/.test(value) ? 'id' : 'kind'), value, text: whole };
  });
}

/** A word of a filter, quoted where it must be. */
export function word(key: string, value: string): string {
  return `${key}:${/^[^\s"]+$/.test(value) ? value : JSON.stringify(value)}`;
}

/** The filter without the words of a key, and with another one in their place. */
export function withWord(words: readonly Word[], key: string, value: string | undefined): string {
  const others = words.filter((other) => other.key !== key).map(({ text }) => text);
  return [...(value === undefined ? [] : [word(key, value)]), ...others].join(' ');
}

/** A value that a user wants to search for. */
export interface SoughtValue {
  readonly field: 'payload' | 'uniqueKey' | 'group' | 'own';
  readonly text: string;
  /** The own column. */
  readonly column?: string;
}

/** What is said of a word whose values are hidden: whether a job has one would tell the value. */
const REDACTED: Readonly<Record<SoughtValue['field'], string>> = {
  payload: 'This part of payloads is',
  uniqueKey: 'This unique key is',
  group: 'This group is',
  own: 'This value is',
};

/**
 * Reads a filter such as `kind:send-receipt state:discarded tenantId:7 payload.orderId:42`.
 *
 * @param maySeek whether jobs may be found by a value
 */
export function filterOf(
  text: string,
  own: readonly OwnColumn[],
  maySeek: (value: SoughtValue) => boolean,
): Filter {
  const problems: string[] = [];
  const search: Record<string, unknown> = {};
  const payload: string[][] = [];
  const wanted: OwnWanted[] = [];
  if (text.replace(PINNED, '').length > MAX_FILTER)
    problems.push(`The filter is longer than ${MAX_FILTER} characters.`);
  if (unstorableIn(text) !== undefined)
    problems.push('The filter contains a character that PostgreSQL cannot keep.');
  const words = problems.length > 0 ? [] : wordsOf(text);
  const isRedacted = (value: SoughtValue) => {
    if (maySeek(value)) return false;
    problems.push(`${REDACTED[value.field]} redacted here, so jobs cannot be searched for it.`);
    return true;
  };
  for (const { key, value } of words) {
    const [field, ...path] = key.split('.');
    if (field === 'payload' && path.length > 0) {
      if (!isRedacted({ field: 'payload', text: value })) payload.push(containing(path, value));
      continue;
    }
    const column = own.find((column) => column.key === key);
    if (column !== undefined) {
      if (!isRedacted({ field: 'own', text: value, column: key }))
        wanted.push(...ownOf(column, value, problems));
      continue;
    }
    const reader = Object.hasOwn(READERS, key) ? READERS[key] : undefined;
    if (reader === undefined) {
      const valid = [...Object.keys(READERS), 'payload.…', ...own.map((column) => column.key)].join(': ');
      problems.push(`Unknown filter “${key}:”; valid filters: ${valid}:`);
      continue;
    }
    const [name, read] = reader;
    if ((name === 'uniqueKey' || name === 'group') && isRedacted({ field: name, text: value })) continue;
    const meant = read(value);
    if (meant === undefined)
      problems.push(`“${value}” is not a valid value of ${key}:${read === timeOf ? `, ${TIMES}` : ''}`);
    else if (name in search) problems.push(`“${key}:” stands twice: a filter takes one value of it.`);
    else search[name] = meant;
  }
  // Each reader returns what its field holds.
  return { search: { ...(search as Partial<JobSearch>), payload, own: wanted }, problems, words };
}

/** The filter as a text whose times are no longer counted from now, so that it goes on to mean the same. */
export function pinned({ words }: Filter): string {
  return words
    .map(({ key, value, text }) => {
      const at = key === 'after' || key === 'before' ? timeOf(value) : undefined;
      return at instanceof Date ? `${key}:${at.toISOString()}` : text;
    })
    .join(' ');
}

type Read = (value: string) => unknown;

const textOf: Read = (value) => (value === '' ? undefined : value);
const idOf: Read = (value) => {
  const id = Number(/^#?(\d+)$/.exec(value)?.[1]);
  return Number.isSafeInteger(id) && id > 0 ? id : undefined;
};
const stateOf: Read = (value) => STATES.find((state) => state === value);
const UNITS: Readonly<Record<string, number>> = { s: 1e3, m: 6e4, h: 36e5, d: 864e5, w: 6048e5 };
const TIMES = 'which takes a time such as 2026-11-20T10:00:00Z, or how long ago, such as 2h';
/** `2h` is two hours ago. */
const timeOf: Read = (value) => {
  const [, count, unit = ''] = /^(\d{1,6})([smhdw])$/.exec(value) ?? [];
  return count === undefined ? isoTime(value) : timeAgo(Number(count) * (UNITS[unit] ?? 0));
};

const READERS: Readonly<Record<string, readonly [keyof JobSearch, Read]>> = {
  state: ['state', stateOf],
  kind: ['kind', textOf],
  queue: ['queue', textOf],
  group: ['group', textOf],
  key: ['uniqueKey', textOf],
  id: ['id', idOf],
  worker: ['workerId', idOf],
  after: ['createdAfter', timeOf],
  before: ['createdBefore', timeOf],
};

/** What the payload must contain: a bare `42` is the number or the text. */
function containing(path: readonly string[], value: string): string[] {
  const nested = (json: string) =>
    path.reduceRight((inner, name) => `{${JSON.stringify(name)}:${inner}}`, json);
  const literal = /^(-?(0|[1-9]\d{0,300})(\.\d{1,300})?|true|false|null)$/.test(value) ? [value] : [];
  return [...literal, JSON.stringify(value)].map(nested);
}

function ownOf(column: OwnColumn, value: string, problems: string[]): OwnWanted[] {
  const { key, values } = column;
  const meant = value === 'null' ? null : readValue(values, value);
  try {
    if (meant !== undefined) return ownWanted([column], { [key]: meant });
  } catch {
    // As of a customType, whose own code reads the value.
  }
  problems.push(`“${value}” is not a valid value of ${key}:, which takes ${TAKEN[values]}`);
  return [];
}

function unquoted(text: string): string {
  try {
    return String(JSON.parse(text));
  } catch {
    return text.slice(1, -1);
  }
}
