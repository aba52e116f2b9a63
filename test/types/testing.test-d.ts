import {
  createQueue,
  defineJob,
  defineSignal,
  type HandlerContext,
  handle,
  type TransactionOf,
  workflowsIn,
} from 'drizzle-queue';
import * as workflowTables from 'drizzle-queue/schema/workflows';
import {
  drainIn,
  ended,
  enqueuedBy,
  inline,
  inTransaction,
  queueMatchers,
  runHandler,
  sent,
  spy,
  travel,
} from 'drizzle-queue/testing';
import { describe, expect, expectTypeOf, test } from 'vitest';
import { z } from 'zod';
import { mysql2, nodePostgres, postgresJs } from './databases.ts';

const queue = createQueue();
const send = defineJob('send', {
  payload: z.object({ to: z.string(), at: z.coerce.date() }),
  output: z.object({ id: z.number() }),
});
const handlers = [handle(send, async () => ({ id: 1 }))];

describe('the testing kit', () => {
  test('inTransaction hands over the driver’s own transaction', async () => {
    const count = await inTransaction(nodePostgres, async (tx) => {
      expectTypeOf(tx).toEqualTypeOf<TransactionOf<typeof nodePostgres>>();
      return 1;
    });
    expectTypeOf(count).toEqualTypeOf<number>();
    // @ts-expect-error no Postgres
    inTransaction(mysql2, async () => 1);
  });

  test('drainIn takes a transaction, and handlers of its driver', () => {
    inTransaction(postgresJs, async (tx) => {
      const own = handle(send, async (_: HandlerContext<typeof send, TransactionOf<typeof tx>>) => ({
        id: 1,
      }));
      const other = handle(
        send,
        async ({ db }: HandlerContext<typeof send, TransactionOf<typeof nodePostgres>>) => {
          expectTypeOf(db).toEqualTypeOf<TransactionOf<typeof nodePostgres>>();
          return { id: 1 };
        },
      );
      await drainIn(tx, { queue, handlers: [own, ...handlers], until: new Date() });
      // @ts-expect-error another driver's transaction
      await drainIn(tx, { queue, handlers: [other] });
      // @ts-expect-error no such unit
      await drainIn(tx, { queue, handlers, until: { weeks: 1 } });
    });
    // @ts-expect-error a database
    drainIn(postgresJs, { queue, handlers });
  });

  test('enqueuedBy types the jobs of a definition', async () => {
    const [job] = await enqueuedBy(postgresJs, queue, () => undefined, send);
    expectTypeOf(job?.kind).toEqualTypeOf<'send' | undefined>();
    const [any] = await enqueuedBy(postgresJs, queue, () => undefined);
    expectTypeOf(any?.kind).toEqualTypeOf<string | undefined>();
  });

  test('runHandler types payload and output by the definition', async () => {
    const run = await runHandler(send, { payload: { to: 'a', at: new Date() } }, ({ payload }) => {
      expectTypeOf(payload.at).toEqualTypeOf<Date>();
      return { id: 1 };
    });
    expectTypeOf(run.output).toEqualTypeOf<{ id: number } | undefined>();
    // @ts-expect-error no such payload
    runHandler(send, { payload: { to: 1 } }, () => ({ id: 1 }));
    // @ts-expect-error no such output
    runHandler(send, {}, () => ({ id: 'a' }));
    runHandler(send, { db: { select: () => 1 } }, ({ db }) => ({ id: db.select() }));
  });

  test('runHandler types steps and signals by their definitions', async () => {
    const flows = createQueue({ workflows: workflowsIn(workflowTables) });
    const approval = defineSignal('approval', z.object({ by: z.string(), at: z.coerce.date() }));
    const bare = defineSignal('bare');
    const run = await runHandler(
      send,
      {
        payload: { to: 'a', at: new Date() },
        queue: flows,
        steps: { charge: { id: 'ch_1' } },
        signals: [sent(approval, { by: 'Ada', at: new Date() }), sent(bare)],
      },
      async ({ step }) => {
        const answer = await step.waitForSignal(approval);
        expectTypeOf(answer.at).toEqualTypeOf<Date>();
        return { id: await step.run('id', () => 1) };
      },
    );
    expectTypeOf(run.steps[0]?.name).toEqualTypeOf<string | undefined>();
    expectTypeOf(run.waitsFor).toEqualTypeOf<readonly string[]>();
    // @ts-expect-error no such value
    sent(approval, { by: 7 });
    // @ts-expect-error its value is missing
    sent(approval);
    // @ts-expect-error it has no value
    sent(bare, 1);
    const parents = [
      ended(send, { state: 'completed', output: { id: 1 } }),
      ended(send, { id: 7, state: 'discarded', reason: 'no such page' }),
    ];
    await runHandler(send, { queue: flows, parents }, async ({ step }) => {
      for (const end of await step.parents(send)) if (end.state === 'completed') return end.output;
      return { id: 0 };
    });
    // @ts-expect-error no such output
    ended(send, { state: 'completed', output: { id: 'a' } });
    // @ts-expect-error its output is missing
    ended(send, { state: 'completed' });
    // @ts-expect-error why is missing
    ended(send, { state: 'cancelled' });
    // @ts-expect-error a queue without workflows has no steps
    runHandler(send, { queue }, async ({ step }) => ({ id: await step.run('id', () => 1) }));
  });

  test('step.first is typed by what it waits for, and its value by the key', async () => {
    const flows = createQueue({ workflows: workflowsIn(workflowTables) });
    const approval = defineSignal('approval', z.object({ by: z.string(), at: z.coerce.date() }));
    const bare = defineSignal('bare');
    await runHandler(send, { queue: flows }, async ({ step }) => {
      const child = await step.enqueue('child', send, { to: 'a', at: new Date() });
      const first = await step.first('decision', {
        approved: approval,
        stopped: bare,
        sent: child,
        late: { delayMs: 1_000 },
        over: { until: new Date() },
      });
      expectTypeOf(first.key).toEqualTypeOf<'approved' | 'stopped' | 'sent' | 'late' | 'over'>();
      if (first.key === 'approved') expectTypeOf(first.value).toEqualTypeOf<{ by: string; at: Date }>();
      if (first.key === 'stopped') expectTypeOf(first.value).toEqualTypeOf<null>();
      if (first.key === 'sent') expectTypeOf(first.value.id).toEqualTypeOf<number>();
      if (first.key === 'late') expectTypeOf(first.value).toEqualTypeOf<undefined>();
      // @ts-expect-error nothing that can be waited for
      step.first('wrong', { a: 5 });
      // @ts-expect-error a time is one or the other
      step.first('wrong', { a: { at: new Date() } });
      expectTypeOf(await step.addToFlow('more', send, [])).toEqualTypeOf<readonly number[]>();
      // @ts-expect-error no such payload
      step.addToFlow('more', send, [{ payload: { to: 1 } }]);
      return { id: 1 };
    });
  });

  test('inline is the queue', () => {
    expectTypeOf(inline(queue, { handlers })).toEqualTypeOf<typeof queue>();
    travel(postgresJs, queue, { hours: 1 });
    // @ts-expect-error no worker
    spy(queue);
  });

  test('the matchers are typed by the definition', () => {
    expect.extend(queueMatchers);
    const assertion = expect(postgresJs);
    expectTypeOf(assertion.toHaveEnqueued(send)).toEqualTypeOf<Promise<void>>();
    assertion.not.toHaveCompleted(send, { output: { id: 1 } });
    assertion.toHaveEnqueued(send, { payload: expect.objectContaining({ to: 'a' }) });
    // @ts-expect-error no such payload
    assertion.toHaveEnqueued(send, { payload: { to: 1 } });
    // @ts-expect-error of toHaveDiscarded
    assertion.toHaveCompleted(send, { error: 'a' });
    assertion.toHaveRecordedSteps(send, { steps: { charge: { id: 'ch_1' } }, waitsFor: ['approval'] });
    assertion.toHaveRecordedSteps(send, { steps: ['charge'], payload: expect.anything(), times: 1 });
    // @ts-expect-error of toHaveRecordedSteps
    assertion.toHaveEnqueued(send, { steps: ['charge'] });
  });
});
