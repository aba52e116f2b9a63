import {
  type Around,
  type AttemptContext,
  createQueue,
  createWorker,
  type Database,
  defineJob,
  handle,
  type JobToEnqueue,
  type LimitedEnqueueResult,
  type WorkerEvents,
} from 'drizzle-queue';
import { describe, expectTypeOf, test } from 'vitest';
import { postgresJs } from './databases.ts';

const job = defineJob('job');

describe('around', () => {
  test('is given functions, either or both, with typed arguments', () => {
    const queue = createQueue({
      around: {
        async enqueue(jobs, next) {
          expectTypeOf(jobs).toEqualTypeOf<readonly JobToEnqueue[]>();
          for (const { metadata } of jobs) metadata.tenant = 'a';
          expectTypeOf(await next()).toEqualTypeOf<readonly LimitedEnqueueResult[] | undefined>();
        },
        run(context, next) {
          expectTypeOf(context).toEqualTypeOf<AttemptContext>();
          expectTypeOf(context.payload).toEqualTypeOf<unknown>();
          expectTypeOf(context.job.metadata.tenant).toEqualTypeOf<unknown>();
          expectTypeOf(context.signal).toEqualTypeOf<AbortSignal>();
          expectTypeOf(context.db).toEqualTypeOf<Database>();
          expectTypeOf(next()).toEqualTypeOf<Promise<unknown>>();
          return next();
        },
      },
    });
    // It changes no other type.
    expectTypeOf(queue).toEqualTypeOf(createQueue());
    createWorker(postgresJs, { queue, handlers: [handle(job, () => {})] });
    createQueue({ around: {} });
    createQueue({ around: undefined });
    const around: Around = { run: undefined };
    createQueue({ around });
  });

  test('refuses other functions', () => {
    // @ts-expect-error next takes nothing
    createQueue({ around: { run: (_context, next) => next(1) } });
    // @ts-expect-error the job is not to be changed
    createQueue({ around: { enqueue: ([first]) => void delete first?.queue } });
    // @ts-expect-error nor the list
    createQueue({ around: { enqueue: (jobs) => jobs.pop() } });
    // @ts-expect-error an unknown function
    createQueue({ around: { settle: () => {} } });
    // @ts-expect-error complete and progress are the handler's
    createQueue({ around: { run: (context) => context.complete } });
  });
});

test('began and interrupted say which job, and the latter whether it had begun', () => {
  expectTypeOf<WorkerEvents['began'][0]>().toEqualTypeOf<{
    readonly job: WorkerEvents['completed'][0]['job'];
  }>();
  expectTypeOf<WorkerEvents['interrupted'][0]['began']>().toEqualTypeOf<boolean>();
});
