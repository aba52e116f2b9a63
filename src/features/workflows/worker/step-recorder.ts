import { nextTurn } from '../../../core/runtime.ts';
import { faultPoint } from '../../../core/sql/fault-point.ts';
import type { Holder } from '../../../core/sql/fence.ts';
import { Doubling } from '../../../core/time/doubling.ts';
import type { Retries } from '../../../core/time/retries.ts';
import type { WorkerEmitter } from '../../../core/worker/base/events.ts';
import { isAboutLocks, isAboutTheServer } from '../../../core/worker/base/refusal.ts';
import { KeptPlans } from '../../../core/worker/statements/kept-plans.ts';
import type { WorkerRunner } from '../../../core/worker/statements/statements.ts';
import { recordOneByKeptPlan, recordOneStep, waits } from '../queries/record-one-step.ts';
import {
  type RecordedStep,
  recordFreeSteps,
  recordSteps,
  type StepToRecord,
  stepKey,
} from '../queries/record-steps.ts';
import type { TablesOfWorkflows } from '../sql/workflow-tables.ts';
import type { RetryUntil } from './retry-until.ts';

export interface StepRecorderOptions {
  readonly db: WorkerRunner;
  readonly tables: TablesOfWorkflows;
  readonly holder: Holder;
  readonly events: WorkerEmitter;
  readonly retries: Pick<Retries, 'sleep'>;
}

interface PendingStep {
  readonly step: StepToRecord;
  /** When it came, by the monotonic clock: meanwhile its `tookMs` grows. */
  readonly sinceMs: number;
  readonly until: RetryUntil;
  resolve(recorded: RecordedStep | undefined): void;
  reject(error: unknown): void;
}

const MAX_BATCH = 500;
const MAX_BATCH_CHARACTERS = 8 * 1024 * 1024;
const FIRST_RETRY_MS = 50;
const MAX_RETRY_MS = 2_000;
const MAX_LOCKED_MS = 500;
const NONE: ReadonlySet<string> = new Set();

/**
 * Records the steps of one queue's jobs. They gather while the statement before is under way and then go out
 * together, as settlements do: the more handlers are at it, the less each step costs. Repeating is safe: see
 * `recordSteps`.
 *
 * A step that cannot be recorded now delays the others by a statement or two, as in the `Settler`:
 * - A batch that meets a locked job goes out again without the steps of locked jobs, which are tried again
 *   beside the batches.
 * - A batch that is refused for what may be in it is halved beside the batches, until the bad one is alone.
 */
export class StepRecorder {
  readonly #options: StepRecorderOptions;
  readonly #keptPlans: KeptPlans;
  #waiting: PendingStep[] = [];
  #locked: PendingStep[] = [];
  #refused: (readonly PendingStep[])[] = [];
  #writing = false;
  #unlocking = false;
  #halving = false;

  constructor(options: StepRecorderOptions) {
    this.#options = options;
    this.#keptPlans = new KeptPlans({ runner: options.db, tables: options.tables });
  }

  /**
   * Records a step; `undefined` when the worker no longer holds its job.
   * @throws what the database says about this step, or why it is not tried again
   */
  record(step: StepToRecord, until: RetryUntil): Promise<RecordedStep | undefined> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ step, sinceMs: performance.now(), until, resolve, reject });
      if (this.#writing) return;
      this.#writing = true;
      void this.#writeAll();
    });
  }

  async #writeAll(): Promise<void> {
    // Everything that is recorded in this turn of the event loop goes out together.
    await nextTurn();
    while (this.#waiting.length > 0) await this.#write(takeBatch(this.#waiting), 'briefly');
    this.#writing = false;
  }

  /** Never rejects: what cannot be recorded now goes on beside the batches. */
  async #write(batch: readonly PendingStep[], locks: 'briefly' | 'skip'): Promise<void> {
    const { holder, events, retries } = this.#options;
    let open = batch;
    const delays = new Doubling(FIRST_RETRY_MS, MAX_RETRY_MS);
    for (let isFirst = true; open.length > 0; isFirst = false) {
      try {
        this.#keepLocked(await this.#record(open, locks));
        return;
      } catch (error) {
        if (isAboutLocks(error) && locks === 'briefly') {
          await this.#write(open, 'skip');
          return;
        }
        if (!isAboutTheServer(error)) {
          this.#refuse(open, error);
          return;
        }
        if (isFirst) {
          events.emit('error', { error, during: `recording ${open.length} steps of '${holder.queue}'` });
        }
        open = stillOpen(open);
        const [first] = open;
        if (first !== undefined && (await retries.sleep(delays.next(), first.until.signal))) delays.reset();
        open = stillOpen(open);
      }
    }
  }

  /** Returns those whose jobs are locked; `briefly` leaves none. */
  async #record(batch: readonly PendingStep[], locks: 'briefly' | 'skip'): Promise<PendingStep[]> {
    const { db, tables, holder } = this.#options;
    const [only, second] = batch;
    await faultPoint('step: done');
    if (locks === 'briefly' && only !== undefined && second === undefined) {
      const recorded = await this.#recordOne(asOfNow(only));
      await faultPoint('step: recorded');
      only.resolve(recorded);
      return [];
    }
    const steps = batch.map(asOfNow);
    const { recorded, locked } =
      locks === 'skip'
        ? await recordFreeSteps(db, tables, holder, steps)
        : { recorded: await recordSteps(db, tables, holder, steps, locks), locked: NONE };
    await faultPoint('step: recorded');
    const isLocked = ({ step }: PendingStep) => locked.has(stepKey(step));
    for (const one of batch) if (!isLocked(one)) one.resolve(recorded.get(stepKey(one.step)));
    return locked.size === 0 ? [] : batch.filter(isLocked);
  }

  async #recordOne(step: StepToRecord): Promise<RecordedStep | undefined> {
    const { db, tables, holder } = this.#options;
    const anew = () => recordOneStep(db, tables, holder, step, 'briefly');
    if (waits(step)) return await anew();
    const { recorded } = await this.#keptPlans.send(
      (ifTableIs) => recordOneByKeptPlan(db, tables, holder, step, ifTableIs),
      async () => ({ recorded: await anew() }),
    );
    return recorded;
  }

  #refuse(batch: readonly PendingStep[], error: unknown): void {
    const [only, second] = batch;
    if (only === undefined) return;
    if (second !== undefined) this.#halve(batch);
    // A lock that one of the app's own triggers or foreign keys waits for.
    else if (isAboutLocks(error)) this.#keepLocked([only]);
    else only.reject(error);
  }

  #halve(batch: readonly PendingStep[]): void {
    const middle = batch.length >> 1;
    // As settlements do: with one bad step among many, the good ones are recorded soonest in this order.
    this.#refused.push(batch.slice(0, middle), batch.slice(middle));
    if (this.#halving) return;
    this.#halving = true;
    void this.#writeHalves();
  }

  async #writeHalves(): Promise<void> {
    for (;;) {
      const half = this.#refused.shift();
      if (half === undefined) break;
      await this.#write(half, 'skip');
    }
    this.#halving = false;
  }

  #keepLocked(locked: readonly PendingStep[]): void {
    this.#locked.push(...locked);
    if (this.#unlocking || this.#locked.length === 0) return;
    this.#unlocking = true;
    void this.#writeLocked();
  }

  async #writeLocked(): Promise<void> {
    const { signal } = new AbortController();
    let before = this.#locked.length;
    const delays = new Doubling(FIRST_RETRY_MS, MAX_LOCKED_MS);
    while (this.#locked.length > 0) {
      await this.#options.retries.sleep(delays.next(), signal);
      const waiting = stillOpen(this.#locked);
      this.#locked = [];
      while (waiting.length > 0) await this.#write(takeBatch(waiting), 'skip');
      // Some became free, or others came: the next may be free as soon.
      if (this.#locked.length !== before) delays.reset();
      before = this.#locked.length;
    }
    this.#unlocking = false;
  }
}

/** Takes out of `waiting` what goes out together. */
function takeBatch(waiting: PendingStep[]): PendingStep[] {
  let characters = 0;
  const end = waiting.findIndex(({ step }, at) => {
    characters += step.output?.length ?? 0;
    return at === MAX_BATCH || (at > 0 && characters > MAX_BATCH_CHARACTERS);
  });
  return waiting.splice(0, end === -1 ? waiting.length : end);
}

/** The database reckons when a step began from the time of the statement. */
function asOfNow({ step, sinceMs }: PendingStep): StepToRecord {
  return { ...step, tookMs: step.tookMs + performance.now() - sinceMs };
}

/** Returns the steps to try again; rejects the others with the reason. */
function stillOpen(batch: readonly PendingStep[]): PendingStep[] {
  return batch.filter(({ until, reject }) => {
    try {
      until.check();
      return true;
    } catch (error) {
      reject(error);
      return false;
    }
  });
}
