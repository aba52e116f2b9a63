import { createQueue, limitsIn, schedulesIn } from 'drizzle-queue';
import { type Authorization, createDashboard } from 'drizzle-queue/dashboard';
import * as control from 'drizzle-queue/schema/control';
import { queueMetrics } from 'drizzle-queue/schema/metrics';
import { beforeAll, describe, expect, test } from 'vitest';
import { addJob } from '../queries/support/jobs.ts';
import { addControlTables, addMetricsTable } from '../support/control-tables.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { another, get, page, textOf } from './support/visits.ts';

const database = useTestDatabase();
const queue = createQueue({
  schedules: schedulesIn(control.queueSchedules),
  limits: limitsIn(control, { q: { concurrency: 4 } }),
  keys: control.queueKeys,
  metrics: queueMetrics,
});

function dashboardFor(authorization: Authorization) {
  return createDashboard({
    db: another(database.db),
    queue,
    basePath: '/admin/queue',
    authorize: () => authorization,
  });
}

/** The pages of a dashboard while a table has another name. */
async function without(table: string, authorization: Authorization, paths: readonly string[]) {
  await database.client.unsafe(`alter table ${table} rename to ${table}_away`);
  try {
    const dashboard = dashboardFor(authorization);
    const texts: string[] = [];
    for (const path of paths) texts.push(textOf(await page(dashboard, `/admin/queue${path}`)));
    return texts;
  } finally {
    await database.client.unsafe(`alter table ${table}_away rename to ${table}`);
  }
}

beforeAll(async () => {
  await addControlTables(database);
  await addMetricsTable(database);
  await addJob(database.client, { kind: 'send-receipt', queue: 'q', dueInMs: -1_000 });
});

describe('an optional table that is missing', () => {
  test.each(['queue_metrics', 'queue_schedules', 'queue_keys', 'queue_limits', 'queue_usage'])(
    '%s: every page that needs none of it shows the rest, and Database what to do',
    async (table) => {
      const [overview, jobs, queues, errors, workers, itself] = await without(table, 'read', [
        '',
        '/jobs',
        '/queues',
        '/errors',
        '/workers',
        '/database',
      ]);
      expect(overview).toMatch(/Due 1/);
      expect(jobs).toContain('send-receipt');
      expect(queues).toContain('send-receipt');
      expect(errors).toContain('Errors');
      expect(workers).toContain('Workers');
      expect(itself).toContain(`"${table}"`);
      expect(itself).toContain('Run `npx drizzle-kit generate` and `npx drizzle-kit migrate`');
      expect(itself).toContain('Vitals');
    },
  );

  test('of metrics: overview and queues say that there are no rates, whoever looks', async () => {
    const said = 'The metrics of the workers could not be read: their table is missing or locked.';
    for (const access of ['read', { queues: ['q'] }] satisfies Authorization[]) {
      const [overview, queues] = await without('queue_metrics', access, ['', '/queues']);
      expect(overview).toContain(said);
      expect(queues).toContain(said);
      expect(queues?.includes('See Database')).toBe(access === 'read');
    }
    expect(textOf(await page(dashboardFor('read'), '/admin/queue/queues'))).not.toContain(said);
  });

  test('of metrics: vitals judge the rest, and find the rates unknown', async () => {
    await database.client`alter table queue_metrics rename to queue_metrics_away`;
    try {
      const db = another(database.db);
      expect((await queue.stats(db)).rates).toBeUndefined();
      const { vitals } = await queue.vitals(db);
      const rates = vitals.filter(({ code }) => code === 'discard-rate' || code === 'retry-rate');
      expect(rates.map(({ severity }) => severity)).toEqual(['unknown', 'unknown']);
      expect(vitals.some(({ code }) => code === 'oldest-due')).toBe(true);
    } finally {
      await database.client`alter table queue_metrics_away rename to queue_metrics`;
    }
  });
});

test('a table that everything needs: Database still says which, and the others the command', async () => {
  const missing = 'queue_pauses';
  const [itself] = await without(missing, 'read', ['/database']);
  expect(itself).toContain(`"${missing}" does not exist`);
  expect(itself).toContain('Unknown while tables are missing.');
  await database.client`alter table queue_pauses rename to queue_pauses_away`;
  try {
    const answer = await get(dashboardFor('read'), '/admin/queue');
    expect(textOf(await answer.text())).toContain('npx drizzle-kit generate && npx drizzle-kit migrate');
  } finally {
    await database.client`alter table queue_pauses_away rename to queue_pauses`;
  }
});
