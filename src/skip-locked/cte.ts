import type { SQL, WithSubquery } from 'drizzle-orm';
import { QueryBuilder } from 'drizzle-orm/pg-core';
import type { TypedQueryBuilder } from 'drizzle-orm/query-builders/query-builder';
import type { RowFields } from './row-fields.ts';

/** A CTE with a statement of our own, for `db.with(…)`. */
export function cte(name: string, fields: RowFields, statement: SQL): WithSubquery {
  // Before drizzle-orm 0.39 `$with` takes no fields beside a statement; every version asks a query for them.
  const query = { getSQL: () => statement, getSelectedFields: () => fields };
  // Only its type has the property `_`.
  return new QueryBuilder().$with(name).as(query as unknown as TypedQueryBuilder<RowFields>);
}
