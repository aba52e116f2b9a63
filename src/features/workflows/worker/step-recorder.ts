import { nextTurn } from '../../../core/runtime.ts';
import type { Runner } from '../../../core/sql/executor.ts';
import { faultPoint } from '../../../core/sql/fault-point.ts';
import type { Holder } from '../../../core/sql/fence.ts';
import type { Retries } from '../../../core/time/retries.ts';
import type { WorkerEmitter } from '../../../core/worker/base/events.ts';
import { isAboutLocks, isAboutTheServer } from '../../../core/worker/base/refusal.ts';
import { recordOneStep } from '../queries/record-one-step.ts';
import { type RecordedStep, recordSteps, type StepToRecord, stepKey } from '../queries/record-steps.ts';
import type { TablesOfWorkflows } from '../sql/workflow-tables.ts';
import type { RetryUntil } from './retry-until.ts';

export interface StepRecorderOptions {
  readonly db: Runner;
  readonly tables: TablesOfWorkflows;
  readonly holder: Holder;
  readonly events: WorkerEmitter;
  readonly retries: Retries;
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

/**
 * Records the steps of one queue's jobs. They gather while the statement before is under way and then go out
 * together, as settlements do: the more handlers are at it, the less each step costs. Repeating is safe: see
 * `recordSteps`.
 *
 * A step of a job whose row another transaction has locked delays the others by a statement: a batch that
 * meets one goes out again one by one, and the locked step is tried again beside the batches.
 */
export class StepRecorder {
  readonly #options: StepRecorderOptions;
  #waiting: PendingStep[] = [];
  #locked: PendingStep[] = [];
  #writing = false;
  #unlocking = false;

  constructor(options: StepRecorderOptions) {
    this.#options = options;
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
    while (this.#waiting.length > 0) await this.#write(this.#nextBatch());
    this.#writing = false;
  }

  #nextBatch(): PendingStep[] {
    let characters = 0;
    const end = this.#waiting.findIndex(({ step }, at) => {
      characters += step.output?.length ?? 0;
      return at === MAX_BATCH || (at > 0 && characters > MAX_BATCH_CHARACTERS);
    });
    return this.#waiting.splice(0, end === -1 ? this.#waiting.length : end);
  }

  /** Never rejects. What is locked goes on beside it. */
  async #write(batch: readonly PendingStep[]): Promise<void> {
    const { holder, events, retries } = this.#options;
    let open = batch;
    for (let delayMs = FIRST_RETRY_MS; open.length > 0; delayMs = Math.min(delayMs * 2, MAX_RETRY_MS)) {
      try {
        await this.#record(open);
        return;
      } catch (error) {
        if (isAboutLocks(error)) {
          this.#goOnBeside(open);
          return;
        }
        if (!isAboutTheServer(error)) {
          await this.#refuse(open, error);
          return;
        }
        if (delayMs === FIRST_RETRY_MS) {
          events.emit('error', { error, during: `recording ${open.length} steps of '${holder.queue}'` });
        }
        open = stillOpen(open);
        const [first] = open;
        if (first !== undefined) await retries.sleep(delayMs, first.until.signal);
        open = stillOpen(open);
      }
    }
  }

  async #record(batch: readonly PendingStep[]): Promise<void> {
    const { db, tables, holder } = this.#options;
    const [only, second] = batch;
    if (only !== undefined && second === undefined) {
      const recorded = await recordOneStep(db, tables, holder, asOfNow(only), 'briefly');
      await faultPoint('step: recorded');
      only.resolve(recorded);
      return;
    }
    const recorded = await recordSteps(db, tables, holder, batch.map(asOfNow), 'briefly');
    await faultPoint('step: recorded');
    for (const { step, resolve } of batch) resolve(recorded.get(stepKey(step)));
  }

  /** One bad row must not fail the others. */
  async #refuse(batch: readonly PendingStep[], error: unknown): Promise<void> {
    const [only, second] = batch;
    if (second === undefined) only?.reject(error);
    else await this.#writeEach(batch);
  }

  async #writeEach(batch: readonly PendingStep[]): Promise<void> {
    for (const one of batch) await this.#write([one]);
  }

  #goOnBeside(batch: readonly PendingStep[]): void {
    const [only, second] = batch;
    if (only === undefined || second !== undefined) {
      void this.#writeEach(batch);
      return;
    }
    this.#locked.push(only);
    if (this.#unlocking) return;
    this.#unlocking = true;
    void this.#writeLocked();
  }

  async #writeLocked(): Promise<void> {
    const { signal } = new AbortController();
    let before = this.#locked.length;
    for (
      let delayMs = FIRST_RETRY_MS;
      this.#locked.length > 0;
      delayMs = Math.min(delayMs * 2, MAX_LOCKED_MS)
    ) {
      await this.#options.retries.sleep(delayMs, signal);
      const locked = stillOpen(this.#locked);
      this.#locked = [];
      await this.#writeEach(locked);
      // Some became free, or others came: the next may be free as soon.
      if (this.#locked.length !== before) delayMs = FIRST_RETRY_MS / 2;
      before = this.#locked.length;
    }
    this.#unlocking = false;
  }
}

/** The database reckons when a step began from the time of the statement. */
function asOfNow({ step, sinceMs }: PendingStep): StepToRecord {
  return { ...step, tookMs: step.tookMs + performance.now() - sinceMs };
}

/** Those that are tried again; the others are told why they are not. */
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
