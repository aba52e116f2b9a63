import type { OwnColumns } from '../../core/schema/index.ts';
import {
  type Handler,
  type Limits,
  type Queue,
  QueueError,
  type RanJob,
  type RunOptions,
  type Transaction,
  type TransactionOf,
  UnknownKindError,
} from '../../index.ts';
import {
  checkBoolean,
  checkInteger,
  checkText,
  findLastId,
  MAX_NAME_BYTES,
  namesOf,
  shown,
} from '../../internal.ts';
import { type ContextFeature, checkRunOptions, type Transition } from '../../testing-face.ts';
import { Calendar } from './calendar.ts';
import { findNextJob } from './find-next-job.ts';
import { findReplaceable } from './find-replaceable.ts';
import { findTalliedHere } from './find-tallied-here.ts';
import { findUnserved, type Unserved } from './find-unserved.ts';
import { runJob } from './run-job.ts';
import { type Passage, shiftEnded } from './shift-ended.ts';
import { shiftTimes } from './shift-times.ts';
import { type TimeSpan, timeOf } from './time-span.ts';
import { checkTransaction } from './written-here.ts';

/** The options of {@link drainIn}. */
export interface DrainInOptions<TDb, TOwn extends OwnColumns = OwnColumns> extends RunOptions<TDb, TOwn> {
  /** The queues whose jobs run. @default every queue */
  queues?: readonly string[] | undefined;
  /**
   * Up to when jobs and schedules run that are not due yet, in their order: a time, or how long from now. The
   * queue's times move back by as much, as with {@link travel}. For delays that begin in a handler the time
   * that handlers really take does not count: `{ hours: 2 }` includes an hour's delay in a job of the first.
   * A row does not tell a delay from a date, so a date that a handler sets may be later by as much.
   * @default now: only what is due
   */
  until?: Date | TimeSpan | undefined;
  /**
   * How many attempts it may take, 1–1,000,000: a job that enqueues itself again would not end.
   * @default 1_000
   */
  max?: number | undefined;
  /**
   * Whether to throw what a handler throws: otherwise a mistake in a handler is a failed attempt, and a test
   * that looks elsewhere passes. `false` for tests of retries and discards: they are counted.
   * @default true
   */
  failFast?: boolean | undefined;
  /**
   * Kinds without a handler here whose due jobs may be left. Any other due job without a handler is an error
   * at the end. @default none
   */
  leave?: readonly string[] | undefined;
  /** Whether to run jobs that others have committed, too. @default false: only those of this transaction */
  all?: boolean | undefined;
}

/** What {@link drainIn} has done. */
export interface DrainInResult {
  /** Each attempt, in order. */
  readonly ran: readonly RanJob[];
  readonly completed: number;
  /** Failed attempts; their jobs are retried later or were discarded. */
  readonly failed: number;
  /** Of the failed ones, those that were a job's last. */
  readonly discarded: number;
  /** Attempts whose handlers asked to be called later, or wait for something. */
  readonly snoozed: number;
  readonly cancelled: number;
}

const OPTIONS = namesOf<DrainInOptions<unknown>>({
  queue: true,
  handlers: true,
  queues: true,
  until: true,
  max: true,
  failFast: true,
  leave: true,
  all: true,
});

/**
 * Runs what is due of the jobs that a transaction has enqueued, and what these enqueue, until nothing is
 * left: one by one, each in a savepoint, with the code of a worker. It also fires the schedules that the
 * transaction has set, of the kinds that there are handlers for. Handlers must use `ctx.db`.
 *
 * ```ts
 * await placeOrder(tx, cart);
 * const { completed } = await drainIn(tx, { queue, handlers, until: { hours: 25 } });
 * ```
 *
 * Due jobs run by priority, then by time; jobs of groups that run one after the other keep their order.
 * Limits of concurrency hold, as one job runs at a time; rates are not waited for. A paused queue runs
 * nothing, and batch handlers get one job each.
 *
 * Under concurrency: takes no job that another transaction or a worker has claimed. It tells nothing about
 * how workers would share jobs, or about a crash: those need workers, and a database of their own.
 *
 * @throws what a handler throws, unless `failFast` is `false`
 * @throws UnknownKindError when a job is due at the end whose kind has no handler and is not in `leave`
 * @throws QueueError when more than `max` attempts would run
 * @throws TypeError | RangeError before anything is sent
 */
export async function drainIn<TTx extends Transaction, TOwn extends OwnColumns>(
  tx: TTx,
  options: DrainInOptions<TransactionOf<NoInfer<TTx>>, TOwn>,
): Promise<DrainInResult> {
  const given = checkRunOptions('drainIn', options, OPTIONS);
  checkTransaction('drainIn', tx, 'on a database of its own, use drain');
  const { queue, queues, until = {}, max = 1_000, failFast = true, all = false } = options;
  const { leave = [] } = options;
  checkInteger('drainIn: max', max, 1, 1_000_000);
  checkBoolean('drainIn: failFast', failFast);
  checkBoolean('drainIn: all', all);
  checkQueues(queues);
  checkKinds(leave);
  // Drizzle hands over its own transaction type, which is what the handlers were typed for.
  const handlers = given as unknown as ReadonlyMap<string, Handler>;
  const kinds = [...handlers.keys()];
  const serial = serialQueues(queue);
  const written = !all;
  const { nowMs: startMs, untilMs } = await timeOf('drainIn: until', tx, queue.tables, until);
  const calendar = new Calendar(tx, queue, { kinds, written, untilMs });
  // `createQueue` has put it there, or nothing.
  const workflows = queue.workflows as ContextFeature | undefined;
  const ran: RanJob[] = [];
  const except: number[] = [];
  const again = new Set<number>();
  const lastId = await findLastId(tx, queue.tables, 'live');
  const replaceable = await findReplaceable(tx, queue.tables, written);
  let discarded = 0;
  const onDecided = (transition: Transition) => {
    if (transition.type === 'finish' && transition.state === 'discarded') discarded++;
  };
  let passages: Passage[] = [];
  let passedMs = 0;
  // The time of what has just come about, by a clock that handlers do not move on.
  let reachedMs = startMs;
  // Thrown once all times have moved by as much.
  let failure: { readonly error: unknown } | undefined;
  const pass = async (ms: number, now: string) => {
    const at = await shiftTimes(tx, queue, { ms, written, only: 'live' });
    passages.push({ at: at === now ? 'infinity' : at, ms });
    passedMs += ms;
    if (at !== now) return;
    // The clock stands still, as by fake timers on PGlite: later nothing tells what has ended before that.
    await shiftEnded(tx, queue, passages, written);
    passages = [];
  };
  const moveOn = async () => {
    const batchIds = all ? undefined : await findTalliedHere(tx, queue);
    return batchIds?.length !== 0 && (await workflows?.moveOnIn(tx, batchIds));
  };
  for (;;) {
    const putOffMs = untilMs - startMs - passedMs;
    const horizon = { untilMs: untilMs - passedMs, putOffMs, lastId, again, replaceable };
    const question = { kinds, queues, serial, except, written, horizon };
    const { now, nowMs, next } = await findNextJob(tx, queue.tables, question);
    const tickMs = await calendar.nextMs(passedMs);
    const clockMs = nowMs + passedMs;
    const jobMs = next === undefined ? Number.POSITIVE_INFINITY : clockMs + next.dueInMs;
    const nextMs = Math.min(tickMs, jobMs);
    // Time passes only once nothing is left to do: a wait must not end late for what has ended before.
    if (nextMs > clockMs && (await moveOn())) continue;
    if (nextMs === Number.POSITIVE_INFINITY) {
      if (untilMs > clockMs) await pass(untilMs - clockMs, now);
      break;
    }
    if (nextMs > clockMs) {
      await pass(Math.ceil(nextMs - clockMs), now);
      reachedMs = nextMs;
    }
    if (next === undefined || tickMs <= jobMs) {
      await calendar.fire(reachedMs);
      continue;
    }
    if (ran.length >= max) {
      failure = { error: tooMany(max, next) };
      break;
    }
    const job = await runJob(tx, queue, handlers, next, onDecided);
    // Another transaction has it.
    if (job === undefined) except.push(next.id);
    else {
      ran.push(job);
      if (job.outcome !== 'completed' && next.id <= lastId) again.add(next.id);
    }
    if (failFast && job?.outcome === 'failed') {
      failure = { error: job.error };
      break;
    }
  }
  await calendar.close(passedMs);
  await shiftEnded(tx, queue, passages, written);
  if (failure !== undefined) throw failure.error;
  const [unserved] = await findUnserved(tx, queue.tables, { kinds: [...kinds, ...leave], queues, written });
  if (unserved !== undefined) throw noHandler(unserved);
  return toResult(ran, discarded);
}

function checkQueues(queues: readonly string[] | undefined): void {
  if (queues === undefined) return;
  if (!Array.isArray(queues) || queues.length === 0) {
    throw new TypeError(`drainIn: queues must be an array of names that is not empty, got ${shown(queues)}`);
  }
  for (const name of queues) checkText('drainIn: the name of a queue', name, MAX_NAME_BYTES);
}

function checkKinds(leave: readonly string[]): void {
  if (!Array.isArray(leave)) {
    throw new TypeError(`drainIn: leave must be an array of kinds, got ${shown(leave)}`);
  }
  for (const kind of leave) checkText('drainIn: a kind in leave', kind, MAX_NAME_BYTES);
}

function noHandler({ id, kind, jobs }: Unserved): UnknownKindError {
  return new UnknownKindError(
    `drainIn has no handler of the kind '${kind}', and ${jobs === 1 ? `job ${id} is` : `${jobs} jobs are`} ` +
      `due. Add its handler, or leave such jobs by name: leave: ['${kind}']`,
  );
}

function serialQueues(queue: Pick<Queue, 'limits'>): string[] {
  // `createQueue` has put it there, or nothing.
  const limits = queue.limits as Limits | undefined;
  return [...(limits?.declared ?? [])].flatMap(([name, { groups }]) =>
    groups?.serial === undefined ? [] : [name],
  );
}

function tooMany(max: number, { id, queue }: { readonly id: number; readonly queue: string }): QueueError {
  return new QueueError(
    `drainIn has run ${max} attempts, and job ${id} of '${queue}' is still due. ` +
      'If no handler enqueues its own kind or snoozes for 0 ms, raise max',
  );
}

function toResult(ran: readonly RanJob[], discarded: number): DrainInResult {
  const count = (outcome: RanJob['outcome']) => ran.filter((job) => job.outcome === outcome).length;
  return {
    ran,
    completed: count('completed'),
    failed: count('failed'),
    discarded,
    snoozed: count('snoozed') + count('waiting'),
    cancelled: count('cancelled'),
  };
}
