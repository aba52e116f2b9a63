import { ownColumnsOf } from '../../internal.ts';
import { type Filter, filterOf, type SoughtValue } from '../filter/filter.ts';
import { isPlain, type Visit } from './visit.ts';

/** What a viewer wrote into the filter bar, without searches for what `show` hides from them. */
export function filterOfVisit(visit: Visit, text: string): Filter {
  const { settings } = visit;
  const maySeek = ({ field, ...value }: SoughtValue) =>
    // Of a payload only a part is sought, and `show` is asked about whole ones.
    field === 'payload' ? settings.show === undefined : isPlain(visit, undefined, field, value);
  return filterOf(text, ownColumnsOf(settings.queue.tables.queueJobs), maySeek);
}
