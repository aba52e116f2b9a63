import {
  createQueue,
  defineJob,
  fail,
  fixedBackoff,
  handle,
  NonRetryableError,
  runNext,
} from 'drizzle-queue';
import { beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { clearTables } from '../queries/support/jobs.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';
import { useCli } from './support/build-cli.ts';
import { hasTerminal, runCli, startCli, startInTerminal } from './support/run-cli.ts';

const database = useTestDatabase();
const cli = useCli();
const queue = createQueue();
const greet = defineJob('greet', { backoff: fixedBackoff(60_000) });
let cwd: string;

const env = () => ({ DATABASE_URL: database.url });
const run = (...args: string[]) => runCli(cli.bin, args, { cwd, env: env() });

async function enqueue(count: number, delayMs = 0): Promise<number[]> {
  const { jobs } = await queue.list(database.db, { limit: 1 });
  const after = jobs[0]?.id ?? 0;
  await queue.enqueueMany(
    database.db,
    greet,
    Array.from({ length: count }, () => ({ delayMs })),
  );
  const listed = await queue.list(database.db, { limit: 1_000 });
  return listed.jobs.map(({ id }) => id).filter((id) => id > after);
}

async function discard(count: number): Promise<number[]> {
  const ids = await enqueue(count);
  const handlers = [handle(greet, () => fail(new NonRetryableError('no')))];
  for (const _ of ids) await runNext(database.db, { queue, handlers });
  return ids;
}

const states = async () => (await queue.list(database.db, { limit: 1_000 })).jobs.map(({ state }) => state);

beforeAll(async () => {
  cwd = await cli.project();
});
beforeEach(() => clearTables(database.client));

describe('by ids', () => {
  test('cancel ends them, says what became of each, and fails if one was not there', async () => {
    const [first = 0, second = 0] = await enqueue(2);
    const ended = await run(
      'cancel',
      String(first),
      `#${second}`,
      String(first),
      '--reason',
      '-none',
      '--json',
    );
    expect(ended.code).toBe(0);
    expect(JSON.parse(ended.stdout)).toEqual({
      version: 1,
      jobs: [first, second].map((id) => ({ id, done: true, outcome: 'cancelled' })),
    });
    expect(await queue.find(database.db, first)).toMatchObject({
      state: 'cancelled',
      errors: [{ message: '-none' }],
    });
    const again = await run('cancel', String(first), '999999');
    expect(again).toMatchObject({
      code: 1,
      stdout: `${first} not changed: finished\n999999 not changed: not-found\n`,
    });
  });

  test('redrive and run-now', async () => {
    const [discarded = 0] = await discard(1);
    const [scheduled = 0] = await enqueue(1, 3_600_000);
    expect(await run('redrive', String(discarded))).toMatchObject({
      code: 0,
      stdout: `${discarded} redriven\n`,
    });
    expect(await run('run-now', String(scheduled))).toMatchObject({ code: 0, stdout: `${scheduled} due\n` });
    expect(await states()).toEqual(['due', 'due']);
    await queue.cancel(database.db, scheduled);
    expect(await run('retry', String(scheduled))).toMatchObject({
      code: 0,
      stdout: `${scheduled} redriven\n`,
    });
  });

  test('redrive --state puts back only what ended so, also in a dry run', async () => {
    const [discarded = 0] = await discard(1);
    const [cancelled = 0] = await enqueue(1);
    await queue.cancel(database.db, cancelled);
    const ids = [String(discarded), String(cancelled)];
    const asked = async (state: string, ...more: string[]) =>
      (await run('redrive', ...ids, '--state', state, ...more)).stdout;
    const left = `${discarded} not changed: discarded\n`;
    expect(await asked('cancelled', '--dry-run')).toBe(`${left}${cancelled} cancelled\n`);
    expect(await asked('discarded')).toBe(`${discarded} redriven\n${cancelled} not changed: cancelled\n`);
    expect((await queue.find(database.db, cancelled))?.state).toBe('cancelled');
    expect(await asked('cancelled')).toBe(`${discarded} not changed: due\n${cancelled} redriven\n`);
  });

  test.each([
    ['cancel', () => enqueue(20), 'cancelled'],
    ['redrive', () => discard(20), 'due'],
    ['run-now', () => enqueue(20, 3_600_000), 'due'],
  ])(
    '%s goes on without the reader of what it prints, and its exit code tells',
    async (name, make, state) => {
      const ids = await make();
      const exitCode = async (...more: string[]) => {
        const acting = startCli(cli.bin, [name, ...ids.map(String), ...more], { cwd, env: env() });
        acting.child.stdout?.once('data', () => acting.child.stdout?.destroy());
        const { code, stderr } = await acting.end();
        expect(stderr).toBe('');
        return code;
      };
      expect(await exitCode()).toBe(0);
      expect(await states()).toEqual(ids.map(() => state));
      expect(await exitCode('999999')).toBe(1);
    },
  );

  test('--dry-run changes nothing', async () => {
    const [id = 0] = await enqueue(1);
    expect(await run('cancel', String(id), '--dry-run')).toMatchObject({ code: 0, stdout: `${id} due\n` });
    expect(await states()).toEqual(['due']);
  });

  test('run-now --dry-run says of a job whose claim was refused that it can be made due', async () => {
    const [refused = 0, waiting = 0] = await enqueue(2);
    await database.client`
      update queue_jobs set run_at = 'infinity', errors = case id
        when ${refused} then '[{"attempt": 0, "name": "ClaimRefusedError", "message": "no"}]'::jsonb else errors end`;
    expect(await run('run-now', String(refused), '--dry-run')).toMatchObject({ code: 0 });
    expect(await run('run-now', String(refused))).toMatchObject({ code: 0, stdout: `${refused} due\n` });
    expect(await run('run-now', String(waiting), '--dry-run')).toMatchObject({ code: 1 });
    expect(await run('run-now', String(waiting))).toMatchObject({ code: 1 });
  });

  test('a filter beside them, or nothing at all, is refused', async () => {
    await enqueue(1);
    expect(await run('cancel', '1', '--kind', 'greet')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('cannot be combined'),
    });
    for (const name of ['cancel', 'redrive', 'run-now']) {
      const { code, stderr } = await run(name, '--yes');
      expect({ code, stderr }).toEqual({
        code: 2,
        stderr: expect.stringContaining('or --all for every job'),
      });
    }
    expect(await run('cancel', '--all', '--kind', 'greet', '-y')).toMatchObject({ code: 2 });
    expect(await states()).toEqual(['due']);
  });
});

describe('by a filter', () => {
  test('--dry-run only counts', async () => {
    await enqueue(3);
    const counted = await run('cancel', '--kind', 'greet', '--dry-run');
    expect(counted).toMatchObject({ code: 0, stdout: 'cancel would affect 3 jobs.\n' });
    const { stdout } = await run('cancel', '--all', '--limit', '2', '--dry-run', '--json');
    expect(JSON.parse(stdout)).toEqual({ version: 1, dryRun: true, jobs: 2, isLeast: false });
    expect(await states()).toEqual(['due', 'due', 'due']);
  });

  test('asks, and where nobody can answer does nothing', async () => {
    await enqueue(3);
    const { code, stderr } = await runCli(cli.bin, ['cancel', '--all'], { cwd, env: env(), input: 'y\n' });
    expect({ code, stderr }).toEqual({
      code: 2,
      stderr:
        'drizzle-queue: cancel 3 jobs? This is not a terminal, so it cannot ask: pass --yes, or --dry-run to only count\n',
    });
    expect(await states()).toEqual(['due', 'due', 'due']);
  });

  test.skipIf(!hasTerminal)('asks in a terminal, and takes no, yes and Ctrl-C', async () => {
    await enqueue(3);
    const ask = async (typed: string) => {
      const asking = startInTerminal(cli.bin, ['cancel', '--kind', 'greet'], { cwd, env: env() });
      await asking.says('cancel 3 jobs? [y/N]');
      asking.write(typed);
      return (await asking.end()).code;
    };
    expect(await ask('\r')).toBe(1);
    expect(await ask('\u0003')).toBe(130);
    expect(await ask('\u0004')).toBe(1);
    expect(await states()).toEqual(['due', 'due', 'due']);
    expect(await ask('y\r')).toBe(0);
    expect(await states()).toEqual(['cancelled', 'cancelled', 'cancelled']);
  });

  test('--yes does it: cancel, redrive of both states, run-now', async () => {
    await discard(3);
    await enqueue(2);
    const all = async (...args: string[]) => {
      const { code, stdout, stderr } = await run(...args, '--yes', '--json');
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
      return JSON.parse(stdout);
    };
    expect(await all('cancel', '--state', 'due')).toEqual({
      version: 1,
      cancelled: 2,
      requested: 0,
      locked: 0,
    });
    expect(await all('redrive', '--all', '--limit', '1')).toEqual({ version: 1, redriven: 1, duplicates: 0 });
    expect(await all('redrive', '--all')).toEqual({ version: 1, redriven: 2, duplicates: 0 });
    expect(await all('redrive', '--state', 'cancelled')).toEqual({ version: 1, redriven: 2, duplicates: 0 });
    expect(new Set(await states())).toEqual(new Set(['due']));
    await enqueue(4, 3_600_000);
    expect(await all('run-now', '--kind', 'greet', '--limit', '3')).toEqual({ version: 1, due: 3, left: 0 });
    expect((await states()).filter((state) => state === 'scheduled')).toHaveLength(1);
  });

  test('run-now goes by batches, too', async () => {
    const { client } = database;
    await client.unsafe(`
      create table statements (at timestamptz default now());
      create function count_statement() returns trigger language plpgsql as $$ begin
        insert into statements default values; return null; end $$;
      create trigger count_statement after update on queue_jobs for each statement execute function count_statement()`);
    onTestFinished(async () => {
      await client.unsafe('drop function count_statement cascade; drop table statements');
    });
    await enqueue(900, 3_600_000);
    expect(await run('run-now', '--all', '--limit', '899', '--yes')).toMatchObject({
      code: 0,
      stdout: '899 due, 0 left\n',
    });
    expect((await states()).filter((state) => state === 'due')).toHaveLength(899);
    expect((await client`select from statements`).length).toBeLessThan(10);
  });

  test.each([['--all'], ['--filter', 'state:scheduled']])(
    'run-now %s leaves a job that the database refuses to change, and that alone',
    async (...which) => {
      const { client } = database;
      const ids = await enqueue(5, 3_600_000);
      const elsewhere = { queue: 'elsewhere', delayMs: 3_600_000 };
      await queue.enqueueMany(
        database.db,
        greet,
        Array.from({ length: 5 }, () => elsewhere),
      );
      await client.unsafe(`
        create function refuse() returns trigger language plpgsql as $$ begin raise 'not this one'; end $$;
        create trigger refuse before update on queue_jobs for each row when (old.id = ${ids[2]})
          execute function refuse()`);
      onTestFinished(async () => {
        await client.unsafe('drop function refuse cascade');
      });
      expect(await run('run-now', ...which, '--yes')).toEqual({
        code: 1,
        stdout: '9 due, 1 left\n',
        stderr: `Job ${ids[2]} was not changed: not this one\n`,
      });
      expect((await states()).filter((state) => state === 'scheduled')).toHaveLength(1);
    },
  );

  test.each([['--all'], ['--filter', 'state:scheduled']])(
    'run-now %s counts what a worker has claimed before the database refused another job',
    async (...which) => {
      const { client } = database;
      const later = Array.from({ length: 3 }, () => ({ queue: 'elsewhere', delayMs: 3_600_000 }));
      await queue.enqueueMany(database.db, greet, later);
      const [refused] = (await enqueue(2, 3_600_000)).toSorted((a, b) => a - b);
      await client.unsafe(`
        create function claim_or_refuse() returns trigger language plpgsql as $$ begin
          if old.id = ${refused} then raise 'not this one'; end if;
          if old.queue = 'elsewhere' then new.worker_id = 1; end if;
          return new; end $$;
        create trigger claim_or_refuse before update on queue_jobs for each row
          execute function claim_or_refuse()`);
      onTestFinished(async () => {
        await client.unsafe('drop function claim_or_refuse cascade');
      });
      expect(await run('run-now', ...which, '--yes')).toEqual({
        code: 1,
        stdout: '4 due, 1 left\n',
        stderr: `Job ${refused} was not changed: not this one\n`,
      });
    },
  );

  test.skipIf(!hasTerminal)('Ctrl-C ends it between two batches, and what was done stays', async () => {
    // It tries this row again for some tenths of a second, in which it may be done or not.
    const ids = await enqueue(2_000);
    const [connection] = await database.connect();
    let release: () => void = () => undefined;
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    const holding = connection?.client.begin(async (sql) => {
      await sql`select from queue_jobs where id = ${Math.max(...ids)} for update`;
      await held;
    });
    const running = startInTerminal(cli.bin, ['cancel', '--all', '--yes'], { cwd, env: env() });
    await until(
      async () => (await queue.list(database.db, { state: 'cancelled', limit: 1 })).jobs.length > 0,
    );
    running.write('\u0003');
    const { code } = await running.end();
    release();
    await holding;
    expect([0, 130]).toContain(code);
    const done = (await queue.list(database.db, { state: 'cancelled', limit: 1_000 })).jobs.length;
    expect(done).toBeGreaterThan(0);
  });
});

describe('what an error ends', () => {
  /** The database refuses to remove the job. */
  const refuse = async (id: number) => {
    await database.client.unsafe(`
      create function refuse() returns trigger language plpgsql as $$ begin raise exception 'not this one'; end $$;
      create trigger refuse before delete on queue_jobs for each row when (old.id = ${id}) execute function refuse()`);
    onTestFinished(() =>
      database.client
        .unsafe('drop trigger refuse on queue_jobs; drop function refuse()')
        .then(() => undefined),
    );
  };

  test('by ids: what was done before is in the answer', async () => {
    const [second = 0, first = 0] = await enqueue(2);
    await refuse(second);
    const { code, stdout, stderr } = await run('cancel', String(first), String(second), '--json');
    expect({ code, stderr }).toEqual({ code: 1, stderr: 'drizzle-queue: not this one\n' });
    expect(JSON.parse(stdout)).toEqual({
      version: 1,
      stopped: 'failed',
      jobs: [{ id: first, done: true, outcome: 'cancelled' }],
    });
  });

  test('run-now: what was done in one queue before an error in the next is said, and in the answer', async () => {
    const later = Array.from({ length: 3 }, () => ({ queue: 'elsewhere', delayMs: 3_600_000 }));
    await queue.enqueueMany(database.db, greet, later);
    await enqueue(1, 3_600_000);
    await database.client.unsafe(`
      create function refuse() returns trigger language plpgsql as $$ begin
        raise exception 'no memory' using errcode = '53200'; end $$;
      create trigger refuse before update on queue_jobs for each row when (old.queue <> 'elsewhere')
        execute function refuse()`);
    onTestFinished(async () => {
      await database.client.unsafe('drop function refuse cascade');
    });
    for (const which of [['--all'], ['--filter', 'state:scheduled']]) {
      await database.client`update queue_jobs set run_at = now() + interval '1 h' where queue = 'elsewhere'`;
      const { code, stdout, stderr } = await run('run-now', ...which, '--yes', '--json');
      expect({ code, stderr }).toEqual({
        code: 1,
        stderr: 'Failed. Before that: 3 due, 0 left.\ndrizzle-queue: no memory\n',
      });
      expect(JSON.parse(stdout)).toEqual({ version: 1, stopped: 'failed', due: 3, left: 0 });
    }
  });

  test('of many: how many were done is said, and in the answer', async () => {
    await queue.enqueueMany(
      database.db,
      greet,
      Array.from({ length: 1_001 }, () => ({})),
    );
    const { jobs } = await queue.list(database.db, { limit: 1 });
    await refuse(jobs[0]?.id ?? 0);
    const { code, stdout, stderr } = await run('cancel', '--all', '--yes', '--json');
    expect(code).toBe(1);
    expect(stderr).toBe(
      'Failed. Before that: 1,000 cancelled, 0 requested, 0 locked.\ndrizzle-queue: not this one\n',
    );
    expect(JSON.parse(stdout)).toEqual({
      version: 1,
      stopped: 'failed',
      cancelled: 1_000,
      requested: 0,
      locked: 0,
    });
  });
});

describe('pause and resume', () => {
  test('of queues, also with names that begin with a dash', async () => {
    expect(await run('pause', '--', 'mail', '-v')).toMatchObject({
      code: 0,
      stdout: 'mail is paused\n-v is paused\n',
    });
    expect((await queue.paused(database.db)).map((each) => each.queue).sort()).toEqual(['-v', 'mail']);
    const unknown = await run('pause', 'mial');
    expect(unknown).toMatchObject({ code: 0, stdout: 'mial is paused\n' });
    expect(unknown.stderr).toBe("No job is in 'mial': is this the name of the queue?\n");
    await run('resume', 'mial');
    expect(await run('pause', 'mail')).toMatchObject({ code: 0, stdout: 'mail was already paused\n' });
    const { stdout } = await run('resume', '--json', '--', 'mail', '-v');
    expect(JSON.parse(stdout)).toMatchObject({ queues: [{ queue: 'mail', changed: true }, { queue: '-v' }] });
    expect(await queue.paused(database.db)).toEqual([]);
  });
});

describe('what stands in the way is one sentence, and ends with 1', () => {
  // No driver reads the file of that service.
  test.each([{}, { PGSERVICE: 'shop' }])('no database at all: %j', async (env) => {
    const { code, stderr } = await runCli(cli.bin, ['status'], { cwd, env });
    // The repository around the tests has a drizzle.config.ts without an address.
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: expect.stringMatching(/^drizzle-queue: No database found: .*\n$/),
    });
  });

  test.each(['status', 'list', 'doctor', 'dashboard'])(
    '%s: a database that does not answer',
    async (name) => {
      const url = 'postgres://somebody:secret@127.0.0.1:1/shop';
      const { code, stdout, stderr } = await runCli(cli.bin, [name, '--url', url], { cwd });
      expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
      expect(stderr).toMatch(
        /^drizzle-queue: The database does not answer: is it running.*ECONNREFUSED.*\n$/,
      );
      expect(stderr).not.toContain('secret');
    },
  );

  test('missing tables, with the command that makes them; and the stack with --verbose', async () => {
    const { pathname } = new URL(database.url);
    const url = database.url.replace(pathname, '/postgres');
    for (const name of ['list', 'status', 'dashboard']) {
      const { code, stderr } = await runCli(cli.bin, [name, '--url', url], { cwd });
      expect({ name, code, stderr }).toEqual({
        name,
        code: 1,
        stderr: expect.stringMatching(
          /^drizzle-queue: The queue's tables are not up to date.*drizzle-kit migrate.*\n$/,
        ),
      });
    }
    const { stderr } = await runCli(cli.bin, ['list', '--url', url, '--verbose'], { cwd });
    expect(stderr).toContain('    at ');
  });
});

describe('by the words of the dashboard', () => {
  const payload = async (ids: readonly number[], text: string) =>
    await database.client`update queue_jobs set payload = ${text}::text::jsonb where id = any(${[...ids]})`;

  test('cancel ends those that they find, and counts before', async () => {
    const [one = 0, other = 0, third = 0] = await enqueue(3);
    await payload([one], '{"tenant": 7}');
    await payload([other], '{"tenant": "7"}');
    const args = ['cancel', '--filter', 'kind:greet payload.tenant:7'];
    expect(await run(...args, '--dry-run')).toMatchObject({
      code: 0,
      stdout: 'cancel would affect 2 jobs.\n',
    });
    expect(await run(...args, '--yes', '--reason', 'left')).toMatchObject({
      code: 0,
      stdout: '2 cancelled, 0 requested, 0 locked, 0 refused\n',
    });
    expect((await queue.find(database.db, third))?.state).toBe('due');
    expect(await queue.find(database.db, one)).toMatchObject({ errors: [{ message: 'left' }] });
  });

  test('cancel --force also ends those that were asked to end', async () => {
    const [id = 0] = await enqueue(1);
    await database.client`update queue_jobs set worker_id = 1, claimed_at = now() where id = ${id}`;
    const asked = await run('cancel', '-f', `#${id} state:running`, '--yes');
    expect(asked).toMatchObject({ code: 0, stdout: '0 cancelled, 1 requested, 0 locked, 0 refused\n' });
    expect(await run('cancel', '-f', `#${id}`, '--yes')).toMatchObject({ code: 0 });
    expect((await queue.find(database.db, id))?.state).toBe('running');
    expect(await run('cancel', '-f', `#${id}`, '--yes', '--force')).toMatchObject({
      code: 0,
      stdout: '1 cancelled, 0 requested, 0 locked, 0 refused\n',
    });
  });

  test('cancel ends those that failed and wait for another attempt, due or scheduled', async () => {
    const ids = await enqueue(3);
    await database.client`
      update queue_jobs set attempt = 1, errors = '[{"attempt": 1}]', run_at = run_at + (id % 2) * interval '1 hour'
      where id = any(${ids.slice(1)})`;
    expect(await run('cancel', '-f', 'state:retrying', '--yes', '--force')).toMatchObject({
      code: 0,
      stdout: '2 cancelled, 0 requested, 0 locked, 0 refused\n',
    });
    expect((await queue.find(database.db, ids[0] ?? 0))?.state).toBe('due');
  });

  /** The database refuses to delete the rows of these jobs. */
  const refuse = async (table: string, which: string) => {
    await database.client.unsafe(`
      create function refuse() returns trigger language plpgsql as $$ begin raise 'not this one'; end $$;
      create trigger refuse before delete on ${table} for each row when (${which}) execute function refuse()`);
    onTestFinished(async () => {
      await database.client.unsafe('drop function refuse cascade');
    });
  };

  test.each([
    ['cancel', 'queue_jobs', 'id', '4 cancelled, 0 requested, 0 locked, 1 refused\n'],
    ['redrive', 'queue_results', 'job_id', '4 redriven, 0 duplicates, 1 refused\n'],
  ])('%s leaves a job that the database refuses to change, and that alone', async (name, table, id, said) => {
    const ids = name === 'redrive' ? await discard(5) : await enqueue(5);
    await refuse(table, `old.${id} = ${ids[2]}`);
    expect(await run(name, '-f', 'kind:greet', '--yes')).toEqual({
      code: 1,
      stdout: said,
      stderr: `Job ${ids[2]} was not changed: not this one\n`,
    });
  });

  test('cancel counts a locked job once, however often it tries', async () => {
    const [due = 0, ...ids] = (await enqueue(3)).toSorted((a, b) => a - b);
    await database.client`
      update queue_jobs set attempt = 1, errors = '[{"attempt": 1}]',
        run_at = case id when ${ids[0] ?? 0} then now() + interval '1 hour' else run_at end`;
    await refuse('queue_jobs', `old.id = ${due}`);
    const [other] = await database.connect();
    const cancelled = await other?.client.begin(async (tx) => {
      await tx`select from queue_jobs where id = ${ids[0] ?? 0} for update`;
      return await run('cancel', '-f', 'state:retrying', '--yes');
    });
    expect(cancelled).toMatchObject({
      code: 1,
      stdout: '1 cancelled, 0 requested, 1 locked, 1 refused\n',
    });
  });

  test('redrive counts a duplicate once, where it goes queue by queue and tries again', async () => {
    const keyed = { uniqueKey: 'a', queue: 'a' };
    await queue.enqueue(database.db, greet, undefined, keyed);
    const handlers = [handle(greet, () => fail(new NonRetryableError('no')))];
    await runNext(database.db, { queue, handlers, queues: ['a'] });
    await queue.enqueue(database.db, greet, undefined, keyed);
    const [refused = 0] = await discard(2);
    await refuse('queue_results', `old.job_id = ${refused}`);
    // As on Citus.
    await database.client`
      insert into pg_extension select 1, 'citus', extowner, extnamespace, false, '0' from pg_extension limit 1`;
    onTestFinished(async () => {
      await database.client`delete from pg_extension where extname = 'citus'`;
    });
    expect(await run('redrive', '-f', 'kind:greet', '--yes')).toMatchObject({
      code: 1,
      stdout: '1 redriven, 1 duplicates, 1 refused\n',
    });
  });

  test('Ctrl-C also ends it while it looks for the jobs that the database refuses', async () => {
    const { client } = database;
    await enqueue(200);
    await client.unsafe(`
      create function refuse() returns trigger language plpgsql as $$ begin
        perform pg_sleep(0.1); raise 'not this one'; end $$;
      create trigger refuse before delete on queue_jobs for each row execute function refuse()`);
    onTestFinished(async () => {
      await client.unsafe('drop function refuse cascade');
    });
    const running = startCli(cli.bin, ['cancel', '-f', 'kind:greet', '--yes'], { cwd, env: env() });
    await until(() => running.stderr().includes('was not changed'));
    running.child.kill('SIGINT');
    const { code, stderr } = await running.end();
    expect(code).toBe(130);
    expect(stderr).toMatch(
      /Interrupted: 0 cancelled, 0 requested, 0 locked, \d+ refused; the others were not changed/,
    );
  });

  test('redrive and run-now', async () => {
    // Newest first; the oldest are put back first.
    const [third = 0, second = 0, first = 0] = await discard(3);
    await queue.cancel(database.db, (await enqueue(1))[0] ?? 0);
    expect(await run('redrive', '-f', 'kind:greet after:1h', '--limit', '2', '--yes')).toMatchObject({
      code: 0,
      stdout: '2 redriven, 0 duplicates, 0 refused\n',
    });
    for (const id of [first, second]) expect((await queue.find(database.db, id))?.state).toBe('due');
    expect((await queue.find(database.db, third))?.state).toBe('discarded');
    expect(await run('redrive', '-f', 'state:cancelled', '--yes')).toMatchObject({
      stdout: '1 redriven, 0 duplicates, 0 refused\n',
    });
    const [later = 0] = await enqueue(1, 3_600_000);
    await enqueue(1, 7_200_000);
    expect(await run('run-now', '-f', `#${later}`, '--yes')).toMatchObject({ stdout: '1 due, 0 left\n' });
    expect((await states()).filter((state) => state === 'scheduled')).toHaveLength(1);
  });

  test('what they do not say is refused, and touches nothing', async () => {
    await enqueue(2);
    const refused: readonly (readonly [args: string[], why: RegExp])[] = [
      [['cancel', '-f', ' ', '--yes'], /--filter is empty/],
      [['cancel', '-f', 'knd:greet', '--yes'], /Unknown filter “knd:”/],
      [['cancel', '-f', 'kind:greet', '--all', '--yes'], /cannot be combined/],
      [['cancel', '1', '-f', 'kind:greet'], /cannot be combined/],
      [['cancel', '-f', 'kind:greet', '--kind', 'greet', '--yes'], /both set kind/],
      [['redrive', '-f', 'kind:greet', '--finished-after', '2h', '--yes'], /cannot be combined/],
    ];
    for (const [args, why] of refused) {
      const { code, stderr } = await run(...args);
      expect({ args, code, stderr }).toEqual({ args, code: 2, stderr: expect.stringMatching(why) });
    }
    expect(await run('cancel', '-f', 'state:completed', '--yes')).toMatchObject({ code: 0 });
    expect(await states()).toEqual(['due', 'due']);
  });
});
