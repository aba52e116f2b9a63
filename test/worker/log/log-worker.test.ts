import { Console } from 'node:console';
import { PassThrough } from 'node:stream';
import { inspect } from 'node:util';
import { sql } from 'drizzle-orm';
import { drizzle } from 'drizzle-orm/node-postgres';
import {
  cancel,
  createQueue,
  createWorker,
  defineJob,
  drain,
  fixedBackoff,
  handle,
  type Logger,
  logWorker,
  NonRetryableError,
  snooze,
  unvalidated,
} from 'drizzle-queue';
import pg from 'pg';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { clearTables } from '../../queries/support/jobs.ts';
import { useTestDatabase } from '../../support/test-database.ts';
import { until } from '../../support/until.ts';
import { nextEvent } from '../next-event.ts';
import { startWorkerProcess } from '../worker-process.ts';

const SECRET = 's3cr3t';

const database = useTestDatabase();
const queue = createQueue();
const work = defineJob('work', { payload: unvalidated<string>(), maxAttempts: 2, backoff: fixedBackoff(0) });

/** What is printed on stderr. */
let printed: string[] = [];

beforeEach(async () => {
  await clearTables(database.client);
  printed = [];
  vi.spyOn(console, 'error').mockImplementation((...given) => {
    printed.push(given.map((value) => (typeof value === 'string' ? value : inspect(value))).join(' '));
  });
});
afterEach(() => {
  vi.restoreAllMocks();
});

/** A handler whose payload says how its attempt ends. */
const handlers = [
  handle(work, async ({ payload, db }) => {
    if (payload.startsWith('bad')) throw new NonRetryableError('no such\nmailbox');
    if (payload.startsWith('retry')) throw new TypeError('not yet');
    if (payload.startsWith('snooze')) return snooze(3_600_000);
    if (payload.startsWith('cancel')) return cancel('not wanted');
    if (payload.startsWith('query')) await db.execute(sql`select ${SECRET}::text from nowhere`);
    return SECRET;
  }),
];

interface Entry {
  readonly level: string;
  readonly fields: Readonly<Record<string, unknown>>;
  readonly message: string;
}

/** A logger of pino's way. */
function collecting(): Logger & { readonly entries: Entry[] } {
  const entries: Entry[] = [];
  const at = (level: string) => (fields: object, message: string) => {
    entries.push({ level, fields: { ...fields }, message });
  };
  return { entries, debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
}

/** Does all that is due, with these payloads, in a worker of this name. */
async function run(options: { log?: Logger | false; logger?: Logger }, ...payloads: string[]) {
  const worker = createWorker(database.db, {
    queue,
    handlers,
    name: 'web-1',
    concurrency: 1,
    ...('log' in options && { log: options.log }),
  });
  if (options.logger) logWorker(worker, options.logger);
  for (const payload of payloads) await queue.enqueue(database.db, work, payload);
  const idle = nextEvent(worker, 'idle');
  const listening = nextEvent(worker, 'listening');
  await worker.start();
  await Promise.all([idle, listening]);
  await worker.stop();
  return worker;
}

describe('by default a worker prints', () => {
  test('a line for its start and one for each discarded job, and nothing else', async () => {
    await run({}, 'good', 'bad', 'retry', 'snooze', 'cancel');
    expect(printed).toHaveLength(3);
    expect(printed[0]).toMatch(/^drizzle-queue: worker \d+ \(web-1\) started, listening: default \(1\)$/);
    expect(printed.slice(1).sort()).toEqual([
      expect.stringMatching(
        /^drizzle-queue: job \d+ \(work\) was discarded at attempt 1 of 2: NonRetryableError: no such mailbox$/,
      ),
      expect.stringMatching(
        /^drizzle-queue: job \d+ \(work\) was discarded at attempt 2 of 2: TypeError: not yet$/,
      ),
    ]);
  });

  test('that it polls, its queues with their concurrency, and no more than eight of them', async () => {
    const queues = Object.fromEntries(
      Array.from({ length: 20 }, (_, n) => [`q${n}`, { concurrency: n + 1 }]),
    );
    const worker = createWorker(database.db, {
      queue,
      listen: false,
      queues: { default: {}, ...queues },
      handlers,
    });
    await worker.start();
    await until(() => printed.length > 0);
    await worker.stop();
    expect(printed).toEqual([
      expect.stringMatching(/started, polling: default \(10\), q0 \(1\), .*q6 \(7\), 13 more queues$/),
    ]);
  });

  test('that a stop waits for handlers, if it does', async () => {
    let end = () => {};
    const ended = new Promise<void>((resolve) => {
      end = resolve;
    });
    let running = 0;
    const worker = createWorker(database.db, {
      queue,
      shutdownTimeoutMs: 150_000,
      handlers: [
        handle(work, async () => {
          running++;
          await ended;
        }),
      ],
    });
    await queue.enqueue(database.db, work, 'a');
    await queue.enqueue(database.db, work, 'b');
    await worker.start();
    await until(() => running === 2);
    const stopping = nextEvent(worker, 'stopping');
    const stopped = worker.stop();
    expect((await stopping)[0]).toEqual({ running: 2, timeoutMs: 150_000 });
    expect(printed.at(-1)).toBe('drizzle-queue: stopping: waiting up to 2.5 min for 2 handlers to end');
    end();
    await stopped;
    expect(printed).toHaveLength(2);
  });

  test('nothing with `log: false`, but errors that nobody listens to', async () => {
    const worker = createWorker(database.db, { queue, handlers, log: false });
    worker.on('completed', () => {
      throw new Error('unheard');
    });
    const completed = nextEvent(worker, 'completed');
    await queue.enqueue(database.db, work, 'bad');
    await queue.enqueue(database.db, work, 'good');
    await worker.start();
    await completed;
    await worker.stop();
    expect(printed).toEqual([expect.stringContaining('drizzle-queue worker:')]);
  });

  test('no control characters of a hostile error, and no endless line', async () => {
    const worker = createWorker(database.db, {
      queue,
      handlers: [
        handle(work, () => {
          throw new NonRetryableError(`\u001b[2J\r\nfake line\u0007\u202e ${'x'.repeat(3_000)}`);
        }),
      ],
    });
    const discarded = nextEvent(worker, 'discarded');
    await queue.enqueue(database.db, work, 'x');
    await worker.start();
    await discarded;
    await worker.stop();
    const line = printed.find((text) => text.includes('discarded'));
    expect(line).toContain('NonRetryableError:  [2J fake line  xxx');
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not be printed
    expect(line).not.toMatch(/[\u0000-\u001f]/);
    expect(line).toHaveLength(500);
  });

  test('in a drain, what was discarded and no more', async () => {
    await queue.enqueue(database.db, work, 'good');
    await queue.enqueue(database.db, work, 'bad');
    await drain(database.db, { queue, handlers, deadlineMs: 20_000 });
    expect(printed).toEqual([expect.stringContaining('was discarded at attempt 1 of 2')]);
    await queue.enqueue(database.db, work, 'bad');
    await drain(database.db, { queue, handlers, deadlineMs: 20_000, log: false });
    expect(printed).toHaveLength(1);
  });

  test('on stderr, not on stdout', async () => {
    const worker = startWorkerProcess('worker/fixtures/talking-worker.ts', { DATABASE_URL: database.url });
    await worker.printed('started, ');
    expect(await worker.end('SIGTERM')).toBe(0);
    expect(worker.output()).toMatch(
      /^drizzle-queue: worker \d+ \(\S+\) started, listening: default \(10\)\n$/,
    );
  });
});

describe('a logger', () => {
  test.each([
    ['given to createWorker', (logger: Logger) => ({ log: logger })],
    ['given to logWorker', (logger: Logger) => ({ log: false as const, logger })],
  ])('%s gets a line for each job, and the worker prints nothing', async (_, options) => {
    const logger = collecting();
    await run(options(logger), 'good', 'bad', 'retry', 'snooze', 'cancel');
    expect(printed).toEqual([]);
    const told = logger.entries.map(({ level, message }) => `${level} ${message.replaceAll(/\d+/g, 'N')}`);
    expect(told).toEqual(
      expect.arrayContaining([
        'info worker N (web-N) started, listening: default (N)',
        'debug job N (work) completed after N ms',
        'error job N (work) was discarded at attempt N of N: NonRetryableError: no such\nmailbox',
        'warn job N (work) failed at attempt N of N, and will be retried in N ms: TypeError: not yet',
        'error job N (work) was discarded at attempt N of N: TypeError: not yet',
        'debug job N (work) was snoozed for N min',
        'info job N (work) was cancelled: not wanted',
        'info stopping',
        'info the worker stopped',
      ]),
    );
    expect(told).toHaveLength(9);
    const { fields } = logger.entries.find(({ message }) => message.includes('completed')) ?? {};
    expect(fields).toEqual({
      jobId: expect.any(Number),
      kind: 'work',
      queue: 'default',
      attempt: 1,
      waitMs: expect.any(Number),
      durationMs: expect.any(Number),
      workerId: expect.any(Number),
    });
    const bad = logger.entries.find(({ message }) => message.includes('NonRetryable'));
    expect(bad?.fields.err).toEqual({
      type: 'NonRetryableError',
      message: 'no such\nmailbox',
      stack: expect.stringContaining('log-worker.test'),
    });
  });

  test('gets no payload, output or parameter', async () => {
    const logger = collecting();
    await run({ log: logger }, `good ${SECRET}`, `bad ${SECRET}`, `query ${SECRET}`, `cancel ${SECRET}`);
    expect(logger.entries.length).toBeGreaterThan(6);
    expect(inspect(logger.entries, { depth: null })).toContain('"nowhere" does not exist');
    expect(inspect(logger.entries, { depth: null, showHidden: true })).not.toContain(SECRET);
  });

  test('gets the trace of a job whose metadata have one', async () => {
    const logger = collecting();
    const traceId = '0af7651916cd43dd8448eb211c80319c';
    await queue.enqueue(database.db, work, 'good', {
      metadata: { traceparent: `00-${traceId}-b7ad6b7169203331-01` },
    });
    await queue.enqueue(database.db, work, 'good', { metadata: { traceparent: 7 } });
    await run({ log: logger });
    const completed = logger.entries.filter(({ message }) => message.includes('completed'));
    expect(completed.map(({ fields }) => fields.traceId).sort()).toEqual([traceId, undefined]);
  });

  test('is asked for its level before a line is made', async () => {
    const logger = collecting();
    await run(
      { log: Object.assign(logger, { isLevelEnabled: (level: string) => level === 'error' }) },
      'good',
      'bad',
    );
    expect(logger.entries.map(({ level }) => level)).toEqual(['error']);
  });

  test('that throws harms nothing: it is an error of the worker', async () => {
    const broken = {
      ...collecting(),
      debug: () => {
        throw new Error('disk full');
      },
    };
    const worker = createWorker(database.db, { queue, handlers, log: broken });
    const error = nextEvent(worker, 'error');
    await queue.enqueue(database.db, work, 'good');
    await worker.start();
    expect((await error)[0]).toMatchObject({ error: { message: 'disk full' } });
    await worker.stop();
  });

  test('that is async and rejects at every line harms nothing: its errors are those of the worker', async () => {
    const reject = async () => await Promise.reject(new Error('disk full'));
    const worker = createWorker(database.db, {
      queue,
      handlers,
      log: { debug: reject, info: reject, warn: reject, error: reject },
    });
    const during = new Set<string>();
    worker.on('error', (told) => during.add(told.during));
    await queue.enqueue(database.db, work, 'good');
    await queue.enqueue(database.db, work, 'bad');
    await worker.start();
    await until(() => during.size === 3);
    const heard = [...during];
    await worker.stop();
    const events = ['started or listening', 'completed', 'discarded'];
    expect(heard.map((one) => one.replace(/started|listening/, 'started or listening')).sort()).toEqual(
      events.map((event) => `a listener of '${event}'`).sort(),
    );
    // By the logger's own lines of these errors.
    await until(() => printed.some((line) => line.includes('a listener of its errors')));
  });

  test('hears of errors, of pauses and of a lost connection', async () => {
    const logger = collecting();
    // postgres.js would listen anew by itself.
    const pool = new pg.Pool({ connectionString: database.url, max: 4 });
    pool.on('error', () => {});
    const worker = createWorker(drizzle({ client: pool }), { queue, handlers, log: logger });
    const listening = nextEvent(worker, 'listening');
    await worker.start();
    await listening;
    const paused = nextEvent(worker, 'paused');
    await queue.pause(database.db, 'default');
    await paused;
    const resumed = nextEvent(worker, 'resumed');
    await queue.resume(database.db, 'default');
    await resumed;
    const [polling, again] = [nextEvent(worker, 'polling'), nextEvent(worker, 'listening')];
    await until(async () => {
      const lost = await database.client`
        select pg_terminate_backend(session) from queue_workers where session is not null`;
      return lost.length > 0;
    });
    await Promise.all([polling, again]);
    await worker.stop();
    await pool.end();
    const told = logger.entries.map(({ level, message }) => `${level} ${message}`);
    expect(told).toContain('info queue default is paused');
    expect(told).toContain('info queue default is resumed');
    expect(told).toContainEqual(
      expect.stringMatching(/^warn notifications do not arrive; polling: \w+: terminating /),
    );
    expect(told).toContain('info notifications arrive again; listening');
    expect(told.filter((line) => line.includes('started, '))).toHaveLength(1);
    expect(printed).toEqual([]);
  });

  test('ends when it is told to', async () => {
    const logger = collecting();
    const worker = createWorker(database.db, { queue, handlers, log: false });
    const end = logWorker(worker, logger);
    end();
    await worker.start();
    await worker.stop();
    expect(logger.entries).toEqual([]);
  });
});

test('a console gets lines without fields, and no debug unless it is asked for', async () => {
  const out = new PassThrough();
  const err = new PassThrough();
  const custom = new Console(out, err);
  await run({ log: custom }, 'good', 'bad');
  const lines = String(out.read()).trimEnd().split('\n');
  expect(lines[0]).toMatch(/^drizzle-queue: worker \d+ \(web-1\) started, listening: default \(1\)$/);
  expect(lines.slice(1)).toEqual(['drizzle-queue: stopping', 'drizzle-queue: the worker stopped']);
  expect(String(err.read())).toMatch(/^drizzle-queue: job \d+ \(work\) was discarded .* no such mailbox\n$/);

  const worker = createWorker(database.db, { queue, handlers, log: false });
  logWorker(worker, custom, { level: 'debug' });
  const completed = nextEvent(worker, 'completed');
  await queue.enqueue(database.db, work, 'good');
  await worker.start();
  await completed;
  await worker.stop();
  expect(String(out.read())).toMatch(/^drizzle-queue: job \d+ \(work\) completed after \d+ ms$/m);
});

test('what is no logger is refused', () => {
  const create = (log: unknown) => () => createWorker(database.db, { queue, handlers, log: log as Logger });
  for (const wrong of [true, null, 'info', {}, { debug() {}, info() {}, warn() {} }, () => {}]) {
    expect(create(wrong)).toThrow(TypeError);
    expect(create(wrong)).toThrow(
      /createWorker: log, if not false, must have the functions debug, info, warn/,
    );
  }
  const worker = createWorker(database.db, { queue, handlers, log: false });
  expect(() => logWorker(worker, {} as Logger)).toThrow(/logWorker: the logger must have the functions/);
  expect(() => logWorker(worker, console, { level: 'loud' as 'info' })).toThrow(/level must be one of debug/);
  expect(() => logWorker(worker, console, { lvl: 'info' } as object)).toThrow(/did you mean level\?/);
});
