import type { SQLWrapper } from 'drizzle-orm';
import { PgDialect } from 'drizzle-orm/pg-core';
import * as workflowTables from 'drizzle-queue/schema/workflows';
import { beforeAll, beforeEach, expect, test } from 'vitest';
import type { ClaimedJob } from '../../src/core/queries/claim/claim-jobs.ts';
import type { Runner } from '../../src/core/sql/executor.ts';
import { Retries } from '../../src/core/time/retries.ts';
import { WorkerEmitter } from '../../src/core/worker/base/events.ts';
import { StepFinder } from '../../src/features/workflows/worker/step-finder.ts';
import { answeredTo } from '../../src/features/workflows/worker/step-store.ts';
import { clearTables, tables } from '../queries/support/jobs.ts';
import { addWorkflowTables, clearWorkflowTables } from '../support/control-tables.ts';
import { gate } from '../support/gate.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';

const database = useTestDatabase({ max: 2 });

beforeAll(() => addWorkflowTables(database));
beforeEach(async () => {
  const { client } = database;
  await clearTables(client);
  await clearWorkflowTables(database);
  // Job 3 has none, and those of job 4 are of another queue.
  await client`
    insert into queue_steps (job_id, queue, name, kind, output, fence, started_at, ended_at)
    select job, case job when 4 then 'other' else 'q' end, name, 'run', to_jsonb(job || name), 1,
      now() + place * interval '1 second', now() + place * interval '1 second'
    from unnest(array[1, 2, 4]) as job, unnest(array['b', 'a']) with ordinality as step(name, place)`;
});

function finding(db: Runner): StepFinder {
  return new StepFinder({ db, tables: { ...tables, ...workflowTables }, queue: 'q' });
}

test('reads the steps of all that ask while it reads by one statement, each in its order', async () => {
  const opened = gate();
  let statements = 0;
  const finder = finding({
    execute: async (query) => {
      statements++;
      await opened.opened;
      return await database.db.execute(query);
    },
  });
  const found = [1, 2].map((id) => finder.asking(id)());
  await until(() => statements === 1);
  found.push(...[3, 4, 2, 1].map((id) => finder.asking(id)()));
  opened.open();
  const outputs = (await Promise.all(found)).map((steps) => steps.map(({ output }) => output));
  const [one, two] = [
    ['1b', '1a'],
    ['2b', '2a'],
  ];
  expect(outputs).toEqual([one, two, [], [], two, one]);
  expect(statements).toBe(2);
});

test('asks again for each by itself: one of the others may be why there was no answer', async () => {
  let isBroken = true;
  let statements = 0;
  const finder = finding({
    execute: async (query) => {
      statements++;
      if (isBroken) throw new Error('broken');
      return await database.db.execute(query);
    },
  });
  const asking = [1, 2].map((id) => finder.asking(id));
  const first = await Promise.allSettled(asking.map((ask) => ask()));
  expect(first.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  expect(statements).toBe(1);
  isBroken = false;
  const found = await Promise.all(asking.map((ask) => ask()));
  expect(found.map((steps) => steps.map(({ name }) => name))).toEqual([
    ['b', 'a'],
    ['b', 'a'],
  ]);
  expect(statements).toBe(3);
});

/** Whose steps a statement asks for. */
function idsOf(query: SQLWrapper): string[] {
  const { params } = new PgDialect().sqlToQuery(query.getSQL());
  const [ids = ''] = params.filter((param) => typeof param === 'string' && param.startsWith('{'));
  return String(ids).slice(1, -1).split(',');
}

test('asks for each by itself where the database takes too long for all together', async () => {
  const statements: string[][] = [];
  const finder = finding({
    execute: async (query) => {
      const ids = idsOf(query);
      statements.push(ids);
      if (ids.length > 1) throw Object.assign(new Error('canceling statement'), { code: '57014' });
      return await database.db.execute(query);
    },
  });
  const found = [1, 2, 3].map(async (id) => {
    const job = { id, queue: 'q' } as ClaimedJob;
    const attempt = { job, signal: new AbortController().signal };
    const asking = { retries: new Retries(), events: new WorkerEmitter() };
    return (await answeredTo(attempt, asking, finder.asking(id))).map(({ output }) => output);
  });
  expect(await Promise.all(found)).toEqual([['1b', '1a'], ['2b', '2a'], []]);
  expect(statements).toEqual([['1', '2', '3'], ['1'], ['2'], ['3']]);
});

test('asks once where what is refused is of one job', async () => {
  let statements = 0;
  const finder = finding({
    execute: async () => {
      statements++;
      throw Object.assign(new Error('canceling statement'), { code: '57014' });
    },
  });
  await expect(finder.asking(1)()).rejects.toThrow('canceling statement');
  expect(statements).toBe(1);
});

test('asks for at most 100 in one statement', async () => {
  const statements: number[] = [];
  const finder = finding({
    execute: async (query) => {
      statements.push(idsOf(query).length);
      return await database.db.execute(query);
    },
  });
  const all = Array.from({ length: 250 }, (_, at) => at + 1);
  const found = await Promise.all(all.map((id) => finder.asking(id)()));
  expect(found.map((steps) => steps.length)).toEqual(all.map((id) => (id <= 2 ? 2 : 0)));
  expect(statements).toEqual([100, 100, 50]);
});
