import { setTimeout as delay } from 'node:timers/promises';
import type { QueueLimits, WorkerOptions } from 'drizzle-queue';
import { bundleWorker } from '../faults/bundle-worker.ts';
import type { UsedTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';
import { startProcess, type WorkerProcess } from '../worker/worker-process.ts';

/** What the processes of a fleet do. */
export interface FleetOptions {
  readonly limits: Readonly<Record<string, QueueLimits>>;
  readonly jobs: readonly { readonly kind: string; readonly queue: string }[];
  /** Slots of each process for each queue. */
  readonly concurrency: number;
  /** The program in `test/` that they run. @default 'limits/fixtures/limited-worker.ts' */
  readonly program?: string;
  /** Further settings of the workers, where the program takes some. */
  readonly worker?: GroupedWorkerSettings;
  /** What they connect to. @default the database itself */
  readonly url?: string;
}

/** What `fixtures/grouped-worker.ts` is told of its worker. */
export type GroupedWorkerSettings = Pick<
  WorkerOptions<never>,
  'frozenMs' | 'silentMs' | 'reconnectMs' | 'listen'
>;

/** Where the ledger is. */
export type LedgerDatabase = Pick<UsedTestDatabase, 'url' | 'client'>;

/** Worker processes that die at random and are replaced. Their handlers keep a table `ledger` of what runs. */
export class Fleet {
  readonly #database: LedgerDatabase;
  readonly #program: string;
  readonly #env: Record<string, string>;
  readonly #processes: WorkerProcess[] = [];
  readonly #starting = new Set<WorkerProcess>();
  /** What processes have printed that are no more. */
  #printed = '';
  /** The same of those that never overslept. */
  #printedAwake = '';
  readonly #overslept = new Set<WorkerProcess>();
  deaths = 0;
  /** How often one was stopped gracefully, and replaced. */
  leaves = 0;
  /** How often one was frozen for a while. */
  naps = 0;
  /** How often one was frozen until others had declared it gone. */
  oversleeps = 0;

  constructor(
    database: LedgerDatabase,
    {
      limits,
      jobs,
      concurrency,
      program = 'limits/fixtures/limited-worker.ts',
      worker = {},
      url = database.url,
    }: FleetOptions,
  ) {
    this.#database = database;
    this.#program = program;
    this.#env = {
      DATABASE_URL: url,
      WORKER: JSON.stringify(worker),
      LIMITS: JSON.stringify(limits),
      JOBS: JSON.stringify(jobs),
      CONCURRENCY: String(concurrency),
    };
  }

  /** Creates the ledger, once in a database. */
  static async createLedger({ client }: LedgerDatabase): Promise<void> {
    await client`
      create table ledger (id bigint generated always as identity primary key, worker_id bigint not null, queue text not null,
        kind text not null, job_id bigint not null, attempt int not null, fence int, group_key text, outcome text, run text unique, called_ms float8, began_at timestamptz not null default clock_timestamp(),
        ended_at timestamptz)`;
    await client`create index on ledger (worker_id) where ended_at is null`;
  }

  get size(): number {
    return this.#processes.length;
  }

  /** Those that claim. */
  get processes(): readonly WorkerProcess[] {
    return this.#processes;
  }

  /** All that the processes have printed. */
  get output(): string {
    return this.#printed + this.#processes.map((process) => process.output()).join('');
  }

  /** What was printed by processes that were never declared gone while they were frozen: the others lose what they held. */
  get outputOfAwake(): string {
    const awake = this.#processes.filter((process) => !this.#overslept.has(process));
    return this.#printedAwake + awake.map((process) => process.output()).join('');
  }

  /** Starts processes, and waits until they claim. */
  async start(count: number): Promise<void> {
    const program = await bundleWorker(this.#program);
    const started = Array.from({ length: count }, () => startProcess([], program, this.#env));
    await Promise.all(
      started.map(async (process) => {
        this.#starting.add(process);
        await process.printed('started');
        this.#starting.delete(process);
        this.#processes.push(process);
      }),
    );
  }

  /** Kills one of those that claim: at random, or the process of this worker. */
  async kill(workerId?: number): Promise<void> {
    await this.#end('SIGKILL', workerId);
    this.deaths++;
  }

  /** Stops one at random gracefully. */
  async leave(): Promise<void> {
    const code = await this.#end('SIGTERM');
    if (code !== 0) throw new Error(`a worker process has ended with ${code}`);
    this.leaves++;
  }

  /** Freezes one at random for a while, which its connections outlive. */
  async nap(ms: number): Promise<void> {
    await this.#freeze(() => delay(ms));
    this.naps++;
  }

  /** Freezes one at random until another has declared it gone. */
  async oversleep(): Promise<void> {
    await this.#freeze(async (process) => {
      const [, id = ''] = /^started (\d+)$/m.exec(process.output()) ?? [];
      this.#overslept.add(process);
      const rows = () => this.#database.client`select from queue_workers where id = ${id}`;
      await until(async () => (await rows()).length === 0);
    });
    this.oversleeps++;
  }

  async #freeze(sleep: (process: WorkerProcess) => Promise<void>): Promise<void> {
    const napping = this.#takeOne();
    napping.child.kill('SIGSTOP');
    this.#starting.add(napping);
    await sleep(napping);
    napping.child.kill('SIGCONT');
    this.#starting.delete(napping);
    this.#processes.push(napping);
  }

  async #end(signal: NodeJS.Signals, workerId?: number): Promise<number | string> {
    const ended = this.#takeOne(workerId);
    // Until it has ended it may be left over.
    this.#starting.add(ended);
    const code = await ended.end(signal);
    this.#starting.delete(ended);
    this.#printed += ended.output();
    if (!this.#overslept.has(ended)) this.#printedAwake += ended.output();
    return code;
  }

  #takeOne(workerId?: number): WorkerProcess {
    const index =
      workerId === undefined
        ? Math.floor(Math.random() * this.#processes.length)
        : this.#processes.findIndex((process) => process.output().includes(`started ${workerId}\n`));
    const [one] = index < 0 ? [] : this.#processes.splice(index, 1);
    if (one === undefined) throw new Error('no worker process claims');
    return one;
  }

  /** Kills and replaces one after the other until `over` says so. */
  async decimate(over: () => boolean, everyMs: number): Promise<void> {
    const starting = new Set<Promise<void>>();
    while (!over()) {
      await delay(everyMs * (0.5 + Math.random()));
      if (over()) break;
      await this.kill();
      starting.add(this.start(1));
    }
    await Promise.all(starting);
  }

  /**
   * Kills and replaces one after the other until `over` says so, and stops or freezes some beside: of five, three die, one leaves, and one
   * sleeps, as `nap` says or for up to so many milliseconds. Most of them always claim: where a new process takes long to start, it waits for that.
   */
  async disturb(over: () => boolean, everyMs: number, nap: number | (() => Promise<void>)): Promise<void> {
    const sleep = typeof nap === 'number' ? () => this.nap(nap * (0.2 + 0.8 * Math.random())) : nap;
    const most = this.size / 2;
    const underWay = new Set<Promise<void>>();
    for (let turn = 0; !over(); turn++) {
      await delay(everyMs * (0.5 + Math.random()));
      await until(() => over() || this.size > most);
      if (over()) break;
      if (turn % 5 === 1) underWay.add(this.leave().then(() => this.start(1)));
      else if (turn % 5 === 3) underWay.add(sleep());
      else underWay.add(this.kill().then(() => this.start(1)));
    }
    await Promise.all(underWay);
  }

  /** Stops all gracefully; answers their exit codes. */
  async stop(): Promise<(number | string)[]> {
    return await Promise.all(this.#processes.map((process) => process.end('SIGTERM')));
  }

  /** Kills all that are left, at the end of a test. */
  abandon(): void {
    for (const { child } of [...this.#processes, ...this.#starting]) child.kill('SIGKILL');
  }

  /** How many jobs have not ended. */
  async left(): Promise<number> {
    const [row] = await this.#database.client<
      { jobs: number }[]
    >`select count(*)::int as jobs from queue_jobs`;
    return row?.jobs ?? 0;
  }
}
