import { EVERY_GROUP } from '../../core/job/group.ts';
import { checkOptions, namesOf } from '../../core/job/known-options.ts';
import { checkInteger, checkText, MAX_NAME_BYTES } from '../../core/job/limits.ts';
import type { LimitsQuestion } from '../../core/queue/check/check-queue.ts';
import type { FeatureToCheck } from '../../core/queue/check/feature-to-check.ts';
import type { Finding } from '../../core/queue/check/finding.ts';
import type { QueueOfLimits } from '../../core/queue/queue-limits.ts';
import type { QueueTables } from '../../core/schema/create-queue-tables.ts';
import type { Executor } from '../../core/sql/executor.ts';
import type { FeatureTables } from '../../core/sql/feature-tables.ts';
import { isDistributed } from '../../core/sql/statement-context.ts';
import type { HostWorker } from '../../core/worker/host-worker.ts';
import type { Handler } from '../../core/worker/run/handler.ts';
import type { ServedQueue } from '../../core/worker/served-queues.ts';
import { QueueError } from '../../errors.ts';
import { CONTROL_ENTRY } from '../control/control-entry.ts';
import { checkLimits, groupsOnCitus, WITHOUT_GROUPS } from './check-limits.ts';
import type { GroupRecord } from './queries/find-groups.ts';
import { findLeases } from './queries/find-leases.ts';
import { findGroupLimits, findLimits } from './queries/find-limits.ts';
import { setLimit } from './queries/set-limit.ts';
import { unblockGroup } from './queries/unblock-group.ts';
import { checkServed } from './settings/check-served.ts';
import { checkOverride, type LimitName, limitNameOf, type QueueName } from './settings/limit-name.ts';
import {
  type LimitOverride,
  type LimitPlace,
  type LimitRecord,
  toLimitRecord,
} from './settings/limit-record.ts';
import { type DeclaredQueueLimits, isGrouped } from './settings/limit-settings.ts';
import { withGrouping } from './sql/group-statements.ts';
import { type GroupTables, type LimitTables, WHOLE_QUEUE } from './sql/limit-tables.ts';
import { limitsOfWorker } from './worker/limits-of-worker.ts';

/** The filter of {@link Limits.list}. */
export interface LimitFilter extends QueueName {
  /** The `nextCursor` of the previous page. @default the first page */
  cursor?: string | undefined;
  /** 1–1,000 limits that were set, a page. @default 100 */
  limit?: number | undefined;
}

const FILTER = namesOf<LimitFilter>({ queue: true, cursor: true, limit: true });

/** One page of limits. */
export interface LimitList {
  readonly limits: LimitRecord[];
  /** For the next page; `undefined` on the last one. */
  readonly nextCursor: string | undefined;
}

/** One page of groups. */
export interface GroupList {
  readonly groups: GroupRecord[];
  /** For the next page; `undefined` on the last one. */
  readonly nextCursor: string | undefined;
}

/** What a worker does with their tables; with the others, everything. */
const WORKER: FeatureTables['privileges'] = {
  queueLimits: ['select'],
  queueUsage: ['select', 'insert', 'update'],
};

/**
 * The limits of a queue: `queue.limits`. Each method takes the caller's own Drizzle database or transaction
 * first, and its effect commits or rolls back with that. Workers obey a change within 5 seconds of the
 * commit, and at once where they are notified.
 */
export class Limits {
  /** @internal */
  readonly tables: GroupTables;
  /** @internal As the code declares them, by queue. */
  readonly declared: ReadonlyMap<string, DeclaredQueueLimits>;
  readonly #queue: QueueOfLimits;
  /** @internal Their own. */
  readonly limitTables: LimitTables;

  /** @internal use {@link limitsIn} */
  constructor(queue: QueueOfLimits, tables: LimitTables, declared: ReadonlyMap<string, DeclaredQueueLimits>) {
    this.#queue = queue;
    this.limitTables = tables;
    this.tables = { ...queue.tables, ...tables };
    this.declared = declared;
  }

  /**
   * Sets the limit of a queue, of a `kind` in it, of one `group`, or with `group: '*'` of every group without
   * its own limit. It overrides what the code declares until it is set again; `null` removes it. Settings
   * that are left out are as declared. Returns the resulting limit.
   *
   * A lower limit does not interrupt running jobs: no job begins until fewer run.
   *
   * Under concurrency: waits for another open transaction that has just set the same limit, and replaces its
   * value. Until the commit, workers keep to the old limit; they never wait for the commit.
   *
   * @throws RangeError | TypeError for a setting that is invalid, or that no worker would obey because the
   * code does not declare it; thrown before anything is sent
   * @throws MissingMigrationError when the table is missing
   */
  async set(db: Executor, name: LimitName, override: LimitOverride | null): Promise<LimitRecord> {
    const place = limitNameOf('limits.set', name, this.declared);
    const { queue, kind = '', group = '' } = place;
    const { channel } = this.#queue;
    const checked = override === null ? null : checkOverride('limits.set', place, override);
    const set = await setLimit(db, this.tables, { queue, kind, group, override: checked }, channel);
    const [slots] = group === '' ? await this.#slotsOf(db, [place]) : [];
    return toLimitRecord(place, set, slots);
  }

  /**
   * The limits of one queue, with what is in use of them: of the queue, of its kinds and of every group, as
   * they are declared and set, and then those that were set for single groups, a page at a time.
   */
  async list(db: Executor, filter: LimitFilter): Promise<LimitList> {
    const { place, after, limit } = this.#pageOf('limits.list', filter);
    const page = { queue: place.queue, after, limit: limit + 1 };
    const found = place.limits.groups === undefined ? [] : await findGroupLimits(db, this.tables, page);
    const single = found.slice(0, limit).map((set) => toLimitRecord({ ...place, group: set.group }, set));
    return {
      limits: after === '' ? [...(await this.#ofWhole(db, place)), ...single] : single,
      nextCursor: found.length > limit ? single.at(-1)?.group : undefined,
    };
  }

  /**
   * The groups of one queue whose jobs were claimed lately, by name, a page at a time: how many run, and
   * what stops the others.
   */
  async groups(db: Executor, filter: LimitFilter): Promise<GroupList> {
    const { place, after, limit } = this.#pageOf('limits.groups', filter);
    const { queue, limits } = place;
    const { groups: settings } = limits;
    if (settings === undefined)
      throw new TypeError(`limits.groups: the jobs of '${queue}' are not in groups`);
    const { findGroups } = await import('./queries/find-groups.ts');
    const found = await findGroups(db, this.tables, { queue, after, limit: limit + 1 }, settings);
    const groups = found.slice(0, limit);
    return { groups, nextCursor: found.length > limit ? groups.at(-1)?.group : undefined };
  }

  /**
   * Lets the jobs of a group go on that a discarded one has stopped (`serial: 'success'`); returns whether
   * one had. The discarded job stays as it is: `redrive` would put it back, before the others.
   *
   * Under concurrency: of two calls for one group the second waits for the first, and returns `false`.
   */
  async unblock(db: Executor, name: { queue: string; group: string }): Promise<boolean> {
    const { queue } = limitNameOf('limits.unblock', name, this.declared);
    // Of callers without TypeScript the name may be that of a queue.
    const group = checkText('limits.unblock: group', name.group, MAX_NAME_BYTES);
    return await unblockGroup(db, this.tables, queue, group);
  }

  #pageOf(caller: string, filter: LimitFilter) {
    const { queue, cursor } = checkOptions(`${caller}: filter`, filter, FILTER);
    const place = limitNameOf(caller, { queue }, this.declared);
    const limit = checkInteger(`${caller}: limit`, filter.limit ?? 100, 1, 1_000);
    if (cursor !== undefined) checkText(`${caller}: cursor`, cursor, MAX_NAME_BYTES);
    return { place, after: cursor ?? '', limit };
  }

  async #ofWhole(db: Executor, whole: LimitPlace): Promise<LimitRecord[]> {
    const { queue, limits } = whole;
    const found = await findLimits(db, this.tables, queue);
    const leased = [whole, ...Object.keys(limits.kinds ?? {}).map((kind) => ({ ...whole, kind }))];
    const slots = await this.#slotsOf(db, leased);
    const ofGroups = limits.groups === undefined ? [] : [{ ...whole, group: EVERY_GROUP }];
    return [...leased, ...ofGroups].map((place, at) => {
      const { kind = '', group = '' } = place;
      const set = found.find((set) => set.kind === kind && set.group === group);
      return toLimitRecord(place, set, slots[at]);
    });
  }

  /** How many slots workers have of each of these limits. */
  async #slotsOf(db: Executor, leased: readonly LimitPlace[]): Promise<readonly number[]> {
    const questions = leased.map(({ queue, kind = WHOLE_QUEUE }) => ({ queue, kind, declared: null }));
    return (await findLeases(db, this.tables, null, questions)).map(({ total }) => total);
  }

  /** @internal Whether a queue has limits, or may be given some at run time. */
  has(queue: string): boolean {
    return this.declared.has(queue);
  }

  /** @internal See `LimitingFeature` of the worker. */
  checkServed(caller: string, queue: string, served: ServedQueue, handlers: readonly Handler<never>[]): void {
    const limits = this.declared.get(queue);
    if (limits !== undefined) checkServed(caller, queue, limits, served, handlers);
  }

  /** @internal See `LimitingFeature` of the worker. */
  checkRunNext(queue: string): void {
    if (!this.has(queue)) return;
    throw new QueueError(
      `runNext: the queue '${queue}' has limits, which runNext cannot keep because it is not a worker. ` +
        'Use drain or a worker',
    );
  }

  /** @internal See `LimitingFeature` of the worker. */
  tablesFor(queues: readonly string[]): FeatureTables | undefined {
    if (!queues.some((queue) => this.has(queue))) return undefined;
    return { tables: this.limitTables, entry: CONTROL_ENTRY, privileges: WORKER };
  }

  /** @internal See `LimitingFeature` of the worker. */
  checkServer(queues: readonly string[], known: QueueTables): void {
    const grouped = queues.find((queue) => this.isGrouped(queue));
    if (grouped === undefined || !isDistributed(known)) return;
    throw new QueueError(`${groupsOnCitus(grouped)}. ${WITHOUT_GROUPS}`);
  }

  /** @internal See `LimitingFeature` of the worker. */
  forWorker(worker: HostWorker) {
    return limitsOfWorker(this.limitTables, this.declared, worker);
  }

  /** @internal What `queue.check` looks for. */
  get toCheck(): FeatureToCheck {
    return {
      tables: Object.values(this.limitTables),
      without: 'no limit can be kept',
      entry: CONTROL_ENTRY,
      factory: 'createControlTables',
    };
  }

  /** @internal What else it finds. */
  async check(question: LimitsQuestion): Promise<Finding[]> {
    return await checkLimits(question, this.limitTables, this.declared);
  }

  /** @internal The queue's tables, for statements that must know which queues have groups, or rates. */
  get statementTables(): QueueTables {
    return withGrouping(this.#queue.tables, this.limitTables, this.declared);
  }

  /** @internal Whether the jobs of a queue are in groups. */
  isGrouped(queue: string): boolean {
    const limits = this.declared.get(queue);
    return limits !== undefined && isGrouped(limits);
  }
}
