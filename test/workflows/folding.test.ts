import { PgDialect } from 'drizzle-orm/pg-core';
import * as workflowTables from 'drizzle-queue/schema/workflows';
import { beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import type { Runner } from '../../src/core/sql/executor.ts';
import { WorkerEmitter } from '../../src/core/worker/base/events.ts';
import { foldTallies } from '../../src/features/batches/queries/fold-tallies.ts';
import { Folding } from '../../src/features/batches/worker/folding.ts';
import {
  endAllMembers,
  endUnclaimedJobs,
  foldAll,
  foldAllIn,
  wakeAllWaiters,
} from '../../src/features/batches/worker/move-on.ts';
import { clearTables, jobRow, tables } from '../queries/support/jobs.ts';
import { addWorkflowTables, clearWorkflowTables } from '../support/control-tables.ts';
import { gate } from '../support/gate.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';

const database = useTestDatabase({ max: 3 });
const all = { ...tables, ...workflowTables };
const dialect = new PgDialect();

beforeAll(() => addWorkflowTables(database));
beforeEach(async () => {
  const { client } = database;
  await clearTables(client);
  await clearWorkflowTables(database);
  // Job 9 waits for batch 1, whose only member has ended.
  await client`insert into queue_batches (id, total, pending) overriding system value values (1, 1, 1)`;
  await client`
    insert into queue_jobs (id, queue, kind, payload, max_attempts, run_at, blockers)
    overriding system value values (9, 'q', 'k', '1', 3, 'infinity', 1)`;
  await client`insert into queue_waits (batch_id, job_id, queue, policy) values (1, 9, 'q', 'run')`;
  await client`insert into queue_tallies (batch_id, ended) values (1, 1)`;
});

/** Starts the folds of a worker whose statements go through this. */
function begun(db: Runner, events = new WorkerEmitter()): Folding {
  const folding = new Folding({ db, tables: all, channel: undefined, events, wake: () => {} });
  const over = new AbortController();
  const running = folding.run(over.signal);
  onTestFinished(async () => {
    over.abort();
    await running;
  });
  return folding;
}

/** The same, but for its first look, which finds nothing. */
async function folds(db: Runner, events?: WorkerEmitter): Promise<Folding> {
  let isFirst = true;
  const execute: Runner['execute'] = (query) => (isFirst ? Promise.resolve([]) : db.execute(query));
  const folding = begun({ execute }, events);
  await folding.mayClaim;
  isFirst = false;
  return folding;
}

describe('the first look of a worker', () => {
  test('is over before it claims', async () => {
    await begun(database.db).mayClaim;
    expect(await jobRow(database.client, 9)).toMatchObject({ blockers: 0 });
  });

  test('does not keep it from claiming where it takes long', async () => {
    await database.client.begin(async (tx) => {
      await tx`lock table queue_tallies in access exclusive mode`;
      await begun(database.db).mayClaim;
    });
    await until(async () => (await jobRow(database.client, 9))?.blockers === 0);
  });
});

describe('a look for what to go on with, as at the end of a drain', () => {
  test('hears of a fold that began while it looked, and had locked what it left', async () => {
    const folded = gate();
    const looked = gate();
    let looks = 0;
    const folding = await folds({
      execute: async (query) => {
        const isOfBatches = dialect.sqlToQuery(query.getSQL()).sql.includes('unnest(');
        if (!isOfBatches) {
          await folded.opened;
          const answer = await database.db.execute(query);
          looks++;
          looked.open();
          return answer;
        }
        // That of the worker commits only once the look is over.
        return await database.db.transaction(async (tx) => {
          const answer = await tx.execute(query);
          folded.open();
          await looked.opened;
          return answer;
        });
      },
    });
    const moved = folding.moveOn();
    folding.note(1);
    expect(await moved).toBe(true);
    expect(looks).toBe(1);
    expect((await jobRow(database.client, 9))?.blockers).toBe(0);
    expect(await folding.moveOn()).toBe(false);
  });

  describe('beside a row that cannot be written', () => {
    beforeEach(async () => {
      const { client } = database;
      // Job 10 waits for batch 2, and job 8 is to end with batch 3. What they wait for has happened.
      await client`
        insert into queue_batches (id, total, pending) overriding system value values (2, 1, 1), (3, 1, 1)`;
      await client`
        insert into queue_jobs (id, queue, kind, payload, max_attempts, run_at, blockers, batch_id)
        overriding system value values
          (10, 'q', 'k', '1', 3, 'infinity', 1, null), (8, 'q', 'k', '1', 3, 'infinity', null, 3)`;
      await client`insert into queue_waits (batch_id, job_id, queue, policy) values (2, 10, 'q', 'run')`;
      await client`insert into queue_tallies (batch_id, ended) values (2, 1)`;
      await client`insert into queue_tallies (batch_id, cancel_reason) values (3, 'no')`;
    });

    test.each([8, 9])('of job %i that refuses it, makes the others due', async (id) => {
      const { client, db } = database;
      await client.unsafe(
        `alter table queue_jobs add constraint refused check (id <> ${id} or run_at = 'infinity')`,
      );
      onTestFinished(async () => void (await client`alter table queue_jobs drop constraint refused`));
      const events = new WorkerEmitter();
      const refusals: string[] = [];
      events.on('error', ({ error }) => refusals.push(String(error)));
      expect(await (await folds(db, events)).moveOn()).toBe(true);
      const due = await client`select id::int from queue_jobs where run_at <= now() order by id`;
      expect(due.map((row) => row.id)).toEqual([8, 9, 10].filter((other) => other !== id));
      expect([...(await client`select from queue_tallies`)]).toEqual([]);
      expect(refusals).toHaveLength(1);
    });

    test('of a job that is locked, makes the others due', async () => {
      const { client, db } = database;
      const locked = gate();
      const over = gate();
      const locking = client.begin(async (tx) => {
        await tx`select from queue_jobs where id = 9 for update`;
        locked.open();
        await over.opened;
      });
      await locked.opened;
      const moved = await (await folds(db)).moveOn();
      const due = await client`select id::int from queue_jobs where run_at <= now() order by id`;
      over.open();
      await locking;
      expect(moved).toBe(true);
      expect(due.map((row) => row.id)).toEqual([8, 10]);
    });
  });
});

describe('where a job was made due before another one was found locked', () => {
  beforeEach(async () => {
    const { client } = database;
    // Job 10 waits for batch 2, whose only member ends as job 9 is made due.
    await client`insert into queue_batches (id, total, pending) overriding system value values (2, 1, 1)`;
    await client`
      insert into queue_jobs (id, queue, kind, payload, max_attempts, run_at, blockers)
      overriding system value values (10, 'q', 'k', '1', 3, 'infinity', 1)`;
    await client`insert into queue_waits (batch_id, job_id, queue, policy) values (2, 10, 'q', 'run')`;
    await client.unsafe(`
      create function end_member() returns trigger language plpgsql as $$
        begin insert into queue_tallies (batch_id, ended) values (2, 1); return null; end $$;
      create trigger ends after update on queue_jobs
        for each row when (new.id = 9 and old.blockers > 0) execute function end_member()`);
    onTestFinished(async () => void (await client`drop function end_member() cascade`));
  });

  test.each([
    ['the end of a drain', async () => (await folds(database.db)).moveOn()],
    ['runNext', () => database.db.transaction(async (tx) => await foldAllIn(tx, all, undefined))],
  ])('%s says that there is something due', async (_, look) => {
    const { client } = database;
    const moved = await client.begin(async (tx) => {
      await tx`select from queue_jobs where id = 10 for update`;
      return await look();
    });
    expect(moved).toBe(true);
    expect(await jobRow(client, 9)).toMatchObject({ blockers: 0 });
    expect(await jobRow(client, 10)).toMatchObject({ blockers: 1 });
  });
});

test('a job whose row refuses the change is tried less and less often, and made due once it accepts it', async () => {
  const { client, db } = database;
  await client`alter table queue_jobs add constraint refused check (id <> 9 or blockers > 0)`;
  const drop = async () => void (await client`alter table queue_jobs drop constraint if exists refused`);
  onTestFinished(drop);
  const saidAtMs: number[] = [];
  const events = new WorkerEmitter();
  events.on('error', ({ error }) => {
    expect(String(error)).toContain("Job 9 of 'q' cannot be made due");
    saidAtMs.push(performance.now());
  });
  (await folds(db, events)).note(1);
  await until(() => saidAtMs.length === 3);
  const [first = 0, second = 0, third = 0] = saidAtMs;
  expect(second - first).toBeGreaterThanOrEqual(990);
  expect(third - second).toBeGreaterThanOrEqual(1_990);
  // The batch is counted all the same.
  expect([...(await client`select pending::int from queue_batches`)]).toEqual([{ pending: 0 }]);
  await drop();
  await until(async () => (await jobRow(client, 9))?.blockers === 0);
});

test('more jobs than one look finds are made due together, but for one whose row refuses it', async () => {
  const { client, db } = database;
  await client`
    insert into queue_jobs (id, queue, kind, payload, max_attempts, run_at, blockers)
    overriding system value select n, 'q', 'k', '1', 3, 'infinity', 1 from generate_series(101, 2600) as n`;
  await client`
    insert into queue_waits (batch_id, job_id, queue, policy)
    select 1, n, 'q', 'run' from generate_series(101, 2600) as n`;
  await client`update queue_batches set pending = 0, ended_at = now()`;
  await client`alter table queue_jobs add constraint refused check (id <> 9 or blockers > 0)`;
  onTestFinished(async () => void (await client`alter table queue_jobs drop constraint refused`));
  const { queues, refusals } = await wakeAllWaiters(db, all, [1], undefined);
  expect(queues).toEqual(new Set(['q']));
  expect(refusals.map(String)).toEqual([expect.stringContaining("Job 9 of 'q' cannot be made due")]);
  expect([...(await client`select id::int from queue_jobs where blockers > 0`)]).toEqual([{ id: 9 }]);
});

describe('jobs behind more locked ones than one statement finds', () => {
  const LAST = 1_201;
  beforeEach(async () => {
    const { client } = database;
    await clearTables(client);
    await client`update queue_batches set cancel_reason = 'no'`;
    await client`
      insert into queue_jobs (id, queue, kind, payload, max_attempts, batch_id)
      overriding system value select n, 'q', 'k', '1', 3, 1 from generate_series(1, ${LAST}) as n`;
  });

  /** While another transaction has locked all jobs but the last one. */
  async function whileLocked(run: () => Promise<void>): Promise<void> {
    await database.client.begin(async (tx) => {
      await tx`select from queue_jobs where id < ${LAST} for update`;
      await run();
    });
  }

  test('are asked to end', async () => {
    await whileLocked(async () => {
      expect(await endAllMembers(database.db, all, [1], undefined)).toEqual(new Set(['q']));
    });
    const asked = await database.client`select id::int from queue_jobs where cancel_reason is not null`;
    expect([...asked]).toEqual([{ id: LAST }]);
  });

  test('are left to the next look where the worker stops', async () => {
    const stop = AbortSignal.abort();
    const { client, db } = database;
    const asked = async () =>
      (await client`select from queue_jobs where cancel_reason is not null and run_at < now()`).length;
    await endAllMembers(db, all, [1], undefined, stop);
    expect(await asked()).toBe(1_000);
    await client`update queue_jobs set run_at = now() - interval '1 minute'`;
    await endAllMembers(db, all, [1], undefined, stop);
    expect(await asked()).toBe(LAST);
    await client`update queue_jobs set run_at = now() - interval '1 minute'`;
    await endUnclaimedJobs(db, all, [1], [1], stop);
    expect(await asked()).toBe(LAST - 1_000);
  });

  test('are ended where no claim takes them', async () => {
    await database.client`update queue_jobs set cancel_reason = 'no', run_at = now() - interval '1 minute'`;
    await whileLocked(async () => {
      expect(await endUnclaimedJobs(database.db, all, [1], [1])).toEqual({
        batchIds: new Set([1]),
        refusals: [],
      });
    });
    expect(await jobRow(database.client, LAST)).toBeUndefined();
    // The others are ended together by the next look.
    await endUnclaimedJobs(database.db, all, [1], [1]);
    expect([...(await database.client`select id from queue_jobs`)]).toEqual([]);
  });

  test('are made due', async () => {
    const { client } = database;
    await client`update queue_jobs set run_at = 'infinity', blockers = 1`;
    await client`update queue_batches set ended_at = now(), pending = 0, cancel_reason = null`;
    await client`delete from queue_waits`;
    await client`
      insert into queue_waits (batch_id, job_id, queue, policy) select 1, id, 'q', 'run' from queue_jobs`;
    await whileLocked(async () => {
      const { queues } = await wakeAllWaiters(database.db, all, [1], undefined);
      expect(queues).toEqual(new Set(['q']));
    });
    expect([...(await client`select id::int from queue_jobs where blockers = 0`)]).toEqual([{ id: LAST }]);
  });
});

describe('beside a batch that cannot be folded', () => {
  const isFolded = async (id: number) => {
    const [row] = await database.client`select pending::int from queue_batches where id = ${id}`;
    return row?.pending === 0;
  };

  test.each([
    ['queue_batches', 1],
    ['queue_jobs', 9],
  ])('for a lock in %s, others are folded as soon as their members end', async (table, id) => {
    const { client, db } = database;
    await client.begin(async (tx) => {
      await tx.unsafe(`select from ${table} where id = ${id} for update`);
      const tried: number[] = [];
      const folded: string[] = [];
      const folding = await folds({
        execute: (query) => {
          const { sql, params } = dialect.sqlToQuery(query.getSQL());
          if (sql.includes('delete from')) {
            folded.push(String(params));
            if (String(params).includes('{1}')) tried.push(performance.now());
          }
          return db.execute(query);
        },
      });
      folding.note(1);
      // It is tried less and less often.
      await until(() => tried.length > 5 && Number(tried.at(-1)) - Number(tried.at(-2)) > 400);
      await client`
        insert into queue_batches (id, total, pending) overriding system value
        select n, 1, 1 from generate_series(101, 110) as n`;
      folded.length = 0;
      for (let other = 101; other <= 110; other++) {
        await client`insert into queue_tallies (batch_id, ended) values (${other}, 1)`;
        folding.note(other);
        await until(() => isFolded(other));
      }
      // Together with it each would wait for its rest. It may have just rested when another is folded.
      const others = folded.filter((ids) => /\{.*\b1\d\d\b.*\}/.test(ids));
      const together = others.filter((ids) => /\{(?:.*,)?1(?:,.*)?\}/.test(ids));
      expect(others.length).toBeGreaterThanOrEqual(10);
      expect(together.length).toBeLessThan(5);
      expect(await isFolded(1)).toBe(false);
    });
    await until(() => isFolded(1));
  });

  test.each([
    ['queue_batches', 'queue_jobs'],
    ['queue_jobs', 'queue_batches'],
  ])('for a lock in %s, and then for one in %s, it rests longer and longer', async (first, second) => {
    const { client, db } = database;
    const idIn = (table: string) => (table === 'queue_jobs' ? 9 : 1);
    const lock = (table: string) => `select from ${table} where id = ${idIn(table)} for update`;
    let tried: number[] = [];
    const isTriedSeldom = () => tried.length > 5 && Number(tried.at(-1)) - Number(tried.at(-2)) > 400;
    const folding = await folds({
      execute: async (query) => {
        const { sql, params } = dialect.sqlToQuery(query.getSQL());
        if (sql.includes('delete from') && String(params).includes('{1}')) tried.push(performance.now());
        return await db.execute(query);
      },
    });
    const beginLater = gate();
    const locked = gate();
    const over = gate();
    const then = client.begin(async (tx) => {
      await beginLater.opened;
      await tx.unsafe(lock(second));
      locked.open();
      await over.opened;
    });
    await client.begin(async (tx) => {
      await tx.unsafe(lock(first));
      folding.note(1);
      await until(() => tried.length > 1);
      beginLater.open();
      await locked.opened;
    });
    tried = [];
    await until(isTriedSeldom, { timeoutMs: 10_000 }).finally(() => over.open());
    await then;
    await until(() => isFolded(1));
  });

  test('for a locked job, a thousand others are folded together, and not one by one', async () => {
    const { client, db } = database;
    await client`
      insert into queue_batches (id, total, pending) overriding system value
      select n, 1, 1 from generate_series(101, 1100) as n`;
    await client`insert into queue_tallies (batch_id, ended) select n, 1 from generate_series(101, 1100) as n`;
    let foldsSent = 0;
    await client.begin(async (tx) => {
      await tx`select from queue_jobs where id = 9 for update`;
      const folding = await folds({
        execute: (query) => {
          if (dialect.sqlToQuery(query.getSQL()).sql.includes('delete from')) foldsSent++;
          return db.execute(query);
        },
      });
      await folding.moveOn();
      expect([...(await client`select id::int from queue_batches where pending > 0`)]).toEqual([{ id: 1 }]);
    });
    // Once all, then 32 parts, then each of those in the one that has it.
    expect(foldsSent).toBeLessThan(100);
  });

  test('the end of many members, others are folded', async () => {
    const { client, db } = database;
    const asks = gate();
    const goesOn = gate();
    const folding = await folds({
      execute: async (query) => {
        // Members that are to end are being looked for.
        if (dialect.sqlToQuery(query.getSQL()).sql.includes('j.cancel_reason is null and j.id >')) {
          asks.open();
          await goesOn.opened;
        }
        return await db.execute(query);
      },
    });
    await client`insert into queue_batches (id, total, pending) overriding system value values (2, 1, 1)`;
    await client`
      insert into queue_jobs (id, queue, kind, payload, max_attempts, batch_id)
      overriding system value values (8, 'q', 'k', '1', 3, 2)`;
    await client`insert into queue_tallies (batch_id, cancel_reason) values (2, 'no')`;
    folding.note(2);
    await asks.opened;
    folding.note(1);
    await until(() => isFolded(1));
    expect((await jobRow(client, 8))?.cancel_reason).toBeNull();
    goesOn.open();
    await until(async () => (await jobRow(client, 8))?.cancel_reason === 'no');
  });
});

test('a job whose row has refused the change, and is locked when that is tried again, is made due later', async () => {
  const { client, db } = database;
  await client`alter table queue_jobs add constraint refused check (id <> 9 or blockers > 0)`;
  const drop = async () => void (await client`alter table queue_jobs drop constraint if exists refused`);
  onTestFinished(drop);
  const refused = gate();
  const events = new WorkerEmitter();
  events.on('error', () => refused.open());
  let wakes = 0;
  const folding = await folds(
    {
      execute: async (query) => {
        const answer = await db.execute(query);
        if (dialect.sqlToQuery(query.getSQL()).sql.includes('judged as materialized')) wakes++;
        return answer;
      },
    },
    events,
  );
  folding.note(1);
  await refused.opened;
  await drop();
  await client.begin(async (tx) => {
    await tx`select from queue_jobs where id = 9 for update`;
    await until(() => wakes > 0);
  });
  await until(async () => (await jobRow(client, 9))?.blockers === 0);
});

test('a look for all that is to be counted ends, although members of others end all the time', async () => {
  const { client, db } = database;
  await client`insert into queue_batches (id, total, pending) overriding system value values (2, 1000, 1000)`;
  let foldsSent = 0;
  const beside: Runner['execute'] = async (query) => {
    if (dialect.sqlToQuery(query.getSQL()).sql.includes('delete from')) {
      await client`insert into queue_tallies (batch_id, ended) values (2, 1)`;
      if (++foldsSent > 5) throw new Error('it goes on');
    }
    return await db.execute(query);
  };
  const report = { onMoved: () => {}, onRefused: () => {} };
  await foldAll({ execute: beside }, all, undefined, 'briefly', report);
  expect(foldsSent).toBe(1);
  expect(await jobRow(client, 9)).toMatchObject({ blockers: 0 });
});

test('more tallies than one fold takes are folded all, by one look', async () => {
  const { client, db } = database;
  await client`update queue_batches set total = 20001, pending = 20001`;
  await client`insert into queue_tallies (batch_id, ended) select 1, 1 from generate_series(1, 20000)`;
  await (await folds(db)).moveOn();
  expect([...(await client`select pending::int from queue_batches`)]).toEqual([{ pending: 0 }]);
});

test('batches behind more tallies of a locked one than a look takes are folded', async () => {
  const { client, db } = database;
  await client`insert into queue_batches (id, total, pending) overriding system value values (2, 1, 1)`;
  await client`update queue_batches set total = 20000, pending = 20000 where id = 1`;
  await client`insert into queue_tallies (batch_id, ended) select 1, 1 from generate_series(1, 10000)`;
  await client`insert into queue_tallies (batch_id, ended) values (2, 1)`;
  const pendingOf = async () =>
    (await client`select pending::int from queue_batches order by id`).map((row) => row.pending);
  await client.begin(async (tx) => {
    await tx`select from queue_batches where id = 1 for update`;
    // As at the end of a drain, and by the looks of a worker.
    await (await folds(db)).moveOn();
    expect(await pendingOf()).toEqual([20_000, 0]);
    await client`insert into queue_tallies (batch_id, ended) values (2, -1)`;
    await until(async () => (await pendingOf())[1] === 1);
  });
});

test('a look ends where it finds as many tallies as one fold takes, and all of batches that are gone', async () => {
  const { client, db } = database;
  await client`delete from queue_tallies`;
  await client`insert into queue_tallies (batch_id, ended) select 99, 1 from generate_series(1, 10000)`;
  let foldsSent = 0;
  const counted: Runner['execute'] = async (query) => {
    const isFold = dialect.sqlToQuery(query.getSQL()).sql.includes('delete from');
    if (isFold && ++foldsSent > 5) throw new Error('it goes on');
    return await db.execute(query);
  };
  const report = { onMoved: () => {}, onRefused: () => {} };
  await foldAll({ execute: counted }, all, undefined, 'briefly', report);
  // One of as many as there are, and one by their batches.
  expect(foldsSent).toBe(2);
});

test('a look finds what is behind as many tallies of batches that are gone as one fold takes', async () => {
  const { client, db } = database;
  await client`truncate queue_tallies`;
  await client`update queue_batches set total = 12, pending = 11, ended_at = null where id = 1`;
  await client`insert into queue_tallies (batch_id, ended) select 99, 1 from generate_series(1, 10000)`;
  await client`insert into queue_tallies (batch_id, ended) values (1, 1)`;
  await foldAll(db, all, undefined, 'briefly', { onMoved: () => {}, onRefused: () => {} });
  expect(await client`select pending::int from queue_batches where id = 1`).toEqual([{ pending: 10 }]);
});

describe('further failures', () => {
  test('write no job again that the first one has told to end', async () => {
    const { client, db } = database;
    await client`update queue_batches set total = 12, pending = 11`;
    await client`update queue_waits set policy = 'cancel'`;
    await client`delete from queue_tallies`;
    const versions: string[] = [];
    for (let failure = 1; failure <= 10; failure++) {
      await client`insert into queue_tallies (batch_id, ended, failed) values (1, 1, 1)`;
      await foldTallies(db, all, { channel: undefined, locks: 'briefly' });
      const [row] = await client`select xmin::text, cancel_reason from queue_jobs where id = 9`;
      expect(row?.cancel_reason).toContain('discarded or cancelled');
      versions.push(String(row?.xmin));
    }
    expect(new Set(versions).size).toBe(1);
    // The end of all is counted: a redrive of the flow may take back that it is to end.
    await client`insert into queue_tallies (batch_id, ended, failed) values (1, 1, 0)`;
    await foldTallies(db, all, { channel: undefined, locks: 'briefly' });
    expect(await jobRow(client, 9)).toMatchObject({ blockers: 0 });
  });

  test('make no job due again that goes on without the first one', async () => {
    const { client, db } = database;
    await client`update queue_batches set total = 12, pending = 12, waiting = 'failure'`;
    await client`update queue_waits set policy = 'parent'`;
    await client`update queue_jobs set blockers = -2`;
    await client`delete from queue_tallies`;
    const isDueAfter = async (...failed: number[]) => {
      for (const one of failed)
        await client`insert into queue_tallies (batch_id, ended, failed) values (1, ${one}, ${one})`;
      await client`update queue_jobs set run_at = 'infinity'`;
      const { woken } = await foldTallies(db, all, { channel: undefined, locks: 'briefly' });
      return woken.length > 0;
    };
    expect(await isDueAfter(1)).toBe(true);
    expect(await isDueAfter(1, 1)).toBe(false);
    // Some were put back, and the handler has waited for them once more.
    expect(await isDueAfter(-1, -1, -1)).toBe(false);
    expect(await isDueAfter(1)).toBe(true);
    expect(await isDueAfter(-1, 1)).toBe(true);
    expect(await isDueAfter(1)).toBe(false);
  });
});
