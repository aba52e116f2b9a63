import * as workflowTables from 'drizzle-queue/schema/workflows';
import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { findDueByKeptPlan } from '../../src/core/queries/claim/find-due.ts';
import { findOverlookedByKeptPlan } from '../../src/core/queries/claim/find-overlooked.ts';
import { finishByKeptPlan } from '../../src/core/queries/settle/finish-jobs.ts';
import { recordOneByKeptPlan } from '../../src/features/workflows/queries/record-one-step.ts';
import { addWorkflowTables, clearWorkflowTables } from '../support/control-tables.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { ALL_BANDS, addJobs, clearTables, fillJobs, tables } from './support/jobs.ts';

const database = useTestDatabase();
const SIZES = ['small', 'grown'] as const;
const OTHER = { small: 'grown', grown: 'small' } as const;

beforeAll(() => addWorkflowTables(database));
beforeEach(async () => {
  await clearTables(database.client);
  await clearWorkflowTables(database);
});

describe.each(SIZES)('in a %s table, the form for it answers as the one that is planned anew', (size) => {
  const other = OTHER[size];

  beforeEach(async () => {
    // Of another queue, and more than 512 kB.
    if (size === 'grown') await fillJobs(database.client, 10_000, 'other');
  });

  test('and the other form ends nothing: settlements', async () => {
    const { client, db } = database;
    const [held, lost] = await addJobs(client, [
      { workerId: 1, fence: 3 },
      { workerId: 1, fence: 4 },
    ]);
    const finishes = [held, lost].map((id) => ({
      id,
      fence: 3,
      transition: { type: 'finish', state: 'completed', output: '1', error: null, keepResult: true } as const,
    }));
    const finish = (ifTableIs: 'small' | 'grown') =>
      finishByKeptPlan(db, tables, { queue: 'q', workerId: 1 }, finishes, { ifTableIs });
    const ended = async () => (await client`select job_id::int from queue_results`).map((row) => row.job_id);

    expect(await finish(other)).toBeUndefined();
    expect(await ended()).toEqual([]);
    expect(await finish(size)).toEqual(new Set([held]));
    expect(await ended()).toEqual([held]);
    // Repeated after its answer was lost.
    expect(await finish(size)).toEqual(new Set());
    expect(await ended()).toEqual([held]);
  });

  test('and the other form records nothing: steps', async () => {
    const { client, db } = database;
    const [id = 0] = await addJobs(client, [{ workerId: 1, fence: 3 }]);
    const all = { ...tables, ...workflowTables };
    const record = (ifTableIs: 'small' | 'grown', fence: number, output: string, ended = true) => {
      const step = { id, fence, name: 'one', kind: 'run', output, tookMs: 5, ended } as const;
      return recordOneByKeptPlan(db, all, { queue: 'q', workerId: 1 }, step, ifTableIs);
    };
    const steps = () => client`select output, ended_at is not null as ended from queue_steps`;

    expect(await record(other, 3, '1')).toBeUndefined();
    expect(await steps()).toEqual([]);
    expect(await record(size, 4, '1')).toEqual({ recorded: undefined });
    expect(await steps()).toEqual([]);
    expect(await record(size, 3, '1', false)).toEqual({ recorded: { leftMs: undefined } });
    expect(await record(size, 3, '2')).toEqual({ recorded: { leftMs: undefined } });
    // Repeated after its answer was lost.
    expect(await record(size, 3, '2')).toEqual({ recorded: { leftMs: undefined } });
    expect(await steps()).toEqual([{ output: 2, ended: true }]);
    // A later attempt finds it ended.
    await client`update queue_jobs set fence = 4`;
    expect(await record(size, 4, '3')).toEqual({ recorded: undefined });
    expect(await steps()).toEqual([{ output: 2, ended: true }]);
  });

  test('and the other form finds nothing: sweeps and looks', async () => {
    const { client, db } = database;
    const [id] = await addJobs(client, [{ dueInMs: -5_000 }]);
    const passed = ALL_BANDS.map(() => ({ floorMs: Date.now(), endMs: Date.now() }));
    const sweep = (ifTableIs: 'small' | 'grown') =>
      findOverlookedByKeptPlan(db, tables, {
        looks: [{ queue: 'q', passed, after: undefined }],
        kinds: ['k'],
        workerId: 1,
        slice: 100,
        ifTableIs,
      });
    expect(await sweep(other)).toBeUndefined();
    expect((await sweep(size))?.found.get('q')?.map((place) => place.id)).toEqual([id]);
    const look = (ifTableIs: 'small' | 'grown') =>
      findDueByKeptPlan(db, tables, {
        looks: [{ queue: 'q', floorMs: Number.NEGATIVE_INFINITY }],
        kinds: ['k'],
        horizonMs: 1_000,
        ifTableIs,
      });
    expect(await look(other)).toBeUndefined();
    const [answer] = (await look(size)) ?? [];
    expect(answer?.queue).toBe('q');
    expect(answer?.dueInMs).toBeLessThan(0);
    await client`delete from queue_jobs where queue = 'q'`;
    expect(await sweep(size)).toEqual({ found: new Map(), stopped: undefined });
    expect(await look(size)).toMatchObject([{ queue: 'q', dueInMs: undefined }]);
  });
});
