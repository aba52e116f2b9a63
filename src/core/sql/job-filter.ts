import { type SQL, sql } from 'drizzle-orm';
import { arrayText } from './fence.ts';
import { type JobState, liveState } from './job-record.ts';
import { hasOwn } from './job-scope.ts';
import type { OwnWanted } from './own-values.ts';
import { isRetrying } from './retrying.ts';
import { type TimeRange, timeIsWithin } from './time-range.ts';

/** Which jobs are meant: those that fit all that is given. */
export interface JobFilter {
  readonly id?: number | undefined;
  readonly ids?: readonly number[] | undefined;
  readonly state?: JobState | 'retrying' | undefined;
  readonly kind?: string | undefined;
  readonly queue?: string | undefined;
  readonly group?: string | undefined;
  readonly created?: TimeRange | undefined;
  /** What the payload must contain, as JSON text. */
  readonly payload?: string | undefined;
  /** What the own columns must hold. */
  readonly own?: readonly OwnWanted[] | undefined;
}

/** The conditions on a live job `j` or a result `r`. */
export function fitsFilter(filter: JobFilter, alias: 'j' | 'r'): SQL[] {
  const { id, ids, state, kind, queue, group, created, payload, own = [] } = filter;
  const column = (name: string) => sql.raw(`${alias}.${name}`);
  const idColumn = column(alias === 'j' ? 'id' : 'job_id');
  return [
    id === undefined ? undefined : sql`${idColumn} = ${id}`,
    ids === undefined
      ? undefined
      : sql`${idColumn} = any(array(select unnest(${arrayText(ids)}::text::int8[])))`,
    queue === undefined ? undefined : sql`${column('queue')} = ${queue}`,
    kind === undefined ? undefined : sql`${column('kind')} = ${kind}`,
    group === undefined ? undefined : sql`${column('group_key')} = ${group}`,
    state === undefined ? undefined : isInState(state, alias),
    ...timeIsWithin(column('created_at'), created),
    payload === undefined ? undefined : sql`${column('payload')} @> ${payload}::text::jsonb`,
    ...own.map((wanted) => hasOwn(wanted, alias)),
  ].filter((condition) => condition !== undefined);
}

function isInState(state: JobState | 'retrying', alias: 'j' | 'r'): SQL {
  if (state === 'retrying') return alias === 'j' ? isRetrying : sql`false`;
  return sql`${alias === 'j' ? liveState : sql.raw('r.state')} = ${state}`;
}
