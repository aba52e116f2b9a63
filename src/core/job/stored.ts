/** What is the same once stored. It has a name, so types that hold themselves, as `z.json()`, end here. */
type Json = string | number | boolean | null | readonly Json[] | { readonly [key: string]: Json };

/**
 * A value after it was stored as JSON and read back: a `Date` is a text, as is anything else whose `toJSON`
 * says so, a result of node-postgres is its rows, and of what JSON has no form for nothing is known. Payloads
 * and outputs that come from the database unparsed have this type.
 */
export type Stored<T> = unknown extends T
  ? T
  : T extends Json | undefined
    ? T
    : T extends { toJSON(...args: never[]): infer TJson }
      ? Stored<TJson>
      : T extends DriverResult
        ? Stored<T['rows']>
        : // biome-ignore lint/complexity/noBannedTypes: any function at all.
          T extends bigint | symbol | Function
          ? unknown
          : T extends readonly (infer TItem)[]
            ? StoredItems<T, TItem>
            : { [K in keyof T]: Stored<T[K]> };

/** Of node-postgres: what is stored of it is its rows. */
interface DriverResult {
  readonly command: string;
  readonly rowCount: number | null;
  readonly oid: number;
  readonly rows: readonly unknown[];
}

/** Arrays are written as arrays, which TypeScript looks into only when asked: JSON itself contains itself. */
type StoredItems<T extends readonly unknown[], TItem> = TItem[] extends T
  ? T extends unknown[]
    ? Stored<TItem>[]
    : readonly Stored<TItem>[]
  : { [K in keyof T]: Stored<T[K]> };

/** The same for a whole payload or output: an absent one is null in the database. */
export type StoredValue<T> = unknown extends T ? T : T extends undefined ? null : Stored<T>;
