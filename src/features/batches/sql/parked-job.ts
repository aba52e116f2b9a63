import { sql } from 'drizzle-orm';

/**
 * Whether a job `j` is parked until batches end, or until its deadline. One whose attempt has failed may have
 * a number left of what it waited for: it keeps its backoff.
 */
export const isParked = sql.raw(`j.worker_id is null and j.blockers is not null
        and (j.run_at = 'infinity' or (j.attempt = 0 and j.run_at > statement_timestamp()))`);
