import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { sql } from 'drizzle-orm';
import { drizzle as drizzleNodePostgres } from 'drizzle-orm/node-postgres';
import { withReplicas } from 'drizzle-orm/pg-core';
import { drizzle as drizzleProxy } from 'drizzle-orm/pg-proxy';
import { drizzle } from 'drizzle-orm/postgres-js';
import pg from 'pg';
import postgres from 'postgres';
import { describe, expect, test, vi } from 'vitest';
import { listenApartOf, listenOf } from '../../src/core/drivers/detect.ts';
import type { Listen, ListeningConnection } from '../../src/core/drivers/listen.ts';
import { type Database, queryRows } from '../../src/core/sql/executor.ts';
import { openBeside } from '../../src/core/worker/statements/own-connection.ts';
import { tables } from '../queries/support/jobs.ts';
import { drivers, type OpenDriver } from '../queue/support/drivers.ts';
import { startPostgres } from '../support/embedded-postgres.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';

const database = useTestDatabase();

function required(listen: Listen | undefined): Listen {
  if (listen === undefined) throw new Error('this driver cannot listen');
  return listen;
}

/** `listenOrPoll` of a process that has warned of nothing yet. */
async function freshListenOrPoll() {
  vi.resetModules();
  return (await import('../../src/core/drivers/listen-or-poll.ts')).listenOrPoll;
}

/** What one call of `listen` reports. */
function listenTo(db: Database, channel: string) {
  const heard: string[] = [];
  const session = new AbortController();
  let ready = 0;
  let connection: ListeningConnection | undefined;
  let end: unknown;
  const over = required(listenOf(db))(
    channel,
    {
      ready: (opened) => {
        ready++;
        connection = opened;
      },
      notify: (payload) => void heard.push(payload),
    },
    session.signal,
  ).then(
    () => {
      end = 'resolved';
    },
    (error: unknown) => {
      end = error;
    },
  );
  return {
    heard,
    over,
    stop: () => session.abort(),
    get ready() {
      return ready;
    },
    get connection() {
      return connection;
    },
    get end() {
      return end;
    },
  };
}

/** The processes of the server that listen, or have. */
async function listeners(channel: string): Promise<number[]> {
  const rows = await database.client<{ pid: number }[]>`
    select pid from pg_stat_activity where datname = current_database() and lower(query) = ${`listen "${channel}"`}`;
  return rows.map(({ pid }) => pid);
}

const opened: Readonly<Record<string, () => Promise<OpenDriver>>> = {
  'postgres.js': async () => {
    const client = postgres(database.url, { max: 1 });
    return { db: drizzle({ client }), close: () => client.end() };
  },
  'node-postgres, a pool': async () => {
    const pool = new pg.Pool({ connectionString: database.url, max: 1 });
    pool.on('error', () => {});
    return { db: drizzleNodePostgres({ client: pool }), close: () => pool.end() };
  },
  'node-postgres, a pool with a password': async () => {
    const { hostname, port, pathname } = new URL(database.url);
    const settings = { host: hostname, port: Number(port), database: pathname.slice(1), user: 'postgres' };
    const pool = new pg.Pool({ ...settings, password: 'none is needed', max: 1 });
    pool.on('error', () => {});
    return { db: drizzleNodePostgres({ client: pool }), close: () => pool.end() };
  },
  'node-postgres, a client': async () => {
    const client = new pg.Client({ connectionString: database.url });
    await client.connect();
    return { db: drizzleNodePostgres({ client }), close: () => client.end() };
  },
  PGlite: () => drivers.PGlite(),
};

describe.each(Object.entries(opened))('%s', (name, open) => {
  test('hears what is notified on its channel, also while the pool’s one connection is taken', async () => {
    const { db, close } = await open();
    const listening = listenTo(db, 'wake_a');
    await until(() => listening.ready === 1);
    await db.execute(sql`select pg_notify('wake_b', 'other')`);
    await db.transaction(async (tx) => {
      await tx.execute(sql`select pg_notify('wake_a', 'at commit')`);
    });
    await until(() => listening.heard.length > 0);
    if (name !== 'PGlite') {
      await db.transaction(async () => {
        await database.client`select pg_notify('wake_a', 'meanwhile')`;
        await until(() => listening.heard.length > 1);
      });
    }
    expect(listening.heard).toEqual(name === 'PGlite' ? ['at commit'] : ['at commit', 'meanwhile']);
    listening.stop();
    await listening.over;
    expect(listening.end).toBe('resolved');
    await db.execute(sql`select pg_notify('wake_a', 'too late')`);
    await until(async () => (await listeners('wake_a')).length === 0);
    expect(listening.heard).not.toContain('too late');
    await close();
  });

  test.skipIf(name === 'PGlite')('runs statements on the connection that listens', async () => {
    const { db, close } = await open();
    const listening = listenTo(db, 'wake_f');
    await until(() => listening.ready === 1);
    const pids = await listeners('wake_f');
    expect(pids).toHaveLength(1);
    const { runner } = listening.connection ?? {};
    if (runner === undefined) throw new Error('it runs no statements');
    const query = sql`select pg_backend_pid() as pid, ${'text'}::text as text, ${7}::int4 as number, true as yes`;
    // While the pool has no connection to give.
    await db.transaction(async () => {
      expect(await queryRows(runner, tables, query)).toEqual([
        { pid: pids[0], text: 'text', number: 7, yes: true },
      ]);
    });
    listening.stop();
    await listening.over;
    await close();
  });

  test.skipIf(name === 'PGlite')('rejects when its connection is lost, and can be called again', async () => {
    const { db, close } = await open();
    for (let round = 0; round < 2; round++) {
      const listening = listenTo(db, 'wake_c');
      await until(() => listening.ready === 1);
      const pids = await listeners('wake_c');
      expect(pids).toHaveLength(1);
      await database.client`select pg_terminate_backend(${pids[0] ?? 0})`;
      await listening.over;
      expect(listening.end).toBeInstanceOf(Error);
      // The server says so before it is gone itself; nobody connects anew behind our back.
      await until(async () => (await listeners('wake_c')).length === 0);
    }
    await close();
  });
});

describe('postgres.js', () => {
  test('two on one client do not end each other, nor what the app listens to', async () => {
    const client = postgres(database.url, { max: 1 });
    const db = drizzle({ client });
    const own: string[] = [];
    await client.listen('own', (payload) => own.push(payload));
    const first = listenTo(db, 'wake_d');
    const second = listenTo(db, 'wake_d');
    await until(() => first.ready === 1 && second.ready === 1);
    first.stop();
    await first.over;
    await client.notify('wake_d', 'x');
    await until(() => second.heard.length === 1);
    expect(first.heard).toEqual([]);
    second.stop();
    await second.over;
    await client.notify('own', 'y');
    await until(() => own.length === 1);
    await client.end();
  });

  test('what the app listens to moves to another connection when one of them takes this one for dead', async () => {
    const client = postgres(database.url, { max: 1 });
    const own: string[] = [];
    let ready = 0;
    await client.listen(
      'own',
      (payload) => own.push(payload),
      () => ready++,
    );
    const [first, second] = [
      listenTo(drizzle({ client }), 'wake_h'),
      listenTo(drizzle({ client }), 'wake_h'),
    ];
    await until(() => first.ready === 1 && second.ready === 1);
    const [pid] = await listeners('wake_h');
    first.connection?.destroy(new Error('does not answer'));
    await Promise.all([first.over, second.over]);
    expect([first.end, second.end]).toMatchObject([
      { message: 'does not answer' },
      { message: 'does not answer' },
    ]);
    await until(() => ready === 2);
    const again = listenTo(drizzle({ client }), 'wake_h');
    await until(() => again.ready === 1);
    await client.notify('own', 'x');
    await until(() => own.length > 0);
    // They share the new one, which the app keeps when the other leaves.
    expect(await listeners('wake_h')).not.toContain(pid);
    again.stop();
    await again.over;
    await client.notify('own', 'y');
    await until(() => own.length > 1);
    expect(own).toEqual(['x', 'y']);
    await client.end();
  });
});

const unreachable: Readonly<Record<string, (url: string) => OpenDriver>> = {
  'postgres.js': (url) => {
    const client = postgres(url, { max: 1 });
    return { db: drizzle({ client }), close: () => client.end({ timeout: 0 }) };
  },
  'node-postgres': (url) => {
    const pool = new pg.Pool({ connectionString: url, max: 1 });
    pool.on('error', () => {});
    return { db: drizzleNodePostgres({ client: pool }), close: () => pool.end() };
  },
};

describe.each(Object.entries(unreachable))('%s, when the server goes', (_, open) => {
  test('rejects, and rejects again while it is away', async () => {
    const server = await startPostgres();
    const { db, close } = open(server.url);
    const listening = listenTo(db, 'wake_e');
    await until(() => listening.ready === 1);
    await server.crash();
    await listening.over;
    expect(listening.end).toBeInstanceOf(Error);
    const again = listenTo(db, 'wake_e');
    await again.over;
    expect(again.end).toMatchObject({ code: 'ECONNREFUSED' });
    await server.restart();
    const back = listenTo(db, 'wake_e');
    await until(() => back.ready === 1);
    back.stop();
    await back.over;
    expect(back.ready).toBe(1);
    await close();
    await server.stop();
  });
});

/** A client before it is asked for anything. */
type Prepare = (client: Pick<pg.Client, 'query'>) => Promise<unknown>;

test.each<[string, (prepare: Prepare) => pg.Pool]>([
  [
    'the event of its pool',
    (prepare) => {
      const pool = new pg.Pool({ connectionString: database.url });
      return pool.on('connect', (client) => void prepare(client));
    },
  ],
  [
    'onConnect of its pool',
    (prepare) => Reflect.construct(pg.Pool, [{ connectionString: database.url, onConnect: prepare }]),
  ],
])('node-postgres: the connection that listens is prepared by %s', async (_, poolOf) => {
  // Names are looked up there from now on: the row of a worker, say.
  const pool = poolOf((client) => client.query('set search_path to elsewhere, public'));
  const listening = listenTo(drizzleNodePostgres({ client: pool }), 'wake_p');
  await until(() => listening.ready === 1);
  const { runner } = listening.connection ?? {};
  if (runner === undefined) throw new Error('it runs no statements');
  expect(await queryRows(runner, tables, sql`select current_setting('search_path') as path`)).toEqual([
    { path: 'elsewhere, public' },
  ]);
  listening.stop();
  await listening.over;
  await pool.end();
});

test('a database with replicas listens at its primary', async () => {
  const primary = drizzle({ client: postgres(database.url, { max: 1 }) });
  const listening = listenTo(withReplicas(primary, [database.db]), 'wake_f');
  await until(() => listening.ready === 1);
  await database.client`select pg_notify('wake_f', 'x')`;
  await until(() => listening.heard.length === 1);
  listening.stop();
  await listening.over;
  await primary.$client.end();
});

test('what cannot listen is told by its looks', () => {
  expect(listenOf(drizzle.mock())).toBeUndefined();
  expect(listenOf(drizzleProxy(async () => ({ rows: [] })) as unknown as Database)).toBeUndefined();
  // Neon over HTTP: a tagged template without `listen`.
  const overHttp = Object.assign(drizzle.mock(), { $client: Object.assign(() => {}, { transaction() {} }) });
  expect(listenOf(overHttp as unknown as Database)).toBeUndefined();
});

test('what can hold no session is said once, but not of PGlite, where it would be for nothing', async () => {
  const listenOrPoll = await freshListenOrPoll();
  const warn = vi.spyOn(process, 'emitWarning').mockImplementation(() => {});
  const listenOnce = async (db: Database) => {
    const stop = new AbortController();
    let ready = false;
    const events = {
      ready: () => {
        ready = true;
      },
      notify: () => {},
    };
    const listening = required(listenOrPoll(db))('wake_g', events, stop.signal);
    await until(() => ready);
    stop.abort();
    await listening;
  };
  await listenOnce(database.db);
  const pglite = await drivers.PGlite();
  await listenOnce(pglite.db);
  await pglite.close();
  expect(warn.mock.calls).toEqual([]);

  // As Bun's: it listens on a connection that it shows to nobody.
  const client = postgres(database.url, { max: 1 });
  const hidden = Object.assign((...args: Parameters<typeof client>) => client(...args), {
    listen: (...args: Parameters<typeof client.listen>) => client.listen(...args),
  });
  const db = Object.assign(drizzle({ client }), { $client: hidden }) as unknown as Database;
  await listenOnce(db);
  await listenOnce(db);
  await client.end({ timeout: 1 });
  expect(warn.mock.calls).toEqual([
    [
      expect.stringMatching(/^PostgresJsDatabase runs no statements .* no session lock.*silentMs/),
      'DrizzleQueueWarning',
    ],
  ]);
  warn.mockRestore();
});

test('what cannot listen is said once, in one line that names the driver and what to do', async () => {
  const listenOrPoll = await freshListenOrPoll();
  const warn = vi.spyOn(process, 'emitWarning').mockImplementation(() => {});
  const proxy = () => drizzleProxy(async () => ({ rows: [] })) as unknown as Database;
  expect(listenOrPoll(proxy())).toBeUndefined();
  expect(listenOrPoll(proxy())).toBeUndefined();
  expect(listenOrPoll(database.db)).toBeDefined();
  expect(warn.mock.calls).toEqual([
    [
      expect.stringMatching(/^PgRemoteDatabase cannot listen .*poll.*listen: false.*$/),
      'DrizzleQueueWarning',
    ],
  ]);
  warn.mockRestore();
});

test('postgres.js: once it has resolved it sends nothing, also when it is ended while its connection opens', async () => {
  const sent: string[] = [];
  let opening = () => {};
  const client = postgres(database.url, {
    debug: (_, text) => sent.push(text),
    // Its types do not know that this may be a function; the driver awaits what it answers.
    ...({ socket: async () => await slowSocket(() => opening()) } as object),
  });
  const listening = listenTo(drizzle({ client }), 'wake_g');
  opening = listening.stop;
  await listening.over;
  const before = sent.length;
  expect(listening.end).toBe('resolved');
  await until(async () => (await listeners('wake_g')).length === 0);
  await client.end();
  expect(sent.slice(before)).toEqual([]);
});

/** A connection whose first answer is held back for two turns of the event loop, as on a busy machine. */
async function slowSocket(onFirstAnswer: () => void): Promise<Socket> {
  const { hostname, port } = new URL(database.url);
  const socket = connect(Number(port), hostname);
  const emit = socket.emit.bind(socket);
  let held = false;
  socket.emit = (event: string, ...args: unknown[]) => {
    if (held || event !== 'data') return emit(event, ...args);
    held = true;
    onFirstAnswer();
    setImmediate(() => emit(event, ...args));
    return true;
  };
  await once(socket, 'connect');
  return Object.assign(socket, { host: hostname, port });
}

test('postgres.js: a connection beside the pool that was opened before any other is shared with no listener', async () => {
  const client = postgres(database.url, { max: 1 });
  const db = drizzle({ client });
  const spare = await openBeside(listenApartOf(db) ?? expect.fail()).opened;
  await client.notify('queue_spare', 'for no listener');
  const listening = listenTo(db, 'wake_beside');
  await until(() => listening.ready === 1);
  spare.abandon(new Error('It is silent'));
  expect(spare.signal.aborted).toBe(true);
  await client.notify('wake_beside', 'still');
  await until(() => listening.heard.length > 0 || listening.end !== undefined);
  expect(listening).toMatchObject({ heard: ['still'], end: undefined, ready: 1 });
  listening.stop();
  await listening.over;
  await client.end();
});
