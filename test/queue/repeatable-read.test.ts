import { createQueue, defineJob, type Transaction } from 'drizzle-queue';
import { beforeEach, describe, expect, test } from 'vitest';
import { clearTables } from '../queries/support/jobs.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { endJob } from './support/lives.ts';

const database = useTestDatabase();
const queue = createQueue();
const tick = defineJob('tick', { queue: 'q' });

beforeEach(() => clearTables(database.client));

describe('what another transaction has changed since this one began is a serialization failure', () => {
  const live = 'update queue_jobs set priority = 7';
  test.each<[string, string, (tx: Transaction, id: number) => Promise<unknown>]>([
    ['cancel', live, (tx, id) => queue.cancel(tx, id)],
    ['cancelMany', live, (tx) => queue.cancelMany(tx, { kind: 'tick' })],
    ['runNow', live, (tx, id) => queue.runNow(tx, id)],
    ['runNowMany', live, (tx, id) => queue.runNowMany(tx, [id])],
    ['redrive', 'delete from queue_results', (tx, id) => queue.redrive(tx, id)],
  ])('of %s', async (name, change, call) => {
    const { id } = await queue.enqueue(
      database.db,
      tick,
      undefined,
      name === 'redrive' ? {} : { delayMs: 60_000 },
    );
    if (name === 'redrive') await endJob(database.db, { kind: 'tick', state: 'discarded' });
    const both = database.db.transaction(
      async (tx) => {
        await queue.find(tx, id);
        await database.client.unsafe(change);
        await call(tx, id);
      },
      { isolationLevel: 'repeatable read' },
    );
    await expect(both).rejects.toMatchObject({ cause: { code: '40001' } });
  });
});
