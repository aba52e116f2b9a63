import { type SQL, sql } from 'drizzle-orm';
import type { BullmqQueue, from, ImportSource, JobTableColumns } from '../import/index.ts';
import { closedInTime } from './closed-in-time.ts';
import { Failure, misused } from './failure.ts';
import { importFrom } from './project/load-module.ts';

/** What `import` may import from. */
export const SYSTEMS = ['pg-boss', 'graphile-worker', 'bullmq', 'table'] as const;

/** The options that say where the jobs are. */
export interface SourceFlags {
  readonly schema?: string;
  readonly queue?: string;
  readonly redis?: string;
  readonly table?: string;
  readonly where?: string;
  readonly column?: readonly string[];
  readonly name?: string;
}

interface OpenSource {
  readonly source: ImportSource;
  close(): Promise<void>;
}

const TAKES: Readonly<Record<string, readonly (keyof SourceFlags)[]>> = {
  'pg-boss': ['schema'],
  'graphile-worker': ['schema'],
  bullmq: ['schema', 'queue', 'redis'],
  table: ['schema', 'table', 'where', 'column', 'name'],
};
const ALL = ['schema', 'queue', 'redis', 'table', 'where', 'column', 'name'] as const;

/** @throws Failure for options that do not say where the jobs are */
export async function openSource(
  sources: typeof from,
  system: string,
  flags: SourceFlags,
): Promise<OpenSource> {
  const takes = Object.hasOwn(TAKES, system) ? TAKES[system] : undefined;
  if (takes === undefined) throw misused(`import takes ${SYSTEMS.join(', ')}; got ${system}`);
  for (const name of ALL) {
    if (flags[name] !== undefined && !takes.includes(name))
      throw misused(`import ${system} does not take --${name}`);
  }
  const { schema } = flags;
  const inSchema = schema === undefined ? {} : { schema };
  if (system === 'pg-boss') return open(sources.pgBoss(inSchema));
  if (system === 'graphile-worker') return open(sources.graphileWorker(inSchema));
  if (system === 'table') return open(tableOf(sources, flags));
  const { queue, redis } = flags;
  if (queue === undefined) throw misused("import bullmq needs --queue: the name of BullMQ's queue");
  if (redis === undefined) return open(sources.bullmqPostgres({ ...inSchema, queue }));
  if (schema !== undefined) throw misused('--schema and --redis cannot be combined');
  return await openRedis(sources, queue, redis);
}

/** Longer than a script takes that lists or walks millions of jobs. */
const COMMAND_MS = 60_000;

interface RedisQueue extends BullmqQueue {
  on(event: 'error', listener: () => void): unknown;
  close(): Promise<void>;
}

function open(source: ImportSource): OpenSource {
  return { source, close: async () => undefined };
}

async function openRedis(sources: typeof from, name: string, url: string): Promise<OpenSource> {
  const loaded = await importFrom(process.cwd(), 'bullmq');
  // Of a CommonJS package, whatever the loader has found of its names.
  const Queue: unknown =
    Reflect.get(Object(loaded), 'Queue') ?? Reflect.get(Object(loaded?.default), 'Queue');
  if (typeof Queue !== 'function') {
    throw new Failure('import bullmq with --redis needs the package bullmq, which is not installed here');
  }
  const queue: RedisQueue = Reflect.construct(Queue, [
    name,
    { connection: { url, commandTimeout: COMMAND_MS } },
  ]);
  // Without a listener BullMQ prints each error, with its stack. What fails because of one says so.
  queue.on('error', () => undefined);
  return { source: sources.bullmq({ queue }), close: () => closedInTime(() => queue.close()) };
}

function tableOf(
  sources: typeof from,
  { table, schema, where, column = [], name }: SourceFlags,
): ImportSource {
  if (table === undefined || where === undefined) {
    throw misused(
      'import table needs --table and --where, as in --table tasks --where "status = \'pending\'"',
    );
  }
  const columns = new Map<string, SQL>();
  for (const each of column) {
    const [, of = '', expression = ''] = /^(\w+)=(.+)$/s.exec(each) ?? [];
    if (of === '') throw misused(`--column takes column=sql, as in --column payload=data; got ${each}`);
    if (columns.has(of)) throw misused(`--column has ${of} twice`);
    // A user who can run this command can send any SQL to the database anyway.
    columns.set(of, sql.raw(expression));
  }
  for (const of of ['id', 'payload']) if (!columns.has(of)) columns.set(of, sql`${sql.identifier(of)}`);
  return sources.table({
    table: sql`${schema === undefined ? sql`` : sql`${sql.identifier(schema)}.`}${sql.identifier(table)}`,
    // `from.table` says which names it does not know.
    columns: Object.fromEntries(columns) as unknown as JobTableColumns,
    where: sql.raw(where),
    ...(name !== undefined && { name }),
  });
}
