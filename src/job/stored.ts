/**
 * What a value is after it has been stored as JSON and read back: a `Date` is a text, and so is whatever else has a `toJSON`
 * that says so; functions are gone. Payloads and outputs have this type wherever they come from the database unparsed.
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

/** The same for a payload or an output as a whole: where there is none, the database has null. */
export type StoredValue<T> = unknown extends T ? T : T extends undefined ? null : Stored<T>;
