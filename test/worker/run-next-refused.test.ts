import type { PGlite } from '@electric-sql/pglite';
import { sql } from 'drizzle-orm';
import { drizzle as drizzlePg } from 'drizzle-orm/node-postgres';
import { drizzle as drizzlePglite } from 'drizzle-orm/pglite';
import { drizzle as drizzlePostgresJs } from 'drizzle-orm/postgres-js';
import {
  createQueue,
  type Database,
  defineJob,
  fixedBackoff,
  handle,
  runNext,
  type Transaction,
  unvalidated,
} from 'drizzle-queue';
import pg from 'pg';
import postgres from 'postgres';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { rowsOf } from '../integration/behaviours/behaviour.ts';
import { openPglite } from '../support/pglite.ts';
import { useTestDatabase } from '../support/test-database.ts';

const queue = createQueue();
const adopt = defineJob('adopt', {
  payload: unvalidated<{ parent: number }>(),
  maxAttempts: 2,
  backoff: fixedBackoff(3_600_000),
});

/** The same on each driver: they do not fail alike when a COMMIT does. */
function refused(db: () => Database): void {
  beforeAll(async () => {
    await db().execute(sql`create table parents (id int primary key)`);
    await db().execute(sql`
      create table children (parent int references parents deferrable initially deferred)`);
    await db().execute(sql`insert into parents values (1)`);
  });
  beforeEach(async () => {
    await db().execute(sql`truncate children, queue_jobs, queue_results`);
  });
  const children = async () => rowsOf(await db().execute(sql`select parent from children`));
  const adopting = handle<typeof adopt, Transaction>(
    adopt,
    async ({ payload: { parent }, db: tx, complete }) => {
      await tx.execute(sql`insert into children values (${parent})`);
      if (parent > 2) await complete(tx);
    },
  );
  // Drizzle hands over its own transaction type, which has what the handler uses.
  const options = { queue, handlers: [adopting] } as unknown as Parameters<
    typeof runNext<Database, never>
  >[1];

  test.each([2, 3])(
    'a commit that a deferred constraint refuses is a failed attempt (parent %i)',
    async (parent) => {
      const { id } = await queue.enqueue(db(), adopt, { parent });
      const behind = await queue.enqueue(db(), adopt, { parent: 1 });
      const error = { code: '23503' };
      expect(await runNext(db(), options)).toMatchObject({ job: { id }, outcome: 'failed', error });
      // The one behind it is not held up.
      expect(await runNext(db(), options)).toMatchObject({ job: { id: behind.id }, outcome: 'completed' });
      expect(await runNext(db(), options)).toBeUndefined();
      expect(await children()).toEqual([{ parent: 1 }]);
      expect(await queue.find(db(), id)).toMatchObject({
        state: 'scheduled',
        attempt: 1,
        errors: [{ attempt: 1, message: expect.stringContaining('children_parent_fkey') }],
      });

      await queue.runNow(db(), id);
      expect(await runNext(db(), options)).toMatchObject({
        job: { id, attempt: 2 },
        outcome: 'failed',
        error,
      });
      expect(await queue.find(db(), id)).toMatchObject({ state: 'discarded', attempt: 2 });
    },
  );

  test('a result that a trigger refuses is a failed attempt', async () => {
    await db().execute(sql`
      create function refuse() returns trigger language plpgsql as $$
        begin raise exception 'not this one'; end $$`);
    await db().execute(sql`
      create trigger refuse before insert on queue_results for each row
      when (new.state = 'completed') execute function refuse()`);
    try {
      const { id } = await queue.enqueue(db(), adopt, { parent: 1 });
      expect(await runNext(db(), options)).toMatchObject({
        job: { id },
        outcome: 'failed',
        error: { code: 'P0001' },
      });
      expect(await children()).toEqual([]);
      const errors = [{ attempt: 1, message: 'not this one' }];
      expect(await queue.find(db(), id)).toMatchObject({ state: 'scheduled', attempt: 1, errors });
    } finally {
      await db().execute(sql`drop function refuse cascade`);
    }
  });

  test('a missing right says nothing about the job, which stays as it was', async () => {
    const { id } = await queue.enqueue(db(), adopt, { parent: 1 });
    await db().execute(sql`alter table queue_results rename to results_elsewhere`);
    try {
      await expect(runNext(db(), options)).rejects.toThrow('queue_results');
    } finally {
      await db().execute(sql`alter table results_elsewhere rename to queue_results`);
    }
    expect(await queue.find(db(), id)).toMatchObject({ state: 'due', attempt: 0, errors: [] });
  });
}

describe('runNext when the database refuses how a job ends', () => {
  describe('on postgres.js', () => {
    const database = useTestDatabase();
    let client: postgres.Sql;
    beforeAll(() => {
      client = postgres(database.url, { max: 2 });
    });
    afterAll(() => client.end({ timeout: 1 }));
    refused(() => drizzlePostgresJs({ client }));
  });

  describe('on node-postgres', () => {
    const database = useTestDatabase();
    let pool: pg.Pool;
    beforeAll(() => {
      pool = new pg.Pool({ connectionString: database.url, max: 2 });
      pool.on('error', () => {});
    });
    afterAll(() => pool.end());
    refused(() => drizzlePg({ client: pool }));
  });

  describe('on PGlite', () => {
    let client: PGlite;
    beforeAll(async () => {
      client = await openPglite();
    });
    afterAll(() => client.close());
    refused(() => drizzlePglite({ client }));
  });
});
