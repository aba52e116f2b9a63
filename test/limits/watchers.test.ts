import { beforeAll, beforeEach, expect, test } from 'vitest';
import { addWorkers } from '../queries/support/groups.ts';
import { addJob, clearTables } from '../queries/support/jobs.ts';
import { addControlTables } from '../support/control-tables.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { Fleet } from './fleet.ts';
import { GroupWatcher } from './group-watcher.ts';
import { Watcher } from './watcher.ts';

const database = useTestDatabase();
beforeAll(async () => {
  await addControlTables(database);
  await Fleet.createLedger(database);
});
beforeEach(() => clearTables(database.client));

/** A job of the group `g` that a worker holds, and whose handler runs. */
async function run(worker: number): Promise<void> {
  const { client } = database;
  const id = await addJob(client);
  await client`update queue_jobs set worker_id = ${worker}, claimed_at = now(), group_key = 'g' where id = ${id}`;
  await client`
    insert into ledger (worker_id, queue, kind, job_id, attempt, group_key) values (${worker}, 'q', 'k', ${id}, 1, 'g')`;
}

test('what a worker has begun before it was declared gone is not watched, what it begins after its return is', async () => {
  const { client } = database;
  const groups = new GroupWatcher(database);
  const slots = new Watcher(database);
  const seen = async () => {
    groups.most.clear();
    slots.reset();
    await groups.look();
    await slots.look();
    const { held = 0, running = 0 } = groups.most.get('q/g') ?? {};
    return [held, running, slots.most.get('q')?.running ?? 0];
  };
  const [worker = 0] = await addWorkers(client);
  await run(worker);
  expect(await seen()).toEqual([1, 1, 1]);
  await client`delete from queue_workers where id = ${worker}`;
  expect(await seen()).toEqual([0, 0, 0]);
  // As its next heartbeat does.
  await client`
    insert into queue_workers (id, name, queues) overriding system value values (${worker}, 'w', '[]')`;
  expect(await seen()).toEqual([0, 0, 0]);
  await run(worker);
  expect(await seen()).toEqual([1, 1, 1]);
});
