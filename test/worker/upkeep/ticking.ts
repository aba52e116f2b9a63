import {
  createQueue,
  createWorker,
  type Database,
  defineJob,
  defineSchedule,
  handle,
  type JobDefinition,
  type ScheduleDefinition,
  schedulesIn,
  type Worker,
  type WorkerEvents,
} from 'drizzle-queue';
import { queueSchedules } from 'drizzle-queue/schema/control';
import { afterEach, beforeAll, beforeEach, expect, onTestFinished } from 'vitest';
import { atFaultPoints } from '../../../src/core/sql/fault-point.ts';
import { addControlTables } from '../../support/control-tables.ts';
import { emptyTables } from '../../support/empty-tables.ts';
import { type UsedTestDatabase, useTestDatabase } from '../../support/test-database.ts';
import { until } from '../../support/until.ts';

/** That of the test file that has called {@link useTicking} last: files follow each other in one process. */
export let database: UsedTestDatabase;
export const queue = createQueue({ schedules: schedulesIn(queueSchedules) });
export const tick = defineJob('tick');
export const other = defineJob('other');

/** Gives a test file its database. */
export function useTicking(): void {
  database = useTestDatabase({ max: 8 });
  beforeAll(() => addControlTables(database));
  beforeEach(async () => {
    await emptyTables(database.client, 'queue_jobs', 'queue_results', 'queue_workers', 'queue_schedules');
  });
  afterEach(() => atFaultPoints());
}

export interface Ticking {
  readonly worker: Worker;
  /** What it has fired, as `name tick`. */
  readonly fired: string[];
  readonly errors: WorkerEvents['error'][0][];
}

/** A worker that fires schedules and has started. */
export async function ticking(
  schedules: readonly ScheduleDefinition<unknown>[] = [],
  { jobs = [tick] as JobDefinition[], listen = true, db = database.db as Database } = {},
): Promise<Ticking> {
  const worker = createWorker(db, {
    queue,
    listen,
    handlers: jobs.map((job) => handle(job, () => undefined)),
    schedules: schedules as readonly ScheduleDefinition[],
  });
  const fired: string[] = [];
  const errors: WorkerEvents['error'][0][] = [];
  worker.on('fired', ({ schedule, ticks }) => {
    for (const at of ticks) fired.push(`${schedule} ${at.toISOString()}`);
  });
  worker.on('error', (error) => errors.push(error));
  onTestFinished(() => worker.stop());
  await worker.start();
  return { worker, fired, errors };
}

/** The ticks of which there was ever a job, live or finished, in order; one that came twice is there twice. */
export async function jobsOf(name: string): Promise<string[]> {
  const rows = await database.client<{ id: string; tick: string }[]>`
    select id, metadata ->> 'tick' as tick from queue_jobs where metadata ->> 'schedule' = ${name}
    union all
    select job_id, metadata ->> 'tick' from queue_results where metadata ->> 'schedule' = ${name} order by tick`;
  // A cluster reads one table after the other, so a job that ends meanwhile is seen in both.
  return [...new Map(rows.map(({ id, tick }) => [id, tick])).values()];
}

export const rowOf = async (name: string) => {
  const [row] = await database.client`select * from queue_schedules where name = ${name}`;
  return row;
};

/** The schedule is as it would be had nobody looked for so long. */
export const setBack = (name: string, interval: string) => {
  const { client } = database;
  // Without a zone, since a cluster lets only immutable functions read columns in an update.
  const earlier = (column: string) =>
    client`(${client(column)} at time zone 'UTC' - ${interval}::interval) at time zone 'UTC'`;
  return client`
    update queue_schedules set passed_at = ${earlier('passed_at')}, next_at = ${earlier('next_at')},
      created_at = ${earlier('created_at')}
    where name = ${name}`;
};

/** Waits until the schedule has been looked at: its next tick is known. */
export const untilArmed = (name: string) =>
  until(async () => {
    const row = await rowOf(name);
    return row !== undefined && row.next_at > row.passed_at;
  });

export const secondly = (name: string, more: object = {}) =>
  defineSchedule(name, { job: tick, every: 1_000, catchUp: 'all', ...more });
export const yearly = (name: string, more: object = {}) =>
  defineSchedule(name, { job: tick, cron: '0 0 1 1 *', ...more });

/** Each is a second after the one before. */
export function expectEverySecond(ticks: readonly string[]): void {
  const times = ticks.map((tick) => Date.parse(tick));
  expect(times).toEqual(times.map((_, at) => (times[0] ?? 0) + at * 1_000));
}
