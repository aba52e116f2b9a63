import { is } from 'drizzle-orm';
import { PgSchema } from 'drizzle-orm/pg-core';
import { type DeclareTable, declareTableIn } from './declare-table.ts';

/** Where tables of the library are put. */
export interface TablePlace<TPrefix extends string, TSchema extends string | undefined> {
  /** The prefix: 1–40 characters of a–z, 0–9 and _, no digit first. @default 'queue_' */
  prefix?: TPrefix;
  /**
   * Made by `pgSchema('…')`; export it too, or drizzle-kit does not create it. @default the default schema
   */
  schema?: { readonly schemaName: TSchema } & Pick<PgSchema, 'table'>;
}

/** @throws TypeError when the prefix is not a plain lower-case name, or the schema is none */
export function placeOf<TPrefix extends string>(
  caller: string,
  options: TablePlace<TPrefix, string | undefined>,
): { readonly prefix: TPrefix; readonly table: DeclareTable } {
  // TypeScript cannot connect this value with the type parameter's default.
  const prefix = options?.prefix ?? ('queue_' as TPrefix);
  // An array of one text would match the pattern, too.
  if (typeof prefix !== 'string' || !/^[a-z_][a-z0-9_]{0,39}$/.test(prefix)) {
    const got = typeof prefix === 'string' ? `'${prefix}'` : `a value of type ${typeof prefix}`;
    throw new TypeError(
      `${caller}: prefix must be 1–40 characters of a–z, 0–9 and _, ` +
        `not starting with a digit; got ${got}`,
    );
  }
  // A NUL would cut off the text of a statement.
  if (options?.schema !== undefined && !(is(options.schema, PgSchema) && isName(options.schema.schemaName))) {
    throw new TypeError(`${caller}: schema must be what pgSchema() returns for a name without NUL`);
  }
  return { prefix, table: declareTableIn(options?.schema) };
}

function isName(value: unknown): boolean {
  return typeof value === 'string' && value !== '' && !value.includes('\0');
}
