import type { SQLWrapper } from 'drizzle-orm';
import { createQueue, defineJob } from 'drizzle-queue';
import { expect, test } from 'vitest';
import { nextTurn } from '../../../src/core/runtime.ts';
import type { Runner } from '../../../src/core/sql/executor.ts';
import { Fates } from '../../../src/core/worker/settle/fates.ts';
import { useTestDatabase } from '../../support/test-database.ts';

const database = useTestDatabase();
const queue = createQueue();
const work = defineJob('work');
const NOWHERE = { id: 999_999, fence: 1 };

/** Questions that are counted, and answered when they are let go. */
function counted(answer: (query: SQLWrapper) => PromiseLike<unknown>) {
  const waiting: (() => void)[] = [];
  const db: Runner = {
    execute: async (query) => {
      await new Promise<void>((resolve) => waiting.push(resolve));
      return await answer(query);
    },
  };
  return { fates: new Fates({ db, tables: queue.tables, queue: 'default' }), waiting };
}

/** Until what was asked would have been sent. */
async function someTurns(): Promise<void> {
  for (let turn = 0; turn < 5; turn++) await nextTurn();
}

test('what is asked while a question is under way goes into the next one, together', async () => {
  const [first, second, third] = await queue.enqueueMany(database.db, work, [{}, {}, {}]);
  const { fates, waiting } = counted((query) => database.db.execute(query));
  const one = fates.of({ id: first?.id ?? 0, fence: 0 });
  await someTurns();
  const others = [fates.of({ id: second?.id ?? 0, fence: 0 }), fates.of(NOWHERE)];
  await someTurns();
  const last = fates.of({ id: third?.id ?? 0, fence: 0 });
  await someTurns();
  expect(waiting.length).toBe(1);
  waiting[0]?.();
  expect(await one).toMatchObject({ state: null, attempt: 0 });
  await someTurns();
  expect(waiting.length).toBe(2);
  waiting[1]?.();
  expect(await Promise.all(others)).toEqual([expect.objectContaining({ state: null }), undefined]);
  expect(await last).toMatchObject({ state: null });
  expect(waiting.length).toBe(2);
});

test('a question that fails fails for those who asked it, and not for those behind it', async () => {
  const { id } = await queue.enqueue(database.db, work);
  let asked = 0;
  const { fates, waiting } = counted(async (query) => {
    if (asked++ === 0) throw new Error('the connection broke');
    return await database.db.execute(query);
  });
  const refused = expect(fates.of({ id, fence: 0 })).rejects.toThrow('the connection broke');
  await someTurns();
  const answered = fates.of({ id, fence: 0 });
  await someTurns();
  waiting[0]?.();
  await refused;
  await someTurns();
  waiting[1]?.();
  expect(await answered).toMatchObject({ state: null, attempt: 0 });
});
