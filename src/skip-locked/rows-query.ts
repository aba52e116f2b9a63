import type { Query, QueryPromise } from 'drizzle-orm';
import type { TypedQueryBuilder } from 'drizzle-orm/query-builders/query-builder';
import type { Row, RowFields } from './row-fields.ts';

/**
 * A Drizzle query that returns rows and has not been sent. `await` sends it; `db.$with('name').as(query)`
 * makes it part of a larger statement; `prepare` and `toSQL` work as on Drizzle's own queries.
 */
export interface RowsQuery<TFields extends RowFields>
  extends TypedQueryBuilder<TFields, Row<TFields>[]>,
    QueryPromise<Row<TFields>[]> {
  readonly _: {
    readonly dialect: 'pg';
    readonly selectedFields: TFields;
    readonly result: Row<TFields>[];
  };
  /** Sends it, with a value for each of its `sql.placeholder(…)`. */
  execute(placeholderValues?: Record<string, unknown>): Promise<Row<TFields>[]>;
  /**
   * A query that Postgres parses once, under this name. One prepared on `db` never runs inside a transaction:
   * prepare it on `tx`.
   */
  prepare(name: string): PreparedRowsQuery<TFields>;
  toSQL(): Query;
}

/** A prepared {@link RowsQuery}. */
export interface PreparedRowsQuery<TFields extends RowFields> {
  /** Sends it, with a value for each of its `sql.placeholder(…)`. */
  execute(placeholderValues?: Record<string, unknown>): Promise<Row<TFields>[]>;
}
