import { createQueue, workflowsIn } from 'drizzle-queue';
import * as workflowTables from 'drizzle-queue/schema/workflows';
import { expect, onTestFinished, test } from 'vitest';
import { addWorkflowTables } from '../support/control-tables.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';
import { startWorkerProcess } from '../worker/worker-process.ts';
import { slow } from './fixtures/sleeper.ts';

const database = useTestDatabase({ max: 5 });
const queue = createQueue({ workflows: workflowsIn(workflowTables) });

test('a worker that is stopped in a step, and wakes after its jobs ran elsewhere, records nothing of it', async () => {
  await addWorkflowTables(database);
  const { db, client } = database;
  await client`create table said (process text, what text, job int)`;
  await client`create table gates (process text)`;
  await client`create table written (process text, job int)`;
  const start = async (name: string) => {
    const env = { DATABASE_URL: database.url, NAME: name };
    const worker = startWorkerProcess('workflows/fixtures/sleeper-worker.ts', env);
    onTestFinished(async () => void (await worker.end('SIGKILL')));
    await worker.printed('ready');
    return worker;
  };
  const said = async (process: string, what: string) =>
    (await client`select job from said where process = ${process} and what = ${what} order by 1`).map(
      ({ job }) => job,
    );
  const open = (process: string) => client`insert into gates values (${process})`;

  const sleeper = await start('sleeper');
  const payloads = [{ payload: 'run' as const }, { payload: 'transaction' as const }];
  const ids = (await queue.enqueueMany(db, slow, payloads)).map(({ id }) => id);
  await until(async () => (await said('sleeper', 'second')).length === 2);
  sleeper.child.kill('SIGSTOP');
  // As its peers do once it was silent for too long, which takes half a minute.
  await client`delete from queue_workers`;
  const other = await start('other');
  await until(async () => (await said('other', 'second')).length === 2);

  // It wakes in the middle of both steps, while the other one is in them, too.
  await open('sleeper');
  sleeper.child.kill('SIGCONT');
  await until(async () => (await said('sleeper', 'refused')).length === 2);
  for (const id of ids) {
    expect((await queue.workflows.steps(db, id)).map(({ name }) => name)).toEqual(['first']);
  }
  expect([...(await client`select from written`)]).toHaveLength(0);

  await open('other');
  for (const id of ids) {
    const record = await queue.waitFor(db, slow, id, { timeoutMs: 60_000 });
    expect(record).toMatchObject({ state: 'completed', output: ['sleeper', 'other'] });
  }
  expect(await said('other', 'first')).toEqual([]);
  expect(await client`select process, job from written`).toMatchObject([{ process: 'other', job: ids[1] }]);

  // It works on.
  expect(await other.end('SIGTERM')).toBe(0);
  const { id } = await queue.enqueue(db, slow, 'transaction');
  const record = await queue.waitFor(db, slow, id, { timeoutMs: 60_000 });
  expect(record).toMatchObject({ output: ['sleeper', 'sleeper'] });
}, 180_000);
