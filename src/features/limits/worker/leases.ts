import { notifyWorkers } from '../../../core/queries/presence/notify-workers.ts';
import type { Runner } from '../../../core/sql/executor.ts';
import { Condition } from '../../../core/time/condition.ts';
import { Doubling } from '../../../core/time/doubling.ts';
import { jitter } from '../../../core/time/jitter.ts';
import type { BackgroundPart } from '../../../core/worker/base/background.ts';
import type { WorkerEmitter } from '../../../core/worker/base/events.ts';
import { isAboutLocks, isAboutTheServer } from '../../../core/worker/base/refusal.ts';
import { findLeases } from '../queries/find-leases.ts';
import { type LeaseAnswer, takeLease } from '../queries/take-lease.ts';
import { takeStarts } from '../queries/take-starts.ts';
import type { LeaseTables } from '../sql/limit-tables.ts';
import type { Lease, Wish } from './lease.ts';
import type { Allowance, QueueLimiter } from './queue-limiter.ts';
import type { Starts, WantedStarts } from './starts.ts';

export interface LeasesOptions {
  readonly db: Runner;
  readonly tables: LeaseTables;
  readonly workerId: number;
  readonly events: WorkerEmitter;
}

/** Where slots or starts are asked for, or given back. */
interface Turn {
  /** When to look at it again, though nothing has happened. */
  dueMs: number;
  /** Sends what there is to ask for; returns when to look at it again. */
  send(nowMs: number): number;
}

/** What asks for slots or for starts, and what it needs to know of the jobs. */
interface Asker<TNeed, TWish, TAnswer> {
  wish(nowMs: number, need: TNeed): TWish | undefined;
  nextMs(nowMs: number, need: TNeed): number;
  noteSent(wish: TWish, nowMs: number): void;
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
/** In a notification, before the ids of the workers that are meant. */
const FREE = '\u0002';
/** An outage is reported at once, and again at this interval while it lasts. */
const REPORT_EVERY_MS = 5_000;

/**
 * Takes slots and starts of the limits of a worker's queues when it has jobs for them, gives back what it
 * does not use, and learns when limits change or others lack their share.
 */
export class Leases implements BackgroundPart {
  readonly #options: LeasesOptions;
  readonly #turns = new Map<QueueLimiter, Turn[]>();
  readonly #alarm = new Condition();
  /** The statements under way. */
  readonly #sent = new Set<Promise<void>>();
  #lookMs = Number.NEGATIVE_INFINITY;
  readonly #delays = new Doubling(100, MAX_LOOK_MS);
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
    const turns = limiter.allowances.flatMap(({ lease, starts }) => [
      this.#turnOfLease(lease, limiter),
      ...(starts === undefined ? [] : [this.#turnOfStarts(starts, limiter)]),
    ]);
    this.#turns.set(limiter, turns);
  }

  get #allowances(): Allowance[] {
    return [...this.#turns.keys()].flatMap(({ allowances }) => allowances);
  }

  /** A queue has something to ask for or to give back. */
  wake(limiter: QueueLimiter): void {
    for (const turn of this.#turns.get(limiter) ?? []) turn.dueMs = 0;
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
    for (const { lease, starts } of this.#allowances) {
      lease.askSoon(nowMs);
      starts?.askSoon();
    }
    this.look();
  }

  /** A notification came. It may say that slots are free for this worker. */
  hear(payload: string): void {
    if (!successorsIn(payload).includes(this.#options.workerId)) return;
    const nowMs = performance.now();
    for (const { lease } of this.#allowances) lease.noteSucceeds(nowMs);
    for (const limiter of this.#turns.keys()) this.wake(limiter);
  }

  /** This worker was declared gone: what it had is others'. It begins nothing until it knows what it has. */
  noteGone(): void {
    for (const { lease } of this.#allowances) lease.noteGone();
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
    const turns = [...this.#turns.values()].flat();
    for (const turn of turns) if (turn.dueMs <= nowMs) turn.dueMs = turn.send(nowMs);
    return Math.min(this.#lookMs, ...turns.map(({ dueMs }) => dueMs));
  }

  #turnOfLease(lease: Lease, limiter: QueueLimiter): Turn {
    const { db, tables, workerId } = this.#options;
    const take = (wish: Wish) => {
      const answer = takeLease(db, tables, { ...lease.question, workerId, ...wish });
      this.#track(this.#tellSuccessors(answer));
      return answer;
    };
    const during = `taking slots of '${lease.question.queue}'`;
    return this.#turnOf(limiter, lease, { need: () => limiter.appetite(lease), take, during });
  }

  #turnOfStarts(starts: Starts, limiter: QueueLimiter): Turn {
    const { db, tables, workerId } = this.#options;
    const need = (nowMs: number) => {
      // Jobs that are claimed now may ask for them.
      if (starts.opens(nowMs)) limiter.noteRoom();
      return limiter.dueOf(starts);
    };
    const take = (wish: WantedStarts) => takeStarts(db, tables, { ...starts.question, workerId, ...wish });
    const during = `taking starts of '${starts.question.queue}'`;
    return this.#turnOf(limiter, starts, { need, take, during });
  }

  #turnOf<TNeed, TWish, TAnswer>(
    limiter: QueueLimiter,
    asker: Asker<TNeed, TWish, TAnswer>,
    how: { need(nowMs: number): TNeed; take(wish: TWish): Promise<TAnswer>; readonly during: string },
  ): Turn {
    const heed = async (answer: Promise<TAnswer>) => {
      try {
        asker.noteAnswer(await answer, performance.now());
        this.#reportedMs = Number.NEGATIVE_INFINITY;
      } catch (error) {
        asker.noteFailure(performance.now(), isAboutTheServer(error));
        if (!isAboutLocks(error)) this.#report(error, how.during);
      }
      limiter.noteChange();
      this.wake(limiter);
    };
    const send = (nowMs: number) => {
      const need = how.need(nowMs);
      const wish = asker.wish(nowMs, need);
      if (wish === undefined) return Math.max(asker.nextMs(nowMs, need), nowMs + 1);
      asker.noteSent(wish, performance.now());
      this.#track(heed(how.take(wish)));
      return Number.POSITIVE_INFINITY;
    };
    return { dueMs: 0, send };
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

  async #look(): Promise<void> {
    const { db, tables, workerId } = this.#options;
    const asked = this.#allowances.map((one) => ({ ...one, version: one.lease.version }));
    // What is heard meanwhile may be about a change that this look does not see.
    this.#lookMs = Number.POSITIVE_INFINITY;
    try {
      const questions = asked.map(({ lease }) => lease.question);
      const looks = await findLeases(db, tables, workerId, questions);
      const nowMs = performance.now();
      for (const [at, { lease, starts, version }] of asked.entries()) {
        const look = looks[at];
        if (look === undefined) continue;
        lease.noteLook(look, version, nowMs);
        starts?.noteRate(look.rate);
      }
      this.#delays.reset();
      this.#lookMs = Math.min(this.#lookMs, nowMs + jitter(this.#restMs()));
      for (const limiter of this.#turns.keys()) {
        limiter.noteChange();
        this.wake(limiter);
      }
    } catch (error) {
      this.#lookMs = Math.min(this.#lookMs, performance.now() + this.#delays.next());
      this.#report(error, 'looking at limits');
    }
  }

  #restMs(): number {
    const nowMs = performance.now();
    const allowances = this.#allowances;
    const inUse = allowances.map(({ lease }) => lease).filter((lease) => lease.inUse);
    const isRefused = allowances.some(({ starts }) => starts?.isRefused(nowMs));
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

/** What a notification says to workers for which slots are free. */
export function successorsPayload(workerIds: readonly number[]): string {
  return `${FREE}${workerIds.join(',')}`;
}

/** The ids of the workers to which a notification says so; none for any other. */
export function successorsIn(payload: string): number[] {
  return payload.startsWith(FREE) ? payload.slice(FREE.length).split(',').map(Number) : [];
}
