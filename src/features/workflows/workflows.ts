import { checkDefinition, type JobDefinition, type OutputInput } from '../../core/job/definition.ts';
import { checkOptions, namesOf } from '../../core/job/known-options.ts';
import {
  checkDurationMs,
  checkId,
  checkObject,
  checkText,
  MAX_NAME_BYTES,
  MAX_TIMER_MS,
} from '../../core/job/limits.ts';
import { shown } from '../../core/job/shown.ts';
import { cancellation } from '../../core/job/transition.ts';
import { databaseTime } from '../../core/queries/operate/database-time.ts';
import type { FeatureToCheck } from '../../core/queue/check/feature-to-check.ts';
import type { QueueOfWorkflows } from '../../core/queue/queue-workflows.ts';
import type { QueueTables } from '../../core/schema/create-queue-tables.ts';
import type { OwnColumns } from '../../core/schema/own-columns.ts';
import { checkExecutor, checkTransaction, type Database, type Executor } from '../../core/sql/executor.ts';
import { faultPoint } from '../../core/sql/fault-point.ts';
import type { JobLine } from '../../core/sql/job-line.ts';
import type { JobScope } from '../../core/sql/job-scope.ts';
import { contextOf, inContext, isDistributed } from '../../core/sql/statement-context.ts';
import { transact } from '../../core/sql/transact.ts';
import type { ContextFeature, ContextInWorker } from '../../core/worker/context-feature.ts';
import type { HostWorker } from '../../core/worker/host-worker.ts';
import type { AddedContext } from '../../core/worker/run/added-context.ts';
import type { CompleteArguments } from '../../core/worker/run/handler.ts';
import { QueueError } from '../../errors.ts';
import {
  type BatchEntries,
  type EnqueuedBatch,
  enqueueBatch,
  type LastJob,
} from '../batches/enqueue-batch.ts';
import { builtFlow, type EnqueuedFlow, enqueueFlow, type FlowBuilder } from '../batches/enqueue-flow.ts';
import { ANY_JOB, type FlowGraph, flowGraph } from '../batches/flow-graph.ts';
import { type FlowFilter, type FlowList, listFlows } from '../batches/list-flows.ts';
import { cancelFlow } from '../batches/queries/cancel-flow.ts';
import { countOpenFlows, type FlowStats } from '../batches/queries/count-open-flows.ts';
import { type FlowRecord, findFlow } from '../batches/queries/find-flow.ts';
import { findFlowOfJob } from '../batches/queries/find-flow-of-job.ts';
import { findGroupJobs, type JobsOfGroup } from '../batches/queries/find-group-jobs.ts';
import { isBlocked } from '../batches/queries/is-blocked.ts';
import { redriveFlow } from '../batches/redrive-flow.ts';
import { TalliedEnds } from '../batches/sql/tallied-ends.ts';
import { waitForFlow } from '../batches/wait-for-flow.ts';
import { Folding } from '../batches/worker/folding.ts';
import { foldAllIn } from '../batches/worker/move-on.ts';
import { Recounting } from '../batches/worker/recounting.ts';
import { workflowsToCheck } from './check-workflows.ts';
import { type FinishResult, finish, type JobToFinish } from './finish.ts';
import { checkForkOptions, type ForkedJob, type ForkOptions, fork } from './fork.ts';
import type { SignalDefinition, SignalInput } from './job/define-signal.ts';
import { InvalidTokenError } from './job/invalid-token-error.ts';
import { signalToStore } from './job/signal-value.ts';
import type { Step } from './job/step.ts';
import { MailboxFullError } from './job/step-errors.ts';
import type { StepObserver } from './job/step-observer.ts';
import { WITHOUT_WORKFLOWS, WORKFLOWS_ON_CITUS } from './on-citus.ts';
import { findMailboxes, type MailboxRecord } from './queries/find-mailboxes.ts';
import { findStepsOfOne, type StepRecord } from './queries/find-steps.ts';
import { sendSignal } from './queries/send-signal.ts';
import { type ShownSteps, type StepsToShow, showSteps } from './queries/show-steps.ts';
import { unparkJobs } from './queries/unpark-jobs.ts';
import { checkRedrive, type RedriveFromResult, redriveFrom } from './redrive.ts';
import type { WorkflowTables } from './schema/create-workflow-tables.ts';
import { hasBegun } from './sql/begun-job.ts';
import { type TablesOfWorkflows, WORKFLOWS_ENTRY } from './sql/workflow-tables.ts';
import { checkTarget, type SignalTo, targetOf } from './target-of.ts';
import { type Tokens, tokensFor } from './tokens/tokens.ts';
import { StepFinder } from './worker/step-finder.ts';
import { StepPruning } from './worker/step-pruning.ts';
import { StepRecorder } from './worker/step-recorder.ts';
import { StepRun } from './worker/step-run.ts';
import { answeredTo, storeInTransaction, storeInWorker } from './worker/step-store.ts';

export type { FlowGraph, FlowGroup } from '../batches/flow-graph.ts';

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

/** What became of a token: as a {@link SignalResult}, or it is too late for it. */
export type RedeemResult = SignalResult | 'expired';

/** The value of a signal that a token is for, where it has one. */
export type RedeemArguments<TSignal extends SignalDefinition> =
  undefined extends SignalInput<TSignal> ? [value?: SignalInput<TSignal>] : [value: SignalInput<TSignal>];

/** What workflows add to the context of a handler. */
export interface StepContext<TDb, TOwn = unknown> {
  /** The steps of the handler: what no later attempt does again, and what the job waits for. */
  readonly step: Step<TDb, TOwn>;
}

/** The same, by the type of the handler's `db`. `TOwn` holds the values of the app's own columns. */
export interface StepAdded<TOwn = unknown> {
  readonly db: unknown;
  readonly context: StepContext<this['db'], TOwn>;
}

/** Options of {@link Workflows.waitForFlow}. */
export interface WaitForFlowOptions {
  /** The most milliseconds to wait. @default 30_000 */
  readonly timeoutMs?: number | undefined;
}

const OPTIONS = namesOf<SignalOptions>({ key: true });
const WAIT_OPTIONS = namesOf<WaitForFlowOptions>({ timeoutMs: true });

/** The workflows of a queue, by the type of its own columns. */
export interface WorkflowsOfOwn {
  readonly own: OwnColumns;
  readonly made: Workflows<this['own']>;
}

/** The workflows of a queue: `queue.workflows`, where {@link createQueue} was given `workflowsIn(…)`. */
export class Workflows<TOwn extends OwnColumns = OwnColumns> implements ContextFeature {
  /** Only a type: what handlers find in their context. @internal */
  declare readonly added: StepAdded<TOwn['insert']>;
  /** Only a type: what these are for a queue with own columns. @internal */
  declare readonly byOwn: WorkflowsOfOwn;
  readonly entry = WORKFLOWS_ENTRY;
  readonly #queue: QueueOfWorkflows;
  /** @internal */
  readonly tables: WorkflowTables;
  /** @internal */
  readonly statementTables: QueueTables;
  readonly #observer: StepObserver | undefined;
  /** Signs with the secrets; `undefined` where there are none. @internal */
  readonly tokens: Tokens | undefined;

  /** @internal use `workflowsIn` */
  constructor(queue: QueueOfWorkflows, tables: WorkflowTables, observer?: StepObserver, tokens?: Tokens) {
    this.#queue = queue;
    this.tables = tables;
    this.statementTables = inContext(queue.tables, { members: new TalliedEnds(tables) });
    this.#observer = observer;
    this.tokens = tokens;
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
    checkTarget('signal', to);
    const { name } = checkObject('signal: the signal', signal);
    checkText('signal: the name of the signal', name, MAX_NAME_BYTES);
    const { key } = checkOptions('signal: options', options, OPTIONS);
    if (key !== undefined) checkText('signal: key', key, MAX_NAME_BYTES);
    return await this.#send(db, to, signal, { value, key });
  }

  /**
   * Sends a signal by a token of `step.token`: the answer of a person who has followed a link. It is sent at
   * most once for each token. The signal's definition says of what type the value is.
   *
   * ```ts
   * const token = url.searchParams.get('token');
   * const became = await queue.workflows.redeem(db, approval, token, { by, ok: true });
   * if (became === 'expired') return new Response('This link has expired');
   * ```
   *
   * Under concurrency: of two calls with one token, one sends. Otherwise as {@link Workflows.signal}.
   *
   * @throws InvalidTokenError when it is not a token, none of the secrets has signed it, or it is for another
   * signal
   * @throws InvalidSignalError | MailboxFullError as {@link Workflows.signal}
   * @throws QueueError where `workflowsIn` was given no `secrets`
   */
  async redeem<TSignal extends SignalDefinition>(
    db: Database | Executor,
    signal: TSignal,
    token: string | null | undefined,
    ...[value]: RedeemArguments<TSignal>
  ): Promise<RedeemResult> {
    checkExecutor('redeem', db);
    const { name } = checkObject('redeem: the signal', signal);
    const claims = await tokensFor('redeem', this.tokens).read(token);
    if (claims.signal !== name) throw new InvalidTokenError('signal');
    if (claims.expiresAt !== undefined) {
      const now = await databaseTime(db, this.#queue.tables);
      if (claims.expiresAt <= now.getTime()) return 'expired';
    }
    // Longer than a key of the app can be, and none of these.
    const key = `drizzle_queue.token:${claims.name}`;
    return await this.#send(db, { id: claims.jobId }, signal, { value, key });
  }

  async #send(
    db: Database | Executor,
    to: SignalTo,
    signal: SignalDefinition,
    { value, key }: { readonly value: unknown; readonly key: string | undefined },
  ): Promise<SignalResult> {
    const { name } = signal;
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
        const { channel, tables } = this.#queue;
        await unparkJobs(tx, tables, { queue, ids: [id], onlyWaiting: true, channel });
      }
      return sent.became;
    });
  }

  /**
   * Ends a job that waits as completed, with an output, as its handler would: instead of what it waits for,
   * something else has happened. A job waits in its middle, or before it begins, for others of its flow. Its
   * handler is not called again, and jobs that it has enqueued go on.
   *
   * ```ts
   * await db.transaction(async (tx) => {
   *   await tx.update(orders).set({ parcel: 'by hand' }).where(eq(orders.id, orderId));
   *   const to = { job: fulfil, uniqueKey: `order-${orderId}` };
   *   const became = await queue.workflows.finish(tx, to, { parcel: 'by hand' });
   *   if (became !== 'finished') throw new Error(`The job is ${became}`);
   * });
   * ```
   *
   * Under concurrency: against a claim, a cancel and another finish, exactly one wins. It waits for no lock,
   * and tries again for 0.3 seconds where another transaction holds the row. A signal that was sent and not
   * received is dropped.
   *
   * @throws InvalidOutputError when the definition's `output` refuses the output
   */
  async finish<TJob extends JobDefinition>(
    db: Executor,
    to: JobToFinish<TJob>,
    ...[output]: CompleteArguments<TJob>
  ): Promise<FinishResult> {
    checkExecutor('finish', db);
    // A definition without a schema for its output takes any, or none.
    return await finish(db, this.#all(this.statementTables), to, output as OutputInput<TJob>);
  }

  /** The recorded steps of a job, live or finished, in the order in which they began. */
  async steps(db: Executor, id: number): Promise<StepRecord[]> {
    checkExecutor('steps', db);
    const found = await findStepsOfOne(db, this.#all(this.#queue.tables), {
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
   * Lets a job go on from a step that it has recorded: this step, and all that began with it or later, are
   * done again. A discarded or cancelled job is put back, due now, with all its attempts, as by
   * `queue.redrive`. One that waits, for whatever, is due now. Steps that were undone are done again, too.
   *
   * Signals that the forgotten steps had received are received again, and children that they had enqueued go
   * on. For a job that has completed, or one that is to be asked again, see {@link fork}.
   *
   * Under concurrency: all of it takes effect with one commit. Of two calls each job is put back by one. A
   * running job keeps its steps. It waits for no lock, and tries again for 0.3 seconds.
   *
   * @throws QueueError when the job has no such step; it names those that it has
   */
  async redrive(
    db: Database | Executor,
    id: number,
    options: { readonly from: string },
  ): Promise<RedriveFromResult> {
    checkExecutor('redrive', db);
    checkRedrive(id, options);
    const tables = this.#all(this.statementTables);
    const { from } = options;
    return await inOneTransaction(db, (tx) => redriveFrom(tx, tables, { id, from }, this.#queue.channel));
  }

  /**
   * Enqueues a new job of the same kind, queue, payload and settings, which goes on from a step of another
   * one: what had ended when that step began is taken over, and not done again. The other job may be live or
   * finished, and nothing of it changes. The new one has `forkedFrom` in its metadata, and no unique key.
   *
   * Signals are taken over as the steps that have received them; others are to be sent again. A step that has
   * enqueued children is taken over if all of them had ended by then; otherwise it enqueues them again. What
   * was undone is not taken over.
   *
   * ```ts
   * const { id } = await queue.workflows.fork(tx, job.id, { from: 'charge' });
   * ```
   *
   * Under concurrency: the job exists with its steps, from the commit on. A job that runs meanwhile is
   * copied as it was when it began the step.
   *
   * @throws QueueError when there is no such job, or it has no such step; it names those that it has
   * @throws InvalidPayloadError when the definition refuses the payload
   */
  async fork<TJob extends JobDefinition = JobDefinition>(
    db: Database | Executor,
    id: number,
    options: ForkOptions<TJob>,
  ): Promise<ForkedJob> {
    checkExecutor('fork', db);
    checkForkOptions(id, options);
    const tables = this.#all(this.statementTables);
    return await inOneTransaction(db, (tx) => fork(tx, tables, this.#queue.settings(), id, options));
  }

  /**
   * Enqueues jobs some of which begin only once others have ended. All of them exist with the commit of the
   * transaction, or none; with a plain `db` it begins one.
   *
   * ```ts
   * const { id } = await queue.workflows.enqueueFlow(tx, (flow) => {
   *   const pages = urls.map((url) => flow.add(readPage, { url }));
   *   flow.add(makeReport, { title }, { after: pages, onFailure: 'run' });
   * });
   * ```
   *
   * When a job is discarded or cancelled, the jobs that come after it are cancelled, and so are those after
   * them, unless `onFailure` is `'run'`. With `step.parents` a handler asks how those before it have ended.
   *
   * Under concurrency: workers see nothing of it before the commit. A job begins once, after the last of
   * those before it, whichever processes end them.
   *
   * @throws InvalidPayloadError | RangeError | TypeError before anything is sent
   * @throws QueueError where a live job has the unique key of one
   */
  async enqueueFlow(
    db: Database | Executor,
    build: (flow: FlowBuilder<TOwn['insert']>) => void | Promise<void>,
  ): Promise<EnqueuedFlow> {
    this.#checkEnqueue('enqueueFlow', db);
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
   * @throws InvalidPayloadError | RangeError | TypeError for the first bad job; nothing is enqueued then
   */
  async enqueueBatch<TJob extends JobDefinition, TLast extends JobDefinition>(
    db: Database | Executor,
    job: TJob,
    entries: BatchEntries<TJob, TOwn['insert']>,
    ending: LastJob<TLast, TOwn['insert']>,
  ): Promise<EnqueuedBatch> {
    this.#checkEnqueue('enqueueBatch', db);
    checkDefinition('enqueueBatch', job);
    const { last, ...entry } = checkObject('enqueueBatch: the last job', ending);
    checkDefinition('enqueueBatch: last', last);
    const tables = this.#all(this.#queue.tables);
    // The settings of an enqueue, and a payload: `check` looks at them.
    const given = { job: last, entry: entry as never };
    const run = (tx: Executor) => enqueueBatch(tx, tables, this.#queue, job, entries, given);
    // A savepoint in a transaction, which may go on when a later one of the entries is refused.
    return 'transaction' in db ? await transact(db, run) : await run(db);
  }

  /** How far a flow or a batch is; `undefined` where there is none, or no longer. */
  async flow(db: Executor, id: number): Promise<FlowRecord | undefined> {
    checkExecutor('flow', db);
    return await findFlow(db, this.#all(this.#queue.tables), checkId('flow', id));
  }

  /**
   * Flows and batches, the newest first, a page at a time. Those that steps have enqueued are not among them.
   *
   * ```ts
   * const { flows, nextCursor } = await queue.workflows.flows(db, { state: 'failed' });
   * ```
   *
   * Under concurrency: a plain read. A flow is deleted once the results of its jobs are pruned.
   *
   * @throws RangeError | TypeError for an invalid filter
   */
  async flows(db: Executor, filter: FlowFilter = {}): Promise<FlowList> {
    checkExecutor('flows', db);
    return await listFlows(db, this.#all(this.#queue.tables), filter);
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

  /**
   * How many flows and batches are open, how old the oldest is, and how many jobs wait for others: for
   * dashboards and alerts, such as `observe(worker, { workflows: () => queue.workflows.stats(db) })` of
   * `drizzle-queue/opentelemetry`.
   *
   * It takes time for each open flow, about 0.1 seconds for 10,000, and none for those that have ended.
   *
   * Under concurrency: a plain read of one snapshot.
   */
  async stats(db: Executor): Promise<FlowStats> {
    checkExecutor('workflows.stats', db);
    return await countOpenFlows(db, this.#all(this.#queue.tables));
  }

  /** Jobs of a group of a flow, for people. @internal */
  async groupJobs(db: Executor, group: JobsOfGroup): Promise<JobLine[]> {
    return await findGroupJobs(db, this.#all(this.#queue.tables), group);
  }

  /**
   * Ends all jobs of a flow or a batch that have not ended: those that wait end without being run, and those
   * that run are told, as by `queue.cancel`. Workers begin with it a second after the commit at the latest.
   * What no claim may take, as in a paused queue, is ended by a walk through all batches: within about two
   * minutes, and up to one more for each thousand batches that are kept. A job with `onFailure: 'run'` that
   * is not part of it, like the last of a batch, runs all the same.
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
   * Returns how many were put back. Jobs that were to end because the flow was cancelled, and have not ended
   * yet, go on; one that runs and was told may still end as cancelled. Jobs that have begun go on, too.
   *
   * Under concurrency: all of it takes effect with one commit. It waits for counts of this flow that are
   * under way. Of two calls each job is put back by one.
   */
  async redriveFlow(db: Database | Executor, id: number): Promise<number> {
    checkExecutor('redriveFlow', db);
    checkId('redriveFlow', id);
    const tables = this.#all(this.statementTables);
    const redrive = { flowId: id, channel: this.#queue.channel, hasBegun: hasBegun(tables) };
    return await inOneTransaction(db, (tx) => redriveFlow(tx, tables, redrive));
  }

  /**
   * Waits until all jobs of a flow or a batch have ended; returns how. For scripts and tests: it asks every
   * few milliseconds at first, then twice a second. In an app, let the last job do what comes next.
   *
   * @throws QueueError when there is no such flow, or the time is over; the flow goes on
   */
  async waitForFlow(db: Executor, id: number, options: WaitForFlowOptions = {}): Promise<FlowRecord> {
    checkExecutor('waitForFlow', db);
    const { timeoutMs = 30_000 } = checkOptions('waitForFlow: options', options, WAIT_OPTIONS);
    checkDurationMs('waitForFlow: timeoutMs', timeoutMs, 1, MAX_TIMER_MS);
    return await waitForFlow(() => this.flow(db, id), id, timeoutMs);
  }

  /** What `queue.check` looks for. @internal */
  get toCheck(): FeatureToCheck {
    return workflowsToCheck(this.tables);
  }

  /** @internal */
  checkServer(tables: QueueTables): void {
    if (isDistributed(tables)) throw new QueueError(`${WORKFLOWS_ON_CITUS}. ${WITHOUT_WORKFLOWS}`);
  }

  /** @internal */
  forWorker({ statements, tables, events, retries, wake, until }: HostWorker): ContextInWorker {
    const all = this.#all(tables);
    const asking = { retries, events };
    const questions = statements.of('settlements');
    const db = statements.of('settlements', { prepared: true });
    const recorders = new Map<string, StepRecorder>();
    const finders = new Map<string, StepFinder>();
    const added: AddedContext = {
      name: 'step',
      isBlocked: (attempt) => answeredTo(attempt, asking, () => isBlocked(questions, all, attempt.job)),
      of: (attempt) => {
        const { holder } = attempt;
        const recorder =
          recorders.get(holder.queue) ?? new StepRecorder({ db, tables: all, holder, events, retries });
        recorders.set(holder.queue, recorder);
        const { queue } = holder;
        const finder = finders.get(queue) ?? new StepFinder({ db: questions, tables: all, queue });
        finders.set(queue, finder);
        const store = {
          db: questions,
          enqueuing: db,
          tables: all,
          queue: this.#queue,
          finder,
          recorder,
          asking,
          tokens: this.tokens,
        };
        return new StepRun(attempt, storeInWorker(attempt, store), this.#observer);
      },
    };
    const upkeep = statements.of('upkeep');
    const { channel } = this.#queue;
    const folding = new Folding({ db, tables: all, channel, events, wake });
    const fold = (batchId: number) => folding.note(batchId);
    const recounting = new Recounting({ db: upkeep, tables: all, channel, events, fold, until });
    return {
      added,
      background: [new StepPruning(upkeep, all, events, until), folding, recounting],
      ready: folding.mayClaim,
      noteLeft: ({ batchId }) => {
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
      isBlocked: ({ environment, job }) => isBlocked(environment.db, all, job),
      of: (attempt) =>
        new StepRun(attempt, storeInTransaction(attempt, all, queue, this.tokens), this.#observer),
    };
  }

  /** @internal */
  async moveOnIn(db: Database, batchIds?: readonly number[]): Promise<boolean> {
    return await foldAllIn(db, this.#all(this.#queue.tables), this.#queue.channel, batchIds);
  }

  #checkEnqueue(caller: string, db: Executor): void {
    checkExecutor(caller, db);
    if (this.#queue.settings().requireTransaction) checkTransaction(`workflows.${caller}`, db);
  }

  /** With what is known of the server and of limits. */
  #all(tables: QueueTables): TablesOfWorkflows {
    return inContext({ ...tables, ...this.tables }, contextOf(tables));
  }
}

/** The mailbox and the job must change together. */
async function inOneTransaction<T>(db: Database | Executor, run: (tx: Executor) => Promise<T>): Promise<T> {
  const isTransaction = typeof Reflect.get(db, 'rollback') === 'function';
  return isTransaction || !('transaction' in db) ? await run(db) : await transact(db, run);
}
