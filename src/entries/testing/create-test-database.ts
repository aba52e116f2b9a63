import type { PgTable } from 'drizzle-orm/pg-core';
import { createQueueTables } from '../../core/schema/index.ts';
import { createControlTables } from '../../features/control/index.ts';
import type { Queue } from '../../index.ts';
import { checkBoolean, checkOptions, namesOf } from '../../internal.ts';
import { checkQueue } from './check-queue.ts';
import { refuseSelfWaits } from './one-connection.ts';
import { tableStatements } from './table-statements.ts';
import { tablesOf } from './tables-of.ts';

/** Drizzle on PGlite, as its own `drizzle` returns it. */
export type PgliteDb = ReturnType<typeof import('drizzle-orm/pglite').drizzle>;

/** The options of {@link createTestDatabase}. */
export interface TestDatabaseOptions {
  /**
   * The queue whose tables it has: those of `createQueue({ tables })`, its own columns, and the tables of
   * control, metrics and workflows that it was given. @default the tables of `drizzle-queue/schema` and
   * `drizzle-queue/schema/control`
   */
  queue?: Queue | undefined;
  /**
   * Whether to create the queue's tables; `false` where `setUp` does, as by the app's own migrations.
   * @default true
   */
  tables?: boolean | undefined;
  /**
   * What else belongs into the database: the app's tables, by its migrations for example. Called once;
   * databases that are created later with this very function are copies of what it has made.
   */
  setUp?: ((db: PgliteDb) => unknown) | undefined;
}

/** A database of a test's own. */
export interface TestDatabase {
  readonly db: PgliteDb;
  /** Ends it; nothing is left. Can be called again. */
  close(): Promise<void>;
}

const OPTIONS = namesOf<TestDatabaseOptions>({ queue: true, tables: true, setUp: true });

/** What is used of PGlite, which need not be there. */
interface PGliteClient {
  exec(text: string): Promise<unknown>;
  dumpDataDir(compression: 'none'): Promise<Blob>;
  close(): Promise<void>;
  readonly closed: boolean;
}

interface PGliteModule {
  readonly PGlite: { create(options?: { loadDataDir: Blob }): Promise<PGliteClient> };
}

/**
 * The copies, by the queue's tables and `setUp`: loading one is several times faster than starting from
 * scratch.
 */
const copies = new WeakMap<object, WeakMap<object, Promise<Blob>>>();
const NONE = {};

/**
 * Creates a database in this process, without a server: PGlite with the queue's tables, made from their
 * definitions. Needs `@electric-sql/pglite` as a development dependency of yours. The first one of a process
 * takes seconds, each further one is a copy of its beginning.
 *
 * ```ts
 * const { db, close } = await createTestDatabase({ queue });
 * await queue.enqueue(db, sendReceipt, { orderId: 1 });
 * await drain(db, { queue, handlers, deadlineMs: 5_000 });
 * await close();
 * ```
 *
 * PGlite has one connection, so nothing happens at the same time in it: it shows neither races nor crashes.
 * A statement on `db` from inside a transaction of `db` would wait without end, so it is refused within a
 * second.
 * Its `now()` follows the `Date` of the process, fake ones too.
 *
 * @throws Error with what to install when PGlite is missing, or with the flag that Jest lacks
 * @throws TypeError when an option is wrong
 */
export async function createTestDatabase(options: TestDatabaseOptions = {}): Promise<TestDatabase> {
  const { queue, tables = true, setUp } = checkOptions('createTestDatabase: options', options, OPTIONS);
  if (queue !== undefined) checkQueue('createTestDatabase', queue);
  checkBoolean('createTestDatabase: tables', tables);
  if (setUp !== undefined && typeof setUp !== 'function') {
    throw new TypeError('createTestDatabase: setUp must be a function of the database');
  }
  const { PGlite } = await inJest(loadPGlite);
  const { drizzle } = await inJest(() => import('drizzle-orm/pglite'));
  const ofQueue = copies.get(tables ? (queue ?? DEFAULT) : NONE) ?? new WeakMap<object, Promise<Blob>>();
  copies.set(tables ? (queue ?? DEFAULT) : NONE, ofQueue);
  const begin = async (): Promise<Blob> => {
    const client = await inJest(() => PGlite.create());
    try {
      for (const statement of tables ? tableStatements(allTables(queue)) : []) await client.exec(statement);
      // It is what `drizzle` takes: PGlite itself.
      await setUp?.(drizzle({ client: client as never }));
      return await client.dumpDataDir('none');
    } finally {
      await client.close();
    }
  };
  const begun = ofQueue.get(setUp ?? NONE) ?? begin();
  ofQueue.set(setUp ?? NONE, begun);
  // The next one may succeed.
  begun.catch(() => ofQueue.delete(setUp ?? NONE));
  const client = await PGlite.create({ loadDataDir: await begun });
  refuseSelfWaits(client);
  return {
    db: drizzle({ client: client as never }),
    close: async () => {
      if (!client.closed) await client.close();
    },
  };
}

const DEFAULT = {};

function allTables(queue: Queue | undefined): PgTable[] {
  if (queue !== undefined) return tablesOf(queue);
  return [...Object.values(createQueueTables()), ...Object.values(createControlTables())];
}

/** As Node.js says it, and as Jest does where Node.js does not. */
const NO_DYNAMIC_IMPORT = /dynamic import callback|--experimental-vm-modules|ES Modules in the VM API/;

/** Not by its class: a test of Jest has its own class of errors. */
function lacksFlag(error: unknown): boolean {
  return NO_DYNAMIC_IMPORT.test(String(Reflect.get(Object(error), 'message')));
}

/** PGlite is loaded by `import()`, and itself loads by it. */
async function inJest<T>(load: () => Promise<T>): Promise<T> {
  try {
    return await load();
  } catch (error) {
    if (!lacksFlag(error)) throw error;
    throw new Error(
      'createTestDatabase loads PGlite by import(), which Jest allows only with a flag of Node.js: ' +
        'NODE_OPTIONS=--experimental-vm-modules npx jest',
      { cause: error },
    );
  }
}

async function loadPGlite(): Promise<PGliteModule> {
  try {
    // Its types are not needed: it is the app's own, of whichever version.
    return (await import('@electric-sql/pglite')) as unknown as PGliteModule;
  } catch (error) {
    if (lacksFlag(error)) throw error;
    throw new Error('createTestDatabase needs PGlite: npm install --save-dev @electric-sql/pglite', {
      cause: error,
    });
  }
}
