import { sql } from 'drizzle-orm';
import * as workflowTables from 'drizzle-queue/schema/workflows';
import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { parkJobs } from '../../src/core/queries/settle/park-jobs.ts';
import { countBatch } from '../../src/features/batches/queries/count-batch.ts';
import { foldTallies } from '../../src/features/batches/queries/fold-tallies.ts';
import { growBatch } from '../../src/features/batches/queries/grow-batch.ts';
import { reopenReturned } from '../../src/features/batches/queries/reopen-returned.ts';
import { tallyMissing } from '../../src/features/batches/queries/tally-missing.ts';
import { waitForBatches } from '../../src/features/batches/queries/wait-for-batches.ts';
import { receiveSignal } from '../../src/features/workflows/queries/receive-signal.ts';
import { recordOneStep } from '../../src/features/workflows/queries/record-one-step.ts';
import { sendSignal } from '../../src/features/workflows/queries/send-signal.ts';
import { unparkJobs } from '../../src/features/workflows/queries/unpark-jobs.ts';
import { clearTables, tables } from '../queries/support/jobs.ts';
import { addWorkflowTables, clearWorkflowTables } from '../support/control-tables.ts';
import { emptyTables } from '../support/empty-tables.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { blocked as blockedIn, whileOpen as openFor, type Tx } from './fixtures/open-transactions.ts';

/**
 * Races between two connections, in an order that locks decide, and beside each the naive statement that loses it. A naive one that
 * did not lose would show that the test can tell nothing.
 */

const database = useTestDatabase({ max: 6 });
const all = { ...tables, ...workflowTables };
const holder = { queue: 'q', workerId: 7 };
const held = { id: 9, fence: 5 };
const folding = { channel: undefined, locks: 'briefly' } as const;

beforeAll(() => addWorkflowTables(database));
beforeEach(async () => {
  const { client } = database;
  await clearTables(client);
  await clearWorkflowTables(database);
  // Batches 1 and 2 have two members each; job 9 has enqueued them, and is held by worker 7 under fence 5.
  await client`
    insert into queue_batches (id, total, pending) overriding system value values (1, 2, 2), (2, 2, 2)`;
  await client`
    insert into queue_jobs (id, queue, kind, payload, max_attempts, batch_id) overriding system value
    select n, 'q', 'k', '1', 3, (n + 1) / 2 from generate_series(1, 4) as n`;
  await client`
    insert into queue_jobs (id, queue, kind, payload, max_attempts, run_at, worker_id, claimed_at, fence)
    overriding system value
    values (9, 'q', 'k', '1', 3, now() - interval '1 minute', 7, now() - interval '1 second', 5)`;
  await client`insert into queue_waits (batch_id, job_id, queue, policy) values (1, 9, 'q', 'parent')`;
});

const whileOpen = (first: (tx: Tx) => Promise<unknown>, others: () => Promise<void>) =>
  openFor(database, first, others);
const blocked = <T>(statement: Promise<T>) => blockedIn(database, statement);

/** Both members of batch 1 have ended, and that is not counted. */
async function bothEnd(): Promise<void> {
  await database.client`delete from queue_jobs where batch_id = 1`;
  await database.client`insert into queue_tallies (batch_id, ended) values (1, 1), (1, 1)`;
}

async function job9() {
  const [row] = await database.client`
    select worker_id is null as free, run_at = 'infinity' as parked, run_at > claimed_at as woken
    from queue_jobs where id = 9`;
  return row;
}

async function batch1() {
  const [row] = await database.client`
    select pending::int, ended_at is not null as ended from queue_batches where id = 1`;
  return row;
}

describe('a member that was put back after the end of its batch', () => {
  const returned = { ...held, batchIds: [1] };
  const wait = { ...returned, failFast: false };

  /** Batch 1 is over, and member 1 is back: it lives, and that is counted. */
  async function isBack(): Promise<void> {
    await bothEnd();
    await foldTallies(database.db, all, folding);
    await database.client`
      insert into queue_jobs (id, queue, kind, payload, max_attempts, batch_id) overriding system value
      values (1, 'q', 'k', '1', 3, 1)`;
    await database.client`insert into queue_tallies (batch_id, ended, failed) values (1, -1, -1)`;
  }

  async function endsAgain(tx: Tx): Promise<void> {
    await tx.execute(sql`delete from queue_jobs where id = 1`);
    await tx.execute(sql`insert into queue_tallies (batch_id, ended, failed) values (1, 1, 1)`);
  }

  test('is waited for, before its return is counted and after that, and its end wakes the job', async () => {
    await isBack();
    expect(await waitForBatches(database.db, all, holder, wait, 'wait')).toBe(false);
    for (const isCounted of [false, true]) {
      if (isCounted) await foldTallies(database.db, all, folding);
      expect([...(await reopenReturned(database.db, all, holder, returned, 'wait'))]).toEqual([1]);
      expect(await waitForBatches(database.db, all, holder, wait, 'wait')).toBe(true);
    }
    expect(await job9()).toMatchObject({ woken: false });
    await database.db.transaction(endsAgain);
    await foldTallies(database.db, all, folding);
    expect([await batch1(), await job9()]).toMatchObject([{ pending: 0, ended: true }, { woken: true }]);
  });

  test('and ends while the batch is being opened: the next fold ends the batch, and wakes the job', async () => {
    await isBack();
    await foldTallies(database.db, all, folding);
    let opening: ReturnType<typeof reopenReturned> = Promise.resolve(new Set());
    await whileOpen(
      async (tx) => {
        await endsAgain(tx);
        await foldTallies(tx, all, { ...folding, locks: 'wait' });
      },
      async () => {
        opening = (await blocked(reopenReturned(database.db, all, holder, returned, 'wait'))).answer;
      },
    );
    // It lived when that was asked.
    expect([...(await opening)]).toEqual([1]);
    expect(await batch1()).toMatchObject({ pending: 0, ended: false });
    expect(await waitForBatches(database.db, all, holder, wait, 'wait')).toBe(true);
    await foldTallies(database.db, all, folding);
    expect([await batch1(), await job9()]).toMatchObject([{ ended: true }, { woken: true }]);
  });

  test('naively, without a tally for the next fold: the batch stays open, and nothing wakes the job', async () => {
    await isBack();
    await foldTallies(database.db, all, folding);
    let opening: Promise<unknown> = Promise.resolve();
    await whileOpen(
      async (tx) => {
        await endsAgain(tx);
        await foldTallies(tx, all, { ...folding, locks: 'wait' });
      },
      async () => {
        const open = database.client`update queue_batches set ended_at = null where id = 1`;
        opening = (await blocked(open.then())).answer;
      },
    );
    await opening;
    expect(await waitForBatches(database.db, all, holder, wait, 'wait')).toBe(true);
    expect(await foldTallies(database.db, all, folding)).toMatchObject({ tallies: 0, woken: [] });
    expect([await batch1(), await job9()]).toMatchObject([{ pending: 0, ended: false }, { woken: false }]);
  });

  test('opens nothing for a stale attempt, or for a job that has not enqueued it', async () => {
    await isBack();
    const others = [
      reopenReturned(database.db, all, holder, { ...returned, fence: 4 }, 'wait'),
      reopenReturned(database.db, all, { ...holder, workerId: 8 }, returned, 'wait'),
    ];
    for (const live of await Promise.all(others)) expect(live.size).toBe(0);
    await database.client`update queue_waits set policy = 'forked' where batch_id = 1`;
    expect((await reopenReturned(database.db, all, holder, returned, 'wait')).size).toBe(0);
    expect(await batch1()).toMatchObject({ ended: true });
  });
});

test('a job does not wait for an open batch of another job, and writes nothing of it', async () => {
  await database.client`update queue_waits set job_id = 8 where batch_id = 1`;
  await database.client`update queue_batches set waiting = 'failure' where id = 1`;
  const wait = { ...held, batchIds: [1], failFast: false };
  expect(await waitForBatches(database.db, all, holder, wait, 'wait')).toBe('foreign');
  const [batch] = await database.client`select waiting from queue_batches where id = 1`;
  const [job] = await database.client`select blockers from queue_jobs where id = 9`;
  expect([batch, job]).toEqual([{ waiting: 'failure' }, { blockers: null }]);
  // Its results may be read, as those of a job that was forked.
  await bothEnd();
  await foldTallies(database.db, all, folding);
  expect(await waitForBatches(database.db, all, holder, wait, 'wait')).toBe(false);
});

describe('the end of a batch while a job is about to wait for it', () => {
  const wait = { ...held, batchIds: [1], failFast: false };

  test('that is just being counted: the wait comes after it, and finds nothing to wait for', async () => {
    await bothEnd();
    let waiting: ReturnType<typeof waitForBatches> = Promise.resolve(undefined);
    await whileOpen(
      (tx) => foldTallies(tx, all, folding),
      async () => {
        waiting = (await blocked(waitForBatches(database.db, all, holder, wait, 'wait'))).answer;
      },
    );
    expect(await waiting).toBe(false);
  });

  test('that is counted after the wait has asked: the job is woken', async () => {
    await bothEnd();
    await whileOpen(
      (tx) => waitForBatches(tx, all, holder, wait, 'wait'),
      async () =>
        expect(await foldTallies(database.db, all, folding)).toMatchObject({ tallies: 0, busy: [1] }),
    );
    expect(await foldTallies(database.db, all, folding)).toMatchObject({ tallies: 2 });
    expect(await job9()).toMatchObject({ free: false, woken: true });
  });

  test('naively, by a look at the batch without its lock: the job is parked, and not woken by anyone', async () => {
    await bothEnd();
    await whileOpen(
      (tx) => foldTallies(tx, all, folding),
      () =>
        database.client`
          update queue_jobs set worker_id = null, claimed_at = null, run_at = 'infinity', blockers = 1
          where id = 9 and exists (select from queue_batches where id = 1 and ended_at is null)`.then(),
    );
    expect(await foldTallies(database.db, all, folding)).toMatchObject({ tallies: 0, woken: [] });
    expect([await batch1(), await job9()]).toMatchObject([{ ended: true }, { free: true, parked: true }]);
  });
});

describe('a wake-up of a job that is just being parked', () => {
  const park = (tx: Tx) =>
    parkJobs(tx, tables, holder, [
      { ...held, transition: { type: 'park', delayMs: null, attempt: 0, error: null } },
    ]);

  test('waits for the park, and makes the job due', async () => {
    let unparking: Promise<ReadonlySet<number>> = Promise.resolve(new Set());
    await whileOpen(park, async () => {
      unparking = (
        await blocked(
          unparkJobs(database.db, tables, { queue: 'q', ids: [9], onlyWaiting: true, channel: undefined }),
        )
      ).answer;
    });
    expect(await unparking).toEqual(new Set([9]));
    expect(await job9()).toMatchObject({ free: true, parked: false });
  });

  test('naively, with its condition in the where: it tests the version before the park, and is lost', async () => {
    await whileOpen(park, async () => {
      const woken = await database.client`
        update queue_jobs set run_at = now() where id = 9 and worker_id is null returning id`;
      expect(woken).toHaveLength(0);
    });
    expect(await job9()).toMatchObject({ free: true, parked: true });
  });
});

describe('a job that is about to wait for the first of a signal and a batch, and that one of them wakes before', () => {
  const send = (tx: Tx) =>
    sendSignal(tx, all, {
      ...{ to: { queue: 'q', id: 9 }, name: 'answer', signalId: 's', value: '7', key: undefined },
    }).then((sent) => expect(sent).toMatchObject({ became: 'sent' }));
  const unpark = (tx: Tx) =>
    unparkJobs(tx, tables, { queue: 'q', ids: [9], onlyWaiting: true, channel: undefined });
  const sources: [string, (tx: Tx) => Promise<unknown>][] = [
    ['signal', async (tx) => [await send(tx), await unpark(tx)]],
    ['batch', async (tx) => [await bothEnd(), await foldTallies(tx, all, folding)]],
  ];

  beforeEach(async () => {
    const wanted = { ...held, name: 'first', signal: 'answer', at: 0, timeoutMs: undefined };
    expect(await receiveSignal(database.db, all, holder, wanted, 'wait')).toMatchObject({ type: 'waiting' });
    const wait = { ...held, batchIds: [1], failFast: false };
    expect(await waitForBatches(database.db, all, holder, wait, 'wait')).toBe(true);
  });

  test.each(sources)('the %s: it is due, and not parked', async (_, wake) => {
    const transition = { type: 'park', delayMs: null, attempt: 0, error: null } as const;
    const park = () => parkJobs(database.db, tables, holder, [{ ...held, transition }]);
    await whileOpen(wake, async () => expect((await park()).locked).toEqual(new Set([9])));
    await park();
    expect(await job9()).toMatchObject({ free: true, parked: false });
  });

  test.each(sources)(
    'naively, by a park that does not ask whether it was woken: the %s is lost',
    async (_, wake) => {
      let parking: Promise<unknown> = Promise.resolve();
      await whileOpen(wake, async () => {
        const park = database.client`
        update queue_jobs set worker_id = null, claimed_at = null, run_at = 'infinity'
        where id = 9 and worker_id = 7 and fence = 5`;
        parking = (await blocked(park.then())).answer;
      });
      await parking;
      expect(await job9()).toMatchObject({ free: true, parked: true });
      expect(await foldTallies(database.db, all, folding)).toMatchObject({ tallies: 0, woken: [] });
    },
  );
});

describe('a record of an attempt whose job is just being taken over', () => {
  const takeOver = (tx: Tx) =>
    tx.execute(sql`update queue_jobs set worker_id = 8, fence = fence + 1, claimed_at = now() where id = 9`);
  const steps = async () => await database.client`select from queue_steps where job_id = 9`;

  test('comes after it, and is refused', async () => {
    let recording: Promise<unknown> = Promise.resolve();
    const step = { ...held, name: 'charge', kind: 'run', tookMs: 0, ended: true } as const;
    await whileOpen(takeOver, async () => {
      recording = (await blocked(recordOneStep(database.db, all, holder, step, 'wait'))).answer;
    });
    expect(await recording).toBeUndefined();
    expect(await steps()).toHaveLength(0);
  });

  test('naively, without the lock of the row: it is written beside the attempt that has read no such step', async () => {
    await whileOpen(takeOver, async () => {
      await database.client`
        insert into queue_steps (job_id, queue, name, kind, fence, started_at, ended_at)
        select id, queue, 'charge', 'run', fence, now(), now() from queue_jobs
        where id = 9 and worker_id = 7 and fence = 5`;
    });
    expect(await steps()).toHaveLength(1);
  });
});

describe('two that count', () => {
  test('at once: one counts, and the other leaves the batch to it', async () => {
    await bothEnd();
    await whileOpen(
      (tx) => foldTallies(tx, all, folding),
      async () =>
        expect(await foldTallies(database.db, all, folding)).toMatchObject({ tallies: 0, busy: [1] }),
    );
    expect(await batch1()).toEqual({ pending: 0, ended: true });
  });

  test('naively, by a sum that is read before the batch is locked: each member is counted twice', async () => {
    await bothEnd();
    const sum = async () => {
      const [row] = await database.client`select sum(ended)::int as n from queue_tallies where batch_id = 1`;
      return row?.n;
    };
    const count = async (n: number) => {
      await database.client`update queue_batches set pending = pending - ${n} where id = 1`;
      await database.client`delete from queue_tallies where batch_id = 1`;
    };
    const [one, two] = [await sum(), await sum()];
    await count(one);
    await count(two);
    expect(await batch1()).toMatchObject({ pending: -2 });
  });

  test('missing members: one adds them, and a naive second adds them again', async () => {
    await database.client`delete from queue_jobs where batch_id = 1`;
    const counts = [await countBatch(database.db, all, 1), await countBatch(database.db, all, 1)];
    for (const members of counts) if (members !== undefined) await tallyMissing(database.db, all, members);
    const ended = async () => {
      const [row] = await database.client`select sum(ended)::int as n from queue_tallies`;
      return row?.n;
    };
    expect(await ended()).toBe(2);
    await emptyTables(database.client, 'queue_tallies');
    for (const members of counts)
      await database.client`insert into queue_tallies (batch_id, ended) values (1, ${members?.missing ?? 0})`;
    expect(await ended()).toBe(4);
  });
});

describe('ends of members of two batches in two transactions, in two orders', () => {
  const end = async (tx: Tx, id: number, change: 'tally' | 'counter') => {
    await tx.execute(sql`delete from queue_jobs where id = ${id}`);
    const batch = id <= 2 ? 1 : 2;
    await tx.execute(
      change === 'tally'
        ? sql`insert into queue_tallies (batch_id, ended) values (${batch}, 1)`
        : sql`update queue_batches set pending = pending - 1 where id = ${batch}`,
    );
  };
  const both = async (change: 'tally' | 'counter') => {
    let second: Promise<unknown> = Promise.resolve();
    const first = database.db.transaction(async (tx) => {
      await end(tx, 1, change);
      await database.db.transaction(async (other) => {
        await end(other, 3, change);
        const ending = end(tx, 4, change);
        second = change === 'counter' ? (await blocked(ending)).answer : ending;
        second.catch(() => undefined);
        await end(other, 2, change);
      });
      await second;
    });
    return await first.then(
      () => 'committed',
      (error: { cause?: { code?: string }; code?: string }) => error.cause?.code ?? error.code,
    );
  };

  test('only add tallies, and wait for nothing', async () => {
    expect(await both('tally')).toBe('committed');
  });

  test('naively, by a counter in the batch: they deadlock', async () => {
    expect(await both('counter')).toBe('40P01');
  });
});

describe('members that are added while the cancel of their flow is counted', () => {
  beforeEach(async () => {
    await emptyTables(database.client, 'queue_waits');
    await database.client`insert into queue_tallies (batch_id, cancel_reason) values (1, 'no longer wanted')`;
  });
  test('do not wait for that count, and the next one says that they are to end', async () => {
    await whileOpen(
      (tx) => foldTallies(tx, all, folding),
      async () => {
        await database.db.transaction(async (tx) => {
          await tx.execute(sql`set local lock_timeout = '5s'`);
          expect(await growBatch(tx, all, 1, 1)).toBe(true);
        });
      },
    );
    expect(await foldTallies(database.db, all, folding)).toMatchObject({ tallies: 1, unwanted: [1] });
  });

  test('naively, by a look at the batch as they are added: nothing says that they are to end', async () => {
    await whileOpen(
      (tx) => foldTallies(tx, all, folding),
      () =>
        database.client`
          insert into queue_tallies (batch_id, added, cancel_reason)
          select id, 1, cancel_reason from queue_batches where id = 1`.then(),
    );
    expect(await database.client`select cancel_reason from queue_tallies`).toEqual([{ cancel_reason: null }]);
  });
});

describe('a signal whose sender commits while the timeout of its wait is over', () => {
  const wanted = { ...held, name: 'answer', signal: 'answer', at: 0, timeoutMs: 0 };
  const send = (tx: Tx) =>
    sendSignal(tx, all, {
      ...{ to: { queue: 'q', id: 9 }, name: 'answer', signalId: 's', value: '7', key: undefined },
    });

  beforeEach(async () => {
    expect(await receiveSignal(database.db, all, holder, wanted, 'wait')).toMatchObject({ type: 'waiting' });
  });

  test('is received: the wait decides under the lock of the mailbox', async () => {
    let receiving: Promise<unknown> = Promise.resolve();
    await whileOpen(send, async () => {
      receiving = (await blocked(receiveSignal(database.db, all, holder, wanted, 'wait'))).answer;
    });
    expect(await receiving).toEqual({ type: 'received', value: 7 });
    // Repeated after a lost answer, it stays so.
    expect(await receiveSignal(database.db, all, holder, wanted, 'wait')).toEqual({
      type: 'received',
      value: 7,
    });
  });

  test('naively, by a look at the mailbox without its lock: it is late, though the signal came first', async () => {
    await whileOpen(send, async () => {
      await database.client`
        update queue_steps as s set ended_at = now(), output = m.sent -> 0 -> 'value'
        from queue_mailboxes as m where m.job_id = 9 and s.job_id = 9 and s.until <= now()`;
    });
    const [step] = await database.client`select output, ended_at is not null as ended from queue_steps`;
    expect(step).toEqual({ output: null, ended: true });
    const [box] = await database.client`select jsonb_array_length(sent) as sent from queue_mailboxes`;
    expect(box).toEqual({ sent: 1 });
  });
});

describe('two steps of one attempt that want the same signal', () => {
  const waiting = async () => (await database.client`select waiting from queue_mailboxes`)[0]?.waiting;
  const want = (name: string, at: number, isBehind: boolean) =>
    receiveSignal(
      database.db,
      all,
      holder,
      { ...held, name, signal: 'a', at, isBehind, timeoutMs: undefined },
      'wait',
    );
  const send = (value: number) =>
    sendSignal(database.db, all, {
      ...{ to: { queue: 'q', id: 9 }, name: 'a', signalId: `${value}`, value: `${value}`, key: undefined },
    });

  test('of which one waits: the other waits behind it, and the mailbox says so', async () => {
    await want('one', 0, false);
    await send(1);
    expect(await want('two', 0, true)).toMatchObject({ type: 'waiting' });
    expect(await waiting()).toBe(true);
  });

  test('by places of their own: a repetition that is carried out late leaves the mailbox waiting', async () => {
    await send(1);
    expect(await want('one', 0, false)).toMatchObject({ type: 'received' });
    expect(await want('two', 1, false)).toMatchObject({ type: 'waiting' });
    expect(await want('one', 0, false)).toMatchObject({ type: 'received' });
    // Else no sender would be told to wake the second step.
    expect(await waiting()).toBe(true);
  });
});
