import { isAwaited } from '../../job/awaited.ts';
import { jobsInWords } from '../../job/jobs-in-words.ts';
import type { ClaimedJob } from '../../queries/claim/claim-jobs.ts';
import { notifyOfEnds } from '../../queries/settle/notify-of-ends.ts';
import { nextTurn } from '../../runtime.ts';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import type { Runner } from '../../sql/executor.ts';
import { Condition } from '../../time/condition.ts';
import { sleep } from '../../time/sleep.ts';
import type { BackgroundPart } from '../base/background.ts';
import type { WorkerEmitter } from '../base/events.ts';

export interface EndNoticesOptions {
  readonly db: Runner;
  readonly tables: QueueTables;
  readonly events: WorkerEmitter;
}

/** As for wake-ups: on average one notification in this time, since `NOTIFY` holds a global lock. */
const INTERVAL_MS = 50;
const BURST = 5;

/**
 * Tells waiters that their jobs have ended: one statement for all jobs that ended since the last. It keeps
 * only those that ask for notices. A notice that could not be sent is dropped, since waiters poll as well.
 */
export class EndNotices implements BackgroundPart {
  readonly #options: EndNoticesOptions;
  #ids = new Set<number>();
  readonly #noted = new Condition();
  /** When a bucket of `BURST` notifications is full again. */
  #fullAt = 0;

  constructor(options: EndNoticesOptions) {
    this.#options = options;
  }

  /** Takes a job whose end is written; most are of no interest. */
  note({ id, metadata }: Pick<ClaimedJob, 'id' | 'metadata'>): void {
    if (!isAwaited(metadata)) return;
    this.#ids.add(id);
    this.#noted.signal();
  }

  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      if (this.#ids.size === 0) await this.#noted.wait(Number.POSITIVE_INFINITY, signal);
      await sleep(this.#take(), signal);
      // Jobs that end in this turn of the event loop go out together.
      await nextTurn();
      this.#noted.clear();
      await this.#send();
    }
    // Jobs that ended during the last one.
    await this.#send();
  }

  /** How many milliseconds to wait before the next notification. */
  #take(): number {
    const now = performance.now();
    this.#fullAt = Math.max(this.#fullAt, now) + INTERVAL_MS;
    return Math.max(0, this.#fullAt - now - BURST * INTERVAL_MS);
  }

  /** Never rejects. */
  async #send(): Promise<void> {
    const ids = [...this.#ids];
    if (ids.length === 0) return;
    this.#ids = new Set();
    const { db, tables, events } = this.#options;
    try {
      await notifyOfEnds(db, tables, ids);
    } catch (error) {
      events.emit('error', { error, during: `notifying of the ends of ${jobsInWords(ids.length)}` });
    }
  }
}
