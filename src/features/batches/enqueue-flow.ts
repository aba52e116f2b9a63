import { checkDefinition, type JobDefinition } from '../../core/job/definition.ts';
import type { PlainEnqueueOptions } from '../../core/job/enqueue-options.ts';
import { checkObject } from '../../core/job/limits.ts';
import type { NewJob } from '../../core/job/new-job.ts';
import { shown } from '../../core/job/shown.ts';
import type { EnqueueArguments, EnqueueEntry } from '../../core/queue/enqueue/enqueue-arguments.ts';
import { checkEntries } from '../../core/queue/enqueue/enqueue-around.ts';
import type { QueueOfWorkflows } from '../../core/queue/queue-workflows.ts';
import { checkOpen, type Executor } from '../../core/sql/executor.ts';
import { blockedJob, checkUntimed } from './blocked-job.ts';
import { insertMembers } from './insert-members.ts';
import { addWaits, type Wait } from './queries/add-waits.ts';
import { openBatches } from './queries/open-batches.ts';
import type { TablesOfBatches } from './sql/batch-tables.ts';

const CALLER = 'enqueueFlow';

/** A job of a flow that is being made, for the `after` of others. */
export interface FlowJob<TJob extends JobDefinition = JobDefinition> {
  readonly job: TJob;
}

/** Options of a job in a flow. */
export interface FlowJobOptions {
  /** It begins once all of these have ended. @default at once */
  readonly after?: readonly FlowJob[] | undefined;
  /**
   * What becomes of it when one of those is discarded or cancelled. `cancel`: it ends as cancelled, without
   * being run. `run`: it runs once all have ended, and can ask how. @default 'cancel'
   */
  readonly onFailure?: 'cancel' | 'run' | undefined;
}

/**
 * A flow that is being made: jobs, some of which wait for others. `TOwn` holds the values of the app's own
 * columns.
 */
export interface FlowBuilder<TOwn = unknown> {
  /** Adds a job; what it returns stands for it in the `after` of later ones. */
  add<TJob extends JobDefinition>(
    job: TJob,
    ...[payload, options]: EnqueueArguments<
      TJob,
      TOwn,
      Omit<PlainEnqueueOptions, 'uniqueKey'> & FlowJobOptions
    >
  ): FlowJob<TJob>;
}

/** What `enqueueFlow` returns. */
export interface EnqueuedFlow {
  /** Of the flow, for `queue.workflows.flow`. */
  readonly id: number;
  /** Of its jobs, in the order in which they were added. */
  readonly jobIds: readonly number[];
}

/** A job of a flow, and where it stands in it. */
class Node<TJob extends JobDefinition = JobDefinition> implements FlowJob<TJob> {
  /** The jobs that wait for it, by their places. */
  readonly dependents: number[] = [];

  constructor(
    readonly flow: FlowBuilder,
    readonly place: number,
    readonly job: TJob,
    readonly entry: EnqueueEntry<TJob>,
    readonly after: ReadonlySet<Node>,
    readonly onFailure: 'cancel' | 'run',
  ) {
    for (const { dependents } of after) dependents.push(place);
  }
}

/**
 * Inserts the jobs of a flow, in one transaction. Jobs with the same dependents are one batch, so that each
 * is a member of one only: a job for which 10,000 wait, and 10,000 for which one waits, take one batch each.
 * Those for which none waits are the last batch, whose id is that of the flow.
 *
 * @throws InvalidPayloadError | RangeError | TypeError for a job that is not valid
 * @throws QueueError where a live job has the unique key of one
 */
export async function enqueueFlow(
  tx: Executor,
  tables: TablesOfBatches,
  queue: QueueOfWorkflows,
  nodes: readonly Node[],
): Promise<EnqueuedFlow> {
  const checked = await checkedJobs(queue, nodes);
  const batches = batchesOf(nodes);
  const sizes = batches.map(({ length }) => length);
  checkOpen(CALLER, tx); // As in enqueueJobs.
  const ids = await openBatches(tx, tables, sizes, true);
  const batchOf = new Map(
    batches.flatMap((members, at) => members.map((node) => [node, Number(ids[at])] as const)),
  );
  const waitsFor = (node: Node) => [...new Set([...node.after].map((parent) => Number(batchOf.get(parent))))];
  const jobIds = await insertMembers(
    tx,
    queue,
    CALLER,
    nodes.map((node, at) => {
      const job = { ...(checked[at] as NewJob), batch: Number(batchOf.get(node)) };
      return { job: blockedJob(job, waitsFor(node).length, node.job), entry: node.entry };
    }),
  );
  const waits = nodes.flatMap((node, at): Wait[] =>
    waitsFor(node).map((batchId) => {
      const { queue } = checked[at] as NewJob;
      return { batchId, jobId: Number(jobIds[at]), queue, policy: node.onFailure };
    }),
  );
  await addWaits(tx, tables, waits);
  return { id: Number(ids.at(-1)), jobIds };
}

/**
 * Calls the function that makes a flow; returns its jobs, in the order in which they were added.
 *
 * @throws TypeError when nothing was added, or `after` has something else than the flow's own jobs; `add`
 * throws one once the function is over
 */
export async function builtFlow(build: (flow: FlowBuilder) => void | Promise<void>): Promise<Node[]> {
  if (typeof build !== 'function') throw new TypeError(`${CALLER} takes a function that adds jobs`);
  const nodes: Node[] = [];
  let isBuilt = false;
  const flow: FlowBuilder = {
    add(job, ...[payload, options = {}]) {
      checkDefinition(CALLER, job);
      if (isBuilt) {
        throw new TypeError(
          `${CALLER}: flow.add('${job.kind}') came after the end of the function that makes the flow. ` +
            'Let that function await all that it begins; forEach awaits nothing',
        );
      }
      const { after = [], onFailure = 'cancel', ...rest } = checkObject(`${CALLER}: options`, options);
      const what = `${CALLER}: '${job.kind}': `;
      if (!Array.isArray(after)) throw new TypeError(`${what}after must be an array of jobs of this flow`);
      if (onFailure !== 'cancel' && onFailure !== 'run') {
        throw new TypeError(`${what}onFailure must be 'cancel' or 'run', got ${shown(onFailure)}`);
      }
      const parents = new Set(after.map((parent) => checkNode(what, flow, parent)));
      if (parents.size > 0) checkUntimed(`${what}with after `, rest);
      // The definition types an omitted payload as `undefined`.
      const entry = { ...rest, payload } as EnqueueEntry<typeof job>;
      const node = new Node(flow, nodes.length, job, entry, parents, onFailure);
      nodes.push(node as unknown as Node);
      return node;
    },
  };
  await build(flow);
  isBuilt = true;
  if (nodes.length === 0) throw new TypeError(`${CALLER}: the flow has no job`);
  return nodes;
}

function checkNode(what: string, flow: FlowBuilder, given: unknown): Node {
  if (given instanceof Node && given.flow === flow) return given;
  throw new TypeError(`${what}after takes what add() of this flow has returned, got ${shown(given)}`);
}

/** By their dependents; last those that have none. */
function batchesOf(nodes: readonly Node[]): Node[][] {
  const batches = new Map<string, Node[]>();
  const last: Node[] = [];
  for (const node of nodes) {
    if (node.dependents.length === 0) {
      last.push(node);
      continue;
    }
    const key = node.dependents.join();
    const members = batches.get(key) ?? [];
    members.push(node);
    batches.set(key, members);
  }
  return [...batches.values(), last];
}

/** Checks jobs of one definition together; returns all in the order of the flow. */
async function checkedJobs(queue: QueueOfWorkflows, nodes: readonly Node[]): Promise<NewJob[]> {
  const byJob = new Map<JobDefinition, Node[]>();
  for (const node of nodes) {
    const same = byJob.get(node.job) ?? [];
    same.push(node);
    byJob.set(node.job, same);
  }
  const checked = new Array<NewJob>(nodes.length);
  for (const [job, some] of byJob) {
    const entries = some.map(({ entry }) => entry);
    const made = await checkEntries(queue.settings(), job, entries, `${CALLER}: '${job.kind}'`);
    for (const [at, one] of made.entries()) checked[Number(some[at]?.place)] = one;
  }
  return checked;
}
