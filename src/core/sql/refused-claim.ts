import { type SQL, sql } from 'drizzle-orm';

/** The name of the error with which a job is parked whose claim the database refuses. */
export const CLAIM_REFUSED = 'ClaimRefusedError';

/** Whether the job `j` was parked with that error, and not been made due since. */
export const isClaimRefused: SQL = sql.raw(
  `(j.run_at = 'infinity' and j.errors -> -1 ->> 'name' = '${CLAIM_REFUSED}')`,
);
