import { setTimeout as delay } from 'node:timers/promises';
import { expect, onTestFinished } from 'vitest';
import type { FaultPoint } from '../../src/core/sql/fault-point.ts';
import type { UsedTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';
import { startProcess } from './worker-process.ts';

/** Where a worker dies: at a point of the library, around any statement, or whenever it pleases the kernel. */
export type Place = `at:${FaultPoint}` | 'unsent' | 'sent' | 'moment';

export interface Death {
  readonly place: Place;
  /** How many jobs it had in hand. */
  readonly held: number;
}

export interface DoomedWorkerOptions {
  readonly database: UsedTestDatabase;
  /** Its program, from the root of the repository. */
  readonly program: string;
  /** It works, and may die, once it has come here. */
  readonly from: FaultPoint;
}

/** Starts a worker that is killed at a place, after so many times or messages; without one it lives. */
export function startDoomedWorker({ database, program, from }: DoomedWorkerOptions, doom?: string) {
  const started = startProcess(['--import', 'tsx', '--import', './test/worker/fixtures/doom.ts'], program, {
    DATABASE_URL: database.url,
    DOOM_FROM: from,
    ...(doom !== undefined && { DOOM: doom }),
  });
  const { child, output } = started;
  onTestFinished(() => void child.kill('SIGKILL'));
  return {
    ...started,
    /** Waits until it has ended; where it does not end, the error says what it was to do. */
    async exit(): Promise<readonly [number | null, NodeJS.Signals | null]> {
      try {
        await until(() => child.exitCode !== null || child.signalCode !== null);
      } catch (error) {
        const work = doom === undefined ? 'to stop' : `to die ${doom}`;
        throw new Error(`a worker was ${work}, and has not ended\n${await stateOf(database)}\n${output()}`, {
          cause: error,
        });
      }
      return [child.exitCode, child.signalCode];
    },
  };
}

/** What there is to do, and what the connections do. */
async function stateOf({ client }: UsedTestDatabase): Promise<string> {
  const jobs = await client`
    select kind, worker_id is not null as is_held, run_at <= now() as is_due, count(*)::int
    from queue_jobs group by 1, 2, 3 order by 1, 2, 3`;
  const connections = await client`
    select pid, state, wait_event, pg_blocking_pids(pid) as blocked_by,
      (now() - state_change)::text as since, left(query, 120) as query
    from pg_stat_activity where datname = current_database() and backend_type = 'client backend'`;
  return [...jobs, ...connections].map((row) => JSON.stringify(row)).join('\n');
}

/** Only jobs of the killed are recorded as begun, so a worker that outlives the others comes here no more. */
const AFTER_DEATHS: Place = 'at:begin: written';

/** Runs a worker until it is killed where it works; a kill counts only then. */
async function workUntilKilled(options: DoomedWorkerOptions, place: Place): Promise<Death> {
  const within = place === AFTER_DEATHS ? 1 : 1 + Math.floor(Math.random() * 8);
  const doom = place === 'moment' ? undefined : `${place}:${place.startsWith('at') ? within : within * 5}`;
  const { child, exit, printed, output } = startDoomedWorker(options, doom);
  await printed('works');
  if (doom === undefined) {
    // Random moments are the point.
    await delay(Math.random() * 600);
    expect(child.signalCode ?? child.exitCode).toBeNull();
    child.kill('SIGKILL');
  }
  expect(await exit(), output()).toEqual([null, 'SIGKILL']);
  const [row] = await options.database.client<{ held: number }[]>`
    select count(*)::int as held from queue_jobs
    where worker_id = (select id from queue_workers where name like ${`%:${child.pid}`})`;
  return { place, held: row?.held ?? 0 };
}

/** Workers that run at once, each of which has a place of its own to die at, and is followed by the next. */
export async function dieAt(
  options: DoomedWorkerOptions,
  places: readonly Place[],
  workers: number,
): Promise<Death[]> {
  const left = [...places];
  const deaths: Death[] = [];
  await Promise.all(
    Array.from({ length: workers }, async () => {
      for (let place = left.shift(); place !== undefined; place = left.shift())
        deaths.push(await workUntilKilled(options, place));
    }),
  );
  return deaths;
}

/** Prints how the workers have died. */
export function tellOf(deaths: readonly Death[], what: string): void {
  const held = deaths.reduce((sum, death) => sum + death.held, 0);
  const places = [...new Set(deaths.map(({ place }) => place))];
  const times = places.map((name) => `${name} ${deaths.filter(({ place }) => place === name).length}`);
  console.log(`${what}, ${deaths.length} kills, ${held} jobs in the hands of the killed`);
  console.log(times.join(', '));
}
