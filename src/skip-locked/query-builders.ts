import type { SQL, WithSubquery } from 'drizzle-orm';
import type { PgTable, PgUpdateSetSource } from 'drizzle-orm/pg-core';
import type { RowFields } from './row-fields.ts';
import type { RowsQuery } from './rows-query.ts';

/**
 * A Drizzle database *or* transaction on Postgres, of any driver, on drizzle-orm 0.45 and 1.0. Structural,
 * because the two majors name their classes differently.
 */
export interface QueryBuilders {
  delete(table: PgTable): { where(condition: SQL): ReturningRows };
  update(table: PgTable): {
    set(values: PgUpdateSetSource<PgTable>): { where(condition: SQL): ReturningRows };
  };
  with(...queries: WithSubquery[]): {
    select(): { from(source: WithSubquery): { $withCache(config: false): RowsQuery<RowFields> } };
  };
}

interface ReturningRows {
  returning<TFields extends RowFields>(fields: TFields): RowsQuery<TFields>;
}
