import type { Finish, Reschedule, Transition } from '../../job/transition.ts';
import { cancelJob } from '../../queries/cancel-job.ts';
import { finishJobs } from '../../queries/finish-jobs.ts';
import { rescheduleJobs } from '../../queries/reschedule-jobs.ts';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import { type Runner, sqlStateOf } from '../../sql/executor.ts';
import { faultPoint } from '../../sql/fault-point.ts';
import type { Holder } from '../../sql/fence.ts';
import type { Retries } from '../time/retries.ts';
import type { WorkerEmitter } from './events.ts';

/** A transition that is to be written for a held job. */
export interface Settlement<TTransition extends Transition = Transition> {
  readonly id: number;
  readonly fence: number;
  readonly transition: TTransition;
}

/**
 * What became of a settlement: it took effect; or the job was no longer held under this fence; or it was to be put back, but
 * somebody had asked for its end meanwhile, so it has ended as cancelled, for this reason.
 */
export type SettleResult = 'written' | 'lost' | { readonly cancelled: string };

export interface SettlerOptions {
  readonly db: Runner;
  readonly tables: QueueTables;
  readonly held: Holder;
  readonly events: WorkerEmitter;
  readonly retries: Retries;
  /** Aborted when settling must no longer be repeated. */
  readonly giveUp: AbortSignal;
}

interface QueuedSettlement extends Settlement {
  readonly resolve: (settled: SettleResult) => void;
  readonly reject: (error: unknown) => void;
}

/** As many rows as one statement writes without growing slow. */
const MAX_BATCH = 2_000;
const MAX_BATCH_CHARACTERS = 8 * 1024 * 1024;
const FIRST_RETRY_MS = 100;
const MAX_RETRY_MS = 5_000;

/**
 * Writes the transitions of one queue's attempts. They gather while the statement before is under way and then go out
 * together: batches grow with the load and nothing ever waits for a timer.
 *
 * When a statement fails for what is *in* it, its rows go out one by one, so that one bad row loses nothing but itself. For every
 * other reason (the connection, the server) it is repeated until it succeeds or `giveUp` is aborted. Repeating is safe:
 * the fence lets each transition take effect once.
 */
export class Settler {
  #waiting: QueuedSettlement[] = [];
  #writing: Promise<void> | undefined;

  constructor(private readonly options: SettlerOptions) {}

  /**
   * Writes one transition, in a batch with others. Answers what became of it.
   *
   * @throws what the database says about this row
   */
  settle({ id, fence, transition }: Settlement): Promise<SettleResult> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ id, fence, transition, resolve, reject });
      this.#writing ??= this.#writeAll();
    });
  }

  /**
   * The same in a statement of its own: for a job whose row the handler's own transaction may have locked, so that the others
   * need not wait for that transaction.
   */
  async settleAlone(settlement: Settlement): Promise<SettleResult> {
    const settled = new Map<number, SettleResult>();
    await this.#repeat([settlement], settled);
    return settled.get(settlement.id) ?? 'lost';
  }

  async #writeAll(): Promise<void> {
    // Everything that settles in this turn of the event loop goes out together.
    await new Promise(setImmediate);
    while (this.#waiting.length > 0) await this.#write(this.#nextBatch());
    this.#writing = undefined;
  }

  /**
   * The next rows, each job once: its answer is told by its id, and a lost attempt may end together with a newer one. And no
   * more output than one parameter carries well.
   */
  #nextBatch(): QueuedSettlement[] {
    const batch = new Map<number, QueuedSettlement>();
    const again: QueuedSettlement[] = [];
    let at = 0;
    for (let characters = 0; at < this.#waiting.length && batch.size < MAX_BATCH; at++) {
      const waiting = this.#waiting[at];
      if (waiting === undefined) break;
      characters += outputLength(waiting.transition);
      if (characters > MAX_BATCH_CHARACTERS && batch.size > 0) break;
      if (batch.has(waiting.id)) again.push(waiting);
      else batch.set(waiting.id, waiting);
    }
    this.#waiting = [...again, ...this.#waiting.slice(at)];
    return [...batch.values()];
  }

  async #write(batch: readonly QueuedSettlement[]): Promise<void> {
    const settled = new Map<number, SettleResult>();
    try {
      await this.#repeat(batch, settled);
    } catch (error) {
      if (batch.length === 1) batch[0]?.reject(error);
      else for (const one of batch) if (!settled.has(one.id)) await this.#write([one]);
    }
    for (const { id, resolve } of batch) {
      const what = settled.get(id);
      if (what !== undefined) resolve(what);
    }
  }

  /**
   * Writes a batch, again and again while the reason to fail is not in it.
   *
   * @param settled learns what took effect, by id. What it knows is not written again, or it would be found gone, and called lost.
   */
  async #repeat(batch: readonly Settlement[], settled: Map<number, SettleResult>): Promise<void> {
    const { events, held, retries, giveUp } = this.options;
    for (let delayMs = FIRST_RETRY_MS; ; delayMs = Math.min(delayMs * 2, MAX_RETRY_MS)) {
      try {
        await this.#writeOnce(batch, settled);
        return;
      } catch (error) {
        if (isAboutTheData(error) || giveUp.aborted) throw error;
        events.emit('error', { error, during: `settling ${batch.length} jobs of '${held.queue}'` });
        if (await retries.sleep(delayMs, giveUp)) delayMs = FIRST_RETRY_MS;
      }
    }
  }

  async #writeOnce(batch: readonly Settlement[], settled: Map<number, SettleResult>): Promise<void> {
    const { db, tables, held } = this.options;
    const open = batch.filter(({ id }) => !settled.has(id));
    const finishes = open.filter(isFinish);
    const reschedules = open.filter(isReschedule);
    const finished = finishes.length === 0 ? new Set<number>() : await finishJobs(db, tables, held, finishes);
    await faultPoint('settle: finished');
    for (const { id } of finishes) settled.set(id, finished.has(id) ? 'written' : 'lost');
    const rescheduled =
      reschedules.length === 0
        ? new Map<number, string | null>()
        : await rescheduleJobs(db, tables, held, reschedules);
    await faultPoint('settle: written');
    for (const { id } of reschedules) settled.set(id, rescheduled.has(id) ? 'written' : 'lost');
    for (const [id, cancelReason] of rescheduled) {
      if (cancelReason === null) continue;
      const attempt = reschedules.find((settlement) => settlement.id === id)?.transition.attempt ?? 0;
      if (await this.#cancel(id, attempt, cancelReason)) settled.set(id, { cancelled: cancelReason });
    }
  }

  /**
   * Ends a job that was put back with a request for its end, of which its worker had not heard yet; answers whether it did. Should
   * this fail, or somebody claim the job first, the next claim ends it: no claim runs such a job.
   */
  async #cancel(id: number, attempt: number, message: string): Promise<boolean> {
    const { db, tables, held, events } = this.options;
    const reason = { attempt, name: 'Cancelled', message };
    try {
      return await cancelJob(db, tables, { id, queue: held.queue, reason });
    } catch (error) {
      // Not the batch's failure: to repeat it would find its jobs settled, and call them lost.
      events.emit('error', { error, during: `cancelling job ${id} of '${held.queue}'` });
      return false;
    }
  }
}

function outputLength(transition: Transition): number {
  return transition.type === 'finish' ? (transition.output?.length ?? 0) : 0;
}

function isFinish(settlement: Settlement): settlement is Settlement<Finish> {
  return settlement.transition.type === 'finish';
}

function isReschedule(settlement: Settlement): settlement is Settlement<Reschedule> {
  return settlement.transition.type === 'reschedule';
}

/** SQLSTATE classes 22 (data), 23 (integrity) and 54 (limits): the same rows would fail again. */
function isAboutTheData(error: unknown): boolean {
  return /^(22|23|54)/.test(sqlStateOf(error) ?? '');
}
