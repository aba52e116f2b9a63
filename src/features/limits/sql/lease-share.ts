import type { RawRow } from '../../../core/sql/executor.ts';

/** How a limit is shared out. */
export interface LeaseShare {
  /** The limit; `undefined` when there is none. */
  readonly limit: number | undefined;
  /** The slots that the worker has. */
  readonly has: number;
  /** The slots that all living workers have. */
  readonly total: number;
  /** How many living workers have slots, or want some; with the worker itself if it does. */
  readonly sharing: number;
  /** The fewest slots that another worker has which could use more; `undefined` when all have enough. */
  readonly leastLacking: number | undefined;
}

/** Of the columns `max`, `has`, `total`, `sharing` and `least_lacking`. */
export function shareOf(row: RawRow): LeaseShare {
  return {
    limit: row.max === null ? undefined : Number(row.max),
    has: Number(row.has),
    total: Number(row.total),
    sharing: Number(row.sharing),
    leastLacking: row.least_lacking === null ? undefined : Number(row.least_lacking),
  };
}
