import { getTableConfig, type PgTable } from 'drizzle-orm/pg-core';
import type { ServerState } from '../../queries/operate/inspect-server.ts';
import type { TableState } from '../../queries/operate/inspect-table.ts';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import { quotedName } from '../../sql/quoted-name.ts';
import { type Finding, MIGRATE } from './finding.ts';

/** Tables that this connection does not find, and the most likely reason. */
export function missingTables(
  tables: QueueTables,
  stateOf: (table: PgTable) => TableState,
  { hasMigrations }: ServerState,
): Finding[] {
  const all = Object.values(tables);
  const missing = all.filter((table) => !stateOf(table).present);
  const elsewhere = missing.filter((table) => stateOf(table).otherSchemas.length > 0);
  const nowhere = missing.filter((table) => !elsewhere.includes(table));
  return [
    ...(elsewhere.length === 0 ? [] : [inOtherSchemas(elsewhere, stateOf)]),
    ...(nowhere.length === 0 ? [] : [nowhereAtAll(tables, nowhere, hasMigrations)]),
  ];
}

function inOtherSchemas(missing: readonly PgTable[], stateOf: (table: PgTable) => TableState): Finding {
  const schemas = [...new Set(missing.flatMap((table) => stateOf(table).otherSchemas))];
  return {
    code: 'tables-elsewhere',
    severity: 'error',
    message:
      `This connection does not find ${missing.map(quotedName).join(', ')}, ` +
      `but there are tables of that name in the schema ${schemas.join(', ')}`,
    fix:
      `Create them with createQueueTables({ schema: pgSchema('${schemas[0]}') }) ` +
      'and give them to createQueue({ tables }), or put the schema into the search_path of this connection',
  };
}

function nowhereAtAll(tables: QueueTables, missing: readonly PgTable[], hasMigrations: boolean): Finding {
  const names = missing.map(quotedName).join(', ');
  const some = missing.length < Object.values(tables).length;
  const topLevel = `the schema file that drizzle-kit reads must have ${exportOf(tables)} at its top level`;
  const migrated = hasMigrations ? ', although Drizzle has run migrations on it' : '';
  return {
    code: 'tables-missing',
    severity: 'error',
    message: some
      ? `${names} ${missing.length === 1 ? 'does' : 'do'} not exist, but other tables of the queue do`
      : `None of the queue's tables exists in this database${migrated}`,
    fix: some
      ? `${MIGRATE}. If there is nothing to generate, not all tables are exported: ${topLevel}`
      : `${MIGRATE}. If there is nothing to generate, the tables are not exported, ` +
        `or are exported inside an object, which drizzle-kit ignores: ${topLevel}`,
  };
}

/** What the app's schema file must export; drizzle-kit creates a Postgres schema only if it is exported. */
function exportOf(tables: QueueTables): string {
  const { schema, name } = getTableConfig(tables.queueJobs);
  const isDefault = name === 'queue_jobs';
  if (schema === undefined && isDefault) return "`export * from 'drizzle-queue/schema'`";
  const names = `{ ${Object.keys(tables).join(', ')} }`;
  return schema === undefined
    ? `\`export const ${names} = createQueueTables({ … })\``
    : `\`export const queueSchema = pgSchema('${schema}')\` and ` +
        `\`export const ${names} = createQueueTables({ schema: queueSchema${isDefault ? '' : ', …'} })\``;
}
