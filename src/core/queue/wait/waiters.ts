import { QueueError } from '../../../errors.ts';
import { findJobs, UnreadableJob } from '../../queries/operate/find-jobs.ts';
import { findLiveIds } from '../../queries/operate/find-live-ids.ts';
import type { QueueTables } from '../../schema/index.ts';
import { type Executor, NO_DATABASE, sqlStateOf } from '../../sql/executor.ts';
import { isLoss } from '../../sql/is-loss.ts';
import type { JobRecord } from '../../sql/job-record.ts';
import { settlesWithin } from '../../time/resolves-within.ts';
import type { FinalRecord } from './final-record.ts';
import type { NoticeListener } from './notice-listener.ts';

/** How long after each look at a job the next one comes. The last value stays. */
const PACE_MS = [25, 50, 100, 200] as const;
const SLOWEST_MS = 500;
/** So many times as long for jobs whose end notices are known to arrive: the net, should one be lost. */
const NOTIFIED_PACE = 2;
/** Notices that come shortly after each other are looked after together. */
const NOTICE_MS = 5;
/** The most ids of one statement. */
const MOST_IDS = 1_000;
/** A look without an answer is given up after this time, and repeated on another connection of the pool. */
const ANSWER_MS = 5_000;
/** Outputs may be large: each read of jobs that follows a vain one takes half as many, and twice as long. */
const MAX_ANSWER_MS = 300_000;
/** Then it is one job. */
const MOST_HALVINGS = 9;

/** What becomes of one who waits. */
export interface Waiter {
  ended(record: FinalRecord): void;
  /** @param wasLive whether it was seen alive before */
  gone(wasLive: boolean): void;
  failed(error: unknown): void;
  /** The look was in vain for a reason that may pass, as a lost connection; `undefined`: it was answered. */
  delayed(error: unknown): void;
}

interface AwaitedJob {
  readonly id: number;
  readonly waiters: Set<Waiter>;
  looks: number;
  /** How often what became of it could not be read, since it was seen alive. */
  vainReads: number;
  wasLive: boolean;
  /** A waiter asked for notices of its end. */
  notified: boolean;
  /** When it is looked at next, by the monotonic clock, and how long after the last look that is. */
  dueAt: number;
  pauseMs: number;
}

interface AskedJob {
  readonly job: AwaitedJob;
  readonly waiters: readonly Waiter[];
}

/**
 * All who wait for jobs through one database object. A loop looks for them together, over one connection at a
 * time: one statement asks which of up to 1,000 jobs are still live, and a second one, where some are not,
 * for what became of those. A job is looked at often in its first second, then every half a second. One whose
 * end is notified is looked at once more when the notice comes, and half as often before. What could not be
 * read within five seconds is read again beside the loop, on a second connection: other waits go on.
 *
 * **Under concurrency.** A job that ends before, between or after the two statements is found by the second
 * one, or by those of the next look: its end moves it within one commit, and each statement sees one snapshot
 * of both tables. One that is redriven in between is live again, and waited for. A notice is sent after the
 * end has committed, so the look that it causes sees the end; one that came during a look causes another.
 */
export class Waiters {
  readonly #db: Executor;
  readonly #tables: QueueTables;
  /** The job whose last look is the longest ago comes first, so none is forgotten when looks are slow. */
  readonly #jobs = new Map<number, AwaitedJob>();
  #readsAgain = false;
  #notices: NoticeListener | undefined;
  #running = false;
  #wake: (() => void) | undefined;

  constructor(db: Executor, tables: QueueTables) {
    this.#db = db;
    this.#tables = tables;
  }

  /** What hears of ends; loaded by the first who asks for it. */
  async notices(): Promise<NoticeListener> {
    const { NoticeListener } = await import('./notice-listener.ts');
    this.#notices ??= new NoticeListener(this.#db, this.#tables, {
      ended: (ids) => {
        const jobs = ids.map((id) => this.#jobs.get(id));
        this.#hurry(
          jobs.filter((job) => job !== undefined),
          NOTICE_MS,
        );
      },
      ready: () => this.#hurry([...this.#jobs.values()].filter(({ notified }) => notified)),
    });
    return this.#notices;
  }

  /**
   * Looks for the job until it has ended, or until the returned function is called.
   *
   * @param notices where its end notice is to be heard as well
   */
  add(id: number, waiter: Waiter, notices?: NoticeListener): () => void {
    const job = this.#jobs.get(id) ?? this.#newJob(id);
    job.waiters.add(waiter);
    job.notified ||= notices !== undefined;
    const leave = notices?.join();
    // The job of a later waiter is looked up soon, too.
    this.#hurry([job]);
    if (!this.#running) void this.#run();
    return () => {
      leave?.();
      job.waiters.delete(waiter);
      if (job.waiters.size > 0 || this.#jobs.get(id) !== job) return;
      this.#jobs.delete(id);
      this.#wake?.();
    };
  }

  /** Looks at these jobs soon, and often at first. */
  #hurry(jobs: readonly AwaitedJob[], inMs = 0): void {
    const dueAt = performance.now() + inMs;
    // Fewer looks than before: who is looking at one of them now leaves this as it is.
    for (const job of jobs) Object.assign(job, { looks: 0, dueAt, pauseMs: 0 });
    this.#wake?.();
  }

  #newJob(id: number): AwaitedJob {
    const job = {
      id,
      waiters: new Set<Waiter>(),
      looks: 0,
      vainReads: 0,
      wasLive: false,
      notified: false,
      dueAt: 0,
      pauseMs: 0,
    };
    this.#jobs.set(id, job);
    return job;
  }

  async #run(): Promise<void> {
    this.#running = true;
    // Those who begin in one turn of the event loop share the first statement.
    await this.#sleep(0);
    while (this.#jobs.size > 0) {
      let next = Number.POSITIVE_INFINITY;
      for (const { dueAt } of this.#jobs.values()) next = Math.min(next, dueAt);
      const pauseMs = next - performance.now();
      if (pauseMs > 0) await this.#sleep(pauseMs);
      else await this.#look(this.#dueJobs());
    }
    this.#running = false;
  }

  /** Also those that are not quite due, as far as they fit into the same statement. */
  #dueJobs(): AwaitedJob[] {
    const now = performance.now();
    const due: AwaitedJob[] = [];
    const soon: AwaitedJob[] = [];
    for (const job of this.#jobs.values()) {
      if (job.dueAt <= now) due.push(job);
      else if (job.dueAt - now <= job.pauseMs / 2) soon.push(job);
      if (due.length === MOST_IDS) break;
    }
    return [...due, ...soon].slice(0, MOST_IDS);
  }

  async #look(jobs: readonly AwaitedJob[]): Promise<void> {
    for (const job of jobs) {
      this.#jobs.delete(job.id);
      this.#jobs.set(job.id, job);
      const paceMs = PACE_MS[job.looks] ?? SLOWEST_MS;
      job.pauseMs = jitter(job.notified && this.#notices?.hears ? paceMs * NOTIFIED_PACE : paceMs);
      job.looks++;
    }
    // A waiter that joins during the look may have missed what it sees.
    const asked = jobs.map((job) => ({ job, waiters: [...job.waiters], looks: job.looks }));
    try {
      const live = await answerWithin(findLiveIds(this.#db, this.#tables, idsOf(asked)), ANSWER_MS);
      for (const { job, waiters } of asked) if (live.has(job.id)) noteLive(job, waiters);
      const ended = asked.filter(({ job }) => !live.has(job.id));
      await this.#read(ended.filter(({ job }) => job.vainReads === 0));
      void this.#readAgain(ended.filter(({ job }) => job.vainReads > 0));
    } catch (error) {
      noteFailure(asked, error);
    }
    const now = performance.now();
    // One who joined meanwhile has set it back to now.
    for (const { job, looks } of asked) if (job.looks === looks) job.dueAt = now + job.pauseMs;
  }

  /** Reads what became of jobs that are not live; returns whether that was answered. Never rejects. */
  async #read(ended: readonly AskedJob[], answerMs = ANSWER_MS): Promise<boolean> {
    if (ended.length === 0) return true;
    try {
      const records = await answerWithin(findJobs(this.#db, this.#tables, idsOf(ended)), answerMs);
      const found = new Map(records.map((record) => [record.id, record]));
      for (const { job, waiters } of ended) answer(job, found.get(job.id), waiters);
      return true;
    } catch (error) {
      for (const { job } of ended) job.vainReads = Math.min(job.vainReads + 1, MOST_HALVINGS);
      noteFailure(ended, error);
      return false;
    }
  }

  /** Reads again what could not be read, one part at a time. The other parts come with later looks. */
  async #readAgain(ended: readonly AskedJob[]): Promise<void> {
    if (ended.length === 0 || this.#readsAgain) return;
    this.#readsAgain = true;
    const vainReads = Math.min(...ended.map(({ job }) => job.vainReads));
    const alike = ended.filter(({ job }) => job.vainReads === vainReads);
    const part = alike.splice(0, MOST_IDS >> vainReads);
    const answered = await this.#read(part, Math.min(ANSWER_MS * 2 ** vainReads, MAX_ANSWER_MS));
    this.#readsAgain = false;
    if (answered) this.#hurry(alike.map(({ job }) => job));
  }

  #sleep(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const wake = () => {
        clearTimeout(timer);
        this.#wake = undefined;
        resolve();
      };
      const timer = setTimeout(wake, ms);
      this.#wake = wake;
    });
  }
}

function idsOf(asked: readonly AskedJob[]): number[] {
  return asked.map(({ job }) => job.id);
}

/** A statement that its connection has forgotten must not hold up all later ones. */
async function answerWithin<T>(answer: Promise<T>, ms: number): Promise<T> {
  if (await settlesWithin(answer, ms)) return await answer;
  throw new QueueError(`The database has not answered for ${ms} ms`);
}

function noteLive(job: AwaitedJob, waiters: readonly Waiter[]): void {
  job.wasLive = true;
  job.vainReads = 0;
  for (const waiter of waiters) waiter.delayed(undefined);
}

function noteFailure(asked: readonly AskedJob[], error: unknown): void {
  const passes = isPassing(error);
  for (const { job, waiters } of asked) {
    job.pauseMs = jitter(SLOWEST_MS);
    for (const waiter of waiters) passes ? waiter.delayed(error) : waiter.failed(error);
  }
}

function answer(
  job: AwaitedJob,
  found: JobRecord | UnreadableJob | undefined,
  waiters: readonly Waiter[],
): void {
  if (found !== undefined && !(found instanceof UnreadableJob) && !('finishedAt' in found)) {
    noteLive(job, waiters);
    return;
  }
  for (const waiter of waiters) {
    if (found === undefined) waiter.gone(job.wasLive);
    else if (found instanceof UnreadableJob) waiter.failed(found.error);
    else waiter.ended(found);
  }
}

/** Within a quarter, so that many processes do not ask at once. */
function jitter(ms: number): number {
  return ms * (0.75 + Math.random() / 2);
}

/**
 * Whether the next look may succeed: no connection, a server that is busy or starting, or a table that a
 * migration has locked for longer than the role's `lock_timeout`.
 */
function isPassing(error: unknown): boolean {
  if (error instanceof TypeError && error.message === NO_DATABASE) return false;
  return isLoss(error) || /^(53|57|40|55P03)/.test(sqlStateOf(error) ?? '');
}
