import type { BackgroundPart } from '../../../core/worker/base/background.ts';
import type { HostWorker } from '../../../core/worker/host-worker.ts';
import type { LimitingInWorker } from '../../../core/worker/limiting-feature.ts';
import { isGrouped } from '../settings/limit-settings.ts';
import { GroupUpkeep } from './group-upkeep.ts';
import { GroupedWork } from './grouped-work.ts';
import type { Leases } from './leases.ts';
import { type DeclaredLimits, leasesOf } from './leases-of.ts';

/** The limits of a worker; `undefined` where none of its queues has any. */
export function limitsOfWorker(limits: DeclaredLimits, worker: HostWorker): LimitingInWorker | undefined {
  const leases = leasesOf({ ...worker, db: worker.statements.of('limits'), limits });
  return leases && new LimitsOfWorker(limits, leases, worker);
}

/** Leases of what queues and kinds may use, and the upkeep of groups. */
class LimitsOfWorker implements LimitingInWorker {
  readonly ready: Promise<unknown>;
  readonly settled: Promise<unknown> | undefined;
  readonly background: readonly BackgroundPart[];
  readonly #leases: Leases;
  readonly #groups: ReadonlyMap<string, GroupedWork>;

  constructor({ tables: limitTables, declared }: DeclaredLimits, leases: Leases, worker: HostWorker) {
    const { statements, servedQueues, events, wake } = worker;
    const tables = { ...worker.tables, ...limitTables };
    const grouped = [...servedQueues.keys()].flatMap((queue) => {
      const limits = declared.get(queue);
      return limits !== undefined && isGrouped(limits) ? [{ queue, ...limits.groups }] : [];
    });
    const upkeep =
      grouped.length === 0
        ? undefined
        : new GroupUpkeep({
            db: statements.of('upkeep'),
            tables,
            queues: grouped.map(({ queue, rate }) => ({
              queue,
              ratePerMs: rate?.perMs,
              wake: () => wake(queue),
            })),
            events,
          });
    this.#leases = leases;
    this.#groups = new Map(
      grouped.map(({ queue, ...settings }) => [queue, new GroupedWork({ tables, ...settings })]),
    );
    this.ready = leases.ready;
    this.settled = upkeep?.ready;
    this.background = upkeep === undefined ? [leases] : [upkeep, leases];
  }

  gateOf(queue: string) {
    return this.#leases.limiters.get(queue);
  }

  groupsOf(queue: string) {
    return this.#groups.get(queue);
  }

  look(): void {
    this.#leases.look();
  }

  askSoon(): void {
    this.#leases.askSoon();
  }

  noteGone(): void {
    this.#leases.noteGone();
  }
}
