import { createQueue, defineJob, defineSignal, handlersFor, unvalidated, workflowsIn } from 'drizzle-queue';
import * as workflowTables from 'drizzle-queue/schema/workflows';
import { describe, expectTypeOf, test } from 'vitest';
import { z } from 'zod';
import { postgresJs as db } from './databases.ts';

const queue = createQueue({ workflows: workflowsIn(workflowTables) });
const { workflows } = queue;
const { handle } = handlersFor<typeof db, typeof queue>();
const page = defineJob('page', {
  payload: z.object({ url: z.string() }),
  output: z.object({ words: z.number() }),
});
const cover = defineJob('cover', { payload: unvalidated<number>(), output: unvalidated<string>() });
const silent = defineJob('silent');
const approval = defineSignal('approval', z.object({ by: z.string(), at: z.iso.datetime().optional() }));

describe('a step', () => {
  test('has the stored form of what its function returns', () => {
    handle(silent, async ({ step }) => {
      expectTypeOf(await step.run('one', () => ({ id: 1 }))).toEqualTypeOf<{ id: number }>();
      expectTypeOf(await step.transaction('two', async () => 'x')).toEqualTypeOf<string>();
      const open = await step.begin<{ turn: number }>('three');
      expectTypeOf(open.output).toEqualTypeOf<{ turn: number } | undefined>();
      // @ts-expect-error another output
      await open.record({ turn: 'one' });
    });
  });

  test('that waits for a signal has its value, or nothing where it may time out', () => {
    handle(silent, async ({ step }) => {
      type Answer = { by: string; at?: string | undefined };
      expectTypeOf(await step.waitForSignal(approval)).toEqualTypeOf<Answer>();
      expectTypeOf(await step.waitForSignal(approval, { timeoutMs: 5 })).toEqualTypeOf<Answer | undefined>();
    });
  });

  test('has the outputs of children, each of its own type', () => {
    handle(silent, async ({ step }) => {
      const one = await step.enqueue('one', page, { url: 'a' });
      const two = await step.enqueue('two', cover, 5);
      const many = await step.enqueueMany('many', page, [{ payload: { url: 'b' } }]);
      expectTypeOf(await step.waitForJob(one)).toEqualTypeOf<{ words: number }>();
      const [words, title] = await step.all('all', [one, two]);
      expectTypeOf(words).toEqualTypeOf<{ words: number }>();
      expectTypeOf(title).toEqualTypeOf<string>();
      for (const each of await step.all('many', many)) expectTypeOf(each).toEqualTypeOf<{ words: number }>();
      for (const end of await step.allEnded('ends', many)) {
        if (end.state === 'completed') expectTypeOf(end.output).toEqualTypeOf<{ words: number }>();
        else expectTypeOf(end.reason).toEqualTypeOf<string>();
      }
      for (const end of await step.parents(cover)) {
        if (end.state === 'completed') expectTypeOf(end.output).toEqualTypeOf<string>();
      }
      // @ts-expect-error a payload of another kind
      await step.enqueue('wrong', page, { url: 5 });
      // @ts-expect-error a payload that is missing
      await step.enqueue('wrong', page);
      // @ts-expect-error one of many that is wrong
      await step.enqueueMany('wrong', page, [{ payload: { url: 'a' } }, { payload: {} }]);
      // @ts-expect-error a child has no key
      await step.enqueue('wrong', page, { url: 'a' }, { uniqueKey: 'a' });
    });
  });

  test('is in no context of a queue without workflows', () => {
    const { handle } = handlersFor<typeof db>();
    // @ts-expect-error there are none
    handle(silent, async ({ step }) => void step);
    // @ts-expect-error nor has the queue what they are signalled with
    void createQueue().workflows.signal(db, { job: page, id: 1 }, approval, { by: 'Ada' });
  });
});

describe('from outside', () => {
  test('signals and outputs are those of their definitions', () => {
    void workflows.signal(db, { job: page, id: 1 }, approval, { by: 'Ada' });
    // @ts-expect-error another value
    void workflows.signal(db, { job: page, id: 1 }, approval, { by: 5 });
    void workflows.finish(db, { job: page, uniqueKey: 'a' }, { words: 5 });
    // @ts-expect-error another output
    void workflows.finish(db, { job: page, uniqueKey: 'a' }, { words: 'five' });
    // @ts-expect-error without an output
    void workflows.finish(db, { job: page, uniqueKey: 'a' });
    void workflows.redeem(db, approval, 'token', { by: 'Ada' });
    // @ts-expect-error another value
    void workflows.redeem(db, approval, 'token', 'Ada');
  });

  test('flows and batches take payloads of their kinds', () => {
    void workflows.enqueueFlow(db, (flow) => {
      const first = flow.add(page, { url: 'a' });
      flow.add(cover, 5, { after: [first], onFailure: 'run' });
      flow.add(silent, undefined, { after: [first] });
      // @ts-expect-error another payload
      flow.add(page, { url: 5 });
      // @ts-expect-error no payload
      flow.add(page);
      // @ts-expect-error what flow.add has not returned
      flow.add(cover, 5, { after: [1] });
    });
    void workflows.enqueueBatch(db, page, [{ payload: { url: 'a' } }], { last: cover, payload: 5 });
    void workflows.enqueueBatch(db, page, [{ payload: { url: 'a' } }], { last: silent });
    // @ts-expect-error another payload of the last one
    void workflows.enqueueBatch(db, page, [{ payload: { url: 'a' } }], { last: cover, payload: 'five' });
    // @ts-expect-error another payload of a member
    void workflows.enqueueBatch(db, page, [{ payload: 5 }], { last: silent });
  });
});
