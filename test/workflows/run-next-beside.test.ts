import { sql } from 'drizzle-orm';
import {
  createQueue,
  type Database,
  defineJob,
  defineSignal,
  fixedBackoff,
  type HandlerContext,
  handlersFor,
  runNext,
  unvalidated,
  workflowsIn,
} from 'drizzle-queue';
import * as workflowTables from 'drizzle-queue/schema/workflows';
import { drainIn, inTransaction } from 'drizzle-queue/testing';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { queryRows } from '../../src/core/sql/executor.ts';
import { tables } from '../queries/support/jobs.ts';
import { drivers, type OpenDriver } from '../queue/support/drivers.ts';
import { workflowsStatements } from '../support/control-tables.ts';
import { runningMsUntil } from '../support/running-time.ts';
import { useTestDatabase } from '../support/test-database.ts';

/** All steps of `runNext`, and of `drainIn`, share one connection, on which savepoints are nested. */

const queue = createQueue({ tables, workflows: workflowsIn(workflowTables) });
const { handle } = handlersFor<Database, typeof queue>();
const work = defineJob('work', {
  payload: unvalidated<number>(),
  output: unvalidated<unknown>(),
  backoff: fixedBackoff(0),
});
const child = defineJob('child', { payload: unvalidated<number>(), output: unvalidated<number>() });
const approval = defineSignal('approval', unvalidated<number>());

type Context = HandlerContext<typeof work, Database, typeof queue>;
type Run = (context: Context) => unknown;

const handlersOf = (run: Run) => [handle(work, run), handle(child, ({ payload }) => payload)];

/** Enqueues a job, and hands over what works until nothing is due. */
type Way = (
  db: Database,
  run: Run,
  test: (tx: Database, work: () => Promise<void>, id: number) => Promise<void>,
) => Promise<void>;

const ways: Record<string, Way> = {
  runNext: async (db, run, test) => {
    const { id } = await queue.enqueue(db, work, 1);
    const handlers = handlersOf(run);
    const workAll = async () => {
      while ((await runNext(db, { queue, handlers })) !== undefined) {}
    };
    await test(db, workAll, id);
  },
  drainIn: (db, run, test) =>
    inTransaction(db, async (tx) => {
      const { id } = await queue.enqueue(tx, work, 1);
      const handlers = handlersOf(run);
      await test(tx, async () => void (await drainIn(tx, { queue, handlers, failFast: false })), id);
    }),
};

/** What steps write besides what they record. */
const write = (tx: Database, what: string) => tx.execute(sql`insert into written values (${what})`);
const written = async (tx: Database) =>
  (await queryRows(tx, tables, sql`select what from written order by what`)).map(({ what }) => what);
const recorded = async (tx: Database, id: number) =>
  (await queue.workflows.steps(tx, id)).map(({ name }) => name).sort();

const fails = (step: Context['step']) =>
  step.transaction('bonus', async (tx) => {
    await write(tx, 'bonus');
    await tx.execute(sql`select 1 / 0`);
  });

describe.each(Object.entries(drivers))('steps side by side through %s', (name, open) => {
  const database = useTestDatabase();
  let driver: OpenDriver;
  let db: Database;

  beforeAll(async () => {
    driver = await open(database);
    db = driver.db;
    for (const statement of await workflowsStatements()) await db.execute(sql.raw(statement));
    await db.execute(sql`create table written (what text)`);
  });
  afterAll(() => driver.close());
  beforeEach(async () => {
    await db.execute(sql`truncate written, queue_jobs, queue_results, queue_steps, queue_mailboxes`);
    await db.execute(sql`truncate queue_batches, queue_waits, queue_tallies`);
  });

  describe.each(Object.entries(ways))('in %s', (_, way) => {
    test.each(['first', 'last'])('have written what they say, though one that began %s fails', (order) =>
      way(
        db,
        async ({ step }) => {
          const reserve = () => step.transaction('reserve', async (tx) => void (await write(tx, 'reserved')));
          const begun = order === 'first' ? [fails(step), reserve()] : [reserve(), fails(step)];
          return (await Promise.allSettled(begun)).map(({ status }) => status);
        },
        async (tx, workAll, id) => {
          await workAll();
          expect(await queue.find(tx, id)).toMatchObject({
            state: 'completed',
            output: order === 'first' ? ['rejected', 'fulfilled'] : ['fulfilled', 'rejected'],
          });
          expect(await written(tx)).toEqual(['reserved']);
          expect(await recorded(tx, id)).toEqual(['reserve']);
        },
      ),
    );

    test('are recorded once they return, though one beside them fails', async () => {
      let charges = 0;
      await way(
        db,
        async ({ step }) => {
          const [, charged, one] = await Promise.allSettled([
            fails(step),
            step.run('charge', () => ++charges),
            step.enqueue('child', child, 5),
          ]);
          const answer = await step.waitForSignal(approval);
          if (charged.status === 'rejected' || one.status === 'rejected') throw new Error('not recorded');
          return [charged.value, answer, await step.waitForJob(one.value)];
        },
        async (tx, workAll, id) => {
          await workAll();
          expect(await queue.find(tx, id)).toMatchObject({ state: 'waiting', errors: [] });
          expect(await recorded(tx, id)).toEqual(['approval', 'charge', 'child']);
          await queue.workflows.signal(tx, { id }, approval, 7);
          await workAll();
          expect(await queue.find(tx, id)).toMatchObject({ state: 'completed', output: [1, 7, 5] });
          expect(charges).toBe(1);
        },
      );
    });

    // It names savepoints as node-postgres does.
    test.skipIf(name === 'PGlite')('may wait for each other, and are undone together', async () => {
      let charges = 0;
      await way(
        db,
        async ({ step }) => {
          const charged = step.run('charge', () => ++charges);
          const bonus = step.transaction('bonus', async (tx) => {
            await write(tx, `bonus ${await charged}`);
            if (charges === 1) throw new Error('none left');
          });
          // What it has recorded is undone with the other one, so this attempt must not complete.
          await bonus.catch(() => undefined);
          return await charged;
        },
        async (tx, workAll, id) => {
          await workAll();
          expect(await queue.find(tx, id)).toMatchObject({
            state: 'completed',
            output: 2,
            errors: [{ message: 'none left' }],
          });
          expect(await written(tx)).toEqual(['bonus 2']);
          expect(await recorded(tx, id)).toEqual(['bonus', 'charge']);
        },
      );
    });

    test('may ask for parents, without a wait', async () => {
      let tookMs = 0;
      await way(
        db,
        async ({ step }) => {
          const asked = step.transaction('ask', async (tx) => {
            await write(tx, 'asked');
            return (await step.parents(child)).length;
          });
          tookMs = await runningMsUntil(asked);
          return await asked;
        },
        async (tx, workAll, id) => {
          await workAll();
          expect(await queue.find(tx, id)).toMatchObject({ state: 'completed', output: 0 });
          expect(tookMs).toBeLessThan(1_500);
        },
      );
    });
  });
});
