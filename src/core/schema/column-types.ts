import type {
  bigint,
  boolean,
  integer,
  jsonb,
  PgTableWithColumns,
  pgTable,
  smallint,
  TableConfig,
  text,
  timestamp,
} from 'drizzle-orm/pg-core';

/*
 * A declaration that names Drizzle's column classes fits only one major: 0.45 has `PgColumn<{…}>`, 1.0 has
 * `PgBuildColumn<…>`. Types computed from the *reader's own* builders are exact in both, so one published
 * `.d.ts` serves every drizzle-orm.
 */

export type NotNull<B extends { notNull(): unknown }> = ReturnType<B['notNull']>;
export type WithDefault<B extends { default(value: never): unknown }> = ReturnType<B['default']>;
export type Identity<B extends { generatedAlwaysAsIdentity(): unknown }> = ReturnType<
  B['generatedAlwaysAsIdentity']
>;
export type Primary<B extends { primaryKey(): unknown }> = ReturnType<B['primaryKey']>;

declare const bigintBuilder: ReturnType<typeof bigint<'number'>>;
declare const booleanBuilder: ReturnType<typeof boolean>;
declare const integerBuilder: ReturnType<typeof integer>;
declare const smallintBuilder: ReturnType<typeof smallint>;
declare const textBuilder: ReturnType<typeof text>;
declare const jsonbBuilder: ReturnType<typeof jsonb>;
declare const timestampBuilder: ReturnType<typeof timestamp>;

/** `bigint` read as a JavaScript number. */
export type BigintColumn = typeof bigintBuilder;
export type BigintsColumn = ReturnType<typeof bigintBuilder.array>;
export type BooleanColumn = typeof booleanBuilder;
export type IntegerColumn = typeof integerBuilder;
export type SmallintColumn = typeof smallintBuilder;
export type TextColumn = typeof textBuilder;
export type TextsColumn = ReturnType<typeof textBuilder.array>;
/** `text` whose values are the members of a union. */
export type TextColumnOf<T extends string> = ReturnType<typeof textBuilder.$type<T>>;
/** `jsonb` whose values have a known shape. */
export type JsonColumn<T = unknown> = ReturnType<typeof jsonbBuilder.$type<T>>;
/** `timestamptz` read as a Date. */
export type TimestampColumn = typeof timestampBuilder;

/** Columns as `pgTable` takes them: Drizzle's builders by key. The two majors name this type differently. */
export type ColumnBuilders = ReturnType<
  Extract<Parameters<typeof pgTable>[1], (...args: never[]) => unknown>
>;

export type NoColumns = Record<never, never>;

/**
 * The same table type in the Postgres schema `TSchema` (`undefined`: the default one). Computed from the
 * table's own configuration, because TypeScript cannot express a generic call of `pgSchema(…).table`.
 */
export type InSchema<TTable, TSchema extends string | undefined> =
  TTable extends PgTableWithColumns<infer TConfig extends TableConfig>
    ? PgTableWithColumns<{ [K in keyof TConfig]: K extends 'schema' ? TSchema : TConfig[K] }>
    : never;
