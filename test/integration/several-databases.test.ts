import { createQueue, defineJob, unvalidated } from 'drizzle-queue';
import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import { useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';
import { startWorkerProcess, type WorkerProcess } from '../worker/worker-process.ts';

const note = defineJob('note', { payload: unvalidated<{ tenant: string }>() });
const tenants = Array.from({ length: 40 }, (_, n) => `tenant ${n}`);

describe('one process that serves four databases', () => {
  const shards = Array.from({ length: 4 }, () => ({ queue: createQueue(), at: useTestDatabase() }));
  const shardOf = (tenant: string) => {
    const shard = shards[tenants.indexOf(tenant) % shards.length];
    if (shard === undefined) throw new Error(`${tenant} has no database`);
    return shard;
  };
  const running: WorkerProcess[] = [];
  const serve = (urls: readonly string[]) => {
    const worker = startWorkerProcess('worker/fixtures/shards-worker.ts', { DATABASE_URLS: urls.join(' ') });
    running.push(worker);
    return worker;
  };

  beforeAll(async () => {
    for (const { at } of shards) await at.client`create table noted (tenant text not null)`;
  });
  afterEach(async () => {
    await Promise.all(running.splice(0).map((worker) => worker.child.exitCode ?? worker.end('SIGKILL')));
    for (const { at } of shards) await at.client`truncate noted`;
  });

  const noted = async (of = shards) =>
    (await Promise.all(of.map(({ at }) => at.client<{ tenant: string }[]>`select tenant from noted`)))
      .flat()
      .map(({ tenant }) => tenant);

  test("runs each tenant's jobs in the tenant's own database, and stops all of them on one signal", async () => {
    const worker = serve(shards.map(({ at }) => at.url));
    for (const tenant of tenants) {
      const { at, queue } = shardOf(tenant);
      await at.db.transaction((tx) => queue.enqueue(tx, note, { tenant }));
    }
    await until(async () => (await noted()).length === tenants.length);
    for (const shard of shards) {
      const own = tenants.filter((tenant) => shardOf(tenant) === shard);
      expect((await noted([shard])).sort()).toEqual(own.sort());
    }
    expect(await worker.end('SIGTERM')).toBe(0);
    expect(worker.output()).toContain('ended');
    for (const { at } of shards) expect(await at.client`select 1 from queue_workers`).toHaveLength(0);
  });

  test('goes on in three of them while the fourth is down, and serves it when it is back', async () => {
    const [down, ...others] = shards;
    if (down === undefined) throw new Error('there are four');
    const elsewhere = others[0]?.at.client;
    if (elsewhere === undefined) throw new Error('there are four');
    await down.queue.enqueue(down.at.db, note, { tenant: 'down' });
    await elsewhere`alter database ${elsewhere(down.at.name)} allow_connections false`;
    const worker = serve(shards.map(({ at }) => at.url));
    await worker.printed(`unreachable ${down.at.url}`);
    for (const { at, queue } of others) await queue.enqueue(at.db, note, { tenant: 'up' });
    await until(async () => (await noted(others)).length === others.length);
    await elsewhere`alter database ${elsewhere(down.at.name)} allow_connections true`;
    await until(async () => (await noted([down])).length === 1);
    expect(await worker.end('SIGTERM')).toBe(0);
  });

  test('a dozen workers of one process print no warning about listeners', async () => {
    const worker = serve(shards.flatMap(({ at }) => [at.url, at.url, at.url]));
    await until(() => worker.output().split('listening').length > 12);
    expect(await worker.end('SIGINT')).toBe(0);
    expect(worker.output()).not.toContain('Warning');
  });
});
