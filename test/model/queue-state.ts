import type postgres from 'postgres';
import { expect } from 'vitest';
import type { JobModel } from './job-model.ts';
import { KIND_OF_OUTCOMES, type ModelJob } from './model-job.ts';
import { type ModelSchedule, nextTickMs, type ScheduleModel } from './schedule-model.ts';

/** What no row says by itself. */
type Unseen = 'lastRecorded' | 'unparked' | 'redriven';

/** What a row of either table is compared by. */
interface Row extends Omit<ModelJob, 'state' | 'runAt' | Unseen> {
  readonly state: string;
  readonly runAt: number;
  readonly output: unknown;
  readonly payloadKept: boolean;
}

/** What a row of the schedules is compared by. */
interface ScheduleRow extends Omit<ModelSchedule, 'passedAt' | 'armed' | 'version'> {
  readonly passedAt: number;
  readonly nextAt: number;
}

/** Everything that the tables hold, at one moment of the database's clock. */
export interface QueueState {
  /** Microseconds since 1970. */
  readonly nowUs: number;
  readonly jobs: readonly Row[];
  readonly results: readonly Row[];
  readonly workerIds: readonly number[];
  readonly schedules: readonly ScheduleRow[];
}

/** Reads both tables and the workers, in one statement. */
export async function readState(client: postgres.Sql): Promise<QueueState> {
  const [row] = await client<[{ state: QueueState }]>`
    with jobs as (
      select id, queue, kind, priority, max_attempts, unique_key, 'live' as state, attempt, fence, worker_id, errors, run_at,
        claimed_at, null::jsonb as output, cancel_reason, group_key, weight, waiting_key, payload
      from queue_jobs
    ), results as (
      select job_id, queue, kind, priority, max_attempts, unique_key, state, attempt, fence, worker_id, errors, run_at,
        claimed_at, output, null as cancel_reason, group_key, weight, null as waiting_key, payload
      from queue_results
    )
    select json_build_object(
      'nowUs', ${client.unsafe(micros('statement_timestamp()'))},
      'jobs', (select coalesce(json_agg(${client.unsafe(rowAsJson('id'))}), '[]') from jobs),
      'results', (select coalesce(json_agg(${client.unsafe(rowAsJson('job_id'))}), '[]') from results),
      'schedules', (select coalesce(json_agg(json_build_object('name', name, 'queue', queue, 'kind', kind,
        'priority', settings -> 'priority', 'maxAttempts', settings -> 'maxAttempts', 'everyMs', every_ms,
        'catchUp', catch_up, 'overlap', overlap, 'paused', paused_at is not null, 'declaredBy', declared_by,
        'passedAt', ${client.unsafe(micros('passed_at'))}, 'nextAt', ${client.unsafe(micros('next_at'))}) order by name), '[]')
        from queue_schedules),
      'workerIds', (select coalesce(json_agg(id order by id), '[]') from queue_workers)
    ) as state`;
  // JSON knows no infinity.
  const finite = (rows: readonly Row[]) =>
    rows.map((row) => ({ ...row, runAt: row.runAt ?? Number.POSITIVE_INFINITY }));
  return { ...row.state, jobs: finite(row.state.jobs), results: finite(row.state.results) };
}

function rowAsJson(id: string): string {
  return `json_build_object('id', ${id}, 'queue', queue, 'kind', kind, 'priority', priority, 'maxAttempts', max_attempts,
    'uniqueKey', unique_key, 'state', state, 'attempt', attempt, 'fence', fence, 'workerId', worker_id,
    'errors', jsonb_path_query_array(errors, '$[*].name'), 'runAt', ${micros('run_at')},
    'begun', claimed_at is not null, 'cancelRequested', cancel_reason is not null, 'output', output, 'payloadKept', payload is not null,
    'group', group_key, 'cost', coalesce(weight, 1), 'waitingKey', waiting_key)`;
}

/** A time as a whole number of microseconds, which a double holds exactly. */
function micros(time: string): string {
  return `case when isfinite(${time}) then (extract(epoch from ${time}) * 1000000)::int8 end`;
}

/** What must hold whatever the model says. `highestFences` goes from one state to the next. */
export function expectSound({ jobs, results }: QueueState, highestFences: Map<number, number>): void {
  const ids = [...jobs, ...results].map(({ id }) => id);
  expect(new Set(ids).size, 'no job is in both tables').toBe(ids.length);
  const keyed = jobs.filter(({ uniqueKey }) => uniqueKey !== null);
  const keys = new Set(keyed.map(({ queue, kind, uniqueKey }) => JSON.stringify([queue, kind, uniqueKey])));
  expect(keys.size, 'no unique key is held by two live jobs').toBe(keyed.length);
  for (const { id, fence } of [...jobs, ...results]) {
    expect(fence, 'no fence goes back').toBeGreaterThanOrEqual(highestFences.get(id) ?? 0);
    highestFences.set(id, fence);
  }
  for (const { begun, workerId } of jobs) if (workerId === null) expect(begun).toBe(false);
  for (const { state, output, kind, payloadKept } of results) {
    expect(output).toEqual(state === 'completed' ? { done: true } : null);
    expect(payloadKept).toBe(state !== 'completed' || kind !== KIND_OF_OUTCOMES);
  }
}

/** The tables hold what the model says; times that it could not know are learnt from them. */
export function expectAsModelled(state: QueueState, model: JobModel, earlierUs: number): void {
  // Of the finished too: one may have been put back and ended within one step.
  for (const { id, runAt } of [...state.jobs, ...state.results]) {
    const job = model.jobs.get(id);
    if (typeof job?.runAt !== 'object') continue;
    const delayUs = job.runAt.delayMs * 1_000;
    expect(runAt, 'a delay counts from its statement').toBeGreaterThanOrEqual(earlierUs + delayUs);
    expect(runAt, 'a delay counts from its statement').toBeLessThanOrEqual(state.nowUs + delayUs);
    job.runAt = runAt;
  }
  model.groups.learn(earlierUs, state.nowUs);
  const expected = [...model.jobs.values()]
    .filter(({ state }) => state !== 'gone')
    .map(({ lastRecorded: _, unparked: __, redriven: ___, ...job }) => job);
  const actual = [...state.jobs, ...state.results].map(({ output: _, payloadKept: __, ...row }) => row);
  expect(actual.sort(byId)).toEqual(expected.sort(byId));
  expect(state.workerIds).toEqual([...model.livingWorkers].sort((a, b) => a - b));
}

/** When schedules were written is learnt from them. */
export function learnSchedules(state: QueueState, model: ScheduleModel, earlierUs: number): void {
  for (const { name, passedAt } of state.schedules) {
    const schedule = model.schedules.get(name);
    if (schedule === undefined || typeof schedule.passedAt === 'number') continue;
    const sinceUs = schedule.passedAt === 'now' ? earlierUs : schedule.passedAt.sinceUs;
    // A firing writes whole milliseconds.
    expect(passedAt, 'a schedule counts from its statement').toBeGreaterThan(sinceUs - 1_000);
    expect(passedAt, 'a schedule counts from its statement').toBeLessThanOrEqual(state.nowUs);
    schedule.passedAt = passedAt;
  }
}

/** The schedules are what the model says; when they were written is learnt from them. */
export function expectSchedulesAsModelled(state: QueueState, model: ScheduleModel, earlierUs: number): void {
  learnSchedules(state, model, earlierUs);
  const expected = [...model.schedules.values()]
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .map(({ armed, version: _, ...schedule }) => ({
      ...schedule,
      nextAt: armed ? nextTickMs({ armed, version: _, ...schedule }) * 1_000 : schedule.passedAt,
    }));
  expect(state.schedules).toEqual(expected);
}

function byId(a: { readonly id: number }, b: { readonly id: number }): number {
  return a.id - b.id;
}
