import { type SQL, sql } from 'drizzle-orm';
import { type OwnWanted, ownValue } from './own-values.ts';

/** Which jobs a user may see: those of some queues, and those whose own columns have certain values. */
export interface JobScope {
  /** `undefined`: of every queue. */
  readonly queues: readonly string[] | undefined;
  readonly own: readonly OwnWanted[];
}

/** The conditions of a scope on jobs or results under an alias; none for a user who may see everything. */
export function inScope({ queues, own }: JobScope, alias: 'j' | 'r'): SQL[] {
  return [
    ...(queues === undefined
      ? []
      : [
          sql`${sql.raw(alias)}.queue in (
        select jsonb_array_elements_text(${JSON.stringify(queues)}::text::jsonb))`,
        ]),
    ...own.map((wanted) => hasOwn(wanted, alias)),
  ];
}

/** That an own column has a value. */
export function hasOwn({ column, text }: OwnWanted, alias: 'j' | 'r'): SQL {
  const name = sql.raw(`${alias}.${column.name}`);
  if (text === null) return sql`${name} is null`;
  const value = ownValue(column, sql`${text}::text`);
  // Postgres does not compare values of the type json.
  return column.castTo === 'json' ? sql`${name}::jsonb = ${value}::jsonb` : sql`${name} = ${value}`;
}
