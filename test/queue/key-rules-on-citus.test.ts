import { createQueue, defineJob, QueueError, unvalidated } from 'drizzle-queue';
import * as control from 'drizzle-queue/schema/control';
import { beforeAll, describe, expect, test } from 'vitest';
import { citusCluster } from '../support/citus.ts';
import { addControlTables } from '../support/control-tables.ts';
import { useTestDatabase } from '../support/test-database.ts';

const database = useTestDatabase();
const queue = createQueue({ keys: control.queueKeys });
const sync = defineJob('sync', { payload: unvalidated<number>(), queue: 'a' });
const REFUSAL = 'subqueries are not supported within INSERT queries';

beforeAll(async () => {
  await addControlTables(database);
  // A cluster refuses them by itself.
  if (citusCluster() !== undefined) return;
  await database.client.unsafe(`
    create function refuse() returns trigger language plpgsql as
      $$ begin raise exception '${REFUSAL}' using errcode = 'feature_not_supported'; end $$;
    create trigger refuse before insert on queue_keys execute function refuse()`);
});

async function refusal(enqueue: Promise<unknown>): Promise<QueueError> {
  const error = await enqueue.then(
    () => undefined,
    (error: unknown) => error,
  );
  if (!(error instanceof QueueError)) throw new Error('no QueueError', { cause: error });
  return error;
}

describe('what Citus refuses of a rule for keys is refused in a sentence', () => {
  test('a throttle that is trailing', async () => {
    const throttle = { key: 'k', perMs: 1_000, trailing: true } as const;
    const { message, cause } = await refusal(queue.enqueue(database.db, sync, 1, { throttle }));
    expect(message).toContain("enqueue('sync'): Citus cannot throttle with trailing: true");
    expect(message).toContain('Leave out trailing, or use debounce');
    expect(message).toContain('supported');
    expect(cause).toBeInstanceOf(Error);
  });

  test.each([
    ['throttle', { throttle: { key: 'k', perMs: 1_000 } }],
    ['unique: { forMs }', { uniqueKey: 'k', unique: { forMs: 1_000 } }],
  ] as const)('%s over several queues', async (option, rule) => {
    const entries = ['a', 'b', 'b'].map((queue, payload) => ({ payload, queue, ...rule }));
    const { message } = await refusal(queue.enqueueMany(database.db, sync, entries));
    expect(message).toContain(
      `enqueueMany('sync'): on Citus, entries with ${option} must all be of one queue, but these are of 2 queues`,
    );
    expect(message).toContain('Make one call for each queue, in one transaction');
  });

  test('and nothing is left of them', async () => {
    expect(await database.client`select from queue_jobs`).toHaveLength(0);
    expect(await database.client`select from queue_keys`).toHaveLength(0);
  });
});

test('another refusal passes unchanged', async () => {
  const throttle = { key: 'k', perMs: 1_000 };
  await expect(queue.enqueue(database.db, sync, 1, { throttle })).rejects.not.toBeInstanceOf(QueueError);
});
