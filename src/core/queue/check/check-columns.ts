import { getTableConfig, type PgColumn, type PgTable } from 'drizzle-orm/pg-core';
import type { ColumnState, TableState } from '../../queries/operate/inspect-table.ts';
import { quotedName } from '../../sql/quoted-name.ts';
import { type Finding, MIGRATE } from './finding.ts';

/** Types that Drizzle and the catalog write alike. Only own columns have others, which are not compared. */
const COMPARABLE = new RegExp(
  '^(bigint|boolean|date|double precision|integer|jsonb?|real|smallint|text|timestamp with time zone|uuid)' +
    '(\\[\\])*$',
);

/** Columns that differ from what the Drizzle table declares. */
export function checkColumns(table: PgTable, { columns }: TableState): Finding[] {
  const name = quotedName(table);
  const declared = getTableConfig(table).columns;
  const present = new Map(columns.map((column) => [column.name, column]));
  const missing = declared.filter((column) => !present.has(column.name));
  const known = new Set(declared.map((column) => column.name));
  const unexpected = columns.filter((column) => !known.has(column.name) && column.notNull && !column.filled);
  return [
    ...(missing.length === 0
      ? []
      : [
          {
            code: 'column-missing',
            severity: 'error',
            message: `The table ${name} has no column ${missing.map((column) => column.name).join(', ')}`,
            fix: `${MIGRATE}: either drizzle-queue was updated, or a migration has not run on this database`,
          } as const,
        ]),
    ...declared.flatMap((column) => differences(name, column, present.get(column.name))),
    ...unexpected.map(
      (column): Finding => ({
        code: 'column-unexpected',
        severity: 'error',
        message:
          `The column ${column.name} of ${name} is NOT NULL without a default, ` +
          'and the Drizzle table does not have it: every insert fails',
        fix:
          'Give it a default, or allow null: ' +
          `alter table ${name} alter column "${column.name}" drop not null`,
      }),
    ),
  ];
}

/** drizzle-orm 1.0 says the type of an array's elements, and beside it how many dimensions it has. */
function typeOf(column: PgColumn): string {
  const type = column.getSQLType();
  const dimensions = 'dimensions' in column ? Number(column.dimensions) : 0;
  return type.endsWith('[]') ? type : `${type}${'[]'.repeat(dimensions)}`;
}

function differences(table: string, column: PgColumn, found: ColumnState | undefined): Finding[] {
  if (found === undefined) return [];
  const type = typeOf(column);
  const filled = column.default !== undefined || column.generatedIdentity !== undefined;
  const wrong = [
    ...(COMPARABLE.test(type) && type !== found.type ? [`is ${found.type}, not ${type}`] : []),
    ...(column.notNull && !found.notNull ? ['may be null'] : []),
    ...(!column.notNull && found.notNull ? ['is NOT NULL'] : []),
    ...(filled && !found.filled ? ['has lost its default'] : []),
  ];
  if (wrong.length === 0) return [];
  return [
    {
      code: 'column-differs',
      severity: 'error',
      message: `The column ${column.name} of ${table} ${wrong.join(' and ')}`,
      fix:
        `${MIGRATE}; if there is nothing to generate, the table was altered by hand: ` +
        '`npx drizzle-kit push` shows how it differs',
    },
  ];
}
