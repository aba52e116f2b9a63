import { type SQL, sql } from 'drizzle-orm';

/** The name of the error with which a job is parked whose claim the database refuses. */
export const CLAIM_REFUSED = 'ClaimRefusedError';

/** Whether the job `j` was parked with that error: it has not been made due since. */
export const isClaimRefused: SQL = sql.raw(
  `(j.run_at = 'infinity' and j.errors -> -1 ->> 'name' = '${CLAIM_REFUSED}')`,
);

/** The errors of the job `j` that parks itself: that its claim was once refused is not why it waits. */
export const withoutRefusal: SQL = sql.raw(
  `case when j.errors -> -1 ->> 'name' = '${CLAIM_REFUSED}' then j.errors - -1 else j.errors end`,
);
