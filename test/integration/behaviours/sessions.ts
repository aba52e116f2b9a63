import assert from 'node:assert/strict';
import { inspect } from 'node:util';
import { sql } from 'drizzle-orm';
import { createQueue, createWorker, type Database, defineJob, handle } from 'drizzle-queue';
import { until } from '../../support/until.ts';
import { nextEvent } from '../../worker/next-event.ts';
import { type Behaviour, rowsOf } from './behaviour.ts';
import { warnings } from './warnings.ts';

const queue = createQueue();
const held = defineJob('held', { queue: 'sessions' });
const patience = { timeoutMs: 40_000 };

/** How many session locks are held in the database; the library takes no other advisory locks for longer than a statement. */
async function locks(db: Database): Promise<number> {
  const result = await db.execute(sql`
    select count(*)::int4 as n from pg_locks
    where locktype = 'advisory' and granted
      and database = (select oid from pg_database where datname = current_database())`);
  return Number(rowsOf(result)[0]?.n);
}

async function rows(db: Database): Promise<readonly Record<string, unknown>[]> {
  return rowsOf(
    await db.execute(sql`
      select id::text, session is not null as session, seen_at::text as seen from queue_workers where name = 'with a session'`),
  );
}

export const sessions: readonly Behaviour[] = [
  {
    name: 'a worker that can hold no session lock says so once, and does without',
    needs: ['no session'],
    async run({ db }) {
      for (let round = 0; round < 2; round++) {
        const worker = createWorker(db, {
          log: false,
          queue,
          handlers: [handle(held, () => {})],
          name: 'without a session',
        });
        const completed = nextEvent(worker, 'completed');
        const listening = nextEvent(worker, 'listening');
        await worker.start();
        await listening;
        await queue.enqueue(db, held);
        await completed;
        await worker.stop();
      }
      assert.equal(warnings.length, 1, warnings.join('\n'));
      assert.match(warnings[0] ?? '', /no session lock.*heartbeat/);
    },
  },
  {
    name: 'a worker that listens holds a session lock, and takes it again when its connection was lost',
    needs: ['session', 'server'],
    async run({ db, endConnections, companions }) {
      const handlers = [handle(held, () => {})];
      const worker = createWorker(db, { queue, log: false, handlers, name: 'with a session' });
      const errors: unknown[] = [];
      worker.on('error', (error) => errors.push(error));
      const listening = nextEvent(worker, 'listening');
      await worker.start();
      await listening;
      /** The worker's row, once it has shown itself with a session, and not as it was seen before. */
      const shown = async (before?: unknown) => {
        const [row] = await rows(db);
        return row?.session === true && row.seen !== before && (await locks(db)) === companions + 1
          ? row
          : undefined;
      };
      const first = await until(() => shown(), patience);
      await endConnections();
      // The pool may hand out a connection that has just been ended.
      const again = await until(() => shown(first?.seen).catch(() => undefined), patience);
      assert.equal(again?.id, first?.id, 'declared gone, although it came back');
      // Nor may it hand one to whoever comes next.
      const asked = () => Promise.all(Array.from({ length: 10 }, () => locks(db)));
      let refused: unknown;
      const answered = await until(
        () =>
          asked().catch((error: unknown) => {
            refused = error;
          }),
        patience,
      ).catch(() => undefined);
      assert.ok(answered, inspect(refused));
      await worker.stop();
      await until(async () => (await locks(db)) === companions, patience);
      const left = await rows(db);
      assert.deepEqual(left, [], `the stop left ${inspect(left)} after ${inspect(errors)}`);
    },
  },
];
