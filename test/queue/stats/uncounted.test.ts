import type { SQL } from 'drizzle-orm';
import { PgDialect } from 'drizzle-orm/pg-core';
import { createQueue } from 'drizzle-queue';
import { createDashboard } from 'drizzle-queue/dashboard';
import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { page, textOf } from '../../dashboard/support/visits.ts';
import { addJobs, clearTables } from '../../queries/support/jobs.ts';
import { emptyTables } from '../../support/empty-tables.ts';
import { useTestDatabase } from '../../support/test-database.ts';

const database = useTestDatabase();
const dialect = new PgDialect();

/** A database that cancels the statements which contain a text, as it does after their time. */
function cancelling(texts: readonly string[]): typeof database.db {
  const db: typeof database.db = Object.create(database.db);
  db.transaction = (run, config) =>
    database.db.transaction((tx) => {
      const timed: typeof tx = Object.create(tx);
      const execute = tx.execute.bind(tx);
      timed.execute = ((query: SQL) => {
        const { sql } = dialect.sqlToQuery(query);
        if (texts.some((text) => sql.includes(text)))
          throw Object.assign(new Error('canceling statement due to statement timeout'), { code: '57014' });
        return execute(query);
      }) as typeof tx.execute;
      return run(timed);
    }, config);
  return db;
}

const COUNTS = ['group by j.queue, j.kind', 'group by j.kind'];
const TOO_MANY = expect.stringMatching(/^Too many/);
const HEADS = 'with recursive band';

/** What the tile of due jobs says. */
async function dueTile(db: typeof database.db): Promise<string> {
  const dashboard = createDashboard({ db, queue: createQueue(), authorize: () => 'read' });
  return textOf(/<span class="tile-name">Due<\/span>.*?<\/a>/s.exec(await page(dashboard, '/'))?.[0] ?? '');
}

describe('where the jobs cannot be counted in time', () => {
  beforeEach(async () => {
    await clearTables(database.client);
    await emptyTables(database.client, 'queue_workers');
    await database.client`
      insert into queue_workers (name, queues, kinds) values ('w', '["mail", "empty", "grouped"]', '["k"]')`;
    await addJobs(database.client, [
      { queue: 'mail', dueInMs: -3_600_000 },
      { queue: 'mail', kind: 'unserved', dueInMs: -7_200_000, priority: 3 },
      { queue: 'grouped', dueInMs: -10_800_000 },
      { queue: 'empty', dueInMs: 60_000 },
    ]);
    await database.client`update queue_jobs set group_key = 'acme' where queue = 'grouped'`;
    await database.client`analyze queue_jobs`;
  });

  test('the oldest due job of each queue is found all the same, and what is wrong with it', async () => {
    const db = cancelling(COUNTS);
    const { queues } = await createQueue().stats(db);
    const hours = queues.map(({ queue, precision, due, oldestDueMs }) => [
      queue,
      precision,
      due > 0,
      oldestDueMs === undefined ? undefined : Math.round(oldestDueMs / 3_600_000),
    ]);
    expect(hours).toEqual([
      ['empty', 'estimated', false, undefined],
      ['grouped', 'estimated', true, 3],
      ['mail', 'estimated', true, 2],
    ]);
    const { vitals } = await createQueue().vitals(db);
    const bad = vitals.filter(({ severity }) => severity === 'error');
    expect(bad.map(({ code, queue, kind }) => [code, queue, kind])).toEqual([
      ['oldest-due', 'mail', undefined],
      ['oldest-due', 'grouped', undefined],
      ['kind-unserved', 'mail', 'unserved'],
    ]);
    expect(bad[0]?.message).toMatch(/^The oldest of about \d+ due jobs in 'mail' has waited 2 hours$/);
    expect(await dueTile(cancelling(COUNTS))).toMatch(/Due ≈ \d+ oldest for 3 h/);
  });

  test('jobs that have killed workers may be among those that were not counted', async () => {
    await database.client`update queue_jobs set attempt = 3`;
    const killed = async (db: typeof database.db) => {
      const { vitals } = await createQueue().vitals(db);
      return vitals.find(({ code }) => code === 'workers-killed');
    };
    expect((await killed(database.db))?.severity).toBe('error');
    for (const uncounted of [COUNTS, COUNTS.slice(0, 1)]) {
      expect(await killed(cancelling(uncounted))).toMatchObject({ severity: 'unknown', message: TOO_MANY });
    }
    const locked = await killed(cancelling([...COUNTS, HEADS]));
    expect(locked).toMatchObject({ severity: 'unknown', message: expect.stringMatching(/^Timed out/) });
  });

  test('a kind behind the first ten thousand jobs may be unserved', async () => {
    await database.client`delete from queue_jobs where kind = 'unserved'`;
    await database.client`
      insert into queue_jobs (queue, kind, payload, max_attempts, run_at)
      select 'mail', case when n = 10002 then 'behind' else 'k' end, '1', 1,
        now() - interval '3 hours' + n * interval '1 ms'
      from generate_series(1, 10002) as n`;
    const unserved = async (db: typeof database.db) => {
      const { vitals } = await createQueue().vitals(db);
      return vitals.find(({ code }) => code === 'kind-unserved');
    };
    expect((await unserved(database.db))?.severity).toBe('error');
    const capped = await unserved(cancelling(COUNTS.slice(0, 1)));
    expect(capped).toMatchObject({ severity: 'unknown', message: TOO_MANY });
    await addJobs(database.client, [{ queue: 'mail', kind: 'ahead', dueInMs: -7_200_000, priority: 9 }]);
    expect((await unserved(cancelling(COUNTS.slice(0, 1))))?.severity).toBe('error');
  });

  test('what is not known is never shown as none', async () => {
    const db = cancelling([...COUNTS, HEADS]);
    const { queues } = await createQueue().stats(db);
    expect(queues.every(({ due, oldestDueMs }) => due > 0 && oldestDueMs === undefined)).toBe(true);
    const { vitals } = await createQueue().vitals(db);
    const late = vitals.filter(({ code }) => code === 'oldest-due' || code === 'kind-unserved');
    expect(late.map(({ severity }) => severity)).toEqual(['unknown', 'unknown']);
    expect(late.every(({ message }) => message.startsWith('Timed out'))).toBe(true);
    expect(await dueTile(cancelling([...COUNTS, HEADS]))).toMatch(/Due ≈ \d+ age unknown/);
  });
});

describe('of more queues than are looked at', () => {
  const vitalsOf = async (db: typeof database.db) => {
    const { vitals } = await createQueue().vitals(db);
    return Object.fromEntries(vitals.map(({ code, severity }) => [code, severity]));
  };

  beforeEach(async () => {
    await clearTables(database.client);
    await emptyTables(database.client, 'queue_workers', 'queue_pauses');
  });

  test('each that is late is told of, also where only some are estimated', async () => {
    await addJobs(
      database.client,
      Array.from({ length: 101 }, (_, n) => ({ queue: `q${1_000 + n}`, dueInMs: -3_600_000 })),
    );
    await database.client`analyze queue_jobs`;
    const db = cancelling(COUNTS);
    const { vitals } = await createQueue().vitals(db);
    expect(vitals.filter(({ code }) => code === 'oldest-due')).toHaveLength(101);
    const { queues } = await createQueue().stats(db);
    expect(queues).toHaveLength(101);
    expect(queues[100]).toMatchObject({ queue: 'q1100', precision: 'unknown' });
    expect(queues[100]?.oldestDueMs).toBeGreaterThanOrEqual(3_600_000);
  });

  test('what was not estimated is known to be well where none of its jobs is due', async () => {
    await addJobs(
      database.client,
      Array.from({ length: 101 }, (_, n) => ({ queue: `q${1_000 + n}`, dueInMs: 3_600_000 })),
    );
    expect(await vitalsOf(cancelling(COUNTS))).toMatchObject({ 'oldest-due': 'ok' });
  });

  test('a group behind the first thousand may be late', async () => {
    await database.client`
      insert into queue_jobs (queue, kind, payload, max_attempts, run_at, group_key)
      select 'mail', 'k', '1', 1, now() + case when n = 1001 then -1 else 1 end * interval '1 hour',
        'g' || (1000 + n)
      from generate_series(1, 1001) as n`;
    await database.client`analyze queue_jobs`;
    const db = cancelling(COUNTS);
    const { vitals } = await createQueue().vitals(db);
    const oldest = vitals.filter(({ code }) => code === 'oldest-due');
    expect(oldest).toMatchObject([{ severity: 'unknown', message: TOO_MANY }]);
    const { queues } = await createQueue().stats(db);
    expect(queues[0]?.due === 0 && queues[0].precision === 'exact').toBe(false);
  });

  test('a queue behind the first thousand may be late, or have jobs that no claim can take', async () => {
    await database.client`
      insert into queue_workers (name, queues, kinds) values ('w', '["q2001", "q3000"]', '["k"]')`;
    await database.client`
      insert into queue_jobs (queue, kind, payload, max_attempts, run_at)
      select 'q' || (1000 + n), 'k', '1', 1, now() + case when n = 1001 then -1 else 1 end * interval '1 hour'
      from generate_series(1, 1001) as n`;
    // The count of everything is cancelled, that of the first jobs of each queue is not.
    const db = cancelling(COUNTS.slice(0, 1));
    expect(await vitalsOf(db)).toMatchObject({ 'oldest-due': 'unknown', 'claims-refused': 'unknown' });
    const { queues } = await createQueue().stats(db);
    const served = queues.filter(({ workers }) => workers > 0);
    expect(served.map(({ queue, due, precision }) => [queue, due > 0 || precision !== 'exact'])).toEqual([
      ['q2001', true],
      ['q3000', true],
    ]);
    const findings = await createQueue().check(database.db);
    expect(findings.map(({ code }) => code)).toContain('queues-unchecked');
  });
});

const WORKERS = '"queue_workers" as w group by';
const PAUSES = '"queue_pauses" as p order by';
const RESULTS = 'from "queue_results" as r';

describe('while the tables of workers, pauses and results are locked', () => {
  const queue = createQueue();
  const vitalsOf = async (db: typeof database.db) => {
    const { vitals } = await queue.vitals(db);
    return Object.fromEntries(vitals.map(({ code, severity }) => [code, severity]));
  };

  beforeEach(async () => {
    await clearTables(database.client);
    await emptyTables(database.client, 'queue_workers', 'queue_pauses');
    await database.client`
      insert into queue_workers (name, queues, kinds) values ('w', '["mail", "empty"]', '["k"]')`;
    await queue.pause(database.db, 'slow');
    await addJobs(database.client, [
      { queue: 'mail', dueInMs: -3_600_000 },
      { queue: 'slow', dueInMs: -3_600_000 },
    ]);
  });

  test('stats tell what they have last read', async () => {
    const texts: string[] = [];
    const db = cancelling(texts);
    const real = performance.now.bind(performance);
    let skippedMs = 0;
    const clock = vi.spyOn(performance, 'now').mockImplementation(() => real() + skippedMs);
    onTestFinished(() => clock.mockRestore());
    const before = await queue.stats(db);
    expect(before).toMatchObject({ workers: 1, queues: [{ workers: 1 }, { workers: 1 }, { workers: 0 }] });
    texts.push(WORKERS, PAUSES, RESULTS);
    await addJobs(database.client, [{ queue: 'mail', dueInMs: -1_000 }]);
    skippedMs += 60_000;
    const { workers, queues } = await queue.stats(db);
    expect(workers).toBe(1);
    expect(queues).toMatchObject([
      { queue: 'empty', workers: 1 },
      { queue: 'mail', due: 2, workers: 1 },
      { queue: 'slow', pausedAt: expect.any(Date) },
    ]);
  });

  test('vitals do not take what they could not read for none', async () => {
    expect(await vitalsOf(cancelling([WORKERS]))).toMatchObject({
      'oldest-due': 'error',
      'kind-unserved': 'unknown',
      'pause-forgotten': 'ok',
      'workers-killed': 'ok',
    });
    expect(await vitalsOf(cancelling([PAUSES]))).toMatchObject({
      'oldest-due': 'unknown',
      'kind-unserved': 'unknown',
      'pause-forgotten': 'unknown',
    });
    expect(await vitalsOf(cancelling([RESULTS]))).toMatchObject({
      'oldest-due': 'error',
      'kind-unserved': 'ok',
      'workers-killed': 'unknown',
    });
    const all = [...COUNTS, HEADS, WORKERS, PAUSES, RESULTS, 'explain'];
    expect(await vitalsOf(cancelling(all))).toMatchObject({
      'oldest-due': 'unknown',
      'kind-unserved': 'unknown',
      'workers-killed': 'unknown',
      'pause-forgotten': 'unknown',
    });
  });

  test('a queue that is well without workers and pauses is well with them', async () => {
    await database.client`delete from queue_jobs`;
    await addJobs(database.client, [{ queue: 'mail', dueInMs: 60_000 }]);
    expect(await vitalsOf(cancelling([WORKERS, PAUSES]))).toMatchObject({
      'oldest-due': 'ok',
      'kind-unserved': 'ok',
      'claims-refused': 'ok',
    });
  });
});
