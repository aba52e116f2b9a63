import { notifyWorkers } from '../../../core/queries/presence/notify-workers.ts';
import type { Runner } from '../../../core/sql/executor.ts';
import { Condition } from '../../../core/time/condition.ts';
import { jitter } from '../../../core/time/jitter.ts';
import type { BackgroundPart } from '../../../core/worker/base/background.ts';
import type { WorkerEmitter } from '../../../core/worker/base/events.ts';
import { isAboutLocks, isAboutTheServer } from '../../../core/worker/base/refusal.ts';
import { findLeases } from '../queries/find-leases.ts';
import { type LeaseAnswer, takeLease } from '../queries/take-lease.ts';
import { takeStarts } from '../queries/take-starts.ts';
import type { LeaseTables, LimitName } from '../sql/limit-tables.ts';
import type { Lease } from './lease.ts';
import type { QueueLimiter } from './queue-limiter.ts';
import type { Starts } from './starts.ts';
import { successorsIn, successorsPayload } from './successors.ts';

export interface LeasesOptions {
  readonly db: Runner;
  readonly tables: LeaseTables;
  readonly workerId: number;
  readonly events: WorkerEmitter;
}

/** Where slots or starts are asked for, or given back. */
interface Turn {
  readonly limiter: QueueLimiter;
  /** When to look at it again, though nothing has happened. */
  dueMs: number;
  /** Sends what there is to ask for; returns when to look at it again. */
  send(nowMs: number): number;
}

/** Who has asked for slots or for starts. */
interface Asker<TAnswer> {
  readonly question: LimitName;
  noteAnswer(answer: TAnswer, nowMs: number): void;
  /** @param isLost whether it may have been carried out all the same, or may still be */
  noteFailure(nowMs: number, isLost: boolean): void;
}

/** How often a worker that has slots looks whether others lack some, or a limit has changed. */
const LOOK_MS = 1_000;
/** And one that has none, or shares a limit with very many. */
const MAX_LOOK_MS = 4_000;
const LOOK_PER_WORKER_MS = 5;
/** Among more workers none is told of free slots: each of them hears each notification. */
const MOST_TOLD = 100;
const FIRST_RETRY_MS = 100;
/** An outage is reported at once, and again at this interval while it lasts. */
const REPORT_EVERY_MS = 5_000;

/**
 * Takes slots and starts of the limits of a worker's queues when it has jobs for them, gives back what it
 * does not use, and learns when limits change or others lack their share.
 */
export class Leases implements BackgroundPart {
  readonly #options: LeasesOptions;
  readonly #limiters: QueueLimiter[] = [];
  readonly #leases: [Lease, QueueLimiter][] = [];
  readonly #starts: Starts[] = [];
  readonly #turns: Turn[] = [];
  readonly #alarm = new Condition();
  readonly #woken = new Set<QueueLimiter>();
  /** The statements under way. */
  readonly #sent = new Set<Promise<void>>();
  #lookMs = Number.NEGATIVE_INFINITY;
  #failures = 0;
  #reportedMs = Number.NEGATIVE_INFINITY;
  #markReady: () => void = () => undefined;
  /** Fulfilled when it has looked which limits there are, or could not. */
  readonly ready = new Promise<void>((resolve) => {
    this.#markReady = resolve;
  });

  constructor(options: LeasesOptions) {
    this.#options = options;
  }

  /** Also asks for the limits of this queue; called before it runs. */
  add(limiter: QueueLimiter): void {
    this.#limiters.push(limiter);
    for (const lease of limiter.leases) {
      this.#leases.push([lease, limiter]);
      this.#turns.push({ limiter, dueMs: 0, send: (nowMs) => this.#sendOfLease(lease, limiter, nowMs) });
    }
    for (const starts of limiter.starts.values()) {
      this.#starts.push(starts);
      this.#turns.push({ limiter, dueMs: 0, send: (nowMs) => this.#sendOfStarts(starts, limiter, nowMs) });
    }
  }

  /** A queue has something to ask for or to give back. */
  wake(limiter: QueueLimiter): void {
    this.#woken.add(limiter);
    this.#alarm.signal();
  }

  /** A limit may have been set: looks soon. */
  look(): void {
    this.#lookMs = Number.NEGATIVE_INFINITY;
    this.#alarm.signal();
  }

  /** Slots may be free that were not, or the database is back. */
  askSoon(): void {
    const nowMs = performance.now();
    for (const [lease] of this.#leases) lease.askSoon(nowMs);
    for (const starts of this.#starts) starts.askSoon();
    this.look();
  }

  /** A notification came. It may say that slots are free for this worker. */
  hear(payload: string): void {
    if (!successorsIn(payload).includes(this.#options.workerId)) return;
    const nowMs = performance.now();
    for (const [lease, limiter] of this.#leases) {
      lease.noteSucceeds(nowMs);
      this.wake(limiter);
    }
  }

  /** This worker was declared gone: what it had is others'. It begins nothing until it knows what it has. */
  noteGone(): void {
    for (const [lease] of this.#leases) lease.noteGone();
    this.look();
  }

  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      this.#alarm.clear();
      const nowMs = performance.now();
      if (nowMs >= this.#lookMs) await this.#look();
      this.#markReady();
      if (signal.aborted) break;
      await this.#alarm.wait(Math.max(this.#send() - performance.now(), 0), signal);
    }
    await Promise.all(this.#sent);
  }

  /** Sends what is to be asked for or given back; returns when to look for more. */
  #send(): number {
    const nowMs = performance.now();
    for (const turn of this.#turns) {
      if (this.#woken.has(turn.limiter) || turn.dueMs <= nowMs) turn.dueMs = turn.send(nowMs);
    }
    this.#woken.clear();
    return Math.min(this.#lookMs, ...this.#turns.map(({ dueMs }) => dueMs));
  }

  #sendOfLease(lease: Lease, limiter: QueueLimiter, nowMs: number): number {
    const appetite = limiter.appetite(lease);
    const wish = lease.wish(nowMs, appetite);
    if (wish === undefined) return Math.max(lease.nextMs(nowMs, appetite), nowMs + 1);
    const { db, tables, workerId } = this.#options;
    lease.noteSent(wish, performance.now());
    const answer = takeLease(db, tables, { ...lease.question, workerId, ...wish });
    this.#track(this.#tellSuccessors(answer));
    return this.#await(answer, 'slots', lease, limiter);
  }

  #sendOfStarts(starts: Starts, limiter: QueueLimiter, nowMs: number): number {
    // Jobs that are claimed now may ask for them.
    if (starts.opens(nowMs)) limiter.noteRoom();
    const wish = starts.wish(nowMs, limiter.dueOf(starts));
    if (wish === undefined) return Math.max(starts.nextMs(nowMs), nowMs + 1);
    const { db, tables, workerId } = this.#options;
    starts.noteSent(wish, performance.now());
    const answer = takeStarts(db, tables, { ...starts.question, workerId, ...wish });
    return this.#await(answer, 'starts', starts, limiter);
  }

  /** Tells of the answer to what was sent; returns when to ask again: as it wakes, when it has come. */
  #await<TAnswer>(
    answer: Promise<TAnswer>,
    what: string,
    asker: Asker<TAnswer>,
    limiter: QueueLimiter,
  ): number {
    this.#track(this.#tell(answer, what, asker, limiter));
    return Number.POSITIVE_INFINITY;
  }

  #track(statement: Promise<void>): void {
    const sent = statement.finally(() => this.#sent.delete(sent));
    this.#sent.add(sent);
  }

  /** Tells those that may have what was given back; without that they find it a little later. */
  async #tellSuccessors(answer: Promise<LeaseAnswer | undefined>): Promise<void> {
    const { db, tables } = this.#options;
    try {
      const { successors, sharing } = (await answer) ?? { successors: [], sharing: 0 };
      if (successors.length > 0 && sharing <= MOST_TOLD)
        await notifyWorkers(db, tables, successorsPayload(successors));
    } catch {
      // The error of the answer is told elsewhere, and a worker that is not told asks again by itself.
    }
  }

  async #tell<TAnswer>(
    answer: Promise<TAnswer>,
    what: string,
    asker: Asker<TAnswer>,
    limiter: QueueLimiter,
  ): Promise<void> {
    try {
      asker.noteAnswer(await answer, performance.now());
      this.#reportedMs = Number.NEGATIVE_INFINITY;
    } catch (error) {
      asker.noteFailure(performance.now(), isAboutTheServer(error));
      if (!isAboutLocks(error)) this.#report(error, `taking ${what} of '${asker.question.queue}'`);
    }
    limiter.noteChange();
    this.wake(limiter);
  }

  async #look(): Promise<void> {
    const { db, tables, workerId } = this.#options;
    const leases = this.#leases.map(([lease]) => lease);
    const versions = leases.map(({ version }) => version);
    try {
      const shares = await findLeases(
        db,
        tables,
        workerId,
        leases.map(({ question }) => question),
      );
      const nowMs = performance.now();
      for (const [at, [lease, limiter]] of this.#leases.entries()) {
        const [share, version] = [shares[at], versions[at]];
        if (share === undefined || version === undefined) continue;
        lease.noteLook(share, version, nowMs);
        limiter.starts.get(lease.question.kind)?.noteRate(share.rate);
      }
      this.#failures = 0;
      this.#lookMs = nowMs + jitter(this.#restMs());
      for (const turn of this.#turns) turn.dueMs = 0;
      for (const limiter of this.#limiters) limiter.noteChange();
    } catch (error) {
      this.#lookMs = performance.now() + Math.min(FIRST_RETRY_MS * 2 ** this.#failures++, MAX_LOOK_MS);
      this.#report(error, 'looking at limits');
    }
  }

  #restMs(): number {
    const nowMs = performance.now();
    const inUse = this.#leases.map(([lease]) => lease).filter((lease) => lease.inUse);
    const isRefused = this.#starts.some((starts) => starts.isRefused(nowMs));
    if (inUse.length === 0 && !isRefused) return MAX_LOOK_MS;
    const most = Math.max(0, ...inUse.map(({ sharing }) => sharing));
    return Math.min(Math.max(LOOK_MS, most * LOOK_PER_WORKER_MS), MAX_LOOK_MS);
  }

  #report(error: unknown, during: string): void {
    const nowMs = performance.now();
    if (nowMs - this.#reportedMs < REPORT_EVERY_MS) return;
    this.#reportedMs = nowMs;
    this.#options.events.emit('error', { error, during });
  }
}
