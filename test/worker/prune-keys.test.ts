import { createQueue, createWorker, defineJob, handle, MissingMigrationError } from 'drizzle-queue';
import { queueKeys } from 'drizzle-queue/schema/control';
import { describe, expect, test } from 'vitest';
import { addControlTables } from '../support/control-tables.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';

const database = useTestDatabase({ max: 10 });
const work = defineJob('work');
const handlers = [handle(work, () => {})];
const queue = createQueue({ keys: queueKeys });

describe('a worker whose queue has a table of keys', () => {
  test('says when it starts that the table is not there', async () => {
    const started = createWorker(database.db, { queue, handlers }).start();
    await expect(started).rejects.toThrow(MissingMigrationError);
    await expect(started).rejects.toThrow("`export * from 'drizzle-queue/schema/control'`");
  });

  test('prunes the keys whose time is over, in batches, and no others', { timeout: 240_000 }, async () => {
    await addControlTables(database);
    await database.client`
      insert into queue_keys (queue, kind, key, until)
      select 'q', 'k', n::text, now() + (n - 2500) * interval '1 hour' from generate_series(1, 2501) as n`;
    const worker = createWorker(database.db, { queue, handlers });
    await worker.start();
    const left = async () =>
      (await database.client<{ key: string }[]>`select key from queue_keys`).map(({ key }) => key);
    await until(async () => (await left()).length === 1);
    expect(await left()).toEqual(['2501']);
    await worker.stop();
  });

  test('asks for its rights when it starts', async () => {
    const { client } = database;
    await client.unsafe(`drop role if exists keys_worker; create role keys_worker;
      grant select, insert, update, delete on all tables in schema public to keys_worker;
      revoke delete on queue_keys from keys_worker`);
    const [connection] = await database.connect();
    if (connection === undefined) throw new Error('no connection');
    await connection.client`set role keys_worker`;
    const started = createWorker(connection.db, { queue, handlers, listen: false }).start();
    await expect(started).rejects.toThrow(/grant delete on "?queue_keys"? to keys_worker/);
    await client.unsafe('drop owned by keys_worker; drop role keys_worker');
  });
});
