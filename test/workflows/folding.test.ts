import { PgDialect } from 'drizzle-orm/pg-core';
import * as workflowTables from 'drizzle-queue/schema/workflows';
import { beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import type { Runner } from '../../src/core/sql/executor.ts';
import { WorkerEmitter } from '../../src/core/worker/base/events.ts';
import { Folding } from '../../src/features/batches/worker/folding.ts';
import { clearTables, jobRow, tables } from '../queries/support/jobs.ts';
import { addWorkflowTables, clearWorkflowTables } from '../support/control-tables.ts';
import { gate } from '../support/gate.ts';
import { useTestDatabase } from '../support/test-database.ts';

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

describe('a look for what to go on with, as at the end of a drain', () => {
  /** Starts the folds of a worker whose statements go through this. */
  function folds(db: Runner): Folding {
    const folding = new Folding({
      db,
      tables: all,
      channel: undefined,
      events: new WorkerEmitter(),
      wake: () => {},
    });
    const over = new AbortController();
    const running = folding.run(over.signal);
    onTestFinished(async () => {
      over.abort();
      await running;
    });
    return folding;
  }

  test('hears of a fold that began while it looked, and had locked what it left', async () => {
    const folded = gate();
    const looked = gate();
    let looks = 0;
    const folding = folds({
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
});
