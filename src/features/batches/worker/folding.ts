import type { Runner } from '../../../core/sql/executor.ts';
import { faultPoint } from '../../../core/sql/fault-point.ts';
import { Condition } from '../../../core/time/condition.ts';
import { jitter } from '../../../core/time/jitter.ts';
import { sleep } from '../../../core/time/sleep.ts';
import type { BackgroundPart } from '../../../core/worker/base/background.ts';
import type { WorkerEmitter } from '../../../core/worker/base/events.ts';
import { isAboutLocks, isAboutTheServer } from '../../../core/worker/base/refusal.ts';
import { findTallied } from '../queries/find-tallied.ts';
import { foldTallies } from '../queries/fold-tallies.ts';
import type { TablesOfBatches } from '../sql/batch-tables.ts';
import { askAllMembers, foldAll, wakeAllWaiters } from './move-on.ts';

export interface FoldingOptions {
  readonly db: Runner;
  readonly tables: TablesOfBatches;
  readonly channel: string | undefined;
  readonly events: WorkerEmitter;
  /** There may be something to claim in this queue. */
  readonly wake: (queue: string) => void;
}

/** How often it looks for tallies that it was not told of. */
const LOOK_EVERY_MS = 1_000;
/** Before it folds again what another has locked, at first and at most. */
const FIRST_BUSY_MS = 5;
const MAX_BUSY_MS = 500;
/** Before it asks again to change a row that has refused it, at first and at most. */
const FIRST_REFUSED_MS = 1_000;
const MAX_REFUSED_MS = 60_000;
/** How many looks go on asking, since members may have been locked. */
const ASKS = 10;
const COUNTING = 'counting the jobs that have ended';

/** When a wake that was refused is tried again, and how long that is after the last try. */
interface RefusedWake {
  readonly restMs: number;
  readonly againAtMs: number;
}

/**
 * Counts the ends of members, so that what waits for them goes on. It folds at once what this worker has
 * ended, and looks once a second for what others have: a process that died between the two, a cancel.
 */
export class Folding implements BackgroundPart {
  readonly #options: FoldingOptions;
  readonly #noted = new Condition();
  #ids = new Set<number>();
  #underWay: Promise<unknown> = Promise.resolve();
  /** Aborted when the worker stops. */
  #stop: AbortSignal | undefined;
  /** Whether a fold of its own has made something due. */
  #hasMoved = false;
  /** Batches whose members are to end, and how often they are still asked. */
  readonly #unwanted = new Map<number, number>();
  /** Batches for which a job waits whose row refuses to be written: when that is tried again. */
  readonly #refused = new Map<number, RefusedWake>();

  constructor(options: FoldingOptions) {
    this.#options = options;
  }

  /** A member of this batch has ended, and that is written. */
  note(batchId: number): void {
    this.#ids.add(batchId);
    this.#noted.signal();
  }

  async run(signal: AbortSignal): Promise<void> {
    this.#stop = signal;
    let lookAt = performance.now() + jitter(LOOK_EVERY_MS);
    let busyMs = FIRST_BUSY_MS;
    while (!signal.aborted) {
      if (this.#ids.size === 0) await this.#noted.wait(Math.max(0, lookAt - performance.now()), signal);
      this.#noted.clear();
      const isLook = performance.now() >= lookAt;
      if (this.#ids.size === 0 && !isLook) continue;
      // A look takes its own as well, so that it comes also where some end all the time.
      const ids = isLook ? undefined : [...this.#ids];
      this.#ids = new Set();
      if (isLook) {
        lookAt = performance.now() + jitter(LOOK_EVERY_MS);
        await this.#wakeRefused();
      }
      const folding = this.#fold(ids);
      this.#underWay = folding;
      const busy = await folding;
      for (const id of busy) this.#ids.add(id);
      busyMs = busy.length === 0 ? FIRST_BUSY_MS : Math.min(busyMs * 2, MAX_BUSY_MS);
      if (busy.length > 0) await sleep(busyMs, signal);
    }
    if (this.#ids.size > 0) await this.#fold([...this.#ids]);
  }

  /** Folds until there is nothing left; whether something has become due by a fold since the last call. */
  async moveOn(): Promise<boolean> {
    const { events } = this.#options;
    try {
      await this.#underWay;
      const moved = await this.#foldAll();
      // One that has begun since may have locked what this one left.
      await this.#underWay;
      const hadMoved = this.#hasMoved;
      this.#hasMoved = false;
      return moved || hadMoved;
    } catch (error) {
      events.emit('error', { error, during: COUNTING });
      return false;
    }
  }

  /** Returns whether it has made something due, unless `#hasMoved` says so. */
  async #foldAll(): Promise<boolean> {
    const { db, tables, channel, events } = this.#options;
    try {
      return await foldAll(db, tables, channel, { locks: 'briefly' }, (error) =>
        events.emit('error', { error, during: COUNTING }),
      );
    } catch (error) {
      if (isAboutTheServer(error)) throw error;
      // As in a fold of its own. A stop folds once more what was locked.
      for (const id of await this.#foldOneByOne(undefined)) this.note(id);
      return false;
    }
  }

  /** Never rejects; returns the batches that it could not fold. */
  async #fold(ids: readonly number[] | undefined): Promise<readonly number[]> {
    const { db, tables, channel, events, wake } = this.#options;
    try {
      const folded = await foldTallies(db, tables, { ids, channel, locks: 'briefly' });
      await faultPoint('fold: folded');
      if (folded.woken.length > 0) this.#hasMoved = true;
      for (const queue of folded.woken) wake(queue);
      for (const id of folded.unwanted) this.#unwanted.set(id, ASKS);
      if (ids === undefined || folded.unwanted.length > 0) await this.#endMembers();
      return folded.busy;
    } catch (error) {
      // A row is locked, or refuses the change: the other batches must not wait for that.
      if (!isAboutTheServer(error) && ids?.length !== 1) return await this.#foldOneByOne(ids);
      if (isAboutLocks(error)) return ids ?? [];
      if (!isAboutTheServer(error) && ids !== undefined) return await this.#foldWithoutWaking(ids);
      events.emit('error', { error, during: COUNTING });
      // The next look finds them.
      return [];
    }
  }

  /** The row of a job that waits refuses the change: the batch is counted, and the others are woken alone. */
  async #foldWithoutWaking(ids: readonly number[]): Promise<readonly number[]> {
    const { db, tables, channel, events } = this.#options;
    try {
      const folded = await foldTallies(db, tables, { ids, channel, locks: 'briefly', wakes: false });
      for (const id of folded.unwanted) this.#unwanted.set(id, ASKS);
      for (const id of ids) this.#refused.set(id, { restMs: 0, againAtMs: 0 });
      await this.#wakeRefused();
      return folded.busy;
    } catch (error) {
      if (isAboutLocks(error)) return ids;
      events.emit('error', { error, during: COUNTING });
      return [];
    }
  }

  /** Tries what was refused, less and less often, so that no flood of errors says why. Never rejects. */
  async #wakeRefused(): Promise<void> {
    const now = performance.now();
    const ids = [...this.#refused].flatMap(([id, { againAtMs }]) => (againAtMs <= now ? [id] : []));
    if (ids.length === 0) return;
    const { db, tables, channel, events, wake } = this.#options;
    try {
      const { queues, refusals } = await wakeAllWaiters(db, tables, ids, channel, this.#stop);
      if (queues.size > 0) this.#hasMoved = true;
      for (const queue of queues) wake(queue);
      for (const id of ids) {
        if (refusals.length === 0) this.#refused.delete(id);
        else this.#refused.set(id, restAfter(this.#refused.get(id)));
      }
      for (const error of refusals) events.emit('error', { error, during: COUNTING });
    } catch (error) {
      events.emit('error', { error, during: COUNTING });
    }
  }

  async #endMembers(): Promise<void> {
    if (this.#unwanted.size === 0) return;
    const { db, tables, channel, wake } = this.#options;
    // The recount says which rows refuse it.
    const { queues } = await askAllMembers(db, tables, [...this.#unwanted.keys()], channel, this.#stop);
    if (queues.size > 0) this.#hasMoved = true;
    for (const queue of queues) wake(queue);
    for (const [id, asks] of this.#unwanted) {
      if (asks > 1) this.#unwanted.set(id, asks - 1);
      else this.#unwanted.delete(id);
    }
  }

  async #foldOneByOne(ids: readonly number[] | undefined): Promise<readonly number[]> {
    const { db, tables, events } = this.#options;
    const locked: number[] = [];
    try {
      for (const id of ids ?? (await findTallied(db, tables))) locked.push(...(await this.#fold([id])));
    } catch (error) {
      events.emit('error', { error, during: COUNTING });
    }
    return locked;
  }
}

/** After another refusal: twice as long as before. */
function restAfter({ restMs: last }: Pick<RefusedWake, 'restMs'> = { restMs: 0 }): RefusedWake {
  const restMs = Math.min(Math.max(2 * last, FIRST_REFUSED_MS), MAX_REFUSED_MS);
  return { restMs, againAtMs: performance.now() + restMs };
}
