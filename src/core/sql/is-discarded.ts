import { type SQL, sql } from 'drizzle-orm';
import { fitsFilter } from './job-filter.ts';
import type { OwnWanted } from './own-values.ts';
import { timeIsWithin } from './time-range.ts';

/** Which discarded jobs to put back. */
export interface Redrive {
  /** @default 'discarded' */
  readonly state?: 'discarded' | 'cancelled' | undefined;
  /** Only ids above this, of a redrive in batches: the result then has the last id that it has looked at. */
  readonly after?: number | undefined;
  readonly id?: number | undefined;
  /** Only these. */
  readonly ids?: readonly number[] | undefined;
  readonly kind?: string | undefined;
  readonly queue?: string | undefined;
  /** Only jobs that were discarded at this time or later. */
  readonly finishedAfter?: Date | undefined;
  readonly finishedBefore?: Date | undefined;
  /** Only those whose own columns have these values. */
  readonly own?: readonly OwnWanted[] | undefined;
  /** The most jobs to put back, the oldest first. */
  readonly limit?: number | undefined;
}

/** For a `where` over the results as `r`. */
export function isDiscarded(redrive: Redrive): SQL {
  const { state, after, id, ids, kind, queue, own } = redrive;
  const finished = { after: redrive.finishedAfter, before: redrive.finishedBefore };
  const conditions = [
    state === 'cancelled' ? sql`r.state = 'cancelled'` : sql`r.state = 'discarded'`,
    ...(after === undefined ? [] : [sql`r.job_id > ${after}::int8`]),
    ...fitsFilter({ id, ids, kind, queue, own }, 'r'),
    ...timeIsWithin(sql`r.finished_at`, finished),
  ];
  return sql.join(conditions, sql` and `);
}
