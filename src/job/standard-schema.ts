import type { Stored } from './stored.ts';

/**
 * The part of the Standard Schema interface (https://standardschema.dev, version 1) that a job needs, so that zod, valibot,
 * arktype and the rest work alike and none of them is a dependency.
 */
export interface StandardSchema<TInput = unknown, TOutput = TInput> {
  readonly '~standard': {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => SchemaResult<TOutput> | Promise<SchemaResult<TOutput>>;
    readonly types?: { readonly input: TInput; readonly output: TOutput } | undefined;
  };
}

/** What `validate` answers: the parsed value, or what is wrong with it. */
export type SchemaResult<TOutput> =
  | { readonly value: TOutput; readonly issues?: undefined }
  | { readonly issues: readonly SchemaIssue[] };

export interface SchemaIssue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/** What may be given to a schema. */
export type SchemaInput<S> = S extends StandardSchema<infer TInput, unknown> ? TInput : never;

/** What a schema makes of it. */
export type SchemaOutput<S> = S extends StandardSchema<unknown, infer TOutput> ? TOutput : never;

/**
 * A plain type where a schema is expected: no check at run time, on enqueue or on claim. Handlers get it as JSON gives it back,
 * a `Date` as text for example.
 *
 * ```ts
 * const resize = defineJob('resize', { payload: unvalidated<{ imageId: number }>() });
 * ```
 */
export function unvalidated<T>(): StandardSchema<T, Stored<T>> {
  return {
    '~standard': {
      version: 1,
      vendor: 'drizzle-queue',
      validate: acceptAs<Stored<T>>,
    },
  };
}

/** The promise of {@link unvalidated} is that the caller vouches for the type. */
function acceptAs<T>(value: unknown): SchemaResult<T> {
  return { value: value as T };
}

/** Whether a schema is made by {@link unvalidated}, so that there is no need to ask it. */
export function isUnvalidated(schema: StandardSchema): boolean {
  return schema['~standard'].validate === acceptAs;
}

/** Whether a value can be used as a schema; for messages to callers without TypeScript. */
export function isStandardSchema(value: unknown): value is StandardSchema {
  return (
    (typeof value === 'object' || typeof value === 'function') &&
    value !== null &&
    '~standard' in value &&
    typeof (value as StandardSchema)['~standard']?.validate === 'function'
  );
}
