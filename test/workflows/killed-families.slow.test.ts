import { setTimeout as delay } from 'node:timers/promises';
import { createQueue, workflowsIn } from 'drizzle-queue';
import * as workflowTables from 'drizzle-queue/schema/workflows';
import { expect, onTestFinished, test } from 'vitest';
import { addWorkflowTables } from '../support/control-tables.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';
import { startWorkerProcess, type WorkerProcess } from '../worker/worker-process.ts';
import { document, page, report } from './fixtures/family.ts';

const database = useTestDatabase({ max: 5 });
const queue = createQueue({ workflows: workflowsIn(workflowTables) });
const KILLS = 12;
const DOCUMENTS = 40;

test(`parents, flows and batches whose workers are killed ${KILLS} times end once each`, async () => {
  await addWorkflowTables(database);
  const { db, client } = database;
  const start = () =>
    startWorkerProcess('workflows/fixtures/family-worker.ts', { DATABASE_URL: database.url });
  const workers: WorkerProcess[] = [start(), start()];
  onTestFinished(async () => {
    await Promise.all(workers.map((worker) => worker.end('SIGKILL')));
  });
  await Promise.all(workers.map((worker) => worker.printed('ready')));

  const documents = await queue.enqueueMany(
    db,
    document,
    Array.from({ length: DOCUMENTS }, () => ({ payload: 30 })),
  );
  const batch = await queue.workflows.enqueueBatch(
    db,
    page,
    Array.from({ length: 2_000 }, (_, at) => ({ payload: at })),
    { last: report },
  );
  const flow = await queue.workflows.enqueueFlow(db, (one) => {
    // A chain of 20 in which each page waits for the one before, and one report at the end of all.
    const chain = [one.add(page, 0)];
    for (let at = 1; at < 20; at++) chain.push(one.add(page, 0, { after: chain.slice(-1) }));
    one.add(report, undefined, { after: chain });
  });
  for (let kills = 0; kills < KILLS; kills++) {
    // Random moments are the point.
    await delay(Math.random() * 600);
    const victim = workers.shift();
    await victim?.end('SIGKILL');
    const next = start();
    workers.push(next);
    await next.printed('ready');
  }
  await until(async () => (await client`select from queue_jobs`).length === 0);

  const illegible = (pages: number) => Math.floor(pages / 7);
  for (const { id } of documents) {
    expect(await queue.find(db, document, id)).toMatchObject({
      state: 'completed',
      output: 30 - illegible(30),
    });
  }
  const counts = (total: number, failed: number) => ({
    state: 'completed',
    output: { total, completed: total - failed, failed },
  });
  expect(await queue.find(db, report, batch.lastId)).toMatchObject(counts(2_000, illegible(2_000)));
  expect(await queue.find(db, report, Number(flow.jobIds.at(-1)))).toMatchObject(counts(20, 0));
  expect(await queue.workflows.flow(db, flow.id)).toMatchObject({ total: 21, pending: 0, failed: 0 });
  // No child twice, none left out, and each after those before it.
  const [row] = await client`
    select count(*)::int as pages, count(distinct job_id)::int as once
    from queue_results where kind = 'page'`;
  const pages = DOCUMENTS * 30 + 2_000 + 20;
  expect(row).toEqual({ pages, once: pages });
  const chain = await client`
    select claimed_at >= lag(finished_at) over (order by job_id) as after from queue_results
    where job_id = any(${flow.jobIds as number[]}::int8[]) order by job_id`;
  expect(chain.slice(1).every(({ after }) => after === true)).toBe(true);
  const [open] = await client`
    select count(*)::int as open from queue_batches where ended_at is null or pending <> 0`;
  expect(open).toEqual({ open: 0 });
}, 300_000);
