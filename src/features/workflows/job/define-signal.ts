import { checkText, MAX_NAME_BYTES } from '../../../core/job/limits.ts';
import {
  isStandardSchema,
  type SchemaInput,
  type SchemaOutput,
  type StandardSchema,
} from '../../../core/job/standard-schema.ts';

/** A kind of message to a job, made by {@link defineSignal}. */
export interface SignalDefinition<
  TName extends string = string,
  TSchema extends StandardSchema | undefined = StandardSchema | undefined,
> {
  readonly name: TName;
  readonly schema: TSchema;
}

/** The value that a sender of the signal passes; `undefined` for a signal without a schema. */
export type SignalInput<TSignal extends SignalDefinition> = TSignal['schema'] extends StandardSchema
  ? SchemaInput<TSignal['schema']>
  : undefined;

/** The value that a handler receives. */
export type SignalValue<TSignal extends SignalDefinition> = TSignal['schema'] extends StandardSchema
  ? SchemaOutput<TSignal['schema']>
  : null;

/**
 * Defines a signal: what an app sends to a job that waits for it, by `queue.workflows.signal`.
 *
 * ```ts
 * export const approval = defineSignal('approval', z.object({ by: z.string(), ok: z.boolean() }));
 * ```
 *
 * @param name 1–200 bytes; the signals of one name are received in the order in which they were sent
 * @param schema of its value, which is checked when it is sent and when it is received
 * @default no schema: the signal has no value
 * @throws TypeError when the name cannot be stored, or the schema is none
 */
export function defineSignal<
  const TName extends string,
  TSchema extends StandardSchema | undefined = undefined,
>(name: TName, schema?: TSchema): SignalDefinition<TName, TSchema> {
  checkText('defineSignal: name', name, MAX_NAME_BYTES);
  if (schema !== undefined && !isStandardSchema(schema)) {
    throw new TypeError(`defineSignal('${name}') takes a schema, such as z.object({ … })`);
  }
  // Left out, the type parameter is `undefined`, too.
  return { name, schema: schema as TSchema };
}
