import { QueueError } from '../../../errors.ts';
import { isPoolEnded } from '../../drivers/ended-pool.ts';
import { jobsInWords } from '../../job/jobs-in-words.ts';
import type { Transition } from '../../job/transition.ts';
import { nextTurn } from '../../runtime.ts';
import type { HeldJob } from '../../sql/fence.ts';
import { isDistributed } from '../../sql/statement-context.ts';
import { Doubling } from '../../time/doubling.ts';
import type { Retries } from '../../time/retries.ts';
import { sleep } from '../../time/sleep.ts';
import { Bag } from '../base/bag.ts';
import { halves } from '../base/in-halves.ts';
import { isAboutLocks, isAboutTheServer } from '../base/refusal.ts';
import { KeptPlans } from '../statements/kept-plans.ts';
import {
  nextBatch,
  type OpenSettlements,
  type PendingSettlement,
  type Settlement,
  type SettlementListener,
  type SettleResult,
  ToldSettlement,
} from './settlement.ts';
import { type WriteSettlementsOptions, writeSettlements } from './write-settlements.ts';

export interface SettlerOptions extends Omit<WriteSettlementsOptions, 'keptPlans'> {
  readonly retries: Retries;
}

const FIRST_LOCKED_MS = 25;
const MAX_LOCKED_MS = 500;

/**
 * Writes the transitions of one queue's attempts. They gather while the statement before is under way and
 * then go out together: batches grow with the load and nothing ever waits for a timer. Once `giveUp` is
 * aborted nothing more is sent, and what has no answer yet becomes `abandoned`.
 *
 * A row that cannot be written now delays the others by a statement or two:
 * - A batch that meets a lock for longer than a moment goes out again without the locked rows, which are
 *   tried again beside the batches until they are free.
 * - A batch that is refused for what may be in it is halved beside the batches, until the bad row is alone.
 * - Only for a reason of the connection or the server is a batch repeated as it is, until it succeeds.
 *   Repeating is safe: the fence lets each transition take effect once.
 */
export class Settler {
  readonly #options: SettlerOptions & WriteSettlementsOptions;
  readonly #open: OpenSettlements = new Bag('place');
  #waiting: PendingSettlement[] = [];
  #locked: PendingSettlement[] = [];
  #refused: (readonly PendingSettlement[])[] = [];
  /** What runs: the batches, and what goes on beside them. */
  readonly #underWay = new Set<Promise<void>>();
  #writing = false;
  #unlocking = false;
  #halving = false;
  #listens = false;

  constructor(options: SettlerOptions) {
    this.#options = {
      ...options,
      keptPlans: new KeptPlans({ ...options, runner: options.db }),
    };
  }

  /**
   * Writes one transition, in a batch with others; returns what became of it.
   * @throws what the database says about this row
   */
  settle(settlement: Settlement): Promise<SettleResult> {
    return promised((listener) => this.settleFor(settlement, settlement.transition, listener));
  }

  /** Like `settle`, but notifies a listener. */
  settleFor(job: HeldJob, transition: Transition, listener: SettlementListener): void {
    this.add(new ToldSettlement(job, transition, listener));
  }

  /** Like `settle`, without a promise: the settlement has its answer. */
  add(pending: PendingSettlement): void {
    this.#take(pending);
    if (pending.answered) return;
    this.#waiting.push(pending);
    if (this.#writing) return;
    this.#writing = true;
    this.#run(this.#writeAll());
  }

  /** The same in its own statement: for a row that was refused, or that the handler may have locked. */
  settleAlone(settlement: Settlement): Promise<SettleResult> {
    return promised((listener) => {
      const pending = new ToldSettlement(settlement, settlement.transition, listener);
      this.#take(pending);
      if (!pending.answered) this.#run(this.#writeBeside([pending]));
    });
  }

  /** Resolves when everything has its answer and no statement is under way. */
  async idle(): Promise<void> {
    while (this.#underWay.size > 0) await Promise.all(this.#underWay);
  }

  #take(pending: PendingSettlement): void {
    pending.open = this.#open;
    if (this.#options.giveUp.aborted) pending.answer('abandoned');
    else this.#open.add(pending);
    this.#listen();
  }

  /** From the first settlement on: ten thousand listeners on one signal would make a start take seconds. */
  #listen(): void {
    if (!this.#listens) this.#options.giveUp.addEventListener('abort', () => this.#abandon(), { once: true });
    this.#listens = true;
  }

  #abandon(): void {
    const { events, holder, giveUp } = this.#options;
    const open = [...this.#open];
    // One error has said that the pool was ended, and what that means.
    if (open.length > 0 && !isPoolEnded(giveUp.reason)) {
      const error = new QueueError('The worker stopped before the outcomes of these jobs were written');
      events.emit('error', { error, during: `settling ${jobsInWords(open.length)} of '${holder.queue}'` });
    }
    for (const pending of open) pending.answer('abandoned');
    this.#waiting = [];
    this.#locked = [];
    this.#refused = [];
  }

  /** @param part never rejects */
  #run(part: Promise<void>): void {
    this.#underWay.add(part);
    void part.then(() => this.#underWay.delete(part));
  }

  async #writeAll(): Promise<void> {
    // Everything that settles in this turn of the event loop goes out together.
    await nextTurn();
    while (this.#waiting.length > 0) {
      const { batch, rest } = nextBatch(this.#waiting);
      this.#waiting = rest;
      await this.#write(batch);
    }
    this.#writing = false;
  }

  /** Never rejects: what cannot be written now goes on beside the batches. */
  async #write(batch: readonly PendingSettlement[]): Promise<void> {
    try {
      // On Citus no wait for a lock can be made brief.
      const locks = isDistributed(this.#options.tables) ? 'skip' : 'briefly';
      this.#keepLocked(await this.#repeat(batch, locks));
    } catch (error) {
      if (isAboutLocks(error)) await this.#writeBeside(batch);
      else this.#refuse(batch, error);
    }
  }

  /** The same without waiting for any row. */
  async #writeBeside(batch: readonly PendingSettlement[]): Promise<void> {
    try {
      this.#keepLocked(await this.#repeat(batch, 'skip'));
    } catch (error) {
      this.#refuse(batch, error);
    }
  }

  /** Writes a batch, again and again while the reason to fail lies outside it. */
  async #repeat(
    batch: readonly PendingSettlement[],
    locks: 'briefly' | 'skip',
  ): Promise<PendingSettlement[]> {
    const { events, holder, retries, giveUp } = this.#options;
    for (const delays = new Doubling(); !giveUp.aborted; ) {
      try {
        return await writeSettlements(this.#options, batch, locks);
      } catch (error) {
        if (giveUp.aborted) break;
        if (!isAboutTheServer(error)) throw error;
        for (const one of batch) one.uncertain ||= one.sent;
        events.emit('error', { error, during: `settling ${jobsInWords(batch.length)} of '${holder.queue}'` });
        if (await retries.sleep(delays.next(), giveUp)) delays.reset();
      }
    }
    return [];
  }

  #refuse(batch: readonly PendingSettlement[], error: unknown): void {
    const open = batch.filter(({ answered }) => !answered);
    const [only] = open;
    if (only === undefined || this.#options.giveUp.aborted) return;
    if (open.length > 1) this.#halve(open);
    // A lock that one of the app's own triggers or foreign keys waits for.
    else if (isAboutLocks(error)) this.#keepLocked([only]);
    else only.refuse(error);
  }

  /**
   * Not by `inHalves`: refused batches share one queue, so that one statement at a time goes beside the
   * batches. What an earlier statement of a batch has answered leaves it.
   */
  #halve(batch: PendingSettlement[]): void {
    this.#refused.push(...halves(batch));
    if (this.#halving) return;
    this.#halving = true;
    this.#run(this.#writeHalves());
  }

  async #writeHalves(): Promise<void> {
    for (;;) {
      const half = this.#refused.shift();
      if (half === undefined) break;
      await this.#writeBeside(half);
    }
    this.#halving = false;
  }

  #keepLocked(locked: readonly PendingSettlement[]): void {
    this.#locked.push(...locked.filter(({ answered }) => !answered));
    if (this.#unlocking || this.#locked.length === 0) return;
    this.#unlocking = true;
    this.#run(this.#writeLocked());
  }

  async #writeLocked(): Promise<void> {
    let before = this.#locked.length;
    const delays = new Doubling(FIRST_LOCKED_MS, MAX_LOCKED_MS);
    while (this.#locked.length > 0) {
      await sleep(delays.next(), this.#options.giveUp);
      let waiting = this.#locked;
      this.#locked = [];
      while (waiting.length > 0) {
        const { batch, rest } = nextBatch(waiting);
        waiting = rest;
        await this.#writeBeside(batch);
      }
      // Some became free, or others came: the next may be free as soon.
      if (this.#locked.length !== before) delays.reset();
      before = this.#locked.length;
    }
    this.#unlocking = false;
  }
}

function promised(send: (listener: SettlementListener) => void): Promise<SettleResult> {
  return new Promise((resolve, reject) => send({ settled: resolve, refused: reject }));
}
