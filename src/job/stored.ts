/**
 * A value after it was stored as JSON and read back: a `Date` is a text, as is anything else whose `toJSON`
 * says so, and functions are gone. Payloads and outputs that come from the database unparsed have this type.
 */
export type Stored<T> = unknown extends T
  ? T
  : T extends string | number | boolean | null | undefined
    ? T
    : T extends { toJSON(...args: never[]): infer TJson }
      ? Stored<TJson>
      : // biome-ignore lint/complexity/noBannedTypes: any function at all.
        T extends bigint | symbol | Function
        ? never
        : { [K in keyof T]: Stored<T[K]> };

/** The same for a whole payload or output: an absent one is null in the database. */
export type StoredValue<T> = unknown extends T ? T : T extends undefined ? null : Stored<T>;
