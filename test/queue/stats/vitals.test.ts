import { readFile } from 'node:fs/promises';
import { createQueue, defineJob, unvalidated, type Vital, type VitalCode } from 'drizzle-queue';
import { queueMetrics } from 'drizzle-queue/schema/metrics';
import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import { addMetricsTable } from '../../support/control-tables.ts';
import { emptyTables } from '../../support/empty-tables.ts';
import { useTestDatabase } from '../../support/test-database.ts';

const database = useTestDatabase();
const mail = defineJob('mail', { payload: unvalidated<number>(), queue: 'mail' });

beforeAll(async () => {
  await addMetricsTable(database);
});

afterEach(async () => {
  await emptyTables(
    database.client,
    'queue_jobs',
    'queue_results',
    'queue_workers',
    'queue_pauses',
    'queue_metrics',
  );
});

/** What is not ok, by code; the server's own state is another's business. */
async function bad(): Promise<Partial<Record<VitalCode, Vital>>> {
  const { vitals } = await createQueue({ metrics: queueMetrics }).vitals(database.db);
  return Object.fromEntries(vitals.filter(({ severity }) => severity !== 'ok').map((one) => [one.code, one]));
}

async function addWorker(kinds: readonly string[]): Promise<void> {
  await database.client`insert into queue_workers (name, queues, kinds)
    values ('w', '["mail"]', ${JSON.stringify(kinds)}::text::jsonb)`;
}

async function addReport(counts: { completed: number; retried: number; discarded: number }): Promise<void> {
  const { completed, retried, discarded } = counts;
  await database.client`
    insert into queue_metrics (worker_id, report, queue, kind, at, minutes, completed, retried, discarded)
    values (1, 1, 'mail', 'mail', now(), 1, ${completed}, ${retried}, ${discarded})`;
}

describe('vitals', () => {
  test('are all ok in an empty queue, each with a value', async () => {
    const { severity, vitals } = await createQueue({ metrics: queueMetrics }).vitals(database.db);
    expect(severity).toBe('ok');
    expect(new Set(vitals.map(({ code }) => code)).size).toBe(13);
    for (const vital of vitals)
      expect(vital).toMatchObject({ severity: 'ok', value: expect.any(Number), fix: '' });
  });

  test('name a queue that is late, unless it is paused', async () => {
    const queue = createQueue();
    await addWorker(['mail']);
    await queue.enqueue(database.db, mail, 1, { runAt: new Date(Date.now() - 20 * 60_000) });
    expect(await bad()).toMatchObject({ 'oldest-due': { severity: 'error', queue: 'mail', unit: 'ms' } });
    await queue.pause(database.db, 'mail');
    expect(await bad()).toEqual({});
    await database.client`update queue_pauses set paused_at = now() - interval '2 days'`;
    expect(await bad()).toMatchObject({ 'pause-forgotten': { severity: 'warning', queue: 'mail' } });
  });

  test('name a kind without a worker', async () => {
    const queue = createQueue();
    await addWorker(['other']);
    await queue.enqueue(database.db, mail, 1, { runAt: new Date(Date.now() - 6 * 60_000) });
    expect(await bad()).toMatchObject({
      'kind-unserved': {
        severity: 'error',
        queue: 'mail',
        kind: 'mail',
        message: expect.stringMatching(
          /^1 job of 'mail' in 'mail' has been due for 6 minutes, and no worker/,
        ),
      },
      'oldest-due': { severity: 'warning' },
    });
    expect((await queue.check(database.db)).find(({ code }) => code === 'kind-unserved')).toMatchObject({
      severity: 'warning',
      message: expect.stringContaining("kind 'mail' in 'mail'"),
    });
    await addWorker(['mail']);
    expect(await bad()).not.toHaveProperty('kind-unserved');
    expect((await queue.check(database.db)).map(({ code }) => code)).not.toContain('kind-unserved');
  });

  test('name kinds of which many jobs are discarded, or attempts retried', async () => {
    await addReport({ completed: 80, retried: 30, discarded: 20 });
    expect(await bad()).toMatchObject({
      'discard-rate': { severity: 'error', kind: 'mail', value: 0.2, unit: 'ratio' },
      'retry-rate': { severity: 'warning', kind: 'mail', value: 30 / 130 },
    });
  });

  test('are unknown without metrics', async () => {
    const { severity, vitals } = await createQueue().vitals(database.db);
    expect(severity).toBe('unknown');
    expect(vitals.filter((one) => one.severity === 'unknown').map(({ code }) => code)).toEqual([
      'discard-rate',
      'retry-rate',
    ]);
  });

  test('name jobs at which workers die, and workers that hang', async () => {
    await createQueue().enqueue(database.db, mail, 1);
    await database.client`update queue_jobs set attempt = 3`;
    await addWorker(['mail']);
    await database.client`update queue_workers set seen_at = now() - interval '5 minutes'`;
    expect(await bad()).toMatchObject({
      'workers-killed': {
        severity: 'error',
        kind: 'mail',
        value: 1,
        message: "1 job of 'mail' in 'mail' has killed two or more workers",
      },
      'workers-silent': {
        severity: 'warning',
        value: 1,
        worker: 'w',
        message: "The registered worker 'w' has not been seen for 5 minutes",
      },
    });
  });

  test('name jobs that are parked because their claim was refused, and those that others have overtaken', async () => {
    const queue = createQueue();
    await addWorker(['mail']);
    const ids = await Promise.all([1, 2, 3].map((n) => queue.enqueue(database.db, mail, n)));
    await database.client`
      update queue_jobs set run_at = 'infinity', errors = '[{"attempt": 1, "name": "ClaimRefusedError"}]'
      where id = ${ids[0]?.id ?? 0}`;
    expect(await bad()).toMatchObject({
      'claims-refused': {
        severity: 'warning',
        queue: 'mail',
        value: 1,
        message: `1 job of 'mail' is parked because the database refused its claim: job ${ids[0]?.id}`,
      },
    });
    await database.client`update queue_jobs set run_at = now() - interval '3 minutes' where id = ${ids[0]?.id ?? 0}`;
    await database.client`
      update queue_jobs set worker_id = (select id from queue_workers), claimed_at = now() where id = ${ids[1]?.id ?? 0}`;
    expect(await bad()).toMatchObject({
      'claims-refused': { severity: 'warning', queue: 'mail', kind: 'mail', value: 1 },
    });
    // One that is held as long has not overtaken it.
    await database.client`update queue_jobs set run_at = now() - interval '4 minutes' where id = ${ids[1]?.id ?? 0}`;
    expect((await bad())['claims-refused']).toBeUndefined();
  });

  test('name the transaction that holds an old snapshot', async () => {
    const [holder] = await database.connect();
    if (holder === undefined) throw new Error('there is no connection');
    await holder.db.transaction(
      async (tx) => {
        await tx.execute('select 1 from pg_class limit 1');
        const queue = createQueue();
        const { vitals } = await queue.vitals(database.db);
        const snapshot = vitals.find(({ code }) => code === 'oldest-snapshot');
        expect(snapshot?.severity).toBe('ok');
        expect(snapshot?.value).toBeGreaterThan(0);
      },
      { isolationLevel: 'repeatable read' },
    );
  });

  test('have an entry in the guide each', async () => {
    const { vitals } = await createQueue().vitals(database.db);
    const guide = await readFile('docs/metrics.md', 'utf8');
    const codes = new Set(vitals.map(({ code }) => code));
    expect([...codes].filter((code) => !guide.includes(`\`${code}\``))).toEqual([]);
  });
});
