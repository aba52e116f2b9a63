import type { Executor } from '../../core/sql/executor.ts';
import type { JobState } from '../../core/sql/job-record.ts';
import type { JobScope } from '../../core/sql/job-scope.ts';
import { type FlowRecord, findFlow } from './queries/find-flow.ts';
import { type CountedBatch, findFlowBatches } from './queries/find-flow-batches.ts';
import { FLOW_BOUNDS, type FoundGroup, findFlowGroups } from './queries/find-flow-groups.ts';
import type { TablesOfBatches } from './sql/batch-tables.ts';

/** Jobs of one kind in a flow: the same jobs have to end before them, and the same ones begin after them. */
export interface FlowGroup {
  /** Names it in this graph. It may change as its jobs end. */
  readonly key: string;
  /** `null`: their kind is unknown, since they left no results. */
  readonly kind: string | null;
  /** How many jobs it has. */
  readonly jobs: number;
  /** How many of them have not ended. */
  readonly pending: number;
  /** How many were discarded or cancelled. */
  readonly failed: number;
  /**
   * How many are in each state; states without a job are left out. Ended jobs without a result are in none.
   * `undefined` where there are too many jobs to look at each.
   */
  readonly states: Readonly<Partial<Record<JobState, number>>> | undefined;
  /** The smallest id of its jobs; `undefined` for jobs that left no results. */
  readonly firstId: number | undefined;
  /** The keys of the groups that have to end before. */
  readonly after: readonly string[];
  /** What becomes of its jobs when one before them fails; `undefined` where there is none. */
  readonly onFailure: 'cancel' | 'run' | undefined;
  /** Its batch, by which its jobs are found; `null` for one that is not part of the flow. @internal */
  readonly batchId: number | null;
  /** @internal */
  readonly afterBatches: readonly number[];
}

/** A flow as a graph. */
export interface FlowGraph extends FlowRecord {
  /** The first enqueued first, so that each comes after those in its `after`. */
  readonly groups: readonly FlowGroup[];
  /** Whether all groups and all that they wait for are there: of very large flows there is a part. */
  readonly isWhole: boolean;
}

/** Sees everything. */
export const ANY_JOB: JobScope = { queues: undefined, own: [] };

/** `undefined` where there is no such flow, or none of its jobs is in the scope. */
export async function flowGraph(
  db: Executor,
  tables: TablesOfBatches,
  id: number,
  scope: JobScope,
): Promise<FlowGraph | undefined> {
  const flow = await findFlow(db, tables, id);
  if (flow === undefined) return undefined;
  const found = await findFlowGroups(db, tables, id, scope);
  const seesAll = scope.queues === undefined && scope.own.length === 0;
  if (!seesAll && found.length === 0) return undefined;
  const some = found.slice(0, FLOW_BOUNDS.groups);
  // Counts of batches are of jobs beyond the scope, too.
  const batches = seesAll ? await findFlowBatches(db, tables, id) : [];
  const read = sumOf(found.map(sizeOf));
  const groups = seesAll ? withUnread(some, batches, read) : some.map(asGroup);
  const waits = sumOf(some.map((group) => group.after.length * sizeOf(group)));
  const isWhole =
    some.length === found.length &&
    waits < FLOW_BOUNDS.waits &&
    batches.length < FLOW_BOUNDS.batches &&
    (seesAll || read < FLOW_BOUNDS.jobs);
  const seen = seesAll ? {} : countsOf(groups);
  return { ...flow, ...seen, groups: connected(groups), isWhole };
}

type Unconnected = Omit<FlowGroup, 'after'>;

/** By the counts of its batch, which know of jobs that left no result, and of those that were not read. */
function withUnread(
  found: readonly FoundGroup[],
  batches: readonly CountedBatch[],
  read: number,
): Unconnected[] {
  const byId = new Map(batches.map((batch) => [batch.id, batch]));
  const ofBatch = new Map<number | null, FoundGroup[]>();
  for (const group of found) {
    const others = ofBatch.get(group.batchId) ?? [];
    others.push(group);
    ofBatch.set(group.batchId, others);
  }
  const groups = [...ofBatch].flatMap(([batchId, members]): Unconnected[] => {
    const batch = batchId === null ? undefined : byId.get(batchId);
    const all = members.map(asGroup);
    const missing = batch === undefined ? 0 : batch.total - sumOf(members.map(sizeOf));
    if (batch === undefined || missing <= 0) return all;
    const [first] = all;
    const isCut =
      read >= FLOW_BOUNDS.jobs ||
      sumOf(all.map(({ pending }) => pending)) >= FLOW_BOUNDS.members ||
      sumOf(all.map(({ jobs, pending }) => jobs - pending)) >= FLOW_BOUNDS.members;
    if (isCut && first !== undefined) {
      const { total: jobs, pending, failed } = batch;
      return [
        { ...first, kind: all.length === 1 ? first.kind : null, jobs, pending, failed, states: undefined },
      ];
    }
    const failed = Math.max(0, batch.failed - sumOf(all.map((group) => group.failed)));
    // If this kind has kept results of completed jobs, the missing ones are of another kind.
    if (all.length === 1 && first !== undefined && first.states?.completed === undefined) {
      return [{ ...first, jobs: first.jobs + missing, failed: first.failed + failed }];
    }
    return [...all, withoutResults(batch, missing, failed)];
  });
  for (const batch of batches) {
    if (!ofBatch.has(batch.id) && batch.total > 0)
      groups.push(withoutResults(batch, batch.total, batch.failed));
  }
  return groups.sort((a, b) => (a.firstId ?? 0) - (b.firstId ?? 0));
}

function withoutResults({ id, pending }: CountedBatch, jobs: number, failed: number): Unconnected {
  return {
    key: `${id}-gone`,
    kind: null,
    jobs,
    pending: Math.min(pending, jobs),
    failed,
    states: {},
    firstId: undefined,
    onFailure: undefined,
    batchId: id,
    afterBatches: [],
  };
}

function asGroup({ batchId, kind, after, cancels, firstId, states }: FoundGroup): Unconnected {
  const { completed = 0, discarded = 0, cancelled = 0 } = states;
  const jobs = sumOf(Object.values(states));
  return {
    key: `${batchId ?? 'after'}-${hashOf(`${kind} ${after.join()}`)}`,
    kind,
    jobs,
    pending: jobs - completed - discarded - cancelled,
    failed: discarded + cancelled,
    states,
    firstId,
    onFailure: after.length === 0 ? undefined : cancels ? 'cancel' : 'run',
    batchId,
    afterBatches: after,
  };
}

function connected(groups: readonly Unconnected[]): FlowGroup[] {
  const members = new Map<number | null, string[]>();
  for (const { batchId, key } of groups) {
    const keys = members.get(batchId) ?? [];
    keys.push(key);
    members.set(batchId, keys);
  }
  return groups.map((group) => ({
    ...group,
    after: group.afterBatches.flatMap((batchId) => members.get(batchId) ?? []),
  }));
}

function countsOf(groups: readonly Unconnected[]): Pick<FlowRecord, 'total' | 'pending' | 'failed'> {
  return {
    total: sumOf(groups.map(({ jobs }) => jobs)),
    pending: sumOf(groups.map(({ pending }) => pending)),
    failed: sumOf(groups.map(({ failed }) => failed)),
  };
}

function sizeOf({ states }: FoundGroup): number {
  return sumOf(Object.values(states));
}

function sumOf(numbers: readonly number[]): number {
  return numbers.reduce((sum, number) => sum + number, 0);
}

/** FNV-1a: short, and the same in every process. */
function hashOf(text: string): string {
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  return (hash >>> 0).toString(36);
}
