import { NO_RUNS } from '../../../core/worker/begin/runs.ts';
import type { ClaimGroups } from '../../../core/worker/claim/claim-groups.ts';
import type { HostWorker } from '../../../core/worker/host-worker.ts';
import type { LimitingInWorker } from '../../../core/worker/limiting-feature.ts';
import { findDueGroups } from '../queries/find-due-groups.ts';
import {
  type DeclaredQueueLimits,
  type GroupSettings,
  holdsUp,
  keepsPlace,
  type LimitSettings,
} from '../settings/limit-settings.ts';
import { type GroupTables, type LimitTables, WHOLE_QUEUE } from '../sql/limit-tables.ts';
import { ClaimsByTurns } from './claims-by-turns.ts';
import { GroupHandlerHolds } from './group-handler-holds.ts';
import { type GroupedQueue, GroupUpkeep } from './group-upkeep.ts';
import { Lease } from './lease.ts';
import { Leases } from './leases.ts';
import { QueueLimiter } from './queue-limiter.ts';
import { SerialRuns } from './serial-runs.ts';
import { Starts } from './starts.ts';

/** Reading the rows of all groups may take longer than other statements do. */
const UPKEEP_DEADLINE_MS = 30_000;

/** What keeps a worker within the limits of its queues; `undefined` where none of these has any. */
export function limitsOfWorker(
  limitTables: LimitTables,
  declared: ReadonlyMap<string, DeclaredQueueLimits>,
  { statements, workerId, servedQueues, kinds, events, wake, ...host }: HostWorker,
): LimitingInWorker | undefined {
  const tables = { ...host.tables, ...limitTables };
  const leases = new Leases({ db: statements.of('limits'), tables, workerId, events });
  const limiters = new Map<string, QueueLimiter>();
  const groups = new Map<string, ClaimGroups>();
  const grouped: GroupedQueue[] = [];
  const db = statements.of('upkeep', { leastMs: UPKEEP_DEADLINE_MS });
  const upkeep = new GroupUpkeep({ db, tables, queues: grouped, events });
  for (const [queue, { concurrency }] of servedQueues) {
    const limits = declared.get(queue);
    if (limits === undefined) continue;
    if (holdsUp(limits)) {
      const limiter = limiterOf(queue, limits, { kinds, concurrency, leases });
      leases.add(limiter);
      limiters.set(queue, limiter);
    }
    if (limits.groups === undefined) continue;
    const one = { queue, ratePerMs: limits.groups.rate?.perMs, wake: () => wake(queue) };
    grouped.push(one);
    groups.set(
      queue,
      workByGroups(tables, limits.groups, () => upkeep.seekFreed(one)),
    );
  }
  if (limiters.size === 0 && groups.size === 0) return undefined;
  const asks = limiters.size > 0;
  const isGrouped = groups.size > 0;
  return {
    ready: asks ? leases.ready : Promise.resolve(),
    settled: isGrouped ? upkeep.ready : undefined,
    background: [...(isGrouped ? [upkeep] : []), ...(asks ? [leases] : [])],
    gateOf: (queue) => limiters.get(queue),
    groupsOf: (queue) => groups.get(queue),
    look: () => leases.look(),
    askSoon() {
      leases.askSoon();
      upkeep.askSoon();
    },
    hear: (payload) => leases.hear(payload),
    noteGone: () => leases.noteGone(),
  };
}

/** What keeps the handlers of one queue within its limits, and those of the kinds that the worker handles. */
function limiterOf(
  queue: string,
  limits: DeclaredQueueLimits,
  host: { readonly kinds: readonly string[]; readonly concurrency: number; readonly leases: Leases },
): QueueLimiter {
  const ofKinds = Object.entries(limits.kinds ?? {}).filter(([kind]) => host.kinds.includes(kind));
  const allowanceOf = (kind: string, { concurrency, rate }: LimitSettings) => ({
    lease: new Lease({ queue, kind, declared: concurrency ?? null }),
    starts: rate && new Starts({ queue, kind, declared: rate }),
  });
  return new QueueLimiter({
    whole: allowanceOf(WHOLE_QUEUE, limits),
    kinds: new Map(ofKinds.map(([kind, settings]) => [kind, allowanceOf(kind, settings)])),
    concurrency: host.concurrency,
    onUse: (limiter) => host.leases.wake(limiter),
  });
}

/** How a worker claims and runs the jobs of one queue by its groups. */
function workByGroups(tables: GroupTables, settings: GroupSettings, seekFreed: () => void): ClaimGroups {
  const { serial } = settings;
  return {
    keepPlaces: keepsPlace(serial),
    runs: serial === undefined ? NO_RUNS : new SerialRuns(serial),
    claims: (options) => new ClaimsByTurns({ ...options, tables, settings, seekFreed }),
    handlerHolds: (options) => new GroupHandlerHolds({ ...options, tables }),
    findDue: (runner, queues) => findDueGroups(runner, tables, queues),
  };
}
