import { createQueue, createWorker, defineJob, drain, handle } from 'drizzle-queue';
import postgres from 'postgres';
import { afterEach, beforeEach, expect, onTestFinished, test } from 'vitest';
import { atFaultPoints } from '../../../src/core/sql/fault-point.ts';
import { clearTables } from '../../queries/support/jobs.ts';
import { runningMsUntil } from '../../support/running-time.ts';
import { useTestDatabase } from '../../support/test-database.ts';
import { until } from '../../support/until.ts';

const database = useTestDatabase({ max: 10 });
const queue = createQueue();
const work = defineJob('work', { queue: 'q' });

beforeEach(() => clearTables(database.client));
afterEach(() => atFaultPoints());

/**
 * A worker whose first claim takes ten jobs, and loses its answer after `act`. Answers the ids of the ten and
 * that of an eleventh, which comes later; and what the worker has said since of what it could not do.
 */
async function workAfterALostAnswer(act: (fifth: number) => Promise<unknown>) {
  const errors: string[] = [];
  const ids: number[] = [];
  for (let n = 0; n < 10; n++) ids.push((await queue.enqueue(database.db, work)).id);
  let lost = false;
  atFaultPoints(async (at) => {
    if (at !== 'claim: answered' || lost) return;
    lost = true;
    await act(ids[4] ?? 0);
    throw new Error('the connection broke');
  });
  const worker = createWorker(database.db, { queue, log: false, handlers: [handle(work, () => {})] });
  worker.on('error', ({ during }) => errors.push(during));
  onTestFinished(() => worker.stop());
  await worker.start();
  await until(() => lost);
  const eleventh = (await queue.enqueue(database.db, work)).id;
  return { ids, eleventh, errors };
}

async function ended(id: number): Promise<boolean> {
  return (await database.client`select from queue_results where job_id = ${id}`).length === 1;
}

test('a locked row that a lost answer has taken keeps back no other job, and runs once it is free', async () => {
  const other = postgres(database.url, { max: 1 });
  onTestFinished(() => other.end());
  const { ids, eleventh, errors } = await workAfterALostAnswer(async (fifth) => {
    await other`begin`;
    await other`select from queue_jobs where id = ${fifth} for update`;
  });
  const others = [...ids.filter((id) => id !== ids[4]), eleventh];
  // The next look at what it may hold unknowingly comes after five seconds.
  const allEnded = until(async () => (await Promise.all(others.map(ended))).every(Boolean));
  expect(await runningMsUntil(allEnded)).toBeLessThan(4_000);
  expect(await ended(ids[4] ?? 0)).toBe(false);
  await other`commit`;
  await until(() => ended(ids[4] ?? 0));
  expect(errors).toEqual(["claiming from 'q'"]);
  expect(await queue.find(database.db, ids[4] ?? 0)).toMatchObject({ attempt: 1 });
});

test('a row that may not be given back keeps back no other job, and runs once it may', async () => {
  await database.client`
    create or replace function refuse() returns trigger language plpgsql as $$
    begin raise exception 'refused'; end $$`;
  const { ids, eleventh, errors } = await workAfterALostAnswer((fifth) =>
    database.client.unsafe(`
      create trigger refuse before update on queue_jobs for each row
      when (new.worker_id is null and new.id = ${fifth}) execute function refuse()`),
  );
  const others = [...ids.filter((id) => id !== ids[4]), eleventh];
  // The next look at what it may hold unknowingly comes after five seconds.
  const allEnded = until(async () => (await Promise.all(others.map(ended))).every(Boolean));
  expect(await runningMsUntil(allEnded)).toBeLessThan(4_000);
  expect(await ended(ids[4] ?? 0)).toBe(false);
  expect(errors).toContain(`giving back job ${ids[4]} of 'q'`);
  await database.client`drop trigger refuse on queue_jobs`;
  await until(() => ended(ids[4] ?? 0));
  expect(await queue.find(database.db, ids[4] ?? 0)).toMatchObject({ attempt: 1 });
});

test('a drain runs what it has given back after its last sweep', async () => {
  await database.client.unsafe(`
    create or replace function refuse() returns trigger language plpgsql as $$
    begin raise exception 'no room' using errcode = '53000'; end $$;
    create trigger refuse before update on queue_jobs for each row
    when (old.worker_id is not null and new.worker_id is null) execute function refuse()`);
  const drop = () => database.client`drop trigger if exists refuse on queue_jobs`;
  onTestFinished(async () => void (await drop()));
  await queue.enqueue(database.db, work, undefined, { priority: 0 });
  const runAt = new Date(Date.now() - 60_000);
  const { id } = await queue.enqueue(database.db, work, undefined, { priority: 9, runAt });
  let lost = 0;
  atFaultPoints(async (at) => {
    if (at !== 'claim: answered') return;
    // The claim after the lost one finds nothing, and so does the sweep after that.
    if (lost > 0 && lost++ === 1) await drop();
    const held = await database.client`select from queue_jobs where id = ${id} and worker_id is not null`;
    if (lost > 0 || held.length === 0) return;
    lost++;
    throw new Error('the connection broke');
  });
  const handlers = [handle(work, () => {})];
  const options = { queue, log: false, concurrency: 1, handlers, deadlineMs: 20_000 } as const;
  const result = await drain(database.db, options);
  expect(result).toMatchObject({ completed: 2, empty: true });
});
