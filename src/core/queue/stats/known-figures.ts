import type { QueueTables } from '../../schema/create-queue-tables.ts';
import type { Executor } from '../../sql/executor.ts';
import { perDatabase } from '../../sql/per-database.ts';
import type { EarlierCounts, LastRead, LiveFigures } from './count-live.ts';
import type { QueueRates } from './queue-stats.ts';
import { Rest } from './rest.ts';
import type { ServerFigures } from './server-figures.ts';
import { SharedAnswer } from './shared-answer.ts';

/** What a process knows of the figures of one queue in one database. */
export class KnownFigures implements EarlierCounts {
  readonly rest = new Rest();
  readonly live = new SharedAnswer<LiveFigures>(this.rest);
  readonly server = new SharedAnswer<ServerFigures | undefined>(this.rest);
  /** By minutes. */
  readonly #rates = new Map<number, SharedAnswer<QueueRates | undefined>>();
  /** See `EarlierCounts`. */
  exactAgainAt = 0;
  #lastRead: LastRead = { crews: [], pauses: [], results: [] };

  /** See `EarlierCounts`. */
  get lastRead(): LastRead {
    return this.#lastRead;
  }

  /** Keeps what could be read for the time when it cannot be: see {@link lastRead}. */
  remember({ crews, pauses, results }: LiveFigures): void {
    const last = this.#lastRead;
    this.#lastRead = {
      crews: crews ?? last.crews,
      pauses: pauses ?? last.pauses,
      results: results ?? last.results,
    };
  }

  ratesOf(minutes: number): SharedAnswer<QueueRates | undefined> {
    const known = this.#rates.get(minutes) ?? new SharedAnswer<QueueRates | undefined>(this.rest);
    // Few are asked for; a caller that asks for every number of minutes must not fill the memory.
    if (this.#rates.size >= 100) this.#rates.clear();
    this.#rates.set(minutes, known);
    return known;
  }
}

/** The same for every caller with this `db` and this queue's tables. */
export const figuresOf: (db: Executor, tables: QueueTables) => KnownFigures = /* @__PURE__ */ perDatabase(
  () => new KnownFigures(),
);
