import type { EnqueuerName } from '../../child/enqueuer.ts';
import type { System } from '../../harness/system.ts';
import { bullmqOnPostgres } from '../../systems/bullmq/system.ts';
import type { EnqueueMode } from '../../systems/drizzle-queue/enqueue.ts';
import { drizzleQueue } from '../../systems/drizzle-queue/system.ts';
import { graphileBest } from '../../systems/graphile-worker/system.ts';
import { pgBossBest, pgBossListening } from '../../systems/pg-boss/system.ts';
import type { BulkForm } from './bulk.ts';

/** A transaction that inserts an order and enqueues a job, one way or another. */
export interface Form {
  readonly name: string;
  /** What listens meanwhile: idle, or at work on the very jobs. */
  system(atWork: boolean): System;
  readonly enqueuer: EnqueuerName;
  readonly options?: EnqueueMode;
  /** Whether the workers do the jobs that are enqueued; else they listen, and have nothing to do. */
  readonly atWork?: boolean;
  /** With so many connections only. @default all */
  readonly connections?: number;
}

const ours = (atWork: boolean) => drizzleQueue('', { keepResult: false, servesOther: !atWork });

function drizzleQueueForm(name: string, options: EnqueueMode, more: Partial<Form> = {}): Form {
  return { name: `drizzle-queue${name}`, system: ours, enqueuer: 'drizzle-queue', options, ...more };
}

export const FORMS: readonly Form[] = [
  { ...drizzleQueueForm('', { orderAlone: true }), name: 'the order alone' },
  drizzleQueueForm(', wakeUps: false', { wakeUps: false }),
  drizzleQueueForm('', {}),
  drizzleQueueForm(', a NOTIFY in each', { wakeUps: false, notifyEach: true }),
  drizzleQueueForm(', workers at work', {}, { atWork: true, connections: 8 }),
  drizzleQueueForm(', wakeUps: false, workers at work', { wakeUps: false }, { atWork: true, connections: 8 }),
  { name: 'graphile-worker, add_job', system: other(graphileBest), enqueuer: 'graphile-worker' },
  { name: 'pg-boss, fromDrizzle', system: other(pgBossBest), enqueuer: 'pg-boss' },
  {
    name: 'pg-boss, fromDrizzle, notify',
    system: other(pgBossListening),
    enqueuer: 'pg-boss',
    connections: 32,
  },
];

/** A peer whose workers have nothing to do with the jobs. */
function other(system: System): Form['system'] {
  return () => ({ ...system, options: { ...(system.options as object), servesOther: true } });
}

/** A way to put many jobs in. */
export interface Bulk {
  readonly name: string;
  readonly form: BulkForm;
  readonly system: System;
  readonly enqueuer: EnqueuerName;
  readonly jobs: number;
  /** The name of what it is compared with. */
  readonly against: string;
}

export const BARE = 'bare INSERT … SELECT of 1,000, the same columns';
const BARE_SELECT = 'bare INSERT … SELECT from a table of 1,000,000';

function ownBulk(name: string, form: BulkForm, jobs: number, against: string): Bulk {
  return { name, form, system: ours(true), enqueuer: 'drizzle-queue', jobs, against };
}

export const BULKS: readonly Bulk[] = [
  ownBulk(BARE, 'bare', 1_000, BARE),
  ownBulk('the same, prepared by postgres.js', 'bare, prepared', 1_000, BARE),
  ownBulk('enqueueMany of 1,000', 'enqueuer', 1_000, BARE),
  {
    ...ownBulk('graphile-worker, addJobs of 1,000', 'enqueuer', 1_000, BARE),
    system: graphileBest,
    enqueuer: 'graphile-worker',
  },
  {
    ...ownBulk('pg-boss, insert of 1,000', 'enqueuer', 1_000, BARE),
    system: pgBossBest,
    enqueuer: 'pg-boss',
  },
  {
    ...ownBulk('BullMQ on Postgres, addBulk of 1,000', 'enqueuer', 1_000, BARE),
    system: bullmqOnPostgres,
    enqueuer: 'bullmq',
  },
  ownBulk(BARE_SELECT, 'bare select', 1_000_000, BARE_SELECT),
  ownBulk('enqueueFrom of 1,000,000', 'enqueueFrom', 1_000_000, BARE_SELECT),
];
