import { sql } from 'drizzle-orm';
import { integer, pgEnum, pgSchema, pgTable, text, timestamp } from 'drizzle-orm/pg-core';
import {
  createQueue,
  createWorker,
  defineJob,
  defineSchedule,
  drain,
  handle,
  limitsIn,
  schedulesIn,
  unvalidated,
} from 'drizzle-queue';
import { createQueueTables } from 'drizzle-queue/schema';
import * as control from 'drizzle-queue/schema/control';
import { createControlTables } from 'drizzle-queue/schema/control';
import { queueMetrics } from 'drizzle-queue/schema/metrics';
import { createTestDatabase, drainIn, inTransaction, spy } from 'drizzle-queue/testing';
import type postgres from 'postgres';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { tableStatements } from '../../src/entries/testing/table-statements.ts';
import { addControlTables } from '../support/control-tables.ts';
import { useTestDatabase } from '../support/test-database.ts';

const PATIENCE_MS = 240_000;

const queue = createQueue({
  schedules: schedulesIn(control.queueSchedules),
  limits: limitsIn(control, { slow: { concurrency: 1 } }),
  keys: control.queueKeys,
});
const work = defineJob('work', { payload: unvalidated<number>() });
const done: number[] = [];
const handlers = [handle(work, ({ payload }) => void done.push(payload))];

/** All that a catalog says of the tables, of their constraints and of their indexes. */
async function shapeOf(client: postgres.Sql, schema = 'public'): Promise<Record<string, unknown>[]> {
  return await client`
    select c.relname as table, a.attname as name, format_type(a.atttypid, a.atttypmod) as is, a.attnotnull::text as a,
      a.attidentity::text as b, pg_get_expr(d.adbin, d.adrelid) as c
    from pg_class as c join pg_attribute as a on a.attrelid = c.oid and a.attnum > 0
    left join pg_attrdef as d on d.adrelid = c.oid and d.adnum = a.attnum
    where c.relnamespace = ${schema}::regnamespace and c.relkind = 'r'
    union all
    select conrelid::regclass::text, conname, pg_get_constraintdef(oid), '', '', ''
    from pg_constraint where connamespace = ${schema}::regnamespace and contype in ('p', 'c', 'u')
    union all
    select tablename, indexname, indexdef, '', '', '' from pg_indexes where schemaname = ${schema}
    order by 1, 2, 3`;
}

describe('the tables made from their definitions', () => {
  const migrated = useTestDatabase();
  const made = useTestDatabase({ template: false });

  test('are those of the migrations', async () => {
    await addControlTables(migrated);
    const tables = [...Object.values(createQueueTables()), ...Object.values(createControlTables())];
    for (const statement of tableStatements(tables)) await made.client.unsafe(statement);
    const expected = await shapeOf(migrated.client);
    expect(expected.length).toBeGreaterThan(100);
    expect(await shapeOf(made.client)).toEqual(expected);
  });

  test('have own columns, in a schema of their own', async () => {
    const mood = pgEnum('mood', ['good', "it's bad"]);
    const plan = pgEnum('Plan', ['free', 'paid']);
    const color = pgSchema('Of the app').enum('Color', ['red', 'blue']);
    const tables = createQueueTables({
      schema: pgSchema('jobs'),
      prefix: 'my_',
      columns: {
        tenantId: text('tenant_id').notNull(),
        mood: mood('mood').notNull().default("it's bad"),
        plan: plan('plan').default('free'),
        color: color('color'),
        until: timestamp('until', { withTimezone: true }).defaultNow(),
        tries: integer('tries').default(3),
      },
    });
    for (const statement of tableStatements(Object.values(tables))) await made.client.unsafe(statement);
    const own = createQueue({ tables });
    const { id } = await own.enqueue(made.db, work, 1, { tenantId: 'a', plan: 'paid', color: 'blue' });
    expect(await own.find(made.db, id)).toMatchObject({ tenantId: 'a', mood: "it's bad", tries: 3 });
    expect(await own.list(made.db, { plan: 'paid', color: 'blue' })).toMatchObject({ jobs: [{ id }] });
  });
});

describe('createTestDatabase', { timeout: PATIENCE_MS }, () => {
  const open: (() => Promise<void>)[] = [];
  const create = async (options: Parameters<typeof createTestDatabase>[0]) => {
    const created = await createTestDatabase(options);
    open.push(created.close);
    return created.db;
  };
  afterEach(async () => {
    vi.useRealTimers();
    done.length = 0;
    for (const close of open.splice(0)) await close();
  }, PATIENCE_MS);

  test('has what a queue needs, and each database is its own', async () => {
    const [one, other] = [await create({ queue }), await create({ queue })];
    await queue.enqueue(one, work, 1);
    await queue.schedules.set(one, defineSchedule('all', { job: work, payload: 2, every: 1_000 }));
    expect((await queue.check(one)).filter(({ severity }) => severity === 'error')).toEqual([]);
    expect((await queue.list(other)).jobs).toEqual([]);
    expect(await drain(one, { queue, handlers, deadlineMs: 20_000 })).toMatchObject({ failed: 0 });
    expect(done).toContain(1);
  });

  test('has the table of metrics, so a worker starts', async () => {
    const measured = createQueue({ metrics: queueMetrics });
    const db = await create({ queue: measured });
    const worker = createWorker(db, { queue: measured, handlers, log: false });
    const seen = spy(worker);
    await worker.start();
    await measured.enqueue(db, work, 7);
    await seen.waitForJob({ job: work, timeoutMs: 60_000 }, 'completed');
    await worker.stop();
    expect((await measured.check(db)).filter(({ severity }) => severity === 'error')).toEqual([]);
  });

  test('a handler that uses the outer database is told so, and does not wait', async () => {
    const db = await create({ queue });
    const outer = handle(work, async () => void (await db.execute(sql`select 1`)));
    await inTransaction(db, async (tx) => {
      await queue.enqueue(tx, work, 1);
      const began = performance.now();
      const drained = drainIn(tx, { queue, handlers: [outer] });
      await expect(drained).rejects.toMatchObject({
        cause: expect.objectContaining({
          message: expect.stringMatching(/PGlite has one connection.*ctx\.db$/),
        }),
      });
      expect(performance.now() - began).toBeLessThan(10_000);
    });
    // A nested transaction, as well; and what only waits for its turn is not refused.
    const nested = db.transaction(() => db.transaction(async () => undefined));
    await expect(nested).rejects.toThrow('PGlite has one connection');
    let late: Promise<unknown> = Promise.resolve();
    await db.transaction(async (tx) => {
      late = db.execute(sql`select 2 as two`);
      await tx.execute(sql`select pg_sleep(0.7)`);
    });
    expect(await late).toMatchObject({ rows: [{ two: 2 }] });
    const [one, two] = [1, 2].map((n) =>
      db.transaction((tx) => tx.execute(sql`select pg_sleep(0.6), ${n} as n`)),
    );
    await Promise.all([one, two]);
  });

  test('copies what setUp has made, which runs once', async () => {
    const notes = pgTable('notes', { text: text('text').notNull() });
    let times = 0;
    const setUp = async (db: Awaited<ReturnType<typeof create>>) => {
      times++;
      await db.execute(sql`create table notes (text text not null)`);
      await db.insert(notes).values({ text: 'seed' });
    };
    const one = await create({ queue, setUp });
    await one.insert(notes).values({ text: 'more' });
    const other = await create({ queue, setUp });
    expect(await other.select().from(notes)).toEqual([{ text: 'seed' }]);
    expect(times).toBe(1);
    const bare = await create({ tables: false, setUp });
    await expect(queue.list(bare)).rejects.toThrow("The queue's tables are not up to date");
  });

  test('does not keep a setUp that has failed', async () => {
    let times = 0;
    const setUp = () => {
      if (++times === 1) throw new Error('not yet');
    };
    await expect(createTestDatabase({ queue, setUp })).rejects.toThrow('not yet');
    await queue.enqueue(await create({ queue, setUp }), work, 1);
  });

  test('keeps time by the Date of the process', async () => {
    const db = await create({ queue });
    await inTransaction(db, async (tx) => {
      await queue.enqueue(tx, work, 1, { delayMs: 3_600_000 });
      vi.useFakeTimers({ toFake: ['Date'] });
      vi.setSystemTime(Date.now() + 3_601_000);
      await drainIn(tx, { queue, handlers });
      expect(done).toEqual([1]);
    });
  });

  test.each(['stands still', 'advances now and then'])(
    'a drain moves back what has ended where the Date of the process %s',
    async (how) => {
      const db = await create({ queue });
      await inTransaction(db, async (tx) => {
        for (const hour of [0, 1, 2, 3]) await queue.enqueue(tx, work, hour, { delayMs: hour * 3_600_000 });
        vi.useFakeTimers({ toFake: ['Date'] });
        const moving = handle(work, ({ payload }) => {
          if (how !== 'stands still' && payload % 2 === 1) vi.setSystemTime(Date.now() + 1_000);
        });
        await drainIn(tx, { queue, handlers: [moving], until: { hours: 6 } });
        const { jobs } = await queue.list(tx, { state: 'completed' });
        const ago = (date: Date | null | undefined) => Math.round((Date.now() - Number(date)) / 3_600_000);
        const ofEnds = jobs.map((job) => [job.payload, ago('finishedAt' in job ? job.finishedAt : null)]);
        expect(ofEnds.toReversed()).toEqual([0, 1, 2, 3].map((hour) => [hour, 6 - hour]));
        for (const { createdAt } of jobs) expect(ago(createdAt)).toBe(6);
      });
    },
  );

  test('refuses wrong options', async () => {
    // @ts-expect-error no such option
    await expect(createTestDatabase({ migrations: 'drizzle' })).rejects.toThrow(
      "unknown option 'migrations'",
    );
    // @ts-expect-error no queue
    await expect(createTestDatabase({ queue: 'mail' })).rejects.toThrow('what createQueue() returns');
    // @ts-expect-error no function
    await expect(createTestDatabase({ setUp: 'drizzle' })).rejects.toThrow('setUp must be a function');
  });

  test('says what to install where PGlite is missing', async () => {
    vi.doMock('@electric-sql/pglite', () => {
      throw new Error('Cannot find package');
    });
    await expect(createTestDatabase()).rejects.toThrow(
      'createTestDatabase needs PGlite: npm install --save-dev @electric-sql/pglite',
    );
    vi.doUnmock('@electric-sql/pglite');
  });
});
