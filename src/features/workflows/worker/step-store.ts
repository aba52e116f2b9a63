import { mayBeDue } from '../../../core/job/new-job.ts';
import type { ClaimedJob } from '../../../core/queries/claim/claim-jobs.ts';
import { checkEntries, insertAround } from '../../../core/queue/enqueue/enqueue-around.ts';
import type { QueueOfWorkflows } from '../../../core/queue/queue-workflows.ts';
import { type Runner, sqlStateOf } from '../../../core/sql/executor.ts';
import { faultPoint } from '../../../core/sql/fault-point.ts';
import type { Holder } from '../../../core/sql/fence.ts';
import type { RowLocks } from '../../../core/sql/row-locks.ts';
import { transact } from '../../../core/sql/transact.ts';
import type { WakeUp } from '../../../core/sql/wake-up.ts';
import { Doubling } from '../../../core/time/doubling.ts';
import type { Retries } from '../../../core/time/retries.ts';
import { whileLocked } from '../../../core/time/while-locked.ts';
import type { WorkerEmitter } from '../../../core/worker/base/events.ts';
import { isAboutLocks, isAboutTheServer } from '../../../core/worker/base/refusal.ts';
import type { AttemptAddedTo } from '../../../core/worker/run/added-context.ts';
import { NonRetryableError, QueueError } from '../../../errors.ts';
import { inStatements, insertMembers } from '../../batches/insert-members.ts';
import { addWaits } from '../../batches/queries/add-waits.ts';
import { cancelBatches } from '../../batches/queries/cancel-batches.ts';
import { findEnds } from '../../batches/queries/find-ends.ts';
import { findWaited } from '../../batches/queries/find-waited.ts';
import { growBatch } from '../../batches/queries/grow-batch.ts';
import { lockBatches } from '../../batches/queries/lock-batches.ts';
import { openBatches } from '../../batches/queries/open-batches.ts';
import { reopenReturned } from '../../batches/queries/reopen-returned.ts';
import { waitForBatches } from '../../batches/queries/wait-for-batches.ts';
import {
  type ChildrenToInsert,
  enqueueChildren,
  type InsertedChildren,
} from '../queries/enqueue-children.ts';
import { findStepsOfOne } from '../queries/find-steps.ts';
import { lockMailboxes } from '../queries/lock-mailboxes.ts';
import { type Received, receiveSignal, type SignalToReceive } from '../queries/receive-signal.ts';
import { recordOneStep } from '../queries/record-one-step.ts';
import type { RecordedStep, StepToRecord } from '../queries/record-steps.ts';
import type { TablesOfWorkflows } from '../sql/workflow-tables.ts';
import { type Tokens, tokensFor } from '../tokens/tokens.ts';
import type { ChildrenToEnqueue, EnqueuedChildren, StepStore } from './attempt-steps.ts';
import { ConnectionTurns } from './connection-turns.ts';
import { LockedElsewhere } from './locked-elsewhere.ts';
import { untilOver, untilTold } from './retry-until.ts';
import type { StepFinder } from './step-finder.ts';
import type { StepRecorder } from './step-recorder.ts';

const OTHER_CAME_FIRST = 'Something else came first for the job that enqueued it';
const UNIQUE_VIOLATION = '23505';

export interface WorkerStoreOptions {
  /** Runs questions, and what is seldom asked. */
  readonly db: Runner;
  /** Runs what children are enqueued with. */
  readonly enqueuing: Runner;
  readonly tables: TablesOfWorkflows;
  readonly queue: QueueOfWorkflows;
  readonly finder: StepFinder;
  readonly recorder: StepRecorder;
  readonly asking: Asking;
  readonly tokens: Tokens | undefined;
}

/** What the questions of attempts need. */
export interface Asking {
  readonly retries: Pick<Retries, 'sleep'>;
  readonly events: WorkerEmitter;
}

/**
 * The answer to a question of an attempt, which is asked again while the database does not give one: the
 * first time with an `error` event, since its handler waits for as long as that takes.
 */
export async function answeredTo<T>(
  attempt: Pick<AttemptAddedTo, 'signal' | 'job'>,
  { retries, events }: Asking,
  ask: () => Promise<T>,
  until = untilTold(attempt),
): Promise<T> {
  const { job } = attempt;
  const delays = new Doubling(50, 2_000);
  for (let isFirst = true; ; isFirst = false) {
    try {
      return await ask();
    } catch (error) {
      if (!isAboutTheServer(error) && !isAboutLocks(error)) throw error;
      if (isFirst && isAboutTheServer(error)) {
        events.emit('error', { error, during: `a step of job ${job.id} of '${job.queue}'` });
      }
      if (await retries.sleep(delays.next(), until.signal)) delays.reset();
      until.check();
    }
  }
}

/** The steps of an attempt in a worker: it tries again while the database does not answer. */
export function storeInWorker(
  attempt: AttemptAddedTo,
  { db, enqueuing, tables, queue, finder, recorder, asking, tokens }: WorkerStoreOptions,
): StepStore {
  const { job, holder } = attempt;
  let until = untilTold(attempt);
  const answered = <T>(ask: () => Promise<T>): Promise<T> => answeredTo(attempt, asking, ask, until);
  return {
    noteUndoing: () => {
      until = untilOver(attempt);
    },
    // One that was told to end before it began has steps to undo, too.
    find: () => answeredTo(attempt, asking, finder.asking(job.id), untilOver(attempt)),
    record: (step) => recorder.record(step, until),
    recordIn: (tx, step) => recordOneStep(tx, tables, holder, step, 'wait', true),
    recordAndCancel: (step, batchIds) =>
      answered(() =>
        transact(attempt.environment.db, (tx) => recordAndCancel(tx, tables, holder, step, batchIds)),
      ),
    receive: (signal, unwanted = []) =>
      answered(async () => {
        const received =
          unwanted.length === 0
            ? await receiveSignal(db, tables, holder, signal, 'briefly')
            : await transact(attempt.environment.db, (tx) =>
                receiveAndCancel(tx, tables, holder, signal, unwanted, 'briefly'),
              );
        await faultPoint('signal: received');
        return received;
      }),
    ...childrenOf(attempt, tables, queue, (children) =>
      answered(async () => {
        const send = () => enqueueChildren(enqueuing, tables, holder, children, 'briefly');
        const enqueued = await send().catch((error: unknown) => {
          // A repetition may have met the first one, and now sees what that has recorded.
          if (sqlStateOf(error) !== UNIQUE_VIOLATION) throw error;
          return send();
        });
        await faultPoint('children: enqueued');
        return enqueued;
      }),
    ),
    waitFor: (wait) =>
      answered(async () => {
        const isOpen = await waitForBatches(db, tables, holder, wait, 'briefly');
        await faultPoint('wait: written');
        return isOpen;
      }),
    reopen: (returned) =>
      answered(async () => {
        const live = await reopenReturned(db, tables, holder, returned, 'briefly');
        await faultPoint('wait: reopened');
        return live;
      }),
    ends: (batchIds, kind) => answered(() => findEnds(db, tables, batchIds, kind)),
    waited: () => answered(() => findWaited(db, tables, job)),
    undoFailed: (step, error) =>
      asking.events.emit('error', {
        error,
        during: `the undo of step '${step}' of job ${job.id} of '${job.queue}'`,
      }),
    token: async (claims) => await tokensFor('step.token', tokens).make(claims),
  };
}

/**
 * The steps of the one attempt of `runNext`, in its transaction. That has locked the job, and all others lock
 * mailboxes and batches before jobs. So it waits for none of these that it sees: where one stays locked, the
 * job is called again. A mailbox that another transaction is just making is not seen, and is waited for.
 */
export function storeInTransaction(
  attempt: AttemptAddedTo,
  tables: TablesOfWorkflows,
  queue: QueueOfWorkflows,
  tokens: Tokens | undefined,
): StepStore {
  const { job, holder, environment } = attempt;
  const { db } = environment;
  const locked = async (lock: () => Promise<boolean>): Promise<void> => {
    const isLocked = await whileLocked(async () => (await lock()) || 'locked');
    if (isLocked === 'locked') throw new LockedElsewhere();
  };
  const turns = new ConnectionTurns((error) =>
    attempt.end(error instanceof Error ? error : new QueueError('A step threw no Error', { cause: error })),
  );
  // In a savepoint: where the database refuses children, the handler may catch that, and go on.
  const children = childrenOf(attempt, tables, queue, (children) =>
    transact(db, (tx) => enqueueChildren(tx, tables, holder, children, 'wait')),
  );
  return {
    alone: (task) => turns.take(task),
    find: () => turns.take(() => findStepsOfOne(db, tables, job)),
    record: (step) => turns.take(() => recordOneStep(db, tables, holder, step, 'wait')),
    recordIn: (tx, step) => recordOneStep(tx, tables, holder, step, 'wait', true),
    recordAndCancel: (step, batchIds) =>
      turns.take(() => recordAndCancel(db, tables, holder, step, batchIds)),
    receive: (signal, unwanted = []) =>
      turns.take(async () => {
        const { id, queue } = job;
        await locked(() => lockMailboxes(db, tables, { id, queue, name: signal.signal }));
        return await receiveAndCancel(db, tables, holder, signal, unwanted, 'wait');
      }),
    check: children.check,
    enqueue: (some) => turns.take(() => children.enqueue(some)),
    waitFor: (wait) =>
      turns.take(async () => {
        await locked(() => lockBatches(db, tables, wait.batchIds));
        return await waitForBatches(db, tables, holder, wait, 'wait');
      }),
    reopen: (returned) =>
      turns.take(async () => {
        await locked(() => lockBatches(db, tables, returned.batchIds));
        return await reopenReturned(db, tables, holder, returned, 'wait');
      }),
    ends: (batchIds, kind) => turns.take(() => findEnds(db, tables, batchIds, kind)),
    waited: () => turns.take(() => findWaited(db, tables, job)),
    // It has no listeners.
    undoFailed: () => {},
    token: async (claims) => await tokensFor('step.token', tokens).make(claims),
  };
}

async function recordAndCancel(
  tx: Runner,
  tables: TablesOfWorkflows,
  holder: Holder,
  step: StepToRecord,
  batchIds: readonly number[],
): Promise<RecordedStep | undefined> {
  const recorded = await recordOneStep(tx, tables, holder, step, 'wait');
  if (recorded !== undefined) await cancelBatches(tx, tables, batchIds, OTHER_CAME_FIRST);
  return recorded;
}

/** @param unwanted batches whose members are cancelled where it has received one */
async function receiveAndCancel(
  tx: Runner,
  tables: TablesOfWorkflows,
  holder: Holder,
  signal: SignalToReceive,
  unwanted: readonly number[],
  locks: Exclude<RowLocks, 'skip'>,
): Promise<Received | undefined> {
  const received = await receiveSignal(tx, tables, holder, signal, locks);
  if (received?.type === 'received' && unwanted.length > 0) {
    await cancelBatches(tx, tables, unwanted, OTHER_CAME_FIRST);
  }
  return received;
}

/** Thrown to roll the transaction back, and through the app's `around.enqueue`. */
class NoLongerHeld extends Error {
  constructor() {
    super('The worker no longer holds the job that enqueues these');
  }
}

function batchOf(job: ClaimedJob, step: string): number {
  if (job.batchId === undefined) throw inNoFlow(job, step);
  return job.batchId;
}

function inNoFlow({ id, kind }: ClaimedJob, step: string): NonRetryableError {
  return new NonRetryableError(
    `step '${step}': job ${id} ('${kind}') does not belong to a flow or a batch that can grow. ` +
      'Use step.enqueueMany for children of this job. A flow that has ended grows again after redriveFlow',
  );
}

/** Whether these children can be enqueued by one statement: see `ChildrenToInsert`. */
function fitInOneStatement({ as, jobs }: ChildrenToEnqueue): boolean {
  if (as === 'members' || jobs.length === 0) return false;
  if ([...inStatements(jobs.map((job) => ({ job })))].length > 1) return false;
  const queue = jobs[0]?.queue;
  return jobs.every((job) => job.queue === queue && job.uniqueKey === null && job.rule === undefined);
}

/** @param insert sends the statement that enqueues children, as often as it takes */
function childrenOf(
  attempt: AttemptAddedTo,
  tables: TablesOfWorkflows,
  queue: QueueOfWorkflows,
  insert: (children: ChildrenToInsert) => Promise<InsertedChildren | undefined>,
): Pick<StepStore, 'check' | 'enqueue'> {
  return {
    check: (definition, entries, step) =>
      checkEntries(queue.settings(), definition, entries, `step '${step}'`),
    enqueue: async (children) => {
      try {
        return fitInOneStatement(children)
          ? await enqueueAtOnce(attempt, queue, children, insert)
          : await enqueueInTransaction(attempt, tables, queue, children);
      } catch (error) {
        if (error instanceof NoLongerHeld) return undefined;
        throw error;
      }
    },
  };
}

async function enqueueAtOnce(
  { environment }: AttemptAddedTo,
  queue: QueueOfWorkflows,
  { jobs, entries, as, toStep }: ChildrenToEnqueue,
  insert: (children: ChildrenToInsert) => Promise<InsertedChildren | undefined>,
): Promise<EnqueuedChildren> {
  const settings = queue.settings();
  const { db } = environment;
  // The statement writes its output itself.
  const step = toStep({ batch: 0, ids: [] });
  const policy = as === 'detached' ? as : 'parent';
  let enqueued: InsertedChildren | undefined;
  await insertAround(db, settings, jobs, entries, async (_, jobs) => {
    const send = async (wakeUp?: WakeUp) => {
      enqueued = await insert({ step, jobs, policy, wakeUp });
      if (enqueued === undefined) throw new NoLongerHeld();
      const { ids, woke } = enqueued;
      return { ids, woken: woke ? jobs.slice(0, 1).map(({ queue }) => queue) : [] };
    };
    const { wakeUps } = settings;
    const due = jobs.filter(mayBeDue).map(({ queue }) => queue);
    const { ids } = wakeUps === undefined ? await send() : await wakeUps.allow(db, due, send);
    return ids.map((id) => ({ id, duplicate: false, outcome: 'enqueued' }));
  });
  // `around.enqueue` has called `next`, or thrown.
  if (enqueued === undefined) throw new NoLongerHeld();
  const { batch, ids } = enqueued;
  return { batch, ids };
}

/** In a transaction: they are many, have keys, or are added to the flow of their parent. */
async function enqueueInTransaction(
  { job, holder, environment }: AttemptAddedTo,
  tables: TablesOfWorkflows,
  queue: QueueOfWorkflows,
  { step, jobs, entries, as, toStep }: ChildrenToEnqueue,
): Promise<EnqueuedChildren> {
  return await transact(environment.db, async (tx) => {
    const batch =
      as === 'members' ? batchOf(job, step) : Number((await openBatches(tx, tables, [jobs.length]))[0]);
    const members = jobs.map((one, at) => ({ job: { ...one, batch }, entry: entries[at] ?? {} }));
    const ids = await insertMembers(tx, queue, `step '${step}'`, members);
    if (as !== 'members') {
      await addWaits(tx, tables, [{ batchId: batch, jobId: job.id, queue: job.queue, policy: as }]);
    } else if (!(await growBatch(tx, tables, batch, ids.length))) throw inNoFlow(job, step);
    const children = { batch, ids };
    const recorded = await recordOneStep(tx, tables, holder, toStep(children), 'wait');
    if (recorded === undefined) throw new NoLongerHeld();
    return children;
  });
}
