import type { ValidationIssue } from '../../errors.ts';

/** How deeply a value may nest: Postgres parses JSON recursively, to a depth that its settings decide. */
export const MAX_DEPTH = 1_000;

/** A value that jsonb cannot hold without loss, and where in it. */
export class UnstorableValueError extends TypeError {
  constructor(readonly issue: ValidationIssue) {
    super(issue.message);
  }
}

/**
 * The JSON text that the database keeps for a value.
 *
 * Refuses what `JSON.stringify` loses silently: NaN, Infinity, functions, Map, Set, Error, Response,
 * generators, a promise that was not awaited, `undefined` in an array. Refuses also what Postgres would
 * refuse later, in the middle of the caller's transaction: NUL characters, half surrogate pairs, extreme
 * depth. Properties that are `undefined` are left out, and objects with `toJSON` (Date, URL, …) become what
 * it returns. A result of node-postgres becomes its rows, which is what postgres.js returns: handlers whose
 * last line is an insert return one.
 *
 * @throws UnstorableValueError naming the first offending place
 */
export function toStoredJson(value: unknown): string {
  if (isPlainJson(value, [])) {
    const json = JSON.stringify(value);
    // NUL and half surrogate pairs are escaped in JSON.
    if (!json.includes('\\u')) return json;
  }
  check(value, [], new Set());
  return JSON.stringify(value, (_key, item) => rowsIn(item));
}

/**
 * Whether a value consists only of JSON types, leaving its texts aside. Most do, and this is several times
 * faster than {@link check}, which finds the first place that does not.
 */
function isPlainJson(value: unknown, ancestors: object[]): boolean {
  if (typeof value === 'number') return Number.isFinite(value);
  if (typeof value !== 'object') return typeof value === 'string' || typeof value === 'boolean';
  if (value === null) return true;
  if (!isPlain(value) || ancestors.length >= MAX_DEPTH || ancestors.includes(value)) return false;
  ancestors.push(value);
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length; index++)
      if (!isPlainJson(value[index], ancestors)) return false;
  } else {
    // `key` comes from this very object.
    const properties = value as Readonly<Record<string, unknown>>;
    for (const key in properties) {
      const item = properties[key];
      if (item !== undefined && !isPlainJson(item, ancestors)) return false;
    }
  }
  ancestors.pop();
  return true;
}

function check(value: unknown, path: (string | number)[], ancestors: Set<object>): void {
  const json = typeof value === 'object' && value !== null ? asJson(value, path) : value;
  switch (typeof json) {
    case 'string':
      checkText(json, path);
      return;
    case 'number':
      if (!Number.isFinite(json)) refuse(`${json} is not a JSON number`, path);
      return;
    case 'boolean':
      return;
    case 'object':
      if (json !== null) checkObject(json, path, ancestors);
      return;
    case 'bigint':
      refuse('a BigInt is not JSON; send it as text', path);
      return;
    default:
      refuse(`a value of type ${typeof json} is not JSON`, path);
  }
}

/** A plain object or array, as most are: `check` need not look at its class. */
function isPlain(value: object): boolean {
  const prototype = Object.getPrototypeOf(value);
  return (prototype === Object.prototype || prototype === Array.prototype) && !('toJSON' in value);
}

/** What `JSON.stringify` writes: the result of `toJSON`, the value of a boxed primitive, or the object. */
function asJson(value: object, path: readonly (string | number)[]): unknown {
  if (value instanceof Date && Number.isNaN(value.getTime())) {
    refuse('an invalid Date', path);
  }
  if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) {
    refuse('binary data is not JSON; send base64 text, or a key to it', path);
  }
  const json = rowsIn(hasToJson(value) ? value.toJSON(lastOf(path)) : value);
  return [Number, String, Boolean, BigInt].some((boxed) => json instanceof boxed) ? json?.valueOf() : json;
}

function checkObject(value: object, path: (string | number)[], ancestors: Set<object>): void {
  if (ancestors.has(value)) refuse('the value contains itself', path);
  if (path.length >= MAX_DEPTH) refuse(`nested deeper than ${MAX_DEPTH} levels`, path.slice(0, 3));
  ancestors.add(value);
  if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) {
      if (item === undefined) refuse('undefined in an array', [...path, index]);
      path.push(index);
      check(item, path, ancestors);
      path.pop();
    }
  } else {
    const properties = Object.entries(value);
    const type = {}.toString.call(value).slice(8, -1);
    // A Map, a Response or a generator keeps nothing in properties, and an Error hides its message.
    if (/^(Error|Map|Set)$/.test(type) || (type !== 'Object' && properties.length === 0)) {
      refuse(`a ${type} would lose what it holds; send an array or an object`, path);
    }
    for (const [key, item] of properties) {
      if (item === undefined) continue;
      checkText(key, path);
      path.push(key);
      check(item, path, ancestors);
      path.pop();
    }
  }
  ancestors.delete(value);
}

/** The rows of a result of node-postgres, whose class holds functions beside them; a plain object is none. */
function rowsIn(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || isPlain(value)) return value;
  const { command, rowCount, rows }: Partial<Record<string, unknown>> = value;
  return command !== undefined && rowCount !== undefined && Array.isArray(rows) ? rows : value;
}

function hasToJson(value: object): value is { toJSON(key: string): unknown } {
  return 'toJSON' in value && typeof value.toJSON === 'function';
}

function lastOf(path: readonly (string | number)[]): string {
  return String(path.at(-1) ?? '');
}

/** Half of a surrogate pair: valid in a JavaScript text, but not in Postgres. */
export const HALF_SURROGATE = /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/;

/** What of a text Postgres cannot keep; `undefined`: it keeps all of it. */
export function unstorableIn(text: string): string | undefined {
  if (text.includes('\0')) return 'a NUL character (\\u0000), which Postgres cannot keep';
  return HALF_SURROGATE.test(text) ? 'half of a surrogate pair, which is not Unicode text' : undefined;
}

function checkText(text: string, path: readonly (string | number)[]): void {
  const found = unstorableIn(text);
  if (found) refuse(`contains ${found}`, path);
}

function refuse(message: string, path: readonly (string | number)[]): never {
  throw new UnstorableValueError({ message, path: formatPath(path) });
}

/** `['lines', 2, 'sku']` as `lines[2].sku`. */
export function formatPath(path: readonly PropertyKey[]): string {
  return path
    .map((key, index) => (typeof key === 'number' ? `[${key}]` : `${index === 0 ? '' : '.'}${String(key)}`))
    .join('');
}
