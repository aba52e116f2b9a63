import { checkDefinition, type JobDefinition } from '../../core/job/definition.ts';
import { checkOptions, namesOf } from '../../core/job/known-options.ts';
import {
  checkDurationMs,
  checkId,
  checkObject,
  checkText,
  MAX_NAME_BYTES,
  MAX_TIMER_MS,
  MAX_UNIQUE_KEY_BYTES,
} from '../../core/job/limits.ts';
import { shown } from '../../core/job/shown.ts';
import { cancellation } from '../../core/job/transition.ts';
import { unparkJobs } from '../../core/queries/settle/unpark-jobs.ts';
import type { QueueOfWorkflows } from '../../core/queue/queue-workflows.ts';
import type { QueueTables } from '../../core/schema/create-queue-tables.ts';
import { checkExecutor, type Database, type Executor, type Transaction } from '../../core/sql/executor.ts';
import { faultPoint } from '../../core/sql/fault-point.ts';
import type { JobLine } from '../../core/sql/job-line.ts';
import type { JobScope } from '../../core/sql/job-scope.ts';
import { contextOf, inContext, isDistributed } from '../../core/sql/statement-context.ts';
import { Retries } from '../../core/time/retries.ts';
import type { AddedContext } from '../../core/worker/run/added-context.ts';
import type { ContextFeature, ContextInWorker, FeatureContext } from '../../core/worker/worker-feature.ts';
import { QueueError } from '../../errors.ts';
import {
  type BatchEntries,
  type EnqueuedBatch,
  enqueueBatch,
  type LastJob,
} from '../batches/enqueue-batch.ts';
import { builtFlow, type EnqueuedFlow, enqueueFlow, type FlowBuilder } from '../batches/enqueue-flow.ts';
import { ANY_JOB, type FlowGraph, flowGraph } from '../batches/flow-graph.ts';
import { cancelFlow } from '../batches/queries/cancel-flow.ts';
import { type FlowRecord, findFlow } from '../batches/queries/find-flow.ts';
import { findFlowOfJob } from '../batches/queries/find-flow-of-job.ts';
import { findGroupJobs, type JobsOfGroup } from '../batches/queries/find-group-jobs.ts';
import { redriveFlow } from '../batches/redrive-flow.ts';
import { TalliedEnds } from '../batches/sql/tallied-ends.ts';
import { waitForFlow } from '../batches/wait-for-flow.ts';
import { Folding, moveOn } from '../batches/worker/folding.ts';
import { Recounting } from '../batches/worker/recounting.ts';
import type { SignalDefinition } from './job/define-signal.ts';
import { signalToStore } from './job/signal-value.ts';
import type { SignalInput, Step } from './job/step.ts';
import { MailboxFullError } from './job/step-errors.ts';
import type { StepObserver } from './job/step-observer.ts';
import { findMailboxes, type MailboxRecord } from './queries/find-mailboxes.ts';
import { findQueue } from './queries/find-queue.ts';
import { findSteps, type StepRecord } from './queries/find-steps.ts';
import { forgetSteps } from './queries/forget-steps.ts';
import { type SignalTarget, sendSignal } from './queries/send-signal.ts';
import { type ShownSteps, type StepsToShow, showSteps } from './queries/show-steps.ts';
import type { WorkflowTables } from './schema/create-workflow-tables.ts';
import { type TablesOfWorkflows, WORKFLOWS_ENTRY } from './sql/workflow-tables.ts';
import { StepPruning } from './worker/step-pruning.ts';
import { StepRecorder } from './worker/step-recorder.ts';
import { StepRun } from './worker/step-run.ts';
import { storeInTransaction, storeInWorker } from './worker/step-store.ts';

export type { FlowGraph, FlowGroup } from '../batches/flow-graph.ts';

/** The live job that a signal is for: by its id, or by its definition and unique key. */
export type SignalTo =
  | {
      readonly id: number;
      /** Only if it is of this kind. @default of any */
      readonly job?: JobDefinition | undefined;
    }
  | {
      readonly job: JobDefinition;
      readonly uniqueKey: string;
      /** @default that of the definition */
      readonly queue?: string | undefined;
    };

/** Options of {@link Workflows.signal}. */
export interface SignalOptions {
  /**
   * Sends it once: a signal with a key that the job's mailbox has seen under this name is a `duplicate`.
   * 1–200 bytes, such as the id of a webhook's event.
   * @default it is sent each time
   */
  readonly key?: string | undefined;
}

/**
 * What became of a signal. `sent`: the job has it with the commit of the transaction. `duplicate`: it was
 * sent before, with the same key. `gone`: there is no such live job.
 */
export type SignalResult = 'sent' | 'duplicate' | 'gone';

/** The value of a signal, where it has one, and options. */
export type SignalArguments<TSignal extends SignalDefinition> =
  undefined extends SignalInput<TSignal>
    ? [value?: SignalInput<TSignal>, options?: SignalOptions]
    : [value: SignalInput<TSignal>, options?: SignalOptions];

/** What workflows add to the context of a handler. */
export interface StepContext<TDb> {
  /** The steps of the handler: what no later attempt does again, and what the job waits for. */
  readonly step: Step<TDb>;
}

/** The same, by the type of the handler's `db`. */
export interface StepAdded {
  readonly db: unknown;
  readonly context: StepContext<this['db']>;
}

const ON_CITUS =
  'Workflows are not supported on Citus: their statements have not been tried there. Give createQueue no ' +
  'workflows there, or put the tables of this queue into a database without Citus';

const OPTIONS = namesOf<SignalOptions>({ key: true });

/** The workflows of a queue: `queue.workflows`, where {@link createQueue} was given `workflowsIn(…)`. */
export class Workflows implements ContextFeature {
  /** Only a type: what handlers find in their context. @internal */
  declare readonly added: StepAdded;
  readonly entry = WORKFLOWS_ENTRY;
  readonly #queue: QueueOfWorkflows;
  /** @internal */
  readonly tables: WorkflowTables;
  /** @internal */
  readonly statementTables: QueueTables;
  readonly #observer: StepObserver | undefined;

  /** @internal use `workflowsIn` */
  constructor(queue: QueueOfWorkflows, tables: WorkflowTables, observer?: StepObserver) {
    this.#queue = queue;
    this.tables = tables;
    this.statementTables = inContext(queue.tables, { members: new TalliedEnds(tables) });
    this.#observer = observer;
  }

  /**
   * Sends a signal to a live job. In a transaction it is sent when that commits, with all else that it
   * writes. A signal is never lost: the job may wait for it, be about to, run, or not have begun. It stays
   * with the job until one of its waits receives it, or the job ends.
   *
   * ```ts
   * await db.transaction(async (tx) => {
   *   await tx.insert(decisions).values({ orderId, ok: true });
   *   const to = { job: fulfil, uniqueKey: `order-${orderId}` };
   *   await queue.workflows.signal(tx, to, approval, { by: user.name, ok: true });
   * });
   * ```
   *
   * Under concurrency: signals of one name to one job are received in the order of their commits, each by
   * exactly one wait. Two transactions that send them wait for each other.
   *
   * @throws InvalidSignalError when the signal's schema refuses the value, or it is larger than 64 kB
   * @throws MailboxFullError when 1,000 signals of this name were not received, or 10,000 were sent in all
   */
  async signal<TSignal extends SignalDefinition>(
    db: Database | Executor,
    to: SignalTo,
    signal: TSignal,
    ...[value, options = {}]: SignalArguments<TSignal>
  ): Promise<SignalResult> {
    checkExecutor('signal', db);
    checkTarget(to);
    const { name } = checkObject('signal: the signal', signal);
    checkText('signal: the name of the signal', name, MAX_NAME_BYTES);
    const { key } = checkOptions('signal: options', options, OPTIONS);
    if (key !== undefined) checkText('signal: key', key, MAX_NAME_BYTES);
    const json = await signalToStore(signal, value);
    const tables = this.#all(this.#queue.tables);
    return await inOneTransaction(db, async (tx) => {
      const target = await targetOf(tx, tables, to);
      if (target === undefined) return 'gone';
      const message = { to: target, name, signalId: crypto.randomUUID(), value: json, key };
      const sent = await sendSignal(tx, tables, message);
      if (sent === undefined) return 'gone';
      if (sent.became === 'full') throw new MailboxFullError(sent.id, name);
      await faultPoint('signal: sent');
      if (sent.became === 'sent' && sent.waiting) {
        const { queue, id } = sent;
        await unparkJobs(tx, this.#queue.tables, { queue, ids: [id], channel: this.#queue.channel });
      }
      return sent.became;
    });
  }

  /** The recorded steps of a job, live or finished, in the order in which they began. */
  async steps(db: Executor, id: number): Promise<StepRecord[]> {
    checkExecutor('steps', db);
    const found = await findSteps(db, this.#all(this.#queue.tables), {
      id: checkId('steps', id),
      queue: undefined,
    });
    return found.map(({ leftMs, trace: _, ...step }) =>
      // Its row is not written again.
      step.kind === 'sleep' && leftMs !== undefined && leftMs <= 0 ? { ...step, endedAt: step.until } : step,
    );
  }

  /**
   * The mailboxes of a job, by the names of their signals: how many signals were sent to it and received, and
   * which it waits for. Their values are in `queue_mailboxes`.
   */
  async mailboxes(db: Executor, id: number): Promise<MailboxRecord[]> {
    checkExecutor('mailboxes', db);
    return await findMailboxes(db, this.#all(this.#queue.tables), checkId('mailboxes', id));
  }

  /** The newest steps of a job with their outputs as texts. @internal */
  async shown(db: Executor, show: StepsToShow): Promise<ShownSteps> {
    return await showSteps(db, this.#all(this.#queue.tables), show);
  }

  /**
   * Forgets a step of a job, and all that began with it or later; the job does them again when it runs next.
   * Returns how many were forgotten: none while the job runs. With `queue.redrive` in the same transaction a
   * discarded job goes on from there:
   *
   * ```ts
   * await db.transaction(async (tx) => {
   *   await queue.workflows.forget(tx, id, { from: 'charge' });
   *   await queue.redrive(tx, id);
   * });
   * ```
   *
   * Under concurrency: it waits for an attempt that is just recording, and a running job keeps its steps.
   */
  async forget(db: Executor, id: number, { from }: { readonly from: string }): Promise<number> {
    checkExecutor('forget', db);
    checkText('forget: from', from, MAX_NAME_BYTES);
    const tables = this.#all(this.#queue.tables);
    const queue = await findQueue(db, tables, checkId('forget', id), 'with steps');
    return queue === undefined ? 0 : await forgetSteps(db, tables, { queue, id, from });
  }

  /**
   * Enqueues jobs of which some begin only once others have ended. All of them exist with the commit of the
   * transaction, or none; with a plain `db` it begins one.
   *
   * ```ts
   * const { id } = await queue.workflows.enqueueFlow(tx, (flow) => {
   *   const pages = urls.map((url) => flow.add(readPage, { url }));
   *   flow.add(makeReport, { title }, { after: pages, onFailure: 'run' });
   * });
   * ```
   *
   * A job of which one before it was discarded or cancelled ends as cancelled, and so do those behind it,
   * unless `onFailure` is `'run'`. With `step.parents` a handler asks how those before it have ended.
   *
   * Under concurrency: workers see nothing of it before the commit. A job begins once, after the last of
   * those before it, whichever processes end them.
   *
   * @throws InvalidPayloadError | RangeError | TypeError before anything is sent
   * @throws QueueError where a live job has the unique key of one
   */
  async enqueueFlow(
    db: Database | Executor,
    build: (flow: FlowBuilder) => void | Promise<void>,
  ): Promise<EnqueuedFlow> {
    checkExecutor('enqueueFlow', db);
    const tables = this.#all(this.#queue.tables);
    const nodes = await builtFlow(build);
    return await inOneTransaction(db, (tx) => enqueueFlow(tx, tables, this.#queue, nodes));
  }

  /**
   * Enqueues any number of jobs of one kind, and one more that runs once all of them have ended, in whatever
   * way: exactly one. They are read from `entries` a thousand at a time.
   *
   * ```ts
   * const letters = customers.map(({ id }) => ({ payload: { customerId: id } }));
   * await queue.workflows.enqueueBatch(tx, sendLetter, letters, { last: reportDone, payload: { campaign } });
   * ```
   *
   * The last job asks `step.parentCounts` how many there were, and `step.parents(sendLetter)` for their ends.
   * A job whose unique key a live job has is left out, and counted.
   *
   * Under concurrency: as {@link enqueueFlow}.
   *
   * @throws InvalidPayloadError | RangeError | TypeError for the job that it has come to; nothing stays then
   */
  async enqueueBatch<TJob extends JobDefinition, TLast extends JobDefinition>(
    db: Database | Executor,
    job: TJob,
    entries: BatchEntries<TJob>,
    ending: LastJob<TLast>,
  ): Promise<EnqueuedBatch> {
    checkExecutor('enqueueBatch', db);
    checkDefinition('enqueueBatch', job);
    const { last, ...entry } = checkObject('enqueueBatch: the last job', ending);
    checkDefinition('enqueueBatch: last', last);
    const tables = this.#all(this.#queue.tables);
    // The settings of an enqueue, and a payload: `check` looks at them.
    const given = { job: last, entry: entry as never };
    return await inOneTransaction(db, (tx) => enqueueBatch(tx, tables, this.#queue, job, entries, given));
  }

  /** How far a flow or a batch is; `undefined` where there is none, or no longer. */
  async flow(db: Executor, id: number): Promise<FlowRecord | undefined> {
    checkExecutor('flow', db);
    return await findFlow(db, this.#all(this.#queue.tables), checkId('flow', id));
  }

  /**
   * A flow or a batch as a graph: its jobs in groups, how many of each are in which state, and which groups
   * have to end before. Jobs of one kind with the same jobs before and after them are one group, so a flow of
   * thousands has a few. At most 20,000 jobs are looked at one by one; larger batches are known by their
   * counts. `undefined` where there is no such flow, or no longer.
   *
   * Under concurrency: plain reads, one after the other. In a busy flow the counts of two may differ by the
   * jobs that have ended between them.
   */
  async flowGraph(db: Executor, id: number): Promise<FlowGraph | undefined> {
    return await this.graphIn(db, id, ANY_JOB);
  }

  /** The same of the jobs in a scope. @internal */
  async graphIn(db: Executor, id: number, scope: JobScope): Promise<FlowGraph | undefined> {
    checkExecutor('flowGraph', db);
    return await flowGraph(db, this.#all(this.#queue.tables), checkId('flowGraph', id), scope);
  }

  /**
   * The id of the flow or batch that a job is part of, live or finished, or for whose end it waits;
   * `undefined` for none. For children that a step has enqueued there is none.
   */
  async flowOf(db: Executor, jobId: number): Promise<number | undefined> {
    checkExecutor('flowOf', db);
    return await findFlowOfJob(db, this.#all(this.#queue.tables), checkId('flowOf', jobId));
  }

  /** Jobs of a group of a flow, for people. @internal */
  async groupJobs(db: Executor, group: JobsOfGroup): Promise<JobLine[]> {
    return await findGroupJobs(db, this.#all(this.#queue.tables), group);
  }

  /**
   * Ends all jobs of a flow or a batch that have not ended: those that wait end without being run, and those
   * that run are told, as by `queue.cancel`. Workers begin with it a second after the commit at the latest.
   * A job with `onFailure: 'run'` that is not part of it, like the last of a batch, runs all the same.
   * Returns whether there was anything to end.
   *
   * Under concurrency: it waits for no lock. A job that ends by itself meanwhile keeps that end.
   */
  async cancelFlow(db: Executor, id: number, reason = 'The flow was cancelled'): Promise<boolean> {
    checkExecutor('cancelFlow', db);
    const tables = this.#all(this.#queue.tables);
    const { message } = cancellation(0, typeof reason === 'string' ? reason : shown(reason));
    return (await cancelFlow(db, tables, checkId('cancelFlow', id), message)) > 0;
  }

  /**
   * Puts the discarded and cancelled jobs of a flow back, and those that wait for them wait again; so it goes
   * on where it has failed. Jobs that were completed are not run again, nor is the last job of a batch.
   * Returns how many were put back.
   *
   * Under concurrency: all of it takes effect with one commit. It waits for counts of this flow that are
   * under way. Of two calls each job is put back by one.
   */
  async redriveFlow(db: Database | Executor, id: number): Promise<number> {
    checkExecutor('redriveFlow', db);
    checkId('redriveFlow', id);
    const tables = this.#all(this.statementTables);
    return await inOneTransaction(db, (tx) => redriveFlow(tx, tables, id, this.#queue.channel));
  }

  /**
   * Waits until all jobs of a flow or a batch have ended; returns how. For scripts and tests: it asks every
   * few milliseconds at first, then twice a second. In an app, let the last job do what is to be done.
   *
   * @throws QueueError when there is no such flow, or the time is over; the flow goes on
   */
  async waitForFlow(
    db: Executor,
    id: number,
    { timeoutMs = 30_000 }: { readonly timeoutMs?: number | undefined } = {},
  ): Promise<FlowRecord> {
    checkExecutor('waitForFlow', db);
    checkDurationMs('waitForFlow: timeoutMs', timeoutMs, 1, MAX_TIMER_MS);
    return await waitForFlow(() => this.flow(db, id), id, timeoutMs);
  }

  /** @internal */
  forWorker({ statements, tables, events, wake }: FeatureContext): ContextInWorker {
    if (isDistributed(tables)) throw new QueueError(ON_CITUS);
    const all = this.#all(tables);
    const retries = new Retries();
    const questions = statements.of('settlements');
    const db = statements.of('settlements', { prepared: true });
    const recorders = new Map<string, StepRecorder>();
    const added: AddedContext = {
      name: 'step',
      of: (attempt) => {
        const { holder } = attempt;
        const recorder =
          recorders.get(holder.queue) ?? new StepRecorder({ db, tables: all, holder, events, retries });
        recorders.set(holder.queue, recorder);
        const store = { db: questions, tables: all, queue: this.#queue, recorder, retries };
        return new StepRun(attempt, storeInWorker(attempt, store), this.#observer);
      },
    };
    const upkeep = statements.of('upkeep');
    const { channel } = this.#queue;
    const folding = new Folding({ db, tables: all, channel, events, wake });
    const fold = (batchId: number) => folding.note(batchId);
    const recounting = new Recounting({ db: upkeep, tables: all, channel, events, fold });
    return {
      added,
      background: [new StepPruning(upkeep, all, events), folding, recounting],
      noteEnd: ({ batchId }) => {
        if (batchId !== undefined) folding.note(batchId);
      },
      moveOn: () => folding.moveOn(),
    };
  }

  /** @internal */
  forTransaction(): AddedContext {
    const all = this.#all(this.#queue.tables);
    const queue = this.#queue;
    return {
      name: 'step',
      of: (attempt) => new StepRun(attempt, storeInTransaction(attempt, all, queue), this.#observer),
    };
  }

  /** @internal */
  async moveOnIn(tx: Transaction): Promise<boolean> {
    return await moveOn(tx, this.#all(this.#queue.tables), this.#queue.channel, 'wait');
  }

  /** With what is known of the server and of limits. */
  #all(tables: QueueTables): TablesOfWorkflows {
    return inContext({ ...tables, ...this.tables }, contextOf(tables));
  }
}

/** For callers without TypeScript. @throws TypeError */
function checkTarget(to: SignalTo): void {
  checkObject('signal: to', to);
  if (to.job !== undefined) checkDefinition('signal', to.job);
  if ('id' in to) checkId('signal', to.id);
  else {
    checkText('signal: uniqueKey', to.uniqueKey, MAX_UNIQUE_KEY_BYTES);
    if (to.queue !== undefined) checkText('signal: queue', to.queue, MAX_NAME_BYTES);
  }
}

async function targetOf(
  db: Executor,
  tables: TablesOfWorkflows,
  to: SignalTo,
): Promise<SignalTarget | undefined> {
  if ('id' in to) {
    const queue = await findQueue(db, tables, to.id, 'live');
    return queue === undefined ? undefined : { queue, id: to.id, kind: to.job?.kind };
  }
  const { job, uniqueKey, queue = job.queue } = to;
  return { queue, kind: job.kind, uniqueKey };
}

/** The mailbox and the job must change together. */
async function inOneTransaction<T>(db: Database | Executor, run: (tx: Executor) => Promise<T>): Promise<T> {
  const isTransaction = typeof Reflect.get(db, 'rollback') === 'function';
  return isTransaction || !('transaction' in db) ? await run(db) : await db.transaction(run);
}
