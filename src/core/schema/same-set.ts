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
  const { prefix, schema } = placeOf(queueJobs, 'jobs');
  for (const [key, table] of Object.entries(tables)) {
    const own = placeOf(table, key.slice('queue'.length).toLowerCase());
    if (own.prefix === prefix && own.schema === schema) continue;
    const options = `{ prefix: '${prefix}'${schema === undefined ? '' : ', schema'} }`;
    throw new TypeError(
      `${caller}: the table ${own.name} does not belong to the jobs in ${placeOf(queueJobs, 'jobs').name}. ` +
        `Each queue has its own tables, with its prefix and schema: ${make}(${options})`,
    );
  }
}

function placeOf(table: PgTable, name: string) {
  const config = getTableConfig(table);
  return {
    name: config.schema === undefined ? config.name : `${config.schema}.${config.name}`,
    prefix: config.name.slice(0, -name.length),
    schema: config.schema,
  };
}
