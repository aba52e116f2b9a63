import { countJobs } from '../../queries/operate/count-jobs.ts';
import type { Crew } from '../../queries/operate/find-crews.ts';
import { findHeads, type Heads } from '../../queries/operate/find-heads.ts';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import type { Runner } from '../../sql/executor.ts';
import { workersOf } from '../stats/workers-of.ts';
import type { Finding } from './finding.ts';

/** A deployment replaces its workers within this. */
const UNSERVED_MS = 60_000;
const MAX_HEADS = 1_000;

export interface KnownQueues {
  readonly onCitus: boolean;
  readonly crews: readonly Crew[];
  readonly paused: ReadonlySet<string>;
}

/**
 * Due jobs that no registered worker has a handler for. It only reads the job that has waited longest at each
 * priority of each queue, which costs a row or two for each. Claims skip jobs that no worker serves, so such
 * a job ends up at that place. On Citus, where indexes cannot be followed from queue to queue, it counts all
 * jobs.
 */
export async function unservedKinds(
  db: Runner,
  tables: QueueTables,
  { onCitus, crews, paused }: KnownQueues,
): Promise<Finding[]> {
  const look = onCitus ? headsOfAll : findHeads;
  const { heads, areAll } = await look(db, tables, MAX_HEADS);
  const found = new Map<string, Finding>();
  for (const { queue, kind, dueMs } of heads) {
    if (kind === undefined || dueMs < UNSERVED_MS || paused.has(queue)) continue;
    if (workersOf(crews, queue, kind) > 0) continue;
    const served = workersOf(crews, queue) > 0;
    const minutes = Math.round(dueMs / 60_000);
    const since = minutes === 1 ? 'a minute' : `${minutes} minutes`;
    found.set(JSON.stringify([queue, kind]), {
      code: 'kind-unserved',
      severity: 'warning',
      queue,
      kind,
      message:
        `A job of the kind '${kind}' in '${queue}' has been due for ${since}, ` +
        (served
          ? 'and no worker that serves the queue has a handler for it'
          : 'and no worker serves the queue'),
      fix: served
        ? `Give a worker of '${queue}' a handler of '${kind}', or cancel its jobs`
        : `Start a worker with queues: { '${queue}': {} } and a handler of '${kind}'`,
    });
  }
  if (areAll) return [...found.values()];
  return [
    ...found.values(),
    {
      code: 'queues-unchecked',
      severity: 'hint',
      message: 'Too many queues or groups to check all of them for kinds that no worker serves',
      fix: 'Look at queue.vitals: it counts the jobs of all queues, unless that takes more than 2 seconds',
    },
  ];
}

async function headsOfAll(db: Runner, tables: QueueTables): Promise<Heads> {
  const heads = (await countJobs(db, tables)).map(({ queue, kind, oldestDueMs }) => ({
    queue,
    kind: oldestDueMs === undefined ? undefined : kind,
    dueMs: oldestDueMs ?? 0,
  }));
  return { heads, areAll: true };
}
