import { type SQL, sql } from 'drizzle-orm';
import { arrayText } from './fence.ts';
import { type LiveState, liveState } from './job-record.ts';
import { hasOwn } from './job-scope.ts';
import type { OwnWanted } from './own-values.ts';
import { type TimeRange, timeIsWithin } from './time-range.ts';

/** Which live jobs of a queue are meant: those that fit all that is given. */
export interface LiveFilter {
  readonly ids?: readonly number[] | undefined;
  readonly kind?: string | undefined;
  readonly group?: string | undefined;
  readonly state?: LiveState | undefined;
  readonly created?: TimeRange | undefined;
  /** What the payload must contain, as JSON text. */
  readonly payload?: string | undefined;
  /** What the own columns must hold. */
  readonly own?: readonly OwnWanted[] | undefined;
}

/** The conditions on a live job `j`, each after an `and`. */
export function liveAndFits({ ids, kind, group, state, created, payload, own = [] }: LiveFilter): SQL {
  const conditions = [
    ...(ids === undefined ? [] : [sql`j.id = any(array(select unnest(${arrayText(ids)}::text::int8[])))`]),
    ...(kind === undefined ? [] : [sql`j.kind = ${kind}`]),
    ...(group === undefined ? [] : [sql`j.group_key = ${group}`]),
    ...(state === undefined ? [] : [sql`${liveState} = ${state}`]),
    ...timeIsWithin(sql`j.created_at`, created),
    ...(payload === undefined ? [] : [sql`j.payload @> ${payload}::text::jsonb`]),
    ...own.map((wanted) => hasOwn(wanted, 'j')),
  ];
  return sql.join(conditions.map((condition) => sql` and ${condition}`));
}
