import { setTimeout as delay } from 'node:timers/promises';
import { onTestFinished } from 'vitest';
import { loadKinds } from './fixtures/ledger-jobs.ts';
import type { Ledger, LedgerJob } from './ledger.ts';

/** How much there is to do. */
export interface LoadOptions {
  /** Jobs per second; about so many, in transactions of four. */
  readonly perSecond?: number;
  /** A handler takes up to this long. */
  readonly maxWorkMs?: number;
  readonly kinds?: readonly LedgerJob[];
}

const JOBS_PER_TRANSACTION = 4;
/** Every so many transactions one is rolled back. */
const ROLL_BACK_EVERY = 10;

/** Enqueues jobs until it is told to end, whatever happens to the database. */
export class Load {
  readonly #ledger: Ledger;
  readonly #options: Required<LoadOptions>;
  readonly #over: Promise<void>;
  #ending = false;
  /** How many transactions failed; whether those have committed nobody was told. */
  failures = 0;

  constructor(ledger: Ledger, { perSecond = 60, maxWorkMs = 300, kinds = loadKinds }: LoadOptions = {}) {
    this.#ledger = ledger;
    this.#options = { perSecond, maxWorkMs, kinds };
    this.#over = this.#run();
    // A test that fails must not leave its load to the next.
    onTestFinished(() => this.end());
  }

  /** Enqueues no more. */
  async end(): Promise<void> {
    this.#ending = true;
    await this.#over;
  }

  async #run(): Promise<void> {
    const { perSecond, maxWorkMs, kinds } = this.#options;
    for (let turn = 0; !this.#ending; turn++) {
      const jobs = Array.from({ length: JOBS_PER_TRANSACTION }, (_, i) => ({
        job: kinds[(turn + i) % kinds.length] ?? loadKinds[0],
        work: { workMs: Math.round(Math.random() * maxWorkMs) },
      }));
      try {
        await this.#ledger.enqueue(jobs, { rollBack: turn % ROLL_BACK_EVERY === 0 });
      } catch {
        this.failures++;
      }
      await delay((1000 * JOBS_PER_TRANSACTION) / perSecond);
    }
  }
}
