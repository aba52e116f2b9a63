import { queueMetrics } from 'drizzle-queue/schema/metrics';
import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import { countSomeJobs } from '../../src/core/queries/operate/count-some-jobs.ts';
import { estimateJobs } from '../../src/core/queries/operate/estimate-jobs.ts';
import { findHeads } from '../../src/core/queries/operate/find-heads.ts';
import { foldMetrics } from '../../src/features/metrics/queries/fold-metrics.ts';
import { pruneMetrics } from '../../src/features/metrics/queries/prune-metrics.ts';
import { type MetricsRow, reportMetrics } from '../../src/features/metrics/queries/report-metrics.ts';
import { sumMetrics } from '../../src/features/metrics/queries/sum-metrics.ts';
import { ratesIn } from '../../src/features/metrics/rates.ts';
import { addMetricsTable } from '../support/control-tables.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { tables } from './support/jobs.ts';

const database = useTestDatabase();
const known = { tables, metrics: queueMetrics };

beforeAll(async () => {
  await addMetricsTable(database);
});

afterEach(async () => {
  await database.client`truncate queue_metrics, queue_jobs`;
});

function row(report: number, given: Partial<MetricsRow> = {}): MetricsRow {
  return {
    ...{ report, queue: 'mail', kind: 'send', completed: 2, retried: 1, discarded: 0, cancelled: 0 },
    ...{ snoozed: 0, interrupted: 0, lost: 0, waitMs: 30, runMs: 60, wait: { 3: 2, 5: 1 }, run: { 8: 3 } },
    ...given,
  };
}

/** Reports as if they had been written some hours ago. */
async function hoursAgo(hours: number, workerId: number, rows: readonly MetricsRow[]): Promise<void> {
  await reportMetrics(database.db, known, workerId, rows);
  await database.client`update queue_metrics set at = at - ${hours} * interval '1 hour'
    where worker_id = ${workerId} and report = any(${rows.map(({ report }) => report)}) and minutes = 1`;
}

describe('a report', () => {
  test('that is sent twice counts once, also at the same time', async () => {
    const connections = await database.connect(2);
    await Promise.all(connections.map(({ db }) => reportMetrics(db, known, 1, [row(7), row(8)])));
    await reportMetrics(database.db, known, 1, [row(7), row(8), row(9)]);
    await database.client`update queue_metrics set at = (select max(at) from queue_metrics)`;
    const [sum] = await sumMetrics(database.db, known, 15, false);
    expect(sum).toMatchObject({ completed: 6, retried: 3, waitMs: 90, wait: { 3: 6, 5: 3 }, run: { 8: 9 } });
  });

  test('of two workers adds up by minute, queue and kind', async () => {
    await reportMetrics(database.db, known, 1, [row(1), row(1, { kind: 'other' })]);
    await reportMetrics(database.db, known, 2, [row(1, { wait: { 4: 1 } })]);
    await database.client`update queue_metrics set at = (select max(at) from queue_metrics)`;
    expect(await sumMetrics(database.db, known, 15, false)).toMatchObject([
      { queue: 'mail', kind: 'other', completed: 2 },
      { queue: 'mail', kind: 'send', completed: 4, wait: { 3: 2, 4: 1, 5: 1 } },
    ]);
  });
});

test('rates by hour are of the whole hours that they count, whether these were added up or not', async () => {
  const MINUTES = 130;
  // A report in each minute of the last five hours, and 3 jobs of each.
  await database.client`
    insert into queue_metrics (worker_id, report, queue, kind, at, minutes, wait_ms, run_ms, completed, retried,
      discarded, cancelled, snoozed, interrupted, lost, wait, run)
    select 1, n, 'mail', 'send', now() - n * interval '1 minute', 1, 0, 0, 3, 0, 0, 0, 0, 0, 0, '{}', '{}'
    from generate_series(0, 300) as n`;
  const rates = async () => ratesIn(await sumMetrics(database.db, known, MINUTES, true), MINUTES);
  for (const isFolded of [false, true]) {
    while (isFolded && (await foldMetrics(database.db, known)));
    const { minutes, kinds, timeline } = await rates();
    expect(minutes).toBeGreaterThanOrEqual(MINUTES);
    expect(minutes).toBeLessThanOrEqual(MINUTES + 60);
    expect(Math.abs((kinds[0]?.perMinute ?? 0) - 3)).toBeLessThan(0.1);
    expect(timeline[0]?.completed).toBe(180);
  }
});

test('without a report rates are of the minutes that were asked for', async () => {
  expect(ratesIn(await sumMetrics(database.db, known, 130, true), 130)).toMatchObject({ minutes: 130 });
});

test('the sum of the last minutes leaves out what the clock wrote when it was ahead', async () => {
  await reportMetrics(database.db, known, 1, [row(1)]);
  await hoursAgo(-1, 2, [row(1)]);
  const steps = await sumMetrics(database.db, known, 15, false);
  expect(steps.map(({ completed }) => completed)).toEqual([2]);
});

describe('the fold', () => {
  test('of one hour by several workers at once adds it up once', async () => {
    await hoursAgo(3, 1, [row(1), row(2), row(2, { kind: 'other' })]);
    await hoursAgo(3, 2, [row(1)]);
    const connections = await database.connect(4);
    await Promise.all(connections.map(({ db }) => foldMetrics(db, known)));
    expect(await foldMetrics(database.db, known)).toBe(false);
    const hours = await database.client`
      select kind, completed, wait, run, minutes from queue_metrics where worker_id = 0 order by kind`;
    expect(hours).toMatchObject([
      { kind: 'other', completed: 2, minutes: 60 },
      { kind: 'send', completed: 6, wait: { 3: 6, 5: 3 }, run: { 8: 9 } },
    ]);
  });

  test('goes from hour to hour, and leaves the one that is not over', async () => {
    await hoursAgo(5, 1, [row(1)]);
    await hoursAgo(3, 1, [row(2)]);
    await reportMetrics(database.db, known, 1, [row(3)]);
    let folds = 0;
    while (await foldMetrics(database.db, known)) folds++;
    expect(folds).toBe(2);
    // Each is read once: from the hours, and from the reports of the hour that is not over.
    const steps = await sumMetrics(database.db, known, 600, true);
    expect(steps.map(({ completed }) => completed)).toEqual([2, 2, 2]);
  });

  test('goes on after an hour that was added up while the server’s clock was ahead', async () => {
    await hoursAgo(30, 1, [row(1)]);
    while (await foldMetrics(database.db, known));
    // The clock was ahead by 48 hours then, and is right again.
    await database.client`
      update queue_metrics set at = at + interval '48 hours', report = report + 48 * 3600 where worker_id = 0`;
    await hoursAgo(3, 1, [row(2)]);
    const sums = () => sumMetrics(database.db, known, 300, true);
    const now = () => sums().then((steps) => steps.filter(({ at }) => at.getTime() <= Date.now()));
    expect(await now()).toMatchObject([{ completed: 2 }]);
    // The reports of both hours.
    expect(await foldMetrics(database.db, known)).toBe(true);
    expect(await foldMetrics(database.db, known)).toBe(true);
    expect(await foldMetrics(database.db, known)).toBe(false);
    expect(await now()).toMatchObject([{ completed: 2 }]);
    expect(
      await database.client`
      select from queue_metrics where worker_id = 0 and at < now()`,
    ).toHaveLength(2);
  });

  test('counts once what was added up while the clock was ahead, and anew when that hour has come', async () => {
    const pass = (hours: number) => database.client`
      update queue_metrics set at = at - ${hours} * interval '1 hour',
        report = report - case worker_id when 0 then ${hours} * 3600 else 0 end`;
    const completed = async () => {
      const steps = await sumMetrics(database.db, known, 600, true);
      return steps.reduce((sum, step) => sum + step.completed, 0);
    };
    await hoursAgo(2, 1, [row(1)]);
    expect(await foldMetrics(database.db, known)).toBe(true);
    // As if the hour was added up by a clock that was four hours ahead.
    await pass(-4);
    expect(await completed()).toBe(2);
    expect(await foldMetrics(database.db, known)).toBe(false);
    expect(await completed()).toBe(2);
    // The hour comes and goes, and has other reports.
    await pass(4);
    await hoursAgo(2, 2, [row(2)]);
    expect(await completed()).toBe(4);
    while (await foldMetrics(database.db, known));
    expect(await completed()).toBe(4);
    const [{ sum } = {}] = await database.client`
      select sum(completed)::int4 from queue_metrics where worker_id = 0`;
    expect(sum).toBe(4);
  });

  test('is the same whatever the time zone of the session is', async () => {
    await hoursAgo(3, 1, [row(1), row(2)]);
    const connections = await database.connect(2);
    const zones = ['Asia/Kathmandu', 'UTC'];
    for (const [index, { client, db }] of connections.entries()) {
      await client`select set_config('timezone', ${zones[index] ?? ''}, false)`;
      await foldMetrics(db, known);
    }
    expect(await database.client`select completed from queue_metrics where worker_id = 0`).toEqual([
      { completed: 4 },
    ]);
  });
});

test('reports are pruned after two days, once they are in an hour, and hours after 30 days', async () => {
  await hoursAgo(60, 1, [row(1)]);
  await hoursAgo(50, 1, [row(2)]);
  await hoursAgo(3, 1, [row(3)]);
  expect(await pruneMetrics(database.db, known, 100)).toMatchObject({ pruned: 0 });
  while (await foldMetrics(database.db, known));
  const connections = await database.connect(3);
  const pruned = await Promise.all(connections.map(({ db }) => pruneMetrics(db, known, 100)));
  expect(pruned.reduce((sum, one) => sum + one.pruned, 0)).toBe(2);
  expect(await database.client`select from queue_metrics where worker_id = 0`).toHaveLength(3);
  await database.client`update queue_metrics set at = at - interval '30 days' where worker_id = 0`;
  expect(await pruneMetrics(database.db, known, 100)).toMatchObject({ pruned: 3 });
  expect(await database.client`select report::int4 from queue_metrics`).toEqual([{ report: 3 }]);
});

describe('counts by the indexes', () => {
  test('stop at a bound, and find the oldest due job of each priority', async () => {
    await database.client`
      insert into queue_jobs (queue, kind, payload, max_attempts, priority, run_at, group_key)
      select 'long', 'a', '1'::jsonb, 1, 5, now() - interval '1 minute', null::text from generate_series(1, 12000)
      union all select 'short', 'b', '1', 1, 2, now() - interval '5 minutes', null
      union all select 'short', 'c', '1', 1, 9, now() + interval '5 minutes', null
      union all select 'grouped', 'd', '1', 1, 5, now(), 'tenant'`;
    const counted = await countSomeJobs(database.db, tables, ['long', 'short', 'grouped', 'none']);
    expect(counted.sort((a, b) => (a.kind < b.kind ? -1 : 1))).toMatchObject([
      { queue: 'long', kind: 'a', due: 10_001 },
      { queue: 'short', kind: 'b', due: 1, scheduled: 0 },
      { queue: 'short', kind: 'c', due: 0, scheduled: 1, oldestDueMs: undefined },
      { queue: 'grouped', kind: 'd', due: 1, grouped: 1 },
    ]);
    const { heads, areAll } = await findHeads(database.db, tables, 100);
    expect(areAll).toBe(true);
    expect(await findHeads(database.db, tables, 3)).toMatchObject({ areAll: false });
    expect(await findHeads(database.db, tables, 4)).toMatchObject({ areAll: true });
    expect(heads.map(({ queue, kind }) => [queue, kind])).toEqual([
      ['short', 'b'],
      ['long', 'a'],
      ['short', undefined],
      ['grouped', 'd'],
      ['grouped', undefined],
    ]);
    expect(heads[0]?.dueMs).toBeGreaterThanOrEqual(300_000);
    await database.client`analyze queue_jobs`;
    const { live, due, running } = await estimateJobs(database.db, tables, 'long');
    expect(live).toBeGreaterThan(6_000);
    expect(due).toBeGreaterThan(6_000);
    expect(running).toBeLessThan(1_000);
  });
});
