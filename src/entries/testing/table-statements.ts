import { type Column, is, SQL, sql } from 'drizzle-orm';
import { getTableConfig, PgDialect, type PgTable } from 'drizzle-orm/pg-core';

const dialect = /* @__PURE__ */ new PgDialect();

/**
 * The statements that create tables as their definitions say: columns, keys, checks and indexes, and the
 * schemas and enums that they need. Foreign keys are left out: the app's own tables need not be there.
 */
export function tableStatements(tables: readonly PgTable[]): string[] {
  const configs = tables.map((table) => getTableConfig(table));
  const enums = configs.flatMap(({ columns }) => columns.flatMap((column) => enumOf(column) ?? []));
  const types = new Map(enums.map(({ type, values }) => [type, values]));
  const schemas = new Set([...configs, ...enums].flatMap(({ schema }) => schema ?? []));
  return [
    ...[...schemas].map((schema) => `create schema if not exists ${quoted(schema)}`),
    ...[...types].map(([type, values]) => `create type ${type} as enum (${values.map(literal).join(', ')})`),
    ...configs.flatMap(statementsOf),
  ];
}

type TableConfig = ReturnType<typeof getTableConfig>;

function statementsOf({ name, schema, columns, primaryKeys, checks, indexes }: TableConfig): string[] {
  const table = schema === undefined ? quoted(name) : `${quoted(schema)}.${quoted(name)}`;
  const keys = primaryKeys.map(
    (key) => `constraint ${quoted(key.getName() ?? `${name}_pkey`)} primary key (${namesOf(key.columns)})`,
  );
  const conditions = checks.map(({ name, value }) => `constraint ${quoted(name)} check (${textOf(value)})`);
  const parts = [...columns.map(columnText), ...keys, ...conditions].map((part) => `\n  ${part}`);
  const created = indexes.map(({ config }) => {
    const { name = '', unique, where } = config;
    const on = config.columns.map((column) =>
      is(column, SQL) ? textOf(column) : quoted(String(Reflect.get(column, 'name'))),
    );
    return `create ${unique ? 'unique ' : ''}index ${quoted(name)} on ${table} (${on.join(', ')})${
      where === undefined ? '' : ` where ${textOf(where)}`
    }`;
  });
  return [`create table ${table} (${parts.join(',')}\n)`, ...created];
}

function columnText(column: Column): string {
  const { generatedIdentity, default: value } = column;
  const identity =
    generatedIdentity === undefined
      ? ''
      : ` generated ${generatedIdentity.type === 'always' ? 'always' : 'by default'} as identity`;
  return `${quoted(column.name)} ${typeOf(column)}${column.primary ? ' primary key' : ''}${
    column.notNull ? ' not null' : ''
  }${identity}${value === undefined ? '' : ` default ${defaultOf(column, value)}`}`;
}

/**
 * An enum is quoted, as in the statements of a queue. An array's dimensions stand beside the type of its
 * elements in drizzle-orm 1.0, and in it in 0.45.
 */
function typeOf(column: Column): string {
  const type = enumOf(column)?.type ?? column.getSQLType();
  const dimensions: unknown = Reflect.get(column, 'dimensions');
  return typeof dimensions === 'number' && !type.endsWith(']') ? type + '[]'.repeat(dimensions) : type;
}

function defaultOf(column: Column, value: unknown): string {
  if (is(value, SQL)) return textOf(value);
  // An empty array is all that the definitions have, and drizzle-orm 1.0 leaves it to the driver.
  if (Array.isArray(value) && value.length === 0 && typeOf(column).endsWith(']')) return "'{}'";
  // What encodes these is the column in drizzle-orm 0.45, and the driver in 1.0.
  if (/^jsonb?$/.test(typeOf(column))) return literal(JSON.stringify(value));
  return textOf(sql`${sql.param(value, column)}`);
}

interface EnumType {
  readonly schema: string | undefined;
  /** Its name, quoted, in its schema. */
  readonly type: string;
  readonly values: readonly string[];
}

function enumOf(column: Column): EnumType | undefined {
  const definition: unknown = Reflect.get(column, 'enum');
  if (typeof definition !== 'function') return undefined;
  const [name, values, schema]: unknown[] = ['enumName', 'enumValues', 'schema'].map((key) =>
    Reflect.get(definition, key),
  );
  if (typeof name !== 'string' || !Array.isArray(values)) return undefined;
  if (typeof schema !== 'string') return { schema: undefined, type: quoted(name), values };
  return { schema, type: `${quoted(schema)}.${quoted(name)}`, values };
}

function textOf(value: SQL): string {
  return dialect.sqlToQuery(sql`${value}`.inlineParams()).sql;
}

function namesOf(columns: readonly Column[]): string {
  return columns.map(({ name }) => quoted(name)).join(', ');
}

function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

function literal(value: string): string {
  return `'${value.replaceAll("'", "''")}'`;
}
