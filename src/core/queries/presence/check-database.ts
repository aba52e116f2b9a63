import { type SQL, sql } from 'drizzle-orm';
import { getTableConfig } from 'drizzle-orm/pg-core';
import { MissingMigrationError, UnsupportedPostgresError } from '../../../errors.ts';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import { answerSample, checkSample } from '../../sql/answer-sample.ts';
import { queryRows, type Runner } from '../../sql/executor.ts';
import { type FeatureTables, namedTables } from '../../sql/feature-tables.ts';
import { quotedName } from '../../sql/quoted-name.ts';
import { inContext } from '../../sql/statement-context.ts';
import { checkGrants } from './check-grants.ts';
import { hasCitus } from './is-citus.ts';

/** In the form of `server_version_num`. */
export const OLDEST_SUPPORTED = 140_000;

/**
 * Checks that the driver's answers can be read, the server is new enough, the tables have this version's
 * columns and the role has a worker's rights. All that is missing of the tables is in one error. Returns the
 * tables with what it has found out about the server.
 *
 * @param features the tables that features bring, where the worker uses them
 * @throws UnsupportedPostgresError | MissingMigrationError | QueueError saying what to do
 */
export async function checkDatabase(
  db: Runner,
  tables: QueueTables,
  features: readonly FeatureTables[] = [],
): Promise<QueueTables> {
  const all = [{ tables, entry: undefined }, ...features].flatMap(({ tables, entry }) =>
    namedTables(tables).map(([key, table]) => ({ key, table, entry })),
  );
  const rows = await queryRows(
    db,
    tables,
    databaseStateQuery(Object.fromEntries(all.map(({ key, table }) => [key, table]))),
  );
  const [server] = rows;
  if (server !== undefined) checkSample(server);
  if (Number(server?.number) < OLDEST_SUPPORTED) throw new UnsupportedPostgresError(String(server?.version));
  const absent: string[] = [];
  const incomplete: string[] = [];
  const entries = new Set<string | undefined>();
  for (const { key, table, entry } of all) {
    const name = quotedName(table);
    const present = new Set(
      rows.filter((row) => row.key === key && row.name !== null).map((row) => row.name),
    );
    const missing = getTableConfig(table).columns.filter((column) => !present.has(column.name));
    if (missing.length === 0) continue;
    entries.add(entry);
    const names = missing.map((column) => column.name).join(', ');
    if (present.size === 0) absent.push(name);
    else incomplete.push(`The table ${name} has no column ${names}`);
  }
  if (entries.size > 0) {
    throw new MissingMigrationError([...doNotExist(absent), ...incomplete].join('. '), undefined, ...entries);
  }
  await checkGrants(db, tables, features);
  const facts = { distributed: server?.citus === true, identified: server?.identified === true };
  return facts.distributed || !facts.identified ? inContext(tables, { server: facts }) : tables;
}

function doNotExist(names: readonly string[]): string[] {
  if (names.length === 0) return [];
  const [last] = names.slice(-1);
  const others = names.slice(0, -1).join(', ');
  return [
    others === '' ? `The table ${last} does not exist` : `The tables ${others} and ${last} do not exist`,
  ];
}

/**
 * The server's version with each column of the tables that the search path finds. A table that does not exist
 * has one row without a column. One statement for all: each worker's start waits for it.
 */
export function databaseStateQuery(tables: object): SQL {
  const sought = namedTables(tables).map(([key, table]) => ({ key, name: quotedName(table) }));
  return sql`
    select current_setting('server_version_num')::int4 as number,
      current_setting('server_version') as version, ${hasCitus} as citus,
      has_function_privilege('pg_control_system()', 'execute') as identified, ${answerSample},
      t.key, a.attname as name
    from jsonb_to_recordset(${JSON.stringify(sought)}::text::jsonb) as t(key text, name text)
    left join pg_attribute as a
      on a.attrelid = to_regclass(t.name) and a.attnum > 0 and not a.attisdropped`;
}
