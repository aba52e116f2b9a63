import { getTableConfig, type PgTable } from 'drizzle-orm/pg-core';
import type { IndexState, TableState } from '../../queries/operate/inspect-table.ts';
import { quotedName } from '../../sql/quoted-name.ts';
import { type Finding, MIGRATE } from './finding.ts';

interface ExpectedIndex {
  readonly name: string | undefined;
  readonly isPrimary: boolean;
  readonly isUnique: boolean;
  readonly isPartial: boolean;
  /** `undefined` with an expression among them: the catalog writes expressions in its own way. */
  readonly keys: readonly string[] | undefined;
}

/** Indexes and constraints that are missing, invalid, or not as the Drizzle table declares them. */
export function checkIndexes(table: PgTable, state: TableState): Finding[] {
  const name = quotedName(table);
  const { checks } = getTableConfig(table);
  const missingChecks = checks.filter((check) => !state.checks.includes(check.name));
  return [
    ...expectedIndexes(table).flatMap((index) => checkIndex(name, index, state)),
    ...state.indexes.filter((index) => !index.isValid).map((index) => invalid(name, index)),
    ...missingChecks.map(
      (check): Finding => ({
        code: 'check-missing',
        severity: 'warning',
        message:
          `The constraint ${check.name} of ${name} is missing, ` +
          'so the table accepts values that no statement expects',
        fix: `${MIGRATE}. With drizzle-kit 0.25, which writes no CHECK constraints, leave it`,
      }),
    ),
  ];
}

function expectedIndexes(table: PgTable): ExpectedIndex[] {
  const { columns, indexes, primaryKeys } = getTableConfig(table);
  const key = primaryKeys[0]?.columns ?? columns.filter((column) => column.primary);
  const primary = {
    name: undefined,
    isPrimary: true,
    isUnique: true,
    isPartial: false,
    keys: key.map((column) => column.name),
  };
  const others = indexes.map(({ config }): ExpectedIndex => {
    const keys = config.columns.map((column) =>
      'name' in column && typeof column.name === 'string' ? column.name : '',
    );
    return {
      name: config.name,
      isPrimary: false,
      isUnique: config.unique,
      isPartial: config.where !== undefined,
      keys: keys.includes('') ? undefined : keys,
    };
  });
  return key.length === 0 ? others : [primary, ...others];
}

function checkIndex(table: string, expected: ExpectedIndex, state: TableState): Finding[] {
  // An index of another name does the same job.
  if (state.indexes.some((index) => matches(expected, index, state.partitionKeys))) return [];
  const namesake = state.indexes.find((index) => index.name === expected.name);
  const what = describe(expected);
  const cost = expected.isPrimary
    ? 'looking up the rows of a job reads the whole table'
    : expected.isUnique
      ? 'every enqueue with a unique key fails'
      : 'its statements read the whole table';
  const severity = expected.isUnique ? 'error' : 'warning';
  if (namesake === undefined) {
    const message = `The table ${table} has no ${what}: ${cost}`;
    return [{ code: 'index-missing', severity, message, fix: MIGRATE }];
  }
  return [
    {
      code: 'index-differs',
      severity,
      message: `The index ${namesake.name} of ${table} is not the ${what} but ${describe(namesake)}: ${cost}`,
      fix:
        `${MIGRATE}; if there is nothing to generate, drop the index, ` +
        'and let `npx drizzle-kit push` create it again',
    },
  ];
}

function matches(expected: ExpectedIndex, index: IndexState, partitionKeys: readonly string[]): boolean {
  if (expected.isPrimary) {
    // In any order: drizzle-kit 0.31 creates either, and every statement names all columns of the key. A
    // partitioned table must have the columns that it is partitioned by in its key, too.
    const keys = expected.keys ?? [];
    const demanded = partitionKeys.filter((column) => !keys.includes(column));
    return index.isPrimary && sorted(index.keys) === sorted([...keys, ...demanded]);
  }
  return (
    index.isUnique === expected.isUnique &&
    index.isPartial === expected.isPartial &&
    (expected.keys === undefined
      ? index.name === expected.name
      : columnNames(index.keys).join() === expected.keys.join())
  );
}

function invalid(table: string, { name, isUnique }: IndexState): Finding {
  return {
    code: 'index-invalid',
    severity: isUnique ? 'error' : 'warning',
    message:
      `The index ${name} of ${table} is invalid: ` +
      'a CREATE INDEX CONCURRENTLY failed, or a partition lacks its part of the index',
    fix:
      `reindex index concurrently "${name}" (for a unique index, remove duplicate rows first); ` +
      'or drop the index and create it again',
  };
}

function describe({ isPrimary, isUnique, isPartial, keys }: Omit<ExpectedIndex, 'name'>): string {
  const kind = isPrimary ? 'primary key' : isUnique ? 'unique index' : 'index';
  return `${kind} (${keys?.join(', ') ?? 'an expression'})${isPartial ? ' where …' : ''}`;
}

const sorted = (keys: readonly string[]): string => columnNames(keys).sort().join();

/** The catalog quotes what is not a plain lower-case name. */
const columnNames = (keys: readonly string[]): string[] => keys.map((key) => key.replaceAll('"', ''));
