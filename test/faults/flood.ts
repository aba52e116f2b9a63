import { setTimeout as delay } from 'node:timers/promises';
import { onTestFinished } from 'vitest';
import { light } from './fixtures/ledger-jobs.ts';
import type { Ledger, LedgerJob } from './ledger.ts';

/** How much there is to do. */
export interface FloodOptions {
  readonly job?: LedgerJob;
  /** So many are always due. */
  readonly due?: number;
  /** A handler takes up to this long. */
  readonly maxWorkMs?: number;
}

/** Enqueues short jobs, so many that workers claim ahead and without a pause, until it is told to end. */
export class Flood {
  readonly #ledger: Ledger;
  readonly #options: Required<FloodOptions>;
  readonly #over: Promise<void>;
  #ending = false;

  constructor(ledger: Ledger, { job = light, due = 1_500, maxWorkMs = 20 }: FloodOptions = {}) {
    this.#ledger = ledger;
    this.#options = { job, due, maxWorkMs };
    this.#over = this.#run();
    // A test that fails must not leave its jobs to the next.
    onTestFinished(() => this.end());
  }

  /** Enqueues no more. */
  async end(): Promise<void> {
    this.#ending = true;
    await this.#over;
  }

  async #run(): Promise<void> {
    const { job, due, maxWorkMs } = this.#options;
    while (!this.#ending) {
      const waiting = await this.#ledger.value('select count(*) from queue_jobs where worker_id is null');
      if (Number(waiting) < due) await this.#ledger.enqueueMany(job, due / 2, maxWorkMs);
      else await delay(20);
    }
  }
}
