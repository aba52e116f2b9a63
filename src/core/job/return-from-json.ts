import type { SchemaInput, StandardSchema } from './standard-schema.ts';
import type { Stored } from './stored.ts';

/**
 * What the options of a definition must be besides: `unknown`, so anything, if each schema takes what its
 * input is after it was stored as JSON. Otherwise one of them must be a text, which no schema is: so no such
 * definition compiles, and the compiler's message is the text. A schema that is a type parameter passes.
 */
export type ReturnFromJson<TPayload, TOutput> = [Fitness<TPayload, TOutput>] extends ['misfit']
  ? Complaint<TPayload>
  : unknown;

/** In a step of its own: of a type parameter nothing is known, and TypeScript takes that for 'fit' here. */
type Fitness<TPayload, TOutput> = [SchemaInput<TPayload> | SchemaInput<TOutput>] extends [Plain]
  ? 'fit'
  : [Returns<TPayload>, Returns<TOutput>] extends [true, true]
    ? 'fit'
    : 'misfit';

/** Most inputs are of these types, and that costs the compiler less to see than what follows. */
type Plain =
  | string
  | number
  | boolean
  | null
  | undefined
  | readonly Plain[]
  | { readonly [key: string]: Plain };

type Returns<TSchema> = TSchema extends { readonly '~standard': { readonly vendor: 'drizzle-queue' } }
  ? true // `unvalidated<T>()` refuses nothing.
  : TSchema extends StandardSchema
    ? IsInput<Stored<SchemaInput<TSchema>>, SchemaInput<TSchema>>
    : true;

type IsInput<TStored, TInput> = [TStored] extends [TInput] ? true : false;

type Complaint<TPayload> = [Returns<TPayload>] extends [true]
  ? { readonly output: Misfit<'output'> }
  : { readonly payload: Misfit<'payload'> };

type Misfit<TName extends string> =
  `The ${TName} is stored as JSON, and its schema refuses what comes back: ${WhatComesBack}`;

type WhatComesBack =
  `a Date is a text (use ${CoercedDate}), and JSON has no bigint, Map, Set, function or class`;

type CoercedDate = 'z.coerce.date() or z.iso.datetime()';
