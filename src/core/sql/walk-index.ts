import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../schema/create-queue-tables.ts';

export interface Walk {
  /** The name of the list, for a `WITH RECURSIVE`. */
  readonly name: string;
  /** The columns of the list: the first ones of an index. */
  readonly by: readonly string[];
  /** The column after these, of the first job of each. */
  readonly first?: string;
  /** Which live jobs `j` are meant, so that the planner uses the index. */
  readonly where: SQL;
}

/** Lists the different values of some columns of the live jobs. An index leads from each to the next. */
export function walkIndex({ queueJobs }: QueueTables, { name, by, first, where }: Walk): SQL {
  const columnsOf = (alias: string, names = by) => sql.raw(names.map((one) => `${alias}.${one}`).join(', '));
  const columns = columnsOf('j', first === undefined ? by : [...by, first]);
  const list = sql.raw(name);
  return sql`${list} as (
      (
        select ${columns} from ${queueJobs} as j
        where ${where} order by ${columns} limit 1
      )
      union all
      select n.* from ${list} as w cross join lateral (
        select ${columns} from ${queueJobs} as j
        where ${where} and (${columnsOf('j')}) > (${columnsOf('w')})
        order by ${columns} limit 1
      ) as n
    )`;
}
