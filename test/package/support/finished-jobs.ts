import type { Connection } from '../../support/test-database.ts';
import { until } from '../../support/until.ts';

/** Waits until this many jobs of an app have ended; answers what became of each, in the order of their ids. */
export function finishedJobs(
  { client }: Connection,
  count: number,
): Promise<{ kind: string; state: string }[]> {
  return until(
    async () => {
      const rows = await client<{ kind: string; state: string }[]>`
        select kind, state from queue_results order by job_id`;
      return rows.length >= count ? rows.map(({ kind, state }) => ({ kind, state })) : undefined;
    },
    { timeoutMs: 120_000, intervalMs: 50 },
  ).then((rows) => rows ?? []);
}
