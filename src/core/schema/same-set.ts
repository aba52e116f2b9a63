import { getTableConfig, type PgTable } from 'drizzle-orm/pg-core';

/**
 * Refuses tables of a feature beside those of another queue. What they say of jobs is by id, and each set of
 * tables counts its own: a job would go on with the steps of another.
 *
 * @param tables by their names in the schema, such as `queueSteps`
 * @param make what makes such tables
 * @throws TypeError unless they have the schema and the prefix of the queue's
 */
export function checkSameSet(
  caller: string,
  queueJobs: PgTable,
  tables: Readonly<Record<string, PgTable>>,
  make: string,
): void {
  const [stranger] = strangersAmong(queueJobs, tables);
  if (stranger === undefined) return;
  const { prefix, schema, name } = placeOf(queueJobs, 'jobs');
  const options = `{ prefix: '${prefix}'${schema === undefined ? '' : ', schema'} }`;
  throw new TypeError(
    `${caller}: the table ${stranger} does not belong to the jobs in ${name}. ` +
      `Each queue has its own tables, with its prefix and schema: ${make}(${options})`,
  );
}

/** The names of those that do not have the schema and the prefix of the queue's. */
export function strangersAmong(queueJobs: PgTable, tables: Readonly<Record<string, PgTable>>): string[] {
  const { prefix, schema } = placeOf(queueJobs, 'jobs');
  return Object.entries(tables)
    .map(([key, table]) => placeOf(table, key.slice('queue'.length).toLowerCase()))
    .filter((own) => own.prefix !== prefix || own.schema !== schema)
    .map(({ name }) => name);
}

function placeOf(table: PgTable, name: string) {
  const config = getTableConfig(table);
  return {
    name: config.schema === undefined ? config.name : `${config.schema}.${config.name}`,
    prefix: config.name.slice(0, -name.length),
    schema: config.schema,
  };
}
