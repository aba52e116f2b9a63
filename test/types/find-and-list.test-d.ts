import {
  createQueue,
  defineJob,
  type JobDefinition,
  type JobRecord,
  type JobRecordOf,
  type JobState,
  type PausedQueue,
  type RedriveResult,
} from 'drizzle-queue';
import { describe, expectTypeOf, test } from 'vitest';
import { z } from 'zod';
import { postgresJs as db } from './databases.ts';

const queue = createQueue();
const send = defineJob('send', {
  payload: z.object({ to: z.string(), at: z.string().transform(Date.parse) }),
  output: z.object({ messageId: z.string().transform(Number) }),
});

describe('find', () => {
  test('by id alone knows neither payload nor output', () => {
    expectTypeOf(queue.find(db, 1)).resolves.toEqualTypeOf<JobRecord | undefined>();
    expectTypeOf<JobRecord['payload']>().toEqualTypeOf<unknown>();
    expectTypeOf<JobRecord['kind']>().toEqualTypeOf<string>();
  });

  test('by definition knows both, as they are stored', async () => {
    const record = await queue.find(db, send, 1);
    expectTypeOf(record).toEqualTypeOf<JobRecordOf<typeof send> | undefined>();
    if (record === undefined) return;
    expectTypeOf(record.kind).toEqualTypeOf<'send'>();
    expectTypeOf(record.payload).toEqualTypeOf<{ to: string; at: string }>();
    if (record.state === 'completed') expectTypeOf(record.output).toEqualTypeOf<{ messageId: string }>();
  });

  test('says that a payload may not be kept, of kinds that say so alone, and of completed jobs alone', async () => {
    const brief = defineJob('brief', { payload: z.object({ to: z.string() }), keepResult: 'outcome' });
    const record = await queue.find(db, brief, 1);
    expectTypeOf(record?.payload).toEqualTypeOf<{ to: string } | undefined>();
    if (record?.state === 'completed')
      expectTypeOf(record.payload).toEqualTypeOf<{ to: string } | undefined>();
    if (record?.state === 'discarded') expectTypeOf(record.payload).toEqualTypeOf<{ to: string }>();
    if (record?.state === 'due') expectTypeOf(record.payload).toEqualTypeOf<{ to: string }>();
    const ended = await queue.waitFor(db, brief, 1);
    if (ended.state === 'completed') expectTypeOf(ended.payload).toEqualTypeOf<{ to: string } | undefined>();
    else expectTypeOf(ended.payload).toEqualTypeOf<{ to: string }>();
    for (const keepResult of [true, false] as const) {
      const kept = defineJob('kept', { payload: z.object({ to: z.string() }), keepResult });
      expectTypeOf<JobRecordOf<typeof kept>['payload']>().toEqualTypeOf<{ to: string }>();
    }
    const either = defineJob('either', {
      payload: z.object({ to: z.string() }),
      keepResult: process.pid > 1 ? 'outcome' : true,
    });
    expectTypeOf<JobRecordOf<typeof either>['payload']>().toEqualTypeOf<{ to: string } | undefined>();
  });

  test('tells the states apart where the definition is a parameter, too', () => {
    const idOf = async <TJob extends JobDefinition>(job: TJob) => {
      const record = await queue.find(db, job, 1);
      if (record?.state === 'completed') return [record.id, record.output, record.finishedAt];
      return [record?.id, record?.payload];
    };
    expectTypeOf(idOf(send)).resolves.toExtend<readonly unknown[]>();
  });

  test('takes ids that are numbers', () => {
    // @ts-expect-error a text
    queue.find(db, '1');
    // @ts-expect-error no id
    queue.find(db, send);
    // @ts-expect-error a kind
    queue.find(db, 'send', 1);
    // @ts-expect-error a bigint
    queue.find(db, 1n);
  });
});

describe('the state of a record says what else it has', () => {
  const record = {} as JobRecordOf<typeof send>;

  test('every state, and no other', () => {
    expectTypeOf(record.state).toEqualTypeOf<JobState>();
    expectTypeOf<JobState>().toEqualTypeOf<
      'waiting' | 'scheduled' | 'due' | 'running' | 'completed' | 'discarded' | 'cancelled'
    >();
  });

  test('what all have', () => {
    expectTypeOf(record.id).toEqualTypeOf<number>();
    expectTypeOf(record.runAt).toEqualTypeOf<Date | null>();
    expectTypeOf(record.createdAt).toEqualTypeOf<Date>();
    expectTypeOf(record.attempt).toEqualTypeOf<number>();
    expectTypeOf(record.uniqueKey).toEqualTypeOf<string | null>();
    expectTypeOf(record.errors[0]?.message).toEqualTypeOf<string | undefined>();
    expectTypeOf(record.metadata).toEqualTypeOf<Readonly<Record<string, unknown>>>();
  });

  test('only a completed one has an output', () => {
    // @ts-expect-error it may not be completed
    record.output;
    if (record.state === 'completed') expectTypeOf(record.output).toEqualTypeOf<{ messageId: string }>();
    // @ts-expect-error discarded
    if (record.state === 'discarded') record.output;
    // @ts-expect-error running
    if (record.state === 'running') record.output;
  });

  test('only a finished one has a finishedAt', () => {
    // @ts-expect-error it may not be finished
    record.finishedAt;
    switch (record.state) {
      case 'completed':
      case 'discarded':
      case 'cancelled':
        expectTypeOf(record.finishedAt).toEqualTypeOf<Date>();
        expectTypeOf(record.workerId).toEqualTypeOf<number | null>();
        expectTypeOf(record.claimedAt).toEqualTypeOf<Date | null>();
        break;
      case 'waiting':
        expectTypeOf(record.runAt).toEqualTypeOf<null>();
        break;
      case 'scheduled':
      case 'due':
        expectTypeOf(record.runAt).toEqualTypeOf<Date>();
        // @ts-expect-error not finished
        record.finishedAt;
        // @ts-expect-error nobody holds it
        record.workerId;
        break;
      case 'running':
        // @ts-expect-error not finished
        record.finishedAt;
        expectTypeOf(record.workerId).toEqualTypeOf<number>();
        expectTypeOf(record.claimedAt).toEqualTypeOf<Date>();
        break;
      default:
        expectTypeOf(record).toBeNever();
    }
  });

  test('only a live one has progress, and may be asked to end', () => {
    // @ts-expect-error it may be finished
    record.progress;
    // @ts-expect-error it may be finished
    record.cancelReason;
    if (record.state === 'running' || record.state === 'scheduled' || record.state === 'due') {
      expectTypeOf(record.progress).toEqualTypeOf<unknown>();
      expectTypeOf(record.cancelReason).toEqualTypeOf<string | null>();
    }
  });

  test('it cannot be changed', () => {
    // @ts-expect-error read-only
    record.attempt = 5;
    // @ts-expect-error read-only
    record.errors.push({ attempt: 1, name: 'Error', message: '', at: '' });
  });
});

describe('list', () => {
  test('by definition knows payload and output', async () => {
    const { jobs, nextCursor } = await queue.list(db, {
      job: send,
      state: 'completed',
      queue: 'mail',
      limit: 5,
    });
    expectTypeOf(jobs).toEqualTypeOf<JobRecordOf<typeof send>[]>();
    expectTypeOf(jobs[0]?.payload).toEqualTypeOf<{ to: string; at: string } | undefined>();
    expectTypeOf(nextCursor).toEqualTypeOf<number | undefined>();
    queue.list(db, { job: send, cursor: nextCursor });
  });

  test('of all kinds knows neither', async () => {
    for (const { jobs } of [
      await queue.list(db),
      await queue.list(db, {}),
      await queue.list(db, { kind: 'send' }),
    ]) {
      expectTypeOf(jobs[0]?.payload).toEqualTypeOf<unknown>();
      expectTypeOf(jobs[0]?.kind).toEqualTypeOf<string | undefined>();
    }
  });

  test('checks its filter', () => {
    // @ts-expect-error no such state
    queue.list(db, { state: 'failed' });
    // @ts-expect-error unknown filter
    queue.list(db, { status: 'completed' });
    // @ts-expect-error a definition
    queue.list(db, { job: 'send' });
    // @ts-expect-error a number
    queue.list(db, { cursor: 'abc' });
  });
});

describe('cancel and redrive', () => {
  test('cancel says why it did not', async () => {
    const result = await queue.cancel(db, 1, 'refunded');
    if (result.cancelled) {
      expectTypeOf(result.cancelled).toEqualTypeOf<true | 'requested'>();
      // @ts-expect-error it was cancelled
      result.reason;
    } else {
      expectTypeOf(result.reason).toEqualTypeOf<'locked' | 'finished' | 'not-found'>();
    }
    queue.cancel(db, 1);
    queue.cancel(db, 1, { force: true, reason: 'refunded' });
    // @ts-expect-error unknown option
    queue.cancel(db, 1, { forced: true });
    // @ts-expect-error one or the other
    queue.cancel(db, 1, 'refunded', { force: true });
    // @ts-expect-error a job's id
    queue.cancel(db, send);
  });

  test('redrive takes an id or a filter', () => {
    expectTypeOf(queue.redrive(db, 1)).resolves.toEqualTypeOf<RedriveResult>();
    queue.redrive(db, { all: true });
    queue.redrive(db, { kind: 'send', queue: 'mail', finishedAfter: new Date(), limit: 5 });
    // @ts-expect-error which ones?
    queue.redrive(db);
    // @ts-expect-error a variable that was never set
    queue.redrive(db, { kind: undefined });
    queue.redrive(db, { id: 1, state: 'cancelled' });
    queue.redrive(db, { all: true }, { batchSize: 100, onProgress: ({ redriven }) => redriven.toFixed() });
    // @ts-expect-error no state from which jobs come back
    queue.redrive(db, { all: true, state: 'completed' });
    // @ts-expect-error unknown option
    queue.redrive(db, { all: true }, { size: 100 });
    // @ts-expect-error a Date
    queue.redrive(db, { finishedBefore: '2030-01-01' });
  });
});

describe('pause and resume', () => {
  test('take the name of a queue, and say whether something has changed', () => {
    expectTypeOf(queue.pause(db, 'mail')).resolves.toEqualTypeOf<boolean>();
    expectTypeOf(queue.resume(db, 'mail')).resolves.toEqualTypeOf<boolean>();
    expectTypeOf(queue.paused(db)).resolves.toEqualTypeOf<PausedQueue[]>();
    expectTypeOf<PausedQueue>().toEqualTypeOf<{ readonly queue: string; readonly pausedAt: Date }>();
    // @ts-expect-error which one?
    queue.pause(db);
    // @ts-expect-error a definition
    queue.pause(db, send);
    // @ts-expect-error the database comes first
    queue.resume('mail');
  });

  test('cancelMany takes a filter, and says what became of the jobs', () => {
    expectTypeOf(queue.cancelMany(db, { all: true })).resolves.toEqualTypeOf<{
      readonly cancelled: number;
      readonly requested: number;
      readonly locked: number;
    }>();
    queue.cancelMany(db, { kind: 'send', state: 'due', payload: { to: 'a' } }, { reason: 'no', force: true });
    // @ts-expect-error which ones?
    queue.cancelMany(db);
    // @ts-expect-error a variable that was never set
    queue.cancelMany(db, { queue: undefined });
    // @ts-expect-error not a live state
    queue.cancelMany(db, { state: 'completed' });
  });

  test('runNow takes an id, and says what stood in the way', async () => {
    const answer = await queue.runNow(db, 1);
    if (!answer.due) {
      expectTypeOf(answer.reason).toEqualTypeOf<
        'running' | 'waiting' | 'locked' | 'finished' | 'not-found'
      >();
    }
    // @ts-expect-error a filter
    queue.runNow(db, { kind: 'send' });
  });
});

describe('waiting for results', () => {
  test('waitFor returns the record of an ended job, with the types of its definition', async () => {
    const record = await queue.waitFor(db, send, 1);
    expectTypeOf(record.state).toEqualTypeOf<'completed' | 'discarded' | 'cancelled'>();
    expectTypeOf(record.payload).toEqualTypeOf<{ to: string; at: string }>();
    expectTypeOf(record.finishedAt).toEqualTypeOf<Date>();
    if (record.state === 'completed') expectTypeOf(record.output).toEqualTypeOf<{ messageId: string }>();
    queue.waitFor(db, send, 1, { timeoutMs: 5, signal: AbortSignal.timeout(5) });
    // @ts-expect-error no definition
    queue.waitFor(db, 1);
    // @ts-expect-error unknown option
    queue.waitFor(db, send, 1, { timeout: 5 });
  });

  test('run returns the output as it is stored, and takes what enqueue takes', () => {
    const payload = { to: 'a', at: '2030-01-01' };
    expectTypeOf(queue.run(db, send, payload)).resolves.toEqualTypeOf<{ messageId: string }>();
    queue.run(db, send, payload, { priority: 1, uniqueKey: 'k', timeoutMs: 5 });
    // @ts-expect-error no payload
    queue.run(db, send);
    // @ts-expect-error its answer may have no id
    queue.run(db, send, payload, { throttle: { key: 'k', perMs: 1 } });
  });
});
