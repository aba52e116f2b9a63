import type { SQL, WithSubquery } from 'drizzle-orm';
import type { PgTable, PgUpdateSetSource } from 'drizzle-orm/pg-core';
import type { RowFields } from './row-fields.ts';
import type { RowsQuery } from './rows-query.ts';

/**
 * A Drizzle database *or* transaction on Postgres, of any driver, on drizzle-orm 0.x and 1.0. Structural,
 * because the two majors name their classes differently.
 */
export interface QueryBuilders {
  delete(table: PgTable): { where(condition: SQL): ReturningRows };
  update(table: PgTable): {
    set(values: PgUpdateSetSource<PgTable>): { where(condition: SQL): ReturningRows };
  };
  with(...queries: WithSubquery[]): {
    select(): { from(source: WithSubquery): SelectQuery };
  };
}

interface SelectQuery extends RowsQuery<RowFields> {
  /** Not before drizzle-orm 0.44, which has no cache. */
  $withCache?(config: false): RowsQuery<RowFields>;
}

/** A select that drizzle-orm's query cache never answers: a cached row is not locked, nor an insert sent. */
export function uncached(query: SelectQuery): RowsQuery<RowFields> {
  return query.$withCache?.(false) ?? query;
}

/** Before drizzle-orm 0.35 the type of a write's rows does not say what was selected. */
interface ReturningRows {
  returning(fields: RowFields): PromiseLike<unknown>;
}
