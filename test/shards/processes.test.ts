import { createQueue, defineJob, unvalidated } from 'drizzle-queue';
import { shardOf } from 'drizzle-queue/shards';
import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import { useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';
import { startWorkerProcess, type WorkerProcess } from '../worker/worker-process.ts';

const note = defineJob('note', { payload: unvalidated<{ tenant: string }>() });
const tenants = Array.from({ length: 40 }, (_, n) => `tenant ${n}`);

describe('processes that work on four databases', () => {
  const all = Array.from({ length: 4 }, () => useTestDatabase());
  const running: WorkerProcess[] = [];
  const serve = (urls: readonly string[]) => {
    const worker = startWorkerProcess('shards/fixtures/shards-worker.ts', { DATABASE_URLS: urls.join(' ') });
    running.push(worker);
    return worker;
  };
  const shards = () =>
    Object.fromEntries(all.map((at, n) => [`shard-${n}`, { db: at.db, queue: createQueue(), at }]));

  beforeAll(async () => {
    for (const { client } of all) await client`create table noted (tenant text not null)`;
  });
  afterEach(async () => {
    await Promise.all(running.splice(0).map((worker) => worker.child.exitCode ?? worker.end('SIGKILL')));
    for (const { client } of all) await client`truncate noted, queue_jobs, queue_workers`;
  });

  /** How many of its workers have said that they hear notifications. */
  const listening = (worker: WorkerProcess) => [...worker.output().matchAll(/^listening shard-/gm)].length;
  const noted = async (of = all) =>
    (await Promise.all(of.map(({ client }) => client<{ tenant: string }[]>`select tenant from noted`)))
      .flat()
      .map(({ tenant }) => tenant);

  test("run each tenant's jobs once, in the tenant's own database, and stop all workers on one signal", async () => {
    const processes = [serve(all.map(({ url }) => url)), serve(all.map(({ url }) => url))];
    for (const each of processes) await until(() => listening(each) === 4);
    const open = shards();
    for (let round = 0; round < 5; round++) {
      for (const tenant of tenants) {
        const { db, queue } = shardOf(open, tenant);
        await db.transaction((tx) => queue.enqueue(tx, note, { tenant }));
      }
    }
    await until(async () => (await noted()).length >= 5 * tenants.length);
    for (const each of processes) {
      expect(await each.end('SIGTERM')).toBe(0);
      expect(each.output()).toContain('ended');
    }
    for (const [name, { at }] of Object.entries(open)) {
      const own = tenants.filter((tenant) => shardOf(open, tenant).name === name);
      expect(own.length).toBeGreaterThan(0);
      expect((await noted([at])).sort()).toEqual(own.flatMap((tenant) => Array(5).fill(tenant)).sort());
      expect(await at.client`select 1 from queue_jobs`).toHaveLength(0);
      expect(await at.client`select 1 from queue_workers`).toHaveLength(0);
    }
  });

  test('go on in three of them while the fourth is down, and work on it when it is back', async () => {
    const [down, ...others] = all;
    const elsewhere = others[0]?.client;
    if (down === undefined || elsewhere === undefined) throw new Error('there are four');
    const queue = createQueue();
    await queue.enqueue(down.db, note, { tenant: 'down' });
    await elsewhere`alter database ${elsewhere(down.name)} allow_connections false`;
    const worker = serve(all.map(({ url }) => url));
    await worker.printed('shard-0: worker error (starting): ');
    for (const { db } of others) await queue.enqueue(db, note, { tenant: 'up' });
    await until(async () => (await noted(others)).length === others.length);
    await elsewhere`alter database ${elsewhere(down.name)} allow_connections true`;
    await until(async () => (await noted([down])).length === 1);
    expect(await worker.end('SIGTERM')).toBe(0);
  });

  test('end at once when the signal comes before a start that will be tried again', async () => {
    const [down, ...others] = all;
    const elsewhere = others[0]?.client;
    if (down === undefined || elsewhere === undefined) throw new Error('there are four');
    await elsewhere`alter database ${elsewhere(down.name)} allow_connections false`;
    const worker = serve([down.url]);
    await worker.printed('worker error (starting)');
    expect(await worker.end('SIGTERM')).toBe(0);
    await elsewhere`alter database ${elsewhere(down.name)} allow_connections true`;
  });

  test('print no warning about listeners, with a dozen workers in one of them', async () => {
    const worker = serve(all.flatMap(({ url }) => [url, url, url]));
    await until(() => listening(worker) === 12);
    expect(await worker.end('SIGINT')).toBe(0);
    expect(worker.output()).not.toContain('Warning');
  });
});
