import { sql } from 'drizzle-orm';
import { createQueue, defineJob, unvalidated } from 'drizzle-queue';
import * as control from 'drizzle-queue/schema/control';
import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { pruneKeys } from '../../src/features/keys/queries/prune-keys.ts';
import { claim, clearTables, jobRow, tables } from '../queries/support/jobs.ts';
import {
  type Backend,
  begin,
  commit,
  rollback,
  twoBackends,
  untilBlocked,
} from '../queries/support/locks.ts';
import { addControlTables } from '../support/control-tables.ts';
import { useTestDatabase } from '../support/test-database.ts';

const database = useTestDatabase({ max: 10 });
let one: Backend;
let two: Backend;

beforeAll(async () => {
  await addControlTables(database);
  [one, two] = await twoBackends(database);
});

beforeEach(async () => {
  await clearTables(database.client);
  await database.client.unsafe('delete from queue_keys');
});

const queue = createQueue({ keys: control.queueKeys });
interface Call {
  readonly key: string;
  readonly n: number;
}
const sync = defineJob('sync', { payload: unvalidated<Call>(), queue: 'q' });
const call = (n: number, key = 'a'): Call => ({ key, n });

/** How many jobs are to be claimed yet, now or later. */
const unclaimed = async ({ client }: Pick<Backend, 'client'>): Promise<number> =>
  (await client`select from queue_jobs where worker_id is null`).length;

const claimOne = (db: Backend['db']) => claim(db, { kinds: ['sync'], limit: 1 });

describe('replace against a claim', () => {
  const replace = { key: 'a' };

  test('that came first: waits for it, and is a job of its own', async () => {
    const first = await queue.enqueue(database.db, sync, call(1), { replace });
    await begin(one);
    expect(await claimOne(one.db)).toMatchObject([{ id: first.id, payload: call(1) }]);
    const second = queue.enqueue(two.db, sync, call(2), { replace });
    await untilBlocked(database, two);
    await commit(one);
    const { id, outcome } = await second;
    expect(outcome).toBe('enqueued');
    expect((await jobRow(database.client, first.id))?.payload).toEqual(call(1));
    expect((await jobRow(database.client, id))?.payload).toEqual(call(2));
  });

  test('that came first and was rolled back: replaces the job after all', async () => {
    const first = await queue.enqueue(database.db, sync, call(1), { replace });
    await begin(one);
    await claimOne(one.db);
    const second = queue.enqueue(two.db, sync, call(2), { replace });
    await untilBlocked(database, two);
    await rollback(one);
    expect(await second).toMatchObject({ id: first.id, outcome: 'replaced' });
    expect(await claimOne(one.db)).toMatchObject([{ payload: call(2) }]);
  });

  test('that comes second: is passed over by it until its transaction ends', async () => {
    const first = await queue.enqueue(database.db, sync, call(1), { replace });
    for (const [end, payload] of [
      [rollback, call(1)],
      [commit, call(3)],
    ] as const) {
      await begin(one);
      await queue.enqueue(one.db, sync, call(3), { replace });
      expect(await claimOne(two.db)).toEqual([]);
      await end(one);
      await begin(two);
      expect(await claimOne(two.db)).toMatchObject([{ id: first.id, payload }]);
      await (end === rollback ? rollback(two) : commit(two));
    }
  });
});

describe('two transactions with one key', () => {
  test.each(['debounce', 'replace', 'waiting'] as const)(
    '%s: the second waits for the first',
    async (rule) => {
      const enqueue = (db: Backend['db'], n: number) => {
        if (rule === 'debounce')
          return queue.enqueue(db, sync, call(n), { debounce: { key: 'a', delayMs: 5_000 } });
        if (rule === 'replace') return queue.enqueue(db, sync, call(n), { replace: { key: 'a' } });
        return queue.enqueue(db, sync, call(n), { uniqueKey: 'a', unique: 'waiting' });
      };
      for (const end of [commit, rollback]) {
        await clearTables(database.client);
        await begin(one);
        const first = await enqueue(one.db, 1);
        const second = enqueue(two.db, 2);
        await untilBlocked(database, two);
        await end(one);
        const { id, outcome } = await second;
        if (end === rollback) expect(outcome).toBe('enqueued');
        else
          expect({ id, outcome }).toEqual({
            id: first.id,
            outcome: rule === 'waiting' ? 'duplicate' : 'replaced',
          });
        const n = end === commit && rule === 'waiting' ? 1 : 2;
        expect((await jobRow(database.client, id))?.payload).toEqual(call(n));
        expect(await database.client`select from queue_jobs`).toHaveLength(1);
      }
    },
  );

  test.each([false, true])('throttle, trailing: %s: the second waits for the first', async (trailing) => {
    const enqueue = (db: Backend['db'], n: number) =>
      trailing
        ? queue.enqueue(db, sync, call(n), { throttle: { key: 'a', perMs: 60_000, trailing: true } })
        : queue.enqueue(db, sync, call(n), { throttle: { key: 'a', perMs: 60_000 } });
    for (const end of [commit, rollback]) {
      await clearTables(database.client);
      await database.client`delete from queue_keys`;
      await begin(one);
      await enqueue(one.db, 1);
      const second = enqueue(two.db, 2);
      await untilBlocked(database, two);
      await end(one);
      const refused = trailing ? 'replaced' : 'throttled';
      expect((await second).outcome).toBe(end === commit ? refused : 'enqueued');
      expect(await database.client`select from queue_jobs`).toHaveLength(1);
    }
  });

  test('a throttled call waits for nobody once the key is taken', async () => {
    const throttle = { key: 'a', perMs: 60_000 };
    await queue.enqueue(database.db, sync, call(1), { throttle });
    await begin(one);
    await queue.enqueue(one.db, sync, call(2), { throttle });
    await one.client`select from queue_keys for update`;
    expect((await queue.enqueue(two.db, sync, call(3), { throttle })).outcome).toBe('throttled');
    await commit(one);
  });

  test('a key that a prune is just deleting is taken anew', async () => {
    const throttle = { key: 'a', perMs: 60_000 };
    await queue.enqueue(database.db, sync, call(1), { throttle });
    await database.client`update queue_keys set until = now() - interval '1 s'`;
    await begin(one);
    expect(await pruneKeys(one.db, { tables, keys: control.queueKeys }, 10)).toMatchObject({ pruned: 1 });
    const second = queue.enqueue(two.db, sync, call(2), { throttle });
    await untilBlocked(database, two);
    await commit(one);
    expect((await second).outcome).toBe('enqueued');
    expect((await queue.enqueue(two.db, sync, call(3), { throttle })).outcome).toBe('throttled');
    // And a prune passes over one that is just being taken.
    await database.client`update queue_keys set until = now() - interval '1 s'`;
    await begin(one);
    await queue.enqueue(one.db, sync, call(4), { throttle });
    expect(await pruneKeys(two.db, { tables, keys: control.queueKeys }, 10)).toMatchObject({ pruned: 0 });
    await commit(one);
  });
});

describe('under repeatable read', () => {
  test('a key that was enqueued since is a serialization failure', async () => {
    const { client } = one;
    for (const send of [
      (db: Backend['db']) => queue.enqueue(db, sync, call(1), { replace: { key: 'a' } }),
      (db: Backend['db']) => queue.enqueue(db, sync, call(1), { throttle: { key: 'a', perMs: 60_000 } }),
    ]) {
      await begin(one, 'repeatable read');
      await client`select from queue_jobs`;
      await send(two.db);
      await expect(send(one.db)).rejects.toMatchObject({ cause: { code: '40001' } });
      await rollback(one);
    }
  });
});

describe('many at once', { timeout: 240_000 }, () => {
  test('bulks in opposite orders do not deadlock', async () => {
    const connections = await database.connect(6);
    const keys = Array.from({ length: 60 }, (_, n) => `key ${n}`);
    const options = [
      (key: string) => ({ debounce: { key, delayMs: 5 } }),
      (key: string) => ({ replace: { key } }),
      (key: string) => ({ uniqueKey: key, unique: 'waiting' as const }),
      (key: string) => ({ throttle: { key, perMs: 60_000, trailing: true as const } }),
    ];
    for (const of of options) {
      await clearTables(database.client);
      await Promise.all(
        connections.map(async ({ db }, place) => {
          const ordered = place % 2 === 0 ? keys : keys.toReversed();
          for (let round = 0; round < 5; round++) {
            await queue.enqueueMany(
              db,
              sync,
              ordered.map((key) => ({ payload: call(round, key), ...of(key) })),
            );
          }
        }),
      );
      expect(await database.client`select from queue_jobs`).toHaveLength(keys.length);
    }
    await database.client`delete from queue_keys`;
    const throttled = await Promise.all(
      connections.map(async ({ db }, place) =>
        queue.enqueueMany(
          db,
          sync,
          (place % 2 === 0 ? keys : keys.toReversed()).map((key) => ({
            payload: call(0, key),
            throttle: { key, perMs: 60_000 },
          })),
        ),
      ),
    );
    const through = throttled.flat().filter(({ outcome }) => outcome === 'enqueued');
    expect(through).toHaveLength(keys.length);
  });

  test('every debounced call is covered by a run that began after it, with what it said or later', async () => {
    const callers = await database.connect(8);
    const [claimer] = await database.connect();
    if (claimer === undefined) throw new Error('no connection');
    // What a call writes while it holds its key stands in the order of the calls with that key.
    await database.client.unsafe('create table calls (n bigserial, caller int, call int, job int8)');
    const keys = ['a', 'b', 'c'];
    const said = defineJob('sync', { payload: unvalidated<{ caller: number; call: number }>(), queue: 'q' });
    const runs = new Map<number, { caller: number; call: number }>();
    let calling = true;
    const claiming = (async () => {
      for (let isOver = false; !isOver; ) {
        const isAfterTheLast = !calling;
        const jobs = await claim(claimer.db, { kinds: ['sync'], limit: 10 });
        for (const { id, payload } of jobs) {
          expect(runs.has(id)).toBe(false);
          runs.set(id, payload as { caller: number; call: number });
        }
        isOver = isAfterTheLast && (await unclaimed(claimer)) === 0;
      }
    })();
    const untilMs = performance.now() + 3_000;
    let called = 0;
    await Promise.all(
      callers.map(async ({ db }, caller) => {
        for (let call = 0; performance.now() < untilMs || called <= 100 || runs.size <= 10; call++) {
          const key = keys[(caller + call) % keys.length] ?? '';
          const undone = db.transaction(async (tx) => {
            const debounce = { key, delayMs: 3, maxWaitMs: 20 };
            const { id } = await queue.enqueue(tx, said, { caller, call }, { debounce });
            await tx.execute(
              sql`insert into calls (caller, call, job) values (${caller}::int, ${call}::int, ${id}::int8)`,
            );
            if (call % 7 === 0) throw new Error('undo');
          });
          if (call % 7 === 0) await expect(undone).rejects.toThrow('undo');
          else {
            await undone;
            called++;
          }
        }
      }),
    );
    calling = false;
    await claiming;
    const calls = await database.client<{ caller: number; call: number; job: string }[]>`
      select caller, call, job from calls order by n`;
    expect(calls.length).toBeGreaterThan(100);
    expect(runs.size).toBeGreaterThan(10);
    expect(runs.size).toBeLessThan(calls.length);
    // The claim of a job ends its calls: it runs once, with what the last of them said.
    const last = new Map(calls.map(({ job, caller, call }) => [Number(job), { caller, call }]));
    expect([...runs].sort(([a], [b]) => a - b)).toEqual([...last].sort(([a], [b]) => a - b));
  });

  test('a throttle lets never more than one through in a window', async () => {
    const callers = await database.connect(10);
    const perMs = 200;
    const untilMs = performance.now() + 2_500;
    let throttled = 0;
    await Promise.all(
      callers.map(async ({ db }, caller) => {
        for (let n = 0; performance.now() < untilMs; n++) {
          const throttle = { key: 'a', perMs };
          const { outcome } = await queue.enqueue(db, sync, call(caller * 1_000_000 + n), { throttle });
          if (outcome === 'throttled') throttled++;
        }
      }),
    );
    const rows = await database.client<{ gap: number | null }[]>`
      select (extract(epoch from created_at - lag(created_at) over (order by created_at)) * 1000)::float8 as gap
      from queue_jobs`;
    const gaps = rows.flatMap(({ gap }) => (gap === null ? [] : [gap]));
    expect(gaps.length).toBeGreaterThan(3);
    expect(Math.min(...gaps)).toBeGreaterThanOrEqual(perMs);
    expect(throttled).toBeGreaterThan(gaps.length);
  });

  test('nor does a trailing one, and the last call is among those that run', async () => {
    const callers = await database.connect(8);
    const [claimer] = await database.connect();
    if (claimer === undefined) throw new Error('no connection');
    const perMs = 150;
    const runs: { readonly dueMs: number; readonly n: number }[] = [];
    let calling = true;
    const claiming = (async () => {
      for (let isOver = false; !isOver; ) {
        const isAfterTheLast = !calling;
        for (const job of await claim(claimer.db, { kinds: ['sync'], limit: 10 })) {
          const row = await jobRow(claimer.client, job.id);
          runs.push({ dueMs: Date.parse(String(row?.run_at)), n: (job.payload as Call).n });
        }
        isOver = isAfterTheLast && (await unclaimed(claimer)) === 0;
      }
    })();
    const untilMs = performance.now() + 2_000;
    await Promise.all(
      callers.map(async ({ db }, caller) => {
        for (let n = 0; performance.now() < untilMs; n++) {
          const throttle = { key: 'a', perMs, trailing: true } as const;
          await queue.enqueue(db, sync, call(caller * 1_000_000 + n), { throttle });
        }
      }),
    );
    const last = await queue.enqueue(database.db, sync, call(-1), {
      throttle: { key: 'a', perMs, trailing: true },
    });
    expect(['enqueued', 'replaced']).toContain(last.outcome);
    calling = false;
    await claiming;
    const due = runs.map(({ dueMs }) => dueMs).sort((a, b) => a - b);
    const gaps = due.slice(1).map((ms, at) => ms - (due[at] ?? 0));
    expect(gaps.length).toBeGreaterThan(3);
    // Dates lose the microseconds.
    expect(Math.min(...gaps)).toBeGreaterThanOrEqual(perMs - 1);
    expect(runs.at(-1)?.n).toBe(-1);
  });
});
