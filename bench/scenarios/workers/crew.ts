import type { PgBouncer } from '../../../test/faults/pgbouncer.ts';
import type { System } from '../../harness/system.ts';
import { drizzleQueue, groupedQueue, limitedQueue } from '../../systems/drizzle-queue/system.ts';
import type { DrizzleQueueOptions } from '../../systems/drizzle-queue/work.ts';

/** How workers of one queue reach the server. */
export interface Crew {
  readonly name: string;
  /** How many workers there are in all, as a rule. */
  readonly workers: readonly number[];
  /** Through PgBouncer in transaction mode, instead of directly. @default false */
  readonly pooled?: boolean;
  system(perProcess: number): System;
}

/** The size of a pool that workers of a process share. */
export const SHARED_POOL = 10;
/** How many connections PgBouncer has to the server. */
export const BOUNCER_POOL = 20;

const POLLING = { listen: false, pollIntervalMs: 1_000 };

function crew(
  name: string,
  workers: readonly number[],
  options: Partial<DrizzleQueueOptions>,
  of: System = drizzleQueue(name),
): Omit<Crew, 'pooled'> {
  return {
    name,
    workers,
    system: (perProcess) => ({
      ...of,
      // The options of a system are its program's.
      options: { ...(of.options as DrizzleQueueOptions), ...options, workers: perProcess },
    }),
  };
}

const eachItsOwn = { poolEach: true, poolSize: 1 };
const pooled = { ...eachItsOwn, prepare: false };
const sharing = { poolSize: SHARED_POOL };
const GROUPS = `'group'`;

export const CREWS: readonly Crew[] = [
  crew('LISTEN and a pool each', [10, 100, 300, 1_000], eachItsOwn),
  crew('LISTEN and shared pools', [100, 1_000], sharing),
  crew('polling every second on shared pools', [1_000], { ...sharing, worker: POLLING }),
  crew('polling every 5 seconds on shared pools', [1_000], {
    ...sharing,
    worker: { ...POLLING, pollIntervalMs: 5_000 },
  }),
  {
    ...crew('polling every second through PgBouncer', [1_000], { ...pooled, worker: POLLING }),
    pooled: true,
  },
  {
    ...crew('polling every 5 seconds through PgBouncer', [1_000], {
      ...pooled,
      worker: { ...POLLING, pollIntervalMs: 5_000 },
    }),
    pooled: true,
  },
  crew('LISTEN with a limit of the queue', [100], sharing, limitedQueue('limit', { concurrency: 100 })),
  crew('LISTEN with groups', [100], sharing, groupedQueue('groups', { groups: {} }, GROUPS)),
  crew(
    'LISTEN with limited groups',
    [100],
    sharing,
    groupedQueue('groups of 2', { groups: { concurrency: 2 } }, GROUPS),
  ),
];

/** Where the crew's processes connect. */
export function urlOf(
  { pooled }: Crew,
  direct: string,
  pgBouncer: PgBouncer | undefined,
): string | undefined {
  return pooled ? pgBouncer?.url(direct) : direct;
}
