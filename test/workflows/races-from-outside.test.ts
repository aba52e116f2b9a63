import { sql } from 'drizzle-orm';
import { pgTable } from 'drizzle-orm/pg-core';
import { createQueue, defineJob, defineSignal, unvalidated, workflowsIn } from 'drizzle-queue';
import * as workflowTables from 'drizzle-queue/schema/workflows';
import { beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { cancelJob } from '../../src/core/queries/settle/cancel-job.ts';
import { finishJobs } from '../../src/core/queries/settle/finish-jobs.ts';
import type { Executor } from '../../src/core/sql/executor.ts';
import { endMembers } from '../../src/features/batches/queries/end-members.ts';
import { endUnclaimed } from '../../src/features/batches/queries/end-unclaimed.ts';
import { foldTallies } from '../../src/features/batches/queries/fold-tallies.ts';
import { spareMembers } from '../../src/features/batches/queries/spare-members.ts';
import { wakeWaiters } from '../../src/features/batches/queries/wake-waiters.ts';
import { findStepsOfOne } from '../../src/features/workflows/queries/find-steps.ts';
import { finishWaitingJob } from '../../src/features/workflows/queries/finish-waiting-job.ts';
import { receiveSignal } from '../../src/features/workflows/queries/receive-signal.ts';
import { unparkJobs } from '../../src/features/workflows/queries/unpark-jobs.ts';
import { redriveFrom } from '../../src/features/workflows/redrive.ts';
import { Tokens } from '../../src/features/workflows/tokens/tokens.ts';
import { claim, clearTables, jobRow, resultRow, tables } from '../queries/support/jobs.ts';
import { addWorkflowTables, clearWorkflowTables } from '../support/control-tables.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { blocked as blockedIn, whileOpen as openFor, type Tx } from './fixtures/open-transactions.ts';

/**
 * Races between what others do to a job that waits and what the job does itself, in an order that locks decide, and beside each the
 * naive statement that loses it. As in races.test.ts, a naive one that did not lose would show that the test can tell nothing.
 */

const database = useTestDatabase({ max: 6 });
const SECRET = 'a secret of at least 32 bytes, for tests';
const queue = createQueue({ tables, workflows: workflowsIn(workflowTables, { secrets: [SECRET] }) });
const all = { ...tables, ...workflowTables };
const work = defineJob('k', { queue: 'q' });
const answer = defineSignal('answer', unvalidated<number>());
const id = 9;
const whileOpen = (first: (tx: Tx) => Promise<unknown>, others: () => Promise<void>) =>
  openFor(database, first, others);
const blocked = <T>(statement: Promise<T>) => blockedIn(database, statement);

beforeAll(() => addWorkflowTables(database));
beforeEach(async () => {
  await clearTables(database.client);
  await clearWorkflowTables(database);
  // Job 9 is due, and has done two steps.
  await database.client`
    insert into queue_jobs (id, queue, kind, payload, max_attempts, run_at, fence) overriding system value
    values (9, 'q', 'k', '1', 3, now() - interval '1 minute', 5)`;
  await database.client`
    insert into queue_steps (job_id, queue, name, kind, fence, output, started_at, ended_at)
    values (9, 'q', 'one', 'run', 5, '1', now() - interval '4 minutes', now() - interval '3 minutes'),
      (9, 'q', 'two', 'run', 5, '2', now() - interval '2 minutes', now() - interval '1 minute')`;
});

/** Job 9 waits for a signal: for so long, or without a limit of time. */
async function waits(forMs?: number): Promise<void> {
  await database.client`
    insert into queue_steps (job_id, queue, name, kind, signal, fence, started_at, until)
    values (9, 'q', 'answer', 'signal', 'answer', 5, now(), now() + ${forMs ?? null}::float8 * interval '1 ms')`;
  await database.client`
    insert into queue_mailboxes (job_id, queue, name, waiting) values (9, 'q', 'answer', true)`;
  await database.client`
    update queue_jobs
    set blockers = 0, run_at = coalesce(now() + ${forMs ?? null}::float8 * interval '1 ms', 'infinity')`;
}

const job = () => jobRow(database.client, id);
const stateOf = async () => (await resultRow(database.client, id))?.state ?? ((await job()) && 'live');
const steps = async (db: Executor = database.db) =>
  (await findStepsOfOne(db, all, { id, queue: 'q' })).map(({ name }) => name);

describe('finish, while an attempt ends the wait', () => {
  const finish = () =>
    finishWaitingJob(database.db, all, { to: { queue: 'q', id }, output: '7', keepResult: true });
  /** As in the transaction of `runNext`: the wait is over, and the attempt after it has failed. */
  const attempt = async (tx: Tx) => {
    await tx.execute(sql`update queue_steps set ended_at = now(), output = '7' where name = 'answer'`);
    await tx.execute(sql`
      update queue_jobs
      set fence = fence + 1, attempt = 1, blockers = null, run_at = now() + interval '1 hour' where id = 9`);
  };

  beforeEach(() => waits(3_600_000));

  test('does nothing before the commit, nor after it: the job no longer waits', async () => {
    await whileOpen(attempt, async () => expect(await finish()).toBe(false));
    expect(await finish()).toBe(false);
    expect(await stateOf()).toBe('live');
  });

  describe('of a job that has not heard of all that it waited for', () => {
    beforeEach(async () => {
      await database.client`delete from queue_steps where name = 'answer'`;
      await database.client`
        insert into queue_batches (id, total, pending) overriding system value values (1, 1, 1)`;
    });
    const waitsForBatch = async (policy: 'run' | 'detached') => {
      await database.client`
        insert into queue_waits (batch_id, job_id, queue, policy) values (1, 9, 'q', ${policy})`;
      await database.client`update queue_jobs set blockers = ${policy === 'run' ? 1 : -1}`;
    };

    test('ends one that waits before it begins, until its deadline', async () => {
      await waitsForBatch('run');
      expect(await finish()).toBe(true);
    });

    test('leaves one alone whose attempt was given back, or which was put back to an earlier step', async () => {
      await waitsForBatch('detached');
      await database.client`update queue_jobs set run_at = now()`;
      expect(await finish()).toBe(false);
    });

    test('leaves one alone that is to be tried again', async () => {
      await waitsForBatch('detached');
      await database.client`update queue_jobs set attempt = 1, blockers = null`;
      expect(await finish()).toBe(false);
    });
  });

  test('does nothing when the attempt commits between its look at the steps and its lock', async () => {
    await database.client`
      create view slow_steps as select s.* from queue_steps as s where pg_advisory_xact_lock_shared(9) is not null`;
    onTestFinished(async () => {
      await database.client`drop view slow_steps`;
    });
    // It was woken, so its steps say whether it still waits.
    await database.client`update queue_jobs set run_at = now()`;
    // Only its name is used, and the columns are those of the table.
    const slow = { ...all, queueSteps: pgTable('slow_steps', {}) as unknown as typeof all.queueSteps };
    let finishing: Promise<boolean> = Promise.resolve(true);
    await whileOpen(
      (tx) => tx.execute(sql`select pg_advisory_xact_lock(9)`),
      async () => {
        const to = { queue: 'q', id };
        const sent = finishWaitingJob(database.db, slow, { to, output: '7', keepResult: true });
        finishing = (await blocked(sent)).answer;
        await database.db.transaction(attempt);
      },
    );
    expect(await finishing).toBe(false);
    expect(await stateOf()).toBe('live');
  });

  test('naively, by a lock that it waits for: it has read the steps before, and ends a job that is to be tried again', async () => {
    let finishing: Promise<{ readonly length: number }> = Promise.resolve([]);
    await whileOpen(attempt, async () => {
      finishing = (
        await blocked(
          database.client`
            with free as materialized (
              select id from queue_jobs as j where id = 9 and worker_id is null and exists (
                select from queue_steps where job_id = j.id and ended_at is null
              ) for update
            )
            delete from queue_jobs where id in (select id from free) returning id`.then((rows) => rows),
        )
      ).answer;
    });
    expect(await finishing).toHaveLength(1);
    expect(await stateOf()).toBeUndefined();
  });
});

describe('finish, while a claim takes the job', () => {
  const finish = () => queue.workflows.finish(database.db, { job: work, id }, 'by hand');
  /** What the attempt does at its end. */
  const complete = async (workerId: number, fence: number) => {
    const end = {
      type: 'finish',
      state: 'completed',
      output: '"by itself"',
      error: null,
      keepResult: true,
    } as const;
    const holder = { queue: 'q', workerId };
    return await finishJobs(database.db, tables, holder, [{ id, fence, transition: end }]);
  };

  beforeEach(async () => {
    // It waited, and its signal has just come.
    await waits();
    await database.client`update queue_jobs set run_at = now() - interval '1 second'`;
  });

  test('leaves it to the claim, which does not wait for it either', async () => {
    await whileOpen(
      (tx) => claim(tx),
      async () => expect(await finish()).toBe('locked'),
    );
    expect(await finish()).toBe('running');
    expect(await complete(1, Number((await job())?.fence))).toEqual(new Set([id]));
    expect(await resultRow(database.client, id)).toMatchObject({ output: 'by itself' });
  });

  test('the other way round: a claim leaves the job that is being finished', async () => {
    await whileOpen(
      async (tx) => expect(await queue.workflows.finish(tx, { job: work, id }, 'by hand')).toBe('finished'),
      async () => expect(await claim(database.db)).toEqual([]),
    );
    expect(await claim(database.db)).toEqual([]);
    expect(await resultRow(database.client, id)).toMatchObject({ output: 'by hand' });
  });

  test('naively, by a look and a delete after it: the attempt that has begun in between loses its job', async () => {
    const found = await database.client`select id from queue_jobs where id = 9 and worker_id is null`;
    expect(found).toHaveLength(1);
    const [claimed] = await claim(database.db);
    await database.client`delete from queue_jobs where id = 9`;
    expect(await complete(1, Number(claimed?.fence))).toEqual(new Set());
  });
});

describe('a wake-up of a job that is just being cancelled', () => {
  const reason = { attempt: 0, name: 'Cancelled', message: 'no longer wanted' };
  const cancel = (db: Executor) => cancelJob(db, tables, { id, queue: 'q', reason });
  const unpark = (db: Executor) =>
    unparkJobs(db, tables, { queue: 'q', ids: [id], onlyWaiting: true, channel: undefined });

  beforeEach(() => waits());

  test('comes after it, and says that nothing was woken', async () => {
    let waking: Promise<ReadonlySet<number>> = Promise.resolve(new Set([id]));
    await whileOpen(cancel, async () => {
      waking = (await blocked(unpark(database.db))).answer;
    });
    expect(await waking).toEqual(new Set());
    expect(await stateOf()).toBe('cancelled');
  });

  test('naively, by a look and an update after it: it says that it has woken a job that is gone', async () => {
    let woken: readonly unknown[] = [];
    let waking: Promise<unknown> = Promise.resolve();
    await whileOpen(cancel, async () => {
      woken = await database.client`select id::int from queue_jobs where id = 9 and run_at = 'infinity'`;
      const update = database.client`update queue_jobs set run_at = now() where id = 9`.then((rows) => rows);
      waking = (await blocked(update)).answer;
    });
    await waking;
    expect(woken).toEqual([{ id }]);
    expect(await stateOf()).toBe('cancelled');
  });

  test('the other way round: the cancel leaves the row that is locked, says so, and ends the job after it', async () => {
    await whileOpen(unpark, async () => {
      expect(await queue.cancel(database.db, id)).toEqual({ cancelled: false, reason: 'locked' });
    });
    expect(await queue.cancel(database.db, id)).toEqual({ cancelled: true });
  });

  test('naively, with the wait in its where: it waits for the wake-up, and the job that it should end runs', async () => {
    let cancelling: Promise<{ readonly length: number }> = Promise.resolve([]);
    await whileOpen(unpark, async () => {
      const remove = database.client`
        delete from queue_jobs where id = 9 and worker_id is null and run_at = 'infinity' returning id`;
      cancelling = (await blocked(remove.then((rows) => rows))).answer;
    });
    expect(await cancelling).toHaveLength(0);
    expect(await claim(database.db)).toHaveLength(1);
  });
});

describe('a token that is redeemed while the timeout of its wait is over', () => {
  const tokens = new Tokens([SECRET]);
  const holder = { queue: 'q', workerId: 1 };
  const redeem = async (db: Executor, value: number) => {
    const name = 'token: answer';
    const token = await tokens.make({ jobId: id, signal: 'answer', name, expiresAt: undefined });
    return await queue.workflows.redeem(db, answer, token, value);
  };
  const receive = async (db: Executor, name = 'answer') => {
    const fence = Number((await job())?.fence);
    const wanted = { id, fence, name, signal: 'answer', at: 0, timeoutMs: 0 };
    return await receiveSignal(db, all, holder, wanted, 'wait');
  };

  beforeEach(async () => {
    await waits(0);
    expect(await claim(database.db)).toHaveLength(1);
  });

  test('before the wait decides: it is received', async () => {
    let receiving: Promise<unknown> = Promise.resolve();
    await whileOpen(
      async (tx) => expect(await redeem(tx, 7)).toBe('sent'),
      async () => {
        receiving = (await blocked(receive(database.db))).answer;
      },
    );
    expect(await receiving).toEqual({ type: 'received', value: 7 });
    expect(await redeem(database.db, 8)).toBe('duplicate');
  });

  test('naively, by a look at the mailbox without its lock: it was redeemed first, and came too late', async () => {
    await whileOpen(
      async (tx) => expect(await redeem(tx, 7)).toBe('sent'),
      () =>
        database.client`
          update queue_steps as s set ended_at = now(), output = m.sent -> 0 -> 'value'
          from queue_mailboxes as m where m.job_id = 9 and s.name = 'answer' and s.until <= now()`.then(),
    );
    expect(await receive(database.db)).toEqual({ type: 'late' });
  });

  test('after the wait has decided: it goes to the next wait, and to no other', async () => {
    let redeeming: Promise<unknown> = Promise.resolve();
    await whileOpen(
      async (tx) => expect(await receive(tx)).toEqual({ type: 'late' }),
      async () => {
        redeeming = (await blocked(redeem(database.db, 7))).answer;
      },
    );
    expect(await redeeming).toBe('sent');
    expect(await receive(database.db)).toEqual({ type: 'late' });
    expect(await receive(database.db, 'next')).toEqual({ type: 'received', value: 7 });
  });

  test('naively, by a look at the step that waits: it says that it is in time, and is late', async () => {
    let redeeming: Promise<{ readonly length: number }> = Promise.resolve([]);
    await whileOpen(receive, async () => {
      const send = database.client`
        update queue_mailboxes as m set sent = sent || '[{"id": "s", "value": 7}]' where exists (
          select from queue_steps as s where s.job_id = m.job_id and s.signal = m.name and s.ended_at is null
        ) returning job_id`;
      redeeming = (await blocked(send.then((rows) => rows))).answer;
    });
    expect(await redeeming).toHaveLength(1);
    expect(await receive(database.db)).toEqual({ type: 'late' });
  });

  const sent = async () => {
    const [box] = await database.client`select jsonb_array_length(sent) as n from queue_mailboxes`;
    return box?.n;
  };

  test('twice at once: the second waits for the first, and is a duplicate', async () => {
    let second: Promise<unknown> = Promise.resolve();
    await whileOpen(
      async (tx) => expect(await redeem(tx, 7)).toBe('sent'),
      async () => {
        second = (await blocked(redeem(database.db, 8))).answer;
      },
    );
    expect(await second).toBe('duplicate');
    expect(await sent()).toBe(1);
  });

  test('naively, by a look for its key before the lock: it is redeemed twice', async () => {
    const key = JSON.stringify([{ key: 'drizzle_queue.token:token: answer' }]);
    let second: Promise<unknown> = Promise.resolve();
    await whileOpen(
      async (tx) => expect(await redeem(tx, 7)).toBe('sent'),
      async () => {
        const send = database.client`
          insert into queue_mailboxes as m (job_id, queue, name, sent)
          select 9, 'q', 'answer', ${key}::text::jsonb
          where not exists (select from queue_mailboxes where sent @> ${key}::text::jsonb)
          on conflict (job_id, queue, name) do update set sent = m.sent || excluded.sent`;
        second = (await blocked(send.then())).answer;
      },
    );
    await second;
    expect(await sent()).toBe(2);
  });
});

describe('a redrive from a step, while a claim takes the job', () => {
  const redrive = (db: Executor) => redriveFrom(db, all, { id, from: 'two' }, undefined);
  const naiveForget = () => database.client`delete from queue_steps where name = 'two'`.then();

  test('keeps the claim away until the step is forgotten', async () => {
    await whileOpen(
      async (tx) => expect(await redrive(tx)).toBe('redriven'),
      async () => expect(await claim(database.db)).toEqual([]),
    );
    expect(await claim(database.db)).toHaveLength(1);
    expect(await steps()).toEqual(['one']);
  });

  test('changes nothing once the claim has it', async () => {
    await whileOpen(
      (tx) => claim(tx),
      async () => expect(await redrive(database.db)).toBe('locked'),
    );
    expect(await redrive(database.db)).toBe('running');
    expect(await steps()).toEqual(['one', 'two']);
  });

  test('naively, by a look and a delete after it: an attempt goes on from a step that is forgotten', async () => {
    const free = await database.client`select id from queue_jobs where id = 9 and worker_id is null`;
    expect(free).toHaveLength(1);
    expect(await claim(database.db)).toHaveLength(1);
    const known = await steps();
    await naiveForget();
    // It does not do the step again, and nothing is left of it.
    expect([known, await steps()]).toEqual([['one', 'two'], ['one']]);
  });

  describe('that was discarded', () => {
    beforeEach(async () => {
      const [held] = await claim(database.db);
      const end = {
        type: 'finish',
        state: 'discarded',
        output: null,
        error: null,
        keepResult: true,
      } as const;
      const holder = { queue: 'q', workerId: 1 };
      const fence = Number(held?.fence);
      expect(await finishJobs(database.db, tables, holder, [{ id, fence, transition: end }])).toEqual(
        new Set([id]),
      );
    });

    test('puts it back with its steps as they are to be', async () => {
      await whileOpen(
        async (tx) => expect(await redrive(tx)).toBe('redriven'),
        async () => expect(await claim(database.db)).toEqual([]),
      );
      expect(await claim(database.db)).toHaveLength(1);
      expect(await steps()).toEqual(['one']);
    });

    test('naively, by a redrive and a delete after it: an attempt goes on from a step that is forgotten', async () => {
      expect(await queue.redrive(database.db, id)).toMatchObject({ redriven: 1 });
      expect(await claim(database.db)).toHaveLength(1);
      const known = await steps();
      await naiveForget();
      expect([known, await steps()]).toEqual([['one', 'two'], ['one']]);
    });
  });
});

describe('a redrive of a flow', () => {
  /** Job 1 of batch 1 has failed, so job 9, which waits for it, is to end; a fold could not write its row. */
  beforeEach(async () => {
    await database.client`
      insert into queue_batches (id, flow_id, total, pending, failed, ended_at) overriding system value
      values (1, 1, 1, 0, 1, now())`;
    await database.client`
      insert into queue_results (job_id, queue, kind, payload, state, attempt, max_attempts, fence, priority,
        batch_id, errors, metadata, run_at, created_at)
      values (1, 'q', 'k', '1', 'discarded', 1, 1, 1, 5, 1, '[]', '{}', now(), now())`;
    await database.client`insert into queue_waits (batch_id, job_id, queue, policy) values (1, 9, 'q', 'cancel')`;
    await database.client`delete from queue_steps`;
    await database.client`update queue_jobs set blockers = 1, run_at = 'infinity'`;
  });

  test('is seen by a look for unwoken jobs that has begun before it: none is cancelled for the failure', async () => {
    await database.client`
      create view slow_waits as select w.* from queue_waits as w where pg_advisory_xact_lock_shared(9) is not null`;
    onTestFinished(async () => {
      await database.client`drop view slow_waits`;
    });
    // Only its name is used, and the columns are those of the table.
    const slow = { ...all, queueWaits: pgTable('slow_waits', {}) as unknown as typeof all.queueWaits };
    let waking: Promise<number> = Promise.resolve(1);
    await whileOpen(
      (tx) => tx.execute(sql`select pg_advisory_xact_lock(9)`),
      async () => {
        const wake = { queue: 'q', ids: [id], channel: undefined };
        waking = (await blocked(wakeWaiters(database.db, slow, wake))).answer;
        expect(await queue.workflows.redriveFlow(database.db, 1)).toBe(1);
      },
    );
    expect(await waking).toBe(0);
    expect(await job()).toMatchObject({ blockers: 1, cancel_reason: null });
  });

  test('naively, by a look and an update after it: a job of the flow that goes on is cancelled for the failure', async () => {
    const failed = await database.client`
      select w.job_id::int as id from queue_waits as w join queue_batches as b on b.id = w.batch_id
      where w.policy = 'cancel' and b.failed > 0`;
    expect(await queue.workflows.redriveFlow(database.db, 1)).toBe(1);
    await database.client`
      update queue_jobs set cancel_reason = 'failed before', run_at = now()
      where id = ${failed[0]?.id} and run_at = 'infinity'`;
    expect(await job()).toMatchObject({ cancel_reason: 'failed before' });
  });

  test('leaves a member alone that is being asked to end: that comes first, and is taken back', async () => {
    await database.client`
      insert into queue_jobs (id, queue, kind, payload, max_attempts, batch_id) overriding system value
      values (2, 'q', 'k', '1', 3, 1)`;
    await database.client`
      update queue_batches set total = 2, pending = 1, ended_at = null, cancel_reason = 'no longer wanted'`;
    let redriving: Promise<number> = Promise.resolve(0);
    const end = { queue: 'q', ids: [2], channel: undefined };
    await whileOpen(
      async (tx) => expect(await endMembers(tx, all, end)).toBe(1),
      async () => {
        redriving = (await blocked(queue.workflows.redriveFlow(database.db, 1))).answer;
      },
    );
    expect(await redriving).toBe(1);
    expect(await jobRow(database.client, 2)).toMatchObject({ cancel_reason: null });
  });

  test('the other way round: a member is not asked to end for what the redrive has taken back', async () => {
    await database.client`
      insert into queue_jobs (id, queue, kind, payload, max_attempts, batch_id) overriding system value
      values (2, 'q', 'k', '1', 3, 1)`;
    await database.client`
      update queue_batches set total = 2, pending = 1, ended_at = null, cancel_reason = 'no longer wanted'`;
    const end = { queue: 'q', ids: [2], channel: undefined };
    await whileOpen(
      (tx) => queue.workflows.redriveFlow(tx, 1),
      async () => expect(await endMembers(database.db, all, end)).toBe(0),
    );
    expect(await endMembers(database.db, all, end)).toBe(0);
    expect(await jobRow(database.client, 2)).toMatchObject({ cancel_reason: null });
  });

  test('naively, by the reason that the batch had before: a member of the flow that goes on is asked to end', async () => {
    await database.client`
      insert into queue_jobs (id, queue, kind, payload, max_attempts, batch_id) overriding system value
      values (2, 'q', 'k', '1', 3, 1)`;
    await database.client`
      update queue_batches set total = 2, pending = 1, ended_at = null, cancel_reason = 'no longer wanted'`;
    await whileOpen(
      (tx) => queue.workflows.redriveFlow(tx, 1),
      () =>
        database.client`
          update queue_jobs as j set cancel_reason = b.cancel_reason from queue_batches as b
          where j.id = 2 and b.id = j.batch_id and b.cancel_reason is not null`.then(),
    );
    expect(await jobRow(database.client, 2)).toMatchObject({ cancel_reason: 'no longer wanted' });
  });
});

describe('a redrive of a flow, and a count that makes a job of it due', () => {
  const fold = (db: Executor = database.db) => foldTallies(db, all, { channel: undefined, locks: 'briefly' });
  const redrive = (db: Executor = database.db) => queue.workflows.redriveFlow(db, 1);

  /** Job 1 of batch 1 has failed, which is not counted; job 9 waits for it, and runs whatever has become of it. */
  beforeEach(async () => {
    await database.client`
      insert into queue_batches (id, flow_id, total, pending) overriding system value values (1, 1, 1, 1)`;
    await database.client`insert into queue_tallies (batch_id, ended, failed) values (1, 1, 1)`;
    await database.client`
      insert into queue_results (job_id, queue, kind, payload, state, attempt, max_attempts, fence, priority,
        batch_id, errors, metadata, run_at, created_at)
      values (1, 'q', 'k', '1', 'discarded', 1, 1, 1, 5, 1, '[]', '{}', now(), now())`;
    await database.client`insert into queue_waits (batch_id, job_id, queue, policy) values (1, 9, 'q', 'run')`;
    await database.client`delete from queue_steps`;
    await database.client`update queue_jobs set blockers = 1, run_at = 'infinity'`;
  });

  const isParked = async () =>
    (await database.client`select from queue_jobs where id = 9 and run_at = 'infinity'`).length === 1;
  const isOver = async () =>
    (await database.client`select from queue_batches where id = 1 and ended_at is not null`).length === 1;
  /** Job 1 runs again, and completes. */
  async function ends(): Promise<void> {
    expect(await claim(database.db)).toHaveLength(1);
    await database.db.transaction(async (tx) => {
      await tx.execute(sql`delete from queue_jobs where id = 1`);
      await tx.execute(sql`insert into queue_tallies (batch_id, ended) values (1, 1)`);
    });
    expect(await fold()).toMatchObject({ woken: ['q'] });
    expect([await isOver(), await isParked()]).toEqual([true, false]);
  }

  test('the count comes first: the job waits again', async () => {
    let redriving: Promise<number> = Promise.resolve(0);
    await whileOpen(
      async (tx) => expect(await fold(tx)).toMatchObject({ woken: ['q'] }),
      async () => {
        redriving = (await blocked(redrive())).answer;
      },
    );
    expect(await redriving).toBe(1);
    expect([await isOver(), await isParked()]).toEqual([false, true]);
    await ends();
  });

  test('the redrive comes first: a count leaves the batch to it, and then makes nothing due', async () => {
    await whileOpen(
      async (tx) => expect(await redrive(tx)).toBe(1),
      async () => expect(await fold()).toMatchObject({ tallies: 0, busy: [1] }),
    );
    expect(await fold()).toMatchObject({ woken: [] });
    expect([await isOver(), await isParked()]).toEqual([false, true]);
    await ends();
  });

  test('the redrive comes while a count has looked at the tallies: that leaves the batch to the next one', async () => {
    const { client, db } = database;
    await client`
      create view slow_tallies as
      select t.* from queue_tallies as t where pg_advisory_xact_lock_shared(9) is not null`;
    onTestFinished(async () => void (await client`drop view slow_tallies`));
    const slow = { ...all, queueTallies: pgTable('slow_tallies', {}) as unknown as typeof all.queueTallies };
    let folding: Promise<unknown> = Promise.resolve();
    await client.begin(async (holder) => {
      await holder`select pg_advisory_xact_lock(9)`;
      folding = (await blocked(foldTallies(db, slow, { channel: undefined, locks: 'briefly' }))).answer;
      expect(await redrive()).toBe(1);
    });
    expect(await folding).toMatchObject({ tallies: 0, busy: [1] });
    expect(await fold()).toMatchObject({ woken: [] });
    expect([await isOver(), await isParked()]).toEqual([false, true]);
    await ends();
  });

  test('naively, by a look at the batch without its lock: the job waits for one that is over', async () => {
    let parking: Promise<unknown> = Promise.resolve();
    await whileOpen(fold, async () => {
      const park = database.client`
        update queue_jobs set blockers = 1, run_at = 'infinity'
        where id = 9 and exists (select from queue_batches where id = 1 and ended_at is null)`;
      parking = (await blocked(park.then())).answer;
    });
    await parking;
    expect(await fold()).toMatchObject({ tallies: 0, woken: [] });
    expect([await isOver(), await isParked()]).toEqual([true, true]);
  });

  test('a job that has begun, and that a signal is just waking, is left alone', async () => {
    await database.client`
      insert into queue_steps (job_id, queue, name, kind, fence, started_at, ended_at)
      values (9, 'q', 'one', 'run', 5, now(), now())`;
    await waits();
    let redriving: Promise<number> = Promise.resolve(0);
    await whileOpen(
      (tx) => unparkJobs(tx, tables, { queue: 'q', ids: [id], onlyWaiting: true, channel: undefined }),
      async () => {
        redriving = (await blocked(redrive())).answer;
      },
    );
    expect(await redriving).toBe(1);
    expect([await isOver(), await isParked()]).toEqual([false, false]);
  });
});

describe('ending a job that was asked to end and that no claim has taken', () => {
  const end = (db: Executor = database.db) => endUnclaimed(db, all, { queue: 'q', ids: [id] });

  beforeEach(async () => {
    await database.client`update queue_jobs set cancel_reason = 'no longer wanted' where id = 9`;
  });

  test('leaves it to a claim that is just taking it, and that has taken it', async () => {
    await whileOpen(
      (tx) => claim(tx),
      async () => expect(await end()).toEqual({ jobs: 0, batchIds: [] }),
    );
    expect(await end()).toEqual({ jobs: 0, batchIds: [] });
    expect(await job()).toMatchObject({ worker_id: expect.anything() });
  });

  test('naively, by a look and a delete after it: the job that a worker has just claimed is gone', async () => {
    let deleting: Promise<{ readonly length: number }> = Promise.resolve([]);
    await whileOpen(
      async (tx) => expect(await claim(tx)).toHaveLength(1),
      async () => {
        const found = await database.client`
          select id::int from queue_jobs where worker_id is null and cancel_reason is not null`;
        expect(found).toEqual([{ id }]);
        const remove = database.client`delete from queue_jobs where id = ${id} returning worker_id`;
        deleting = (await blocked(remove.then((rows) => rows))).answer;
      },
    );
    expect(await deleting).toEqual([{ worker_id: expect.anything() }]);
  });

  test('the other way round: a claim leaves the job, which ends once, for the reason in its row', async () => {
    await whileOpen(
      async (tx) => expect(await end(tx)).toEqual({ jobs: 1, batchIds: [] }),
      async () => expect(await claim(database.db)).toEqual([]),
    );
    expect(await end()).toEqual({ jobs: 0, batchIds: [] });
    expect(await resultRow(database.client, id)).toMatchObject({
      state: 'cancelled',
      errors: [{ name: 'Cancelled', message: 'no longer wanted' }],
    });
  });

  test('leaves one alone whose request is just being taken back', async () => {
    const spare = { queue: 'q', ids: [id] };
    await whileOpen(
      (tx) => spareMembers(tx, all, spare),
      async () => expect(await end()).toEqual({ jobs: 0, batchIds: [] }),
    );
    expect(await end()).toEqual({ jobs: 0, batchIds: [] });
    expect(await stateOf()).toBe('live');
  });
});
