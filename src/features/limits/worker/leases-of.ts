import type { QueueTables } from '../../../core/schema/create-queue-tables.ts';
import type { Runner } from '../../../core/sql/executor.ts';
import type { WorkerEmitter } from '../../../core/worker/base/events.ts';
import type { ServedQueue } from '../../../core/worker/served-queues.ts';
import type { DeclaredQueueLimits } from '../settings/limit-settings.ts';
import type { LimitTables } from '../sql/limit-tables.ts';
import { WHOLE_QUEUE } from '../sql/limit-tables.ts';
import { Lease } from './lease.ts';
import { Leases } from './leases.ts';
import { QueueLimiter } from './queue-limiter.ts';
import { Starts } from './starts.ts';

/** The limits as a queue was given them. */
export interface DeclaredLimits {
  readonly tables: LimitTables;
  readonly declared: ReadonlyMap<string, DeclaredQueueLimits>;
}

export interface LeasesOfOptions {
  readonly db: Runner;
  readonly tables: QueueTables;
  readonly workerId: number;
  readonly limits: DeclaredLimits;
  readonly servedQueues: ReadonlyMap<string, ServedQueue>;
  readonly kinds: readonly string[];
  readonly events: WorkerEmitter;
}

/** The leases of a worker; `undefined` where none of its queues has limits. */
export function leasesOf(options: LeasesOfOptions): Leases | undefined {
  const { db, tables, workerId, limits, servedQueues, events } = options;
  const limiters = new Map<string, QueueLimiter>();
  const leases: Leases = new Leases({
    db,
    tables: { ...tables, ...limits.tables },
    workerId,
    events,
    limiters,
  });
  for (const [queue, { concurrency }] of servedQueues) {
    const declared = limits.declared.get(queue);
    if (declared === undefined) continue;
    const kinds = Object.entries(declared.kinds ?? {}).filter(([kind]) => options.kinds.includes(kind));
    const rated = [[WHOLE_QUEUE, declared] as const, ...kinds].flatMap(([kind, { rate }]) =>
      rate === undefined ? [] : [[kind, new Starts({ queue, kind, declared: rate })] as const],
    );
    limiters.set(
      queue,
      new QueueLimiter({
        lease: new Lease({ queue, kind: WHOLE_QUEUE, declared: declared.concurrency ?? null }),
        kinds: new Map(
          kinds.map(([kind, settings]) => [
            kind,
            new Lease({ queue, kind, declared: settings.concurrency ?? null }),
          ]),
        ),
        starts: new Map(rated),
        concurrency,
        onUse: (limiter) => leases.wake(limiter),
      }),
    );
  }
  return limiters.size === 0 ? undefined : leases;
}
