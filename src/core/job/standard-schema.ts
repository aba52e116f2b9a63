import type { Stored } from './stored.ts';

/**
 * The part of the Standard Schema interface (https://standardschema.dev, version 1) that a job needs, so that
 * zod, valibot, arktype and others work without being dependencies.
 */
export interface StandardSchema<TInput = unknown, TOutput = TInput> {
  readonly '~standard': {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => SchemaResult<TOutput> | Promise<SchemaResult<TOutput>>;
    readonly types?: { readonly input: TInput; readonly output: TOutput } | undefined;
  };
}

/** What `validate` returns: the parsed value, or what is wrong with it. */
export type SchemaResult<TOutput> =
  | { readonly value: TOutput; readonly issues?: undefined }
  | { readonly issues: readonly SchemaIssue[] };

export interface SchemaIssue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/** What {@link unvalidated} makes. By its vendor `defineJob` knows that it refuses nothing that is stored. */
export interface Unvalidated<T> extends StandardSchema<T, Stored<T>> {
  readonly '~standard': StandardSchema<T, Stored<T>>['~standard'] & { readonly vendor: 'drizzle-queue' };
}

export type SchemaInput<S> = S extends StandardSchema<infer TInput, unknown> ? TInput : never;

export type SchemaOutput<S> = S extends StandardSchema<unknown, infer TOutput> ? TOutput : never;

/**
 * A type without a check at run time, in place of a schema. Handlers get the value as JSON gives it back: a
 * `Date` is a text.
 *
 * ```ts
 * const resize = defineJob('resize', { payload: unvalidated<{ imageId: number }>() });
 * ```
 */
export function unvalidated<T>(): Unvalidated<T> {
  return {
    '~standard': {
      version: 1,
      vendor: 'drizzle-queue',
      validate: acceptAs<Stored<T>>,
    },
  };
}

/** The caller of {@link unvalidated} vouches for the type. */
function acceptAs<T>(value: unknown): SchemaResult<T> {
  return { value: value as T };
}

/** Whether {@link unvalidated} made the schema, so there is no need to call it. */
export function isUnvalidated(schema: StandardSchema): boolean {
  return schema['~standard'].validate === acceptAs;
}

export function isStandardSchema(value: unknown): value is StandardSchema {
  return (
    (typeof value === 'object' || typeof value === 'function') &&
    value !== null &&
    '~standard' in value &&
    typeof (value as StandardSchema)['~standard']?.validate === 'function'
  );
}
