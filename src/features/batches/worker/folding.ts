import type { Runner } from '../../../core/sql/executor.ts';
import { faultPoint } from '../../../core/sql/fault-point.ts';
import { Condition } from '../../../core/time/condition.ts';
import { jitter } from '../../../core/time/jitter.ts';
import { sleep } from '../../../core/time/sleep.ts';
import type { BackgroundPart } from '../../../core/worker/base/background.ts';
import type { WorkerEmitter } from '../../../core/worker/base/events.ts';
import { isAboutLocks, isAboutTheServer } from '../../../core/worker/base/refusal.ts';
import { findTallied } from '../queries/find-tallied.ts';
import { type Folded, foldTallies } from '../queries/fold-tallies.ts';
import type { TablesOfBatches } from '../sql/batch-tables.ts';
import { askAllMembers, foldAll, inParts, wakeAllWaiters } from './move-on.ts';
import { Rests } from './rests.ts';

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
/** How long the worker waits for the first look: many jobs that wait may be locked, one after the other. */
const FIRST_LOOK_MS = 2_000;
/** Before it folds again what another has locked, at first and at most. */
const BUSY_MS = { first: 10, most: 500 };
/** Before it asks again to change a row that has refused it, at first and at most. */
const REFUSED_MS = { first: 1_000, most: 60_000 };
/** How many looks go on asking, since members may have been locked. */
const ASKS = 10;
const COUNTING = 'counting the jobs that have ended';

/**
 * Counts the ends of members, so that what waits for them goes on. It folds at once what this worker has
 * ended, and looks once a second for what others have: a process that died between the two, a cancel.
 */
export class Folding implements BackgroundPart {
  readonly #options: FoldingOptions;
  readonly #noted = new Condition();
  #beginClaims: () => void = () => undefined;
  /**
   * Fulfilled when the worker may claim: it has looked once, or that takes too long. Before the look, the
   * time of a job that waits may be over although what it waits for has ended.
   */
  readonly mayClaim = new Promise<void>((resolve) => {
    this.#beginClaims = resolve;
  });
  #ids = new Set<number>();
  #underWay: Promise<unknown> = Promise.resolve();
  #stop: AbortSignal | undefined;
  /** Whether a fold of its own has made something due. */
  #hasMoved = false;
  /** Batches that another transaction has locked, or a job that waits for them. */
  readonly #resting = new Rests(BUSY_MS);
  /** Batches among them for which such a job waits: each is folded alone, since that takes a while. */
  readonly #alone = new Set<number>();
  /** Batches for which a job waits whose row refuses to be written. */
  readonly #refused = new Rests(REFUSED_MS);
  /** Batches whose members are to end, and how often they are still asked. */
  readonly #unwanted = new Map<number, number>();
  /** What asks members to end. A batch may have a million, and folds do not wait for them. */
  readonly #asking = new Map<Promise<void>, readonly number[]>();

  constructor(options: FoldingOptions) {
    this.#options = options;
  }

  /** A member of this batch has ended, and that is written. */
  note(batchId: number): void {
    this.#ids.add(batchId);
    if (!this.#resting.has(batchId)) this.#noted.signal();
  }

  async run(signal: AbortSignal): Promise<void> {
    this.#stop = signal;
    void sleep(FIRST_LOOK_MS, signal).then(this.#beginClaims);
    let lookAt = performance.now();
    while (!signal.aborted) {
      // What is noted of these is folded once they have rested.
      for (const id of this.#resting.ids) this.#ids.delete(id);
      const nextMs = Math.min(lookAt, this.#resting.nextMs);
      if (this.#ids.size === 0) await this.#noted.wait(Math.max(0, nextMs - performance.now()), signal);
      this.#noted.clear();
      const nowMs = performance.now();
      const isLook = nowMs >= lookAt;
      if (isLook) lookAt = nowMs + jitter(LOOK_EVERY_MS);
      this.#underWay = this.#foldDue(isLook, nowMs);
      await this.#underWay;
      this.#beginClaims();
    }
    await this.#fold([...this.#ids, ...this.#resting.ids]);
    await Promise.all(this.#asking.keys());
  }

  /** Folds until there is nothing left; whether something has become due by a fold since the last call. */
  async moveOn(): Promise<boolean> {
    await this.#underWay;
    await this.#foldAll();
    // One that has begun since may have locked what this one left.
    await this.#underWay;
    await Promise.all(this.#asking.keys());
    const hasMoved = this.#hasMoved;
    this.#hasMoved = false;
    return hasMoved;
  }

  /** Never rejects. */
  async #foldAll(): Promise<void> {
    const { db, tables, channel, events } = this.#options;
    const onRefused = (error: unknown) => events.emit('error', { error, during: COUNTING });
    try {
      const onMoved = (queues: Iterable<string>) => this.#noteMoved(queues);
      await foldAll(db, tables, channel, 'briefly', { onMoved, onRefused });
    } catch (error) {
      // As in a fold of its own. A stop folds once more what was locked.
      if (isAboutTheServer(error)) onRefused(error);
      else await this.#foldTallied();
    }
  }

  /** Never rejects. */
  async #foldDue(isLook: boolean, nowMs: number): Promise<void> {
    const due = this.#resting.due(nowMs);
    const alone = due.find((id) => this.#alone.has(id));
    const noted = [...this.#ids, ...due.filter((id) => !this.#alone.has(id))];
    this.#ids = new Set();
    if (isLook) await this.#wakeRefused();
    // A look takes its own as well, so that it comes also where some end all the time.
    await this.#fold(isLook ? await this.#lookFor(noted) : noted);
    if (alone !== undefined) await this.#fold([alone]);
    if (isLook) this.#ask([...this.#unwanted.keys()]);
  }

  /** What a look folds: all, or what was noted and others, but for those that rest. */
  async #lookFor(noted: readonly number[]): Promise<readonly number[] | undefined> {
    const resting = [...this.#resting.ids];
    if (resting.length === 0) return undefined;
    const { db, tables, events } = this.#options;
    try {
      return [...new Set([...noted, ...(await findTallied(db, tables, resting))])];
    } catch (error) {
      events.emit('error', { error, during: COUNTING });
      return noted;
    }
  }

  /** A row that is locked, or refuses the change, keeps back no other batch. Never rejects. */
  async #fold(ids: readonly number[] | undefined): Promise<void> {
    try {
      if (ids === undefined) await this.#foldOnce(undefined);
      else
        await inParts(
          ids,
          (some) => this.#foldOnce(some),
          (error, id) => this.#leave(error, id),
        );
    } catch (error) {
      if (ids === undefined && !isAboutTheServer(error)) return await this.#foldTallied();
      this.#options.events.emit('error', { error, during: COUNTING });
      // The next look finds them.
      this.#forget(ids ?? []);
    }
  }

  /** Never rejects. */
  async #foldTallied(): Promise<void> {
    const { db, tables, events } = this.#options;
    try {
      await this.#fold(await findTallied(db, tables));
    } catch (error) {
      events.emit('error', { error, during: COUNTING });
    }
  }

  async #foldOnce(ids: readonly number[] | undefined): Promise<number> {
    const { db, tables, channel } = this.#options;
    const sent = foldTallies(db, tables, { ids, channel, locks: 'briefly' });
    const [folded] = await Promise.all([sent, faultPoint('fold: sent')]);
    await faultPoint('fold: folded');
    this.#noteMoved(folded.woken);
    this.#noteFolded(ids, folded);
    return folded.tallies;
  }

  /**
   * The row of a job that waits is locked, or refuses the change: then the batch is counted, and the others
   * are woken alone. Never rejects.
   */
  async #leave(refusal: unknown, id: number): Promise<void> {
    const { db, tables, channel, events } = this.#options;
    try {
      if (isAboutLocks(refusal)) throw refusal;
      const folded = await foldTallies(db, tables, { ids: [id], channel, locks: 'briefly', wakes: false });
      this.#noteFolded([id], folded);
      this.#refused.begin([id]);
      await this.#wakeRefused();
    } catch (error) {
      if (isAboutLocks(error)) return this.#restAlone(id);
      events.emit('error', { error, during: COUNTING });
      this.#forget([id]);
    }
  }

  #noteFolded(ids: readonly number[] | undefined, { busy, unwanted }: Folded): void {
    const still = new Set(busy);
    this.#forget((ids ?? [...this.#resting.ids]).filter((id) => !still.has(id)));
    this.#resting.add(busy);
    for (const id of unwanted) this.#unwanted.set(id, ASKS);
    this.#ask(unwanted);
  }

  /** Jobs of these queues were made due. */
  #noteMoved(queues: Iterable<string>): void {
    for (const queue of queues) {
      this.#hasMoved = true;
      this.#options.wake(queue);
    }
  }

  /** They are folded again once more of their members end. */
  #forget(ids: readonly number[]): void {
    this.#resting.remove(ids);
    for (const id of ids) this.#alone.delete(id);
  }

  #restAlone(id: number): void {
    this.#resting.add([id]);
    this.#alone.add(id);
  }

  /** Tries what was refused, less and less often, so that no flood of errors says why. Never rejects. */
  async #wakeRefused(): Promise<void> {
    const ids = this.#refused.due(performance.now());
    if (ids.length === 0) return;
    const { db, tables, channel, events } = this.#options;
    try {
      const { queues, isLeft, refusals } = await wakeAllWaiters(db, tables, ids, channel, this.#stop);
      this.#noteMoved(queues);
      if (isLeft) this.#refused.add(ids);
      else this.#refused.remove(ids);
      for (const error of refusals) events.emit('error', { error, during: COUNTING });
    } catch (error) {
      events.emit('error', { error, during: COUNTING });
    }
  }

  /** Begins to ask the members of batches to end, except batches whose members are being asked already. */
  #ask(ids: readonly number[]): void {
    const underWay = new Set([...this.#asking.values()].flat());
    const some = ids.filter((id) => !underWay.has(id));
    if (some.length === 0) return;
    const asking = this.#askMembers(some).finally(() => this.#asking.delete(asking));
    this.#asking.set(asking, some);
  }

  /** Never rejects. */
  async #askMembers(ids: readonly number[]): Promise<void> {
    const { db, tables, channel, events } = this.#options;
    try {
      // The recount says which rows refuse it.
      const { queues } = await askAllMembers(db, tables, ids, channel, this.#stop);
      this.#noteMoved(queues);
      for (const id of ids) {
        const asks = this.#unwanted.get(id) ?? 0;
        if (asks > 1) this.#unwanted.set(id, asks - 1);
        else this.#unwanted.delete(id);
      }
    } catch (error) {
      events.emit('error', { error, during: COUNTING });
    }
  }
}
