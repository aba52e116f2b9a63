import { setTimeout as pause } from 'node:timers/promises';
import { sql } from 'drizzle-orm';
import { connect, type Db } from '../../examples/seeds/stage/database.ts';
import { createDatabase } from '../../test/support/databases.ts';
import type { Design, Outcome, Site } from './design.ts';

/** How hard the consumers work. */
export interface Load {
  readonly consumers: number;
  readonly workMs: number;
}

/** What one run has shown. */
export interface Sample {
  readonly jobsPerSecond: number;
  readonly retriesPerJob: number;
  /** Claims that came back with nothing. */
  readonly emptyPerJob: number;
  /** How many connections waited for a lock, on average. */
  readonly waiting: number;
}

const WARM_UP_MS = 60;
const MEASURED_MS = 180;
const LOOK_EVERY_MS = 25;

/** A design in a database of its own, with its connections open. */
export class OpenDesign {
  /** Jobs that were put in and are not done. */
  #queued = 0;

  private constructor(
    readonly design: Design,
    private readonly control: Db,
    private readonly pool: Site['pool'],
    private readonly connections: readonly Db[],
    readonly close: () => Promise<void>,
  ) {}

  /** Creates the design's database on a server. */
  static async open(serverUrl: string, design: Design, maxConsumers: number): Promise<OpenDesign> {
    const database = await createDatabase(serverUrl);
    const [control, pool, ...others] = [1, 10, ...Array.from({ length: maxConsumers }, () => 1)].map((max) =>
      connect(database.url, max),
    );
    if (control === undefined || pool === undefined) throw new TypeError('There are always two connections');
    await design.create(control.db, database.url);
    const connections = others.map(({ db }) => db);
    await Promise.all(connections.map((db) => db.execute(sql`select 1`)));
    return new OpenDesign(design, control.db, pool.db, connections, async () => {
      await Promise.all([control, pool, ...others].map(({ close }) => close()));
      await database.drop();
    });
  }

  /** Begins anew: tables without a past, and so many jobs. */
  async beginWith(jobs: number): Promise<void> {
    await this.design.clear(this.control);
    this.#queued = 0;
    await this.fillUpTo(jobs);
  }

  /** Puts in as many jobs as are missing. */
  async fillUpTo(jobs: number): Promise<void> {
    if (jobs > this.#queued) await this.design.add(this.control, jobs - this.#queued);
    this.#queued = jobs;
  }

  /** What autovacuum will have done with a queue that has been deep for a while. */
  async vacuum(): Promise<void> {
    await this.control.execute(sql`vacuum (analyze)`);
  }

  async run({ consumers, workMs }: Load): Promise<Sample> {
    const counted: Record<Outcome, number> = { done: 0, retry: 0, empty: 0 };
    let measuring = false;
    let lastDone = 0;
    const end = await this.design.start({
      connections: this.connections.slice(0, consumers),
      pool: this.pool,
      work: workMs === 0 ? async () => undefined : async () => await pause(workMs),
      count: (outcome) => {
        if (outcome === 'done') this.#queued--;
        if (!measuring) return;
        counted[outcome]++;
        if (outcome === 'done') lastDone = performance.now();
      },
    });
    await pause(WARM_UP_MS);
    measuring = true;
    const start = performance.now();
    const waiting = await this.#averageWaiting(MEASURED_MS);
    measuring = false;
    // A queue that has run dry was worked on until its last job.
    const stop = this.#queued > 0 ? performance.now() : lastDone;
    await end();
    return {
      jobsPerSecond: (counted.done * 1_000) / (stop - start),
      retriesPerJob: counted.retry / counted.done,
      emptyPerJob: counted.empty / counted.done,
      waiting,
    };
  }

  /** Looks for so long at how many connections wait for a lock. */
  async #averageWaiting(ms: number): Promise<number> {
    const deadline = performance.now() + ms;
    let looks = 0;
    let waiting = 0;
    for (; performance.now() < deadline; looks++) {
      const found = await this.control.execute(
        sql`select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
      );
      waiting += found.length;
      await pause(LOOK_EVERY_MS);
    }
    return waiting / looks;
  }
}
