import { beforeAll, describe, expect, test } from 'vitest';
import { declareSchedulesQuery } from '../../src/features/schedules/queries/declare-schedules.ts';
import { findDueSchedulesQuery } from '../../src/features/schedules/queries/find-due-schedules.ts';
import { findSchedulesQuery } from '../../src/features/schedules/queries/find-schedules.ts';
import { fireSchedulesQuery } from '../../src/features/schedules/queries/fire-schedules.ts';
import { setScheduleQuery } from '../../src/features/schedules/queries/set-schedule.ts';
import type { NewSchedule } from '../../src/features/schedules/sql/stored-schedule.ts';
import { addControlTables } from '../support/control-tables.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { buffersOf, explain, nodesOf } from './support/explain.ts';
import { scheduleTables as tables } from './support/jobs.ts';

const database = useTestDatabase({ max: 1 });
const SCHEDULES = 10_000;

beforeAll(async () => {
  await addControlTables(database);
  // Known to the planner as empty, which is the worst that it can know.
  await database.client`analyze queue_schedules`;
  await database.client`
    insert into queue_schedules (name, queue, kind, payload, settings, every_ms, time_zone, catch_up, overlap,
      next_at, passed_at, seen_at, created_at, declared_by)
    select 's' || n, 'q', 'k' || n % 100, '{}', '{"priority":5,"maxAttempts":20,"own":{},"metadata":{}}', 60000,
      'UTC', 'latest', true, now() + n * interval '1 second', now(), now(), now(),
      case when n % 10 = 0 then 1 end
    from generate_series(1, ${SCHEDULES}) as n`;
});

const schedule: NewSchedule = {
  name: 's77',
  queue: 'q',
  kind: 'k',
  payload: '{}',
  settings: '{"priority":5,"maxAttempts":20,"own":{},"metadata":{}}',
  cron: null,
  everyMs: 60_000,
  timeZone: 'UTC',
  startsAtMs: null,
  endsAtMs: null,
  catchUp: 'latest',
  overlap: true,
};
const names = Array.from({ length: 100 }, (_, n) => `s${n + 1}`);
const kinds = Array.from({ length: 100 }, (_, n) => `k${n}`);

const statements = {
  'the look': findDueSchedulesQuery(tables, {
    declared: ['s10'],
    kinds,
    except: [],
    horizonMs: 120_000,
    limit: 100,
  }),
  'a page of the list': findSchedulesQuery(tables, { after: 's5', limit: 51 }),
  'a page by its place': findSchedulesQuery(tables, { offset: 50, limit: 51 }),
  'a change': setScheduleQuery(tables, schedule),
  'a firing of a hundred': fireSchedulesQuery(
    tables,
    names.map((name) => ({ name, revision: 0, ticks: [1e12], passedMs: 1e12, nextMs: 1e12 + 1 })),
    'queue_wake_queue_jobs',
  ),
  'a declaration': declareSchedulesQuery(tables, {
    workerId: 7,
    schedules: names.map((name) => ({ ...schedule, name })),
    unfit: names,
  }),
};

describe.each(['stale statistics', 'after an ANALYZE'])('%s', (statistics) => {
  beforeAll(async () => {
    if (statistics !== 'stale statistics') await database.client`analyze queue_schedules`;
  });

  describe.each(['force_custom_plan', 'force_generic_plan'] as const)('%s', (mode) => {
    test.each(Object.entries(statements))('%s reads a few of 10,000 schedules', async (_, query) => {
      const plan = await explain(database, query, mode);
      const read = nodesOf(plan).filter((node) => node['Relation Name'] === 'queue_schedules');
      for (const node of read.filter((node) => node['Node Type'] !== 'ModifyTable')) {
        expect(node['Node Type']).toMatch(/Index|Bitmap/);
        expect(node['Actual Rows'] * node['Actual Loops']).toBeLessThanOrEqual(200);
      }
      // The whole table has some 250 pages; a write of a hundred rows touches several for each.
      expect(buffersOf(plan)).toBeLessThan(3_000);
    });
  });
});
