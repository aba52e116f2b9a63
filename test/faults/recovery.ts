import type { Connection } from '../support/test-database.ts';
import { until } from '../support/until.ts';
import type { Fleet, FleetWorker } from './fleet.ts';
import type { Ledger } from './ledger.ts';

/**
 * Waits until the server has been up for so long that workers believe in the end of a session again. Before that everybody is forgiven, and
 * a test that nobody is declared gone says nothing.
 */
export async function startRespiteIsOver(
  database: Pick<Ledger, 'rows'> | Pick<Connection, 'client'>,
): Promise<void> {
  const isOver = `select 1 from (select pg_postmaster_start_time() as at) as start where start.at < now() - interval '10 seconds'`;
  const rows = 'rows' in database ? () => database.rows(isOver) : () => database.client.unsafe(isOver);
  await until(async () => (await rows()).length === 1);
}

/** After how many milliseconds each of the jobs began elsewhere; see {@link recoveries}. */
export async function recoveryTimes(...args: Parameters<typeof recoveries>): Promise<number[]> {
  return [...(await recoveries(...args)).values()];
}

/**
 * Waits until every job that a dead worker held has begun in another process; answers after how many milliseconds each did, by its id.
 *
 * @param held the ids of the jobs
 * @param sinceMs when the worker died
 */
export async function recoveries(
  ledger: Ledger,
  fleet: Fleet,
  victim: FleetWorker,
  held: readonly number[],
  sinceMs: number,
): Promise<Map<number, number>> {
  const begunAtMs = new Map<number, number>();
  await until(
    async () => {
      fleet.checkRunning();
      for (const { event, job, process, atMs } of fleet.entriesByProcess()) {
        if (event !== 'begun' || job === undefined || process === victim.name || atMs < sinceMs) continue;
        if (held.includes(job) && !begunAtMs.has(job)) begunAtMs.set(job, atMs);
      }
      const missing = held.filter((id) => !begunAtMs.has(id));
      if (missing.length === 0) return true;
      // Its last word may have been under way when it died: what that has ended does not begin again.
      const ended = await ledger.rows<{ job_id: string }>(
        'select job_id from queue_results where worker_id = $1 and job_id = any($2::int8[])',
        [victim.workerId, missing],
      );
      return ended.length === missing.length;
    },
    { timeoutMs: 120_000, intervalMs: 50 },
  );
  return new Map([...begunAtMs].map(([id, atMs]) => [id, atMs - sinceMs]));
}

/**
 * Waits until a dead worker is declared gone, whatever it held. A test that kills the next one before that may
 * have most of the workers dead at once, which is believed later.
 */
export async function declaredGone(ledger: Ledger, { name }: FleetWorker): Promise<void> {
  const isGone = 'select not exists (select from queue_workers where name = $1)';
  await until(async () => await ledger.value(isGone, [name]), { timeoutMs: 60_000 });
}

/**
 * After how many milliseconds each of the workers has begun a job again.
 *
 * @throws when that takes two minutes: what each of them has said last
 */
export async function resumeTimes(
  fleet: Fleet,
  workers: readonly FleetWorker[],
  sinceMs: number,
): Promise<number[]> {
  const times = await until(
    () => {
      fleet.checkRunning();
      const first = workers.map((worker) =>
        worker.entries().find(({ event, atMs }) => event === 'begun' && atMs > sinceMs),
      );
      const found = first.flatMap((entry) => (entry === undefined ? [] : [entry.atMs - sinceMs]));
      return found.length === workers.length ? found : undefined;
    },
    { timeoutMs: 120_000, intervalMs: 50 },
  ).catch(() => {
    const last = workers.map((worker) => [worker.name, worker.entries().slice(-3)]);
    throw new Error(`not all have begun a job again: ${JSON.stringify(last)}`);
  });
  return times ?? [];
}

/** Prints how long a recovery took. */
export function printTimes(what: string, times: readonly number[]): void {
  print(
    `${what}: median ${seconds(median(times))}, maximum ${seconds(Math.max(...times))} (${times.length} values)`,
  );
}

/** Prints what was measured. */
export function print(line: string): void {
  console.log(`[faults] ${line}`);
}

export function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(2)} s`;
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}
