import { sql } from 'drizzle-orm';
import type { Logger } from 'drizzle-orm/logger';
import { drizzle } from 'drizzle-orm/postgres-js';
import { beforeEach, describe, expect, test } from 'vitest';
import type { Finish } from '../../src/core/job/transition.ts';
import { type CompletionResult, completeJobs } from '../../src/core/queries/settle/complete-job.ts';
import type { Transaction } from '../../src/core/sql/executor.ts';
import type { Holder } from '../../src/core/sql/fence.ts';
import { type Connection, useTestDatabase } from '../support/test-database.ts';
import { addJob, clearTables, jobRow, resultRow, tables } from './support/jobs.ts';
import { twoBackends, untilBlocked } from './support/locks.ts';

const database = useTestDatabase();

beforeEach(() => clearTables(database.client));

const completed: Finish = {
  type: 'finish',
  state: 'completed',
  output: 'null',
  error: null,
  keepResult: true,
};

interface Given {
  readonly fence?: number;
  readonly held?: Partial<Holder>;
  readonly transition?: Partial<Finish>;
}

/** Ends a job of queue `q`, held by worker 1 under fence 3, inside this transaction. */
function complete(tx: Transaction, id: number, { fence = 3, held, transition }: Given = {}) {
  const finish = { id, fence, transition: { ...completed, ...transition } };
  return completeJobs(tx, tables, { queue: 'q', workerId: 1, ...held }, [finish]);
}

/** The same in a transaction of its own, which has written before; it commits unless it is `undone`. */
async function inTransaction(
  { db }: Pick<Connection, 'db'>,
  id: number,
  { undone = false, ...given }: Given & { readonly undone?: boolean } = {},
): Promise<CompletionResult> {
  let completion: CompletionResult = 'outside';
  const stop = new Error('undone');
  await db
    .transaction(async (tx) => {
      await tx.execute(sql`select pg_current_xact_id()`);
      completion = await complete(tx, id, given);
      if (undone) throw stop;
    })
    .catch((error: unknown) => {
      if (error !== stop) throw error;
    });
  return completion;
}

const lost = (id: number) => ({ lost: [expect.objectContaining({ id })] });

/** With what the library sends as text, and with what it sends as parameters. */
const forms: readonly (readonly [string, Partial<Finish>])[] = [
  ['without an output', {}],
  ['with an output', { output: '{"sent":"it\'s \\\\ done"}' }],
  ['without a result', { keepResult: false }],
  ['with its outcome alone', { keepResult: 'outcome' }],
];

describe.each(forms)('a job that is completed %s', (_, transition) => {
  const isKept = transition.keepResult !== false;

  test('leaves the queue, and its result is as it says', async () => {
    const id = await addJob(database.client, { workerId: 1, fence: 3, attempt: 2, payload: { n: 1 } });
    const job = await jobRow(database.client, id);
    expect(await inTransaction(database, id, { transition })).toBe('completed');
    expect(await jobRow(database.client, id)).toBeUndefined();
    const result = await resultRow(database.client, id);
    if (!isKept) return expect(result).toBeUndefined();
    const { id: _, cancel_reason, progress, waiting_key, blockers, ...rest } = { ...job };
    expect(result).toEqual({
      ...rest,
      job_id: id,
      payload: transition.keepResult === 'outcome' ? null : { n: 1 },
      state: 'completed',
      output: JSON.parse(transition.output ?? 'null'),
      finished_at: result?.finished_at,
    });
  });

  test('is as it was when its transaction rolls back', async () => {
    const id = await addJob(database.client, { workerId: 1, fence: 3 });
    const before = await jobRow(database.client, id);
    expect(await inTransaction(database, id, { transition, undone: true })).toBe('completed');
    expect(await jobRow(database.client, id)).toEqual(before);
    expect(await resultRow(database.client, id)).toBeUndefined();
    expect(await inTransaction(database, id, { transition })).toBe('completed');
  });

  test.each<[string, Given]>([
    ['under an older fence', { fence: 2 }],
    ['under a fence that nobody has given yet', { fence: 4 }],
    ['by another worker', { held: { workerId: 2 } }],
    ['by nobody', { held: { workerId: null } }],
    ['as a job of another queue', { held: { queue: 'other' } }],
  ])('is lost %s', async (_, given) => {
    const id = await addJob(database.client, { workerId: 1, fence: 3 });
    const before = await jobRow(database.client, id);
    expect(await inTransaction(database, id, { ...given, transition })).toEqual(lost(id));
    expect(await jobRow(database.client, id)).toEqual(before);
    expect(await resultRow(database.client, id)).toBeUndefined();
  });

  const losses = {
    'takes it over': 'update queue_jobs set worker_id = 2, fence = fence + 1',
    'gives it back': 'update queue_jobs set worker_id = null',
    'deletes it': 'delete from queue_jobs',
  };

  test.each(Object.entries(losses))('waits for a transaction that %s, and is lost', async (_, change) => {
    const id = await addJob(database.client, { workerId: 1, fence: 3 });
    const [one, two] = await twoBackends(database);
    await one.client.unsafe(`begin; ${change}`);
    const completing = inTransaction(two, id, { transition });
    await untilBlocked(database, two);
    await one.client.unsafe('commit');
    expect(await completing).toEqual(lost(id));
    expect(await resultRow(database.client, id)).toBeUndefined();
  });

  test.each(Object.entries(losses))(
    'waits for a transaction that %s and rolls back, and ends',
    async (_, change) => {
      const id = await addJob(database.client, { workerId: 1, fence: 3 });
      const [one, two] = await twoBackends(database);
      await one.client.unsafe(`begin; ${change}`);
      const completing = inTransaction(two, id, { transition });
      await untilBlocked(database, two);
      await one.client.unsafe('rollback');
      expect(await completing).toBe('completed');
      expect(await jobRow(database.client, id)).toBeUndefined();
    },
  );

  test('waits for a transaction that asks for its end, and has done its work all the same', async () => {
    const id = await addJob(database.client, { workerId: 1, fence: 3 });
    const [one, two] = await twoBackends(database);
    await one.client.unsafe(`begin; update queue_jobs set cancel_reason = 'why', metadata = '{"a": 1}'`);
    const completing = inTransaction(two, id, { transition });
    await untilBlocked(database, two);
    await one.client.unsafe('commit');
    expect(await completing).toBe('completed');
    const result = await resultRow(database.client, id);
    if (isKept) expect(result).toMatchObject({ state: 'completed', metadata: { a: 1 } });
  });

  test('of two transactions that complete it at once, one does', async () => {
    const id = await addJob(database.client, { workerId: 1, fence: 3 });
    const [one, two] = await twoBackends(database);
    let second: Promise<CompletionResult> | undefined;
    await one.db.transaction(async (tx) => {
      await tx.execute(sql`select pg_current_xact_id()`);
      expect(await complete(tx, id, { transition })).toBe('completed');
      second = inTransaction(two, id, { transition });
      await untilBlocked(database, two);
    });
    expect(await second).toEqual(lost(id));
  });
});

describe('the statement', () => {
  /** What is sent for a job of this queue, with its parameters. */
  async function sent(queue: string, transition: Partial<Finish> = {}) {
    const statements: { text: string; params: readonly unknown[] }[] = [];
    const logger: Logger = { logQuery: (text, params) => void statements.push({ text, params }) };
    const id = await addJob(database.client, { queue, workerId: 1, fence: 3 });
    const completion = await inTransaction({ db: drizzle({ client: database.client, logger }) }, id, {
      held: { queue },
      transition,
    });
    expect(completion).toBe('completed');
    return { id, ...statements.find(({ text }) => text.includes('delete from')) };
  }

  test.each(['q', 'mail', 'a.b:c/d-e_1'])('has no parameters for a job of %s', async (queue) => {
    const { text, params, id } = await sent(queue);
    expect(params).toEqual([]);
    expect(text).toContain(`j.queue = '${queue}' and j.id = ${id}::int8`);
  });

  test.each(["it's", 'back\\slash', 'ü', 'a b', '$1', 'line\n', '表'])(
    'has the name of the queue %j as a parameter',
    async (queue) => {
      const { text, params } = await sent(queue);
      expect(params).toContain(queue);
      expect(text).toContain('j.queue = $1 and j.id = $2::int8');
    },
  );

  test('never has an output in its text', async () => {
    const { text, params } = await sent('q', { output: '"secret"' });
    expect(params).toContain('"secret"');
    expect(text).not.toContain('secret');
    expect((await sent('q', { output: '"secret"', keepResult: false })).params).toEqual([]);
  });

  test('is read alike where backslashes escape', async () => {
    const [one] = await twoBackends(database);
    await one.client`set standard_conforming_strings = off`;
    for (const queue of ['q', 'back\\slash', "it's"]) {
      const id = await addJob(database.client, { queue, workerId: 1, fence: 3 });
      expect(await inTransaction(one, id, { held: { queue } })).toBe('completed');
    }
  });
});
