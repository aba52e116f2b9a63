import { drizzle } from 'drizzle-orm/node-postgres';
import { integer, pgTable } from 'drizzle-orm/pg-core';
import {
  createQueue,
  createWorker,
  defineJob,
  fixedBackoff,
  handlersFor,
  unvalidated,
  workflowsIn,
} from 'drizzle-queue';
import * as workflowTables from 'drizzle-queue/schema/workflows';
import pg from 'pg';
import { afterEach, beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest';
import { TcpProxy } from '../faults/tcp-proxy.ts';
import { tables } from '../queries/support/jobs.ts';
import { addWorkflowTables } from '../support/control-tables.ts';
import { emptyTables } from '../support/empty-tables.ts';
import { useTestDatabase } from '../support/test-database.ts';

const database = useTestDatabase();
const queue = createQueue({ tables, workflows: workflowsIn(workflowTables) });
const { handle } = handlersFor<ReturnType<typeof drizzle>, typeof queue>();
const effects = pgTable('effects', { call: integer().notNull() });
const work = defineJob('work', { output: unvalidated<number>(), backoff: fixedBackoff(0) });

let proxy: TcpProxy;
beforeAll(async () => {
  await addWorkflowTables(database);
  await database.client`create table effects (call int not null)`;
});
beforeEach(async () => {
  await emptyTables(database.client, 'effects');
  proxy = await TcpProxy.start(Number(new URL(database.url).port));
});
afterEach(() => proxy.close());

test.each([
  ['as it is sent: nothing is written, and the step is done again', 'commit', 2],
  ['as its answer comes back: the step is recorded, and not done again', 'answer', 1],
] as const)('a COMMIT of step.transaction is cut %s', async (_, commits, calls) => {
  // On node-postgres, which sends a COMMIT in one packet.
  const pool = new pg.Pool({ connectionString: proxy.url(database.url), max: 5 });
  pool.on('error', () => {});
  pool.on('connect', (client) => client.on('error', () => {}));
  onTestFinished(() => pool.end());
  let called = 0;
  let runs = 0;
  const worker = createWorker(drizzle({ client: pool }), {
    queue,
    log: false,
    handlers: [
      handle(work, async ({ step }) => {
        runs++;
        return await step.transaction('effect', async (tx) => {
          called++;
          await tx.insert(effects).values({ call: called });
          // Only the first of them.
          proxy.cuts =
            called > 1 ? undefined : { statement: /(?!)/, share: 0, commitShare: 1, commits, holdMs: 100 };
          return called;
        });
      }),
    ],
  });
  // Its connections are cut: what it says of that is no news.
  worker.on('error', () => {});
  worker.on('failed', () => {
    proxy.cuts = undefined;
  });
  onTestFinished(() => worker.stop());
  await worker.start();
  const { id } = await queue.enqueue(database.db, work);
  const record = await queue.waitFor(database.db, work, id, { timeoutMs: 60_000 });
  expect(record).toMatchObject({ state: 'completed', output: calls });
  expect([...(await database.db.select().from(effects))]).toEqual([{ call: calls }]);
  expect([proxy.lostCommits, called, runs]).toEqual([1, calls, 2]);
  expect(await queue.workflows.steps(database.db, id)).toMatchObject([{ name: 'effect', output: calls }]);
});
