import { bullmqSource } from './sources/bullmq.ts';
import { bullmqPostgresSource } from './sources/bullmq-postgres.ts';
import { graphileWorkerSource } from './sources/graphile-worker.ts';
import { pgBossSource } from './sources/pg-boss.ts';
import { jobTableSource } from './sources/table.ts';

/**
 * Where {@link importJobs} takes jobs from. Priorities keep their order: the definition's is given to what
 * its system gives to jobs by default, and each step there is one step here, up to 0 or 9.
 */
export const from = {
  /** pg-boss 10 to 12, in this database: jobs that are `created` or in `retry`. Greater priorities first. */
  pgBoss: pgBossSource,
  /** graphile-worker 0.16 to 0.18, in this database: jobs that are not locked. Smaller priorities first. */
  graphileWorker: graphileWorkerSource,
  /** A queue of BullMQ 5 or 6 on Redis. No priority (0) first, and then smaller ones first. */
  bullmq: bullmqSource,
  /** A queue of BullMQ 6 on Postgres, in this database. Priorities as with `bullmq`. */
  bullmqPostgres: bullmqPostgresSource,
  /** A table of the app's own, in this database. */
  table: jobTableSource,
} as const;
