import { samplePayloads } from '../../internal.ts';
import { type Filter, word } from '../filter/filter.ts';
import { LOOK_MS, scopeName, type Visit } from './visit.ts';

/** Each of them has the whole filter in it. */
const MAX_LENGTH = 300;
const SAMPLE = { payloads: 100, bound: 5_000, limit: 60 };

/**
 * Whole filters that go on from the one that is there, by what stands in the newest payloads. None where the
 * app hides parts of payloads: completing them would tell what it hides.
 */
export async function completionsOf(visit: Visit, q: string, filter: Filter): Promise<string[]> {
  const { settings, granted, searches, viewer } = visit;
  if (settings.show !== undefined || filter.problems.length > 0 || q.length > MAX_LENGTH) return [];
  const { kind } = filter.search;
  const name = JSON.stringify(['payloads', scopeName(visit), kind]);
  const found = await searches.at(viewer, name, LOOK_MS, (db) =>
    samplePayloads(db, settings.queue.tables, { scope: granted.scope, kind, ...SAMPLE }),
  );
  const begin = q === '' ? '' : `${q} `;
  const wanted = new Set(filter.words.map(({ key }) => key));
  return (found?.value ?? [])
    .filter(({ key }) => !wanted.has(`payload.${key}`))
    .map(({ key, value }) => `${begin}${word(`payload.${key}`, value)}`);
}
