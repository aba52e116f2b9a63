import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { WorkerOptions } from 'drizzle-queue';
import type { CatchUp } from 'drizzle-queue/schema/control';
import { until } from '../support/until.ts';
import { startProcess, type WorkerProcess } from '../worker/worker-process.ts';
import { bundleWorker } from './bundle-worker.ts';
import { monotonicMs, type ProcessEntry, RunLogReader } from './run-log.ts';

/** A schedule of every few milliseconds, or by a cron expression. */
export interface LedgerSchedule {
  readonly name: string;
  readonly timing: { readonly every: number } | { readonly cron: string };
  readonly catchUp: CatchUp;
  readonly overlap: boolean;
}

/** What `fixtures/ledger-worker.ts` is told. */
export interface LedgerWorkerSettings {
  readonly name: string;
  readonly url: string;
  readonly driver: 'node-postgres' | 'postgres.js';
  readonly poolSize: number;
  readonly concurrency: number;
  /** The file of its log. */
  readonly log: string;
  /** The folder of the gates. */
  readonly gates: string;
  /** The kinds that it has handlers for; all unless given. */
  readonly kinds?: readonly string[];
  /** Whether its driver prepares statements. Only postgres.js. */
  readonly prepare?: boolean;
  /** Settings of its database sessions, as on the command line of postgres: `-c statement_timeout=300`. Only node-postgres. */
  readonly sessionSettings?: string;
  /** The schedules that it declares; the queue has none unless given. */
  readonly schedules?: readonly LedgerSchedule[];
  /** Settings of its worker. */
  readonly worker?: Omit<WorkerOptions<never>, 'queue' | 'handlers' | 'queues' | 'name' | 'schedules'>;
}

/** How to start a worker process. */
export type StartOptions = Partial<Omit<LedgerWorkerSettings, 'name' | 'log' | 'gates'>> & {
  /** How far off its clock is. */
  readonly clockShiftMs?: number;
  /** Its clock jumps while it runs, to somewhere within so much of the right time. */
  readonly clockJumpsMs?: number;
};

/** What the names of all worker processes, in `pg_stat_activity` too, begin with. */
export const WORKER_NAME = 'ledger-worker';

/** The worker processes of one test, dead or alive, and what they have written down. */
export class Fleet {
  readonly #url: string;
  readonly #directory = mkdtempSync(join(tmpdir(), 'drizzle-queue-faults-'));
  readonly #members: FleetWorker[] = [];

  /** @param url the database of workers that are given no other */
  constructor(url: string) {
    this.#url = url;
  }

  /** Starts a worker process; resolves when it claims. */
  async start(options?: StartOptions): Promise<FleetWorker> {
    const worker = await this.spawn(options);
    await until(
      () => {
        worker.checkRunning();
        return worker.hasStarted;
      },
      { timeoutMs: 60_000 },
    );
    return worker;
  }

  /** Starts a worker process, and waits for nothing of what that does. */
  async spawn({ clockShiftMs = 0, clockJumpsMs = 0, ...options }: StartOptions = {}): Promise<FleetWorker> {
    const program = await bundleWorker();
    const name = `${WORKER_NAME}-${this.#members.length + 1}`;
    const settings: LedgerWorkerSettings = {
      url: this.#url,
      driver: 'node-postgres',
      // Ample: a connection that broke under its `begin` is never given back by drizzle-orm 0.45.
      poolSize: 12,
      concurrency: 10,
      ...options,
      name,
      log: join(this.#directory, `${name}.log`),
      gates: this.#directory,
    };
    const reader = new RunLogReader(settings.log, name);
    const worker = new FleetWorker(
      name,
      startProcess([], program, {
        LEDGER_WORKER: JSON.stringify(settings),
        ...((clockShiftMs !== 0 || clockJumpsMs !== 0) && {
          CLOCK_SHIFT_MS: String(clockShiftMs),
          CLOCK_JUMPS_MS: String(clockJumpsMs),
          NODE_OPTIONS: '--import ./test/faults/fixtures/shifted-clock.mjs',
        }),
      }),
      reader,
    );
    this.#members.push(worker);
    return worker;
  }

  /** Starts several alike. */
  startMany(count: number, options?: StartOptions): Promise<FleetWorker[]> {
    return Promise.all(Array.from({ length: count }, () => this.start(options)));
  }

  /** Those that run. */
  get living(): FleetWorker[] {
    return this.#members.filter(({ running }) => running);
  }

  /** Lets the attempts of the how many-th claim, of jobs with this gate, come to their end. */
  openGate(gate: string, claim: number): void {
    writeFileSync(join(this.#directory, `${gate}-${claim}`), '');
  }

  /** All that was written down so far, in the order of time. */
  entries(): ProcessEntry[] {
    return [...this.entriesByProcess()].sort((a, b) => a.atMs - b.atMs);
  }

  /** The same, one process after the other: for those who look often. */
  *entriesByProcess(): Iterable<ProcessEntry> {
    for (const worker of this.#members) yield* worker.entries();
  }

  /** When which process was killed. */
  get killedAtMs(): ReadonlyMap<string, number> {
    return new Map(
      this.#members.flatMap(({ name, killedAtMs }) => (killedAtMs === undefined ? [] : [[name, killedAtMs]])),
    );
  }

  /** @throws when a process has ended that nobody has killed */
  checkRunning(): void {
    for (const worker of this.#members) if (worker.killedAtMs === undefined) worker.checkRunning();
  }

  /** Stops all that run, gracefully; answers their exit codes. */
  async stop(): Promise<(number | string)[]> {
    this.checkRunning();
    return await Promise.all(this.living.map((worker) => worker.stop()));
  }

  /** Whatever happened: nothing stays behind. */
  async remove(): Promise<void> {
    await Promise.all(this.living.map((worker) => worker.kill()));
    for (const worker of this.#members) worker.forget();
    rmSync(this.#directory, { recursive: true });
  }
}

/** A worker process. */
export class FleetWorker {
  #killedAtMs: number | undefined;
  #stopped = false;

  constructor(
    readonly name: string,
    readonly process: WorkerProcess,
    readonly log: RunLogReader,
  ) {}

  /** Whether it claims. It may have written down before that it listens. */
  get hasStarted(): boolean {
    return this.#start !== undefined;
  }

  /**
   * The id under which its worker is registered.
   *
   * @throws when it has not started
   */
  get workerId(): number {
    return Number(this.#started.detail);
  }

  /**
   * How far its clock was ahead of this process's, give or take how long it has taken to be read.
   *
   * @throws when it has not started
   */
  clockAheadMs(): number {
    const { atMs, clockMs } = this.#started;
    if (clockMs === undefined) throw new Error(`${this.name} has started without its time`);
    return clockMs - (Date.now() - (monotonicMs() - atMs));
  }

  get #start(): ProcessEntry | undefined {
    return this.entries().find(({ event }) => event === 'started');
  }

  get #started(): ProcessEntry {
    if (this.#start === undefined) throw new Error(`${this.name} has not started`);
    return this.#start;
  }

  get running(): boolean {
    const { exitCode, signalCode } = this.process.child;
    return exitCode === null && signalCode === null;
  }

  /** When it was killed, if it was. */
  get killedAtMs(): number | undefined {
    return this.#killedAtMs;
  }

  entries(): readonly ProcessEntry[] {
    return this.log.entries();
  }

  /** @throws when it has ended, with what it has printed */
  checkRunning(): void {
    if (this.#stopped || this.running) return;
    const { exitCode, signalCode } = this.process.child;
    throw new Error(`${this.name} has ended (${exitCode ?? signalCode}):\n${this.process.output()}`);
  }

  /** SIGKILL; answers the moment. */
  async kill(): Promise<number> {
    this.#killedAtMs = monotonicMs();
    await this.process.end('SIGKILL');
    return this.#killedAtMs;
  }

  /** SIGSTOP: it does nothing more, until it is continued. */
  freeze(): void {
    this.process.child.kill('SIGSTOP');
  }

  continue(): void {
    this.process.child.kill('SIGCONT');
  }

  /** SIGTERM; answers its exit code. */
  async stop(): Promise<number | string> {
    this.#stopped = true;
    return await this.process.end('SIGTERM');
  }

  /** Closes the log. */
  forget(): void {
    this.log.close();
  }
}
