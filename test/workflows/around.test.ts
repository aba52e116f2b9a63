import {
  createQueue,
  defineJob,
  defineSignal,
  drain,
  fixedBackoff,
  handlersFor,
  runNext,
  unvalidated,
  workflowsIn,
} from 'drizzle-queue';
import * as workflowTables from 'drizzle-queue/schema/workflows';
import { beforeAll, beforeEach, expect, test } from 'vitest';
import { clearTables } from '../queries/support/jobs.ts';
import { addWorkflowTables } from '../support/control-tables.ts';
import { emptyTables } from '../support/empty-tables.ts';
import { useTestDatabase } from '../support/test-database.ts';

const database = useTestDatabase();
const seen: string[] = [];
let after: () => Promise<void> | void = () => undefined;
const queue = createQueue({
  workflows: workflowsIn(workflowTables),
  around: {
    run: async (_, next) => {
      seen.push('before');
      try {
        await next();
        await after();
      } finally {
        seen.push('after');
      }
    },
  },
});
const { handle } = handlersFor<typeof database.db, typeof queue>();
const work = defineJob('work', {
  payload: unvalidated<number>(),
  queue: 'q',
  backoff: fixedBackoff(3_600_000),
});
const answer = defineSignal('answer', unvalidated<number>());
const handlers = [
  handle(work, async ({ step }) => {
    await step.waitForSignal(answer);
    seen.push('answered');
  }),
];

beforeAll(() => addWorkflowTables(database));
beforeEach(async () => {
  await clearTables(database.client);
  await emptyTables(database.client, 'queue_steps', 'queue_mailboxes');
  seen.length = 0;
  after = () => undefined;
});

test('what is around a handler that waits goes on to its end, and is around its next run', async () => {
  const { id } = await queue.enqueue(database.db, work, 1);
  await drain(database.db, { queue, handlers, deadlineMs: 20_000 });
  expect(seen).toEqual(['before', 'after']);
  expect(await queue.find(database.db, id)).toMatchObject({ state: 'waiting', attempt: 0, errors: [] });
  await queue.workflows.signal(database.db, { id }, answer, 7);
  await drain(database.db, { queue, handlers, deadlineMs: 20_000 });
  expect(seen).toEqual(['before', 'after', 'before', 'answered', 'after']);
  expect(await queue.find(database.db, id)).toMatchObject({ state: 'completed' });
});

test('the attempt ends with what is around it, which may write in the transaction of runNext', async () => {
  const { id } = await queue.enqueue(database.db, work, 1);
  let isOver = false;
  after = async () => {
    await database.client`select 1`;
    isOver = true;
  };
  expect(await runNext(database.db, { queue, handlers })).toMatchObject({ outcome: 'waiting' });
  expect(isOver).toBe(true);
  expect(await queue.find(database.db, id)).toMatchObject({ state: 'waiting' });
});

test('an error of what is around it fails the attempt, and the wait stays', async () => {
  const { id } = await queue.enqueue(database.db, work, 1);
  after = () => {
    throw new Error('around');
  };
  await drain(database.db, { queue, handlers, deadlineMs: 20_000, log: false });
  expect(await queue.find(database.db, id)).toMatchObject({
    state: 'scheduled',
    errors: [{ message: 'around' }],
  });
  expect(await queue.workflows.steps(database.db, id)).toMatchObject([{ kind: 'signal', endedAt: null }]);
});
