import { sql } from 'drizzle-orm';
import pg from 'pg';
import { describe, expect, test } from 'vitest';
import { sqlStateOf } from '../../src/core/sql/executor.ts';
import { until } from '../support/until.ts';
import { hogging, loadKinds, transactional } from './fixtures/ledger-jobs.ts';
import { declaredGone, overlaps, violations } from './invariants.ts';
import { Load } from './load.ts';
import { print, printTimes, resumeTimes } from './recovery.ts';
import { monotonicMs } from './run-log.ts';
import { useStage } from './stage.ts';

const stage = useStage();

/** How often workers have reported an error that says this. */
function reported(text: RegExp): number {
  return stage.fleet.entries().filter(({ event, detail }) => event === 'error' && text.test(detail ?? ''))
    .length;
}

describe('a pool that the app has exhausted', () => {
  const HELD_MS = 10_000;

  test('for 10 s: the worker waits, is not declared gone, and goes on', { timeout: 120_000 }, async () => {
    const { ledger, fleet } = stage;
    const workers = await fleet.startMany(2);
    const load = new Load(ledger);
    await resumeTimes(fleet, workers, 0);
    const [id] = await ledger.enqueue([{ job: hogging, work: { workMs: HELD_MS } }]);
    const ended = await until(
      () => fleet.entries().find(({ event, job }) => event === 'ended' && job === id),
      { timeoutMs: 60_000 },
    );
    const hog = workers.filter(({ name }) => name === ended?.process);
    expect(hog).toHaveLength(1);
    const times = await resumeTimes(fleet, hog, monotonicMs());
    await load.end();
    await ledger.settled();
    expect(await fleet.stop()).toEqual([0, 0]);
    printTimes('a pool exhausted for 10 s, from its release to the next start', times);
    expect(await violations(ledger, fleet)).toEqual([]);
    expect(overlaps(fleet)).toEqual([]);
    expect(declaredGone(fleet)).toEqual([]);
  });
});

describe('limits of the sessions', () => {
  test.each([
    ['statement_timeout', /statement timeout/],
    ['lock_timeout', /lock timeout/],
  ])(
    '%s, while the tables are locked: errors that say so, and nothing else',
    {
      timeout: 120_000,
    },
    async (setting, message) => {
      const { ledger, fleet } = stage;
      const workers = await fleet.startMany(2, { sessionSettings: `-c ${setting}=300` });
      const load = new Load(ledger);
      await resumeTimes(fleet, workers, 0);
      await ledger.db.transaction(async (tx) => {
        await tx.execute('lock table queue_jobs in access exclusive mode');
        await until(() => reported(message) >= 4);
      });
      const times = await resumeTimes(fleet, workers, monotonicMs());
      await load.end();
      await ledger.settled();
      expect(await fleet.stop()).toEqual([0, 0]);
      printTimes(`${setting}, from the end of the lock to the next start in each worker`, times);
      expect(await violations(ledger, fleet)).toEqual([]);
    },
  );

  test('idle_in_transaction_session_timeout in a handler: the attempt fails, and the next one does it', {
    timeout: 120_000,
  }, async () => {
    const { ledger, fleet } = stage;
    await fleet.start({ sessionSettings: '-c idle_in_transaction_session_timeout=200' });
    const ids = await ledger.enqueue(
      Array.from({ length: 4 }, () => ({ job: transactional, work: { workMs: 0, idleMs: 1_000 } })),
    );
    await ledger.settled();
    expect(await fleet.stop()).toEqual([0]);
    expect(await violations(ledger, fleet)).toEqual([]);
    const errors = await ledger.rows<{ message: string }>(
      `select errors -> 0 ->> 'message' as message from queue_results order by job_id`,
    );
    expect(errors).toHaveLength(ids.length);
    for (const { message } of errors) expect(message).toMatch(/idle-in-transaction|terminat|not queryable/i);
    print(`what a handler's error says after idle_in_transaction_session_timeout: ${errors[0]?.message}`);
  });

  test('a database that is read-only for a while: errors that say so, and nothing else', {
    timeout: 120_000,
  }, async () => {
    const { ledger, fleet, url } = stage;
    const name = new URL(url).pathname.slice(1);
    /** The setting is one of new sessions, so the old ones are ended: all of them, from another database. */
    const setReadOnly = async (readOnly: boolean) => {
      const outside = new pg.Client({ connectionString: new URL('/postgres', url).href });
      await outside.connect();
      await outside.query(`alter database "${name}" set default_transaction_read_only = ${readOnly}`);
      await outside.query('select pg_terminate_backend(pid) from pg_stat_activity where datname = $1', [
        name,
      ]);
      await outside.end();
    };
    const workers = await fleet.startMany(2);
    const load = new Load(ledger);
    await resumeTimes(fleet, workers, 0);
    await setReadOnly(true);
    await until(() => reported(/read-only transaction/) >= 4 && load.failures > 0);
    await setReadOnly(false);
    const times = await resumeTimes(fleet, workers, monotonicMs());
    await load.end();
    await ledger.settled();
    expect(load.failures).toBeGreaterThan(0);
    printTimes('a read-only database, from its end to the next start in each worker', times);
    expect(await fleet.stop()).toEqual([0, 0]);
    expect(await violations(ledger, fleet)).toEqual([]);
  });
});

describe("an enqueue in the caller's transaction", () => {
  test('that is SERIALIZABLE and conflicts: the caller gets 40001, and a repetition enqueues once', async () => {
    const { ledger, fleet } = stage;
    await ledger.pool.query('create table if not exists counters (id int primary key, value int not null)');
    await ledger.pool.query('insert into counters values (1, 0) on conflict (id) do update set value = 0');
    const refused: unknown[] = [];

    /** Counts what it reads, as one does who must not count anything twice, and enqueues a job. */
    async function countAndEnqueue(meet: () => Promise<void>): Promise<void> {
      for (;;) {
        try {
          await ledger.db.transaction(
            async (tx) => {
              await tx.execute('select value from counters where id = 1');
              await meet();
              await ledger.queue.enqueue(tx, loadKinds[0], { n: 0, workMs: 0 });
              await tx.execute('update counters set value = value + 1 where id = 1');
            },
            { isolationLevel: 'serializable' },
          );
          return;
        } catch (error) {
          refused.push(sqlStateOf(error));
        }
      }
    }

    const meet = rendezvous(2);
    await Promise.all([countAndEnqueue(meet), countAndEnqueue(meet)]);
    expect(refused).toEqual(['40001']);
    expect(await ledger.count('queue_jobs')).toBe(2);
    expect(await ledger.value('select value from counters')).toBe(2);
    expect(fleet.living).toEqual([]);
  });

  test('that is read-only: the caller gets 25006, and nothing is enqueued', async () => {
    const { ledger } = stage;
    const refusal = await ledger.db
      .transaction((tx) => ledger.queue.enqueue(tx, loadKinds[0], { n: 0, workMs: 0 }), {
        accessMode: 'read only',
      })
      .catch(sqlStateOf);
    expect(refusal).toBe('25006');
    expect(await ledger.count('queue_jobs')).toBe(0);
  });

  test('whose statement times out: the caller gets 57014, and nothing is enqueued', async () => {
    const { ledger } = stage;
    const refusal = await ledger.db.transaction(async (holder) => {
      await holder.execute('lock table queue_jobs in access exclusive mode');
      return await ledger.db
        .transaction(async (tx) => {
          await tx.execute(sql`set local statement_timeout = 100`);
          await ledger.queue.enqueue(tx, loadKinds[0], { n: 0, workMs: 0 });
        })
        .catch(sqlStateOf);
    });
    expect(refusal).toBe('57014');
    expect(await ledger.count('queue_jobs')).toBe(0);
  });
});

/** A function that, called so many times, returns when all have called it; at once ever after. */
function rendezvous(count: number): () => Promise<void> {
  let arrived = 0;
  let open = () => {};
  const all = new Promise<void>((resolve) => {
    open = resolve;
  });
  return async () => {
    if (++arrived >= count) open();
    await all;
  };
}
