/** Compares as the runner does, with its asymmetric matchers such as `objectContaining`. */
export type Equals = (actual: unknown, expected: unknown) => boolean;

/** One place at which a value is not as expected. */
export interface Difference {
  /** Such as `payload.orderId`. */
  readonly path: string;
  readonly actual: unknown;
  readonly expected: unknown;
}

/** Where a value is not as expected; goes into plain objects, so that it names the property. */
export function differences(path: string, actual: unknown, expected: unknown, equals: Equals): Difference[] {
  if (equals(actual, expected)) return [];
  if (!isPlainObject(actual) || !isPlainObject(expected)) return [{ path, actual, expected }];
  const keys = [...new Set([...Object.keys(expected), ...Object.keys(actual)])];
  const inside = keys.flatMap((key) => differences(`${path}.${key}`, actual[key], expected[key], equals));
  // Such as a property that is absent in one and undefined in the other.
  return inside.length > 0 ? inside : [{ path, actual, expected }];
}

function isPlainObject(value: unknown): value is Record<string, unknown> {
  if (typeof value !== 'object' || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

/** A value as a message shows it, on one line. */
export function printed(value: unknown): string {
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? 'an invalid Date' : value.toISOString();
  if (value instanceof RegExp) return String(value);
  if (isAsymmetric(value)) return printedMatcher(value);
  if (Array.isArray(value)) return cut(`[${value.map(printed).join(', ')}]`);
  if (isPlainObject(value)) {
    return cut(
      `{${Object.entries(value)
        .map(([key, inside]) => `${key}: ${printed(inside)}`)
        .join(', ')}}`,
    );
  }
  return cut(typeof value === 'string' ? JSON.stringify(value) : String(value));
}

interface Asymmetric {
  readonly sample?: unknown;
  asymmetricMatch(other: unknown): boolean;
}

function isAsymmetric(value: unknown): value is Asymmetric {
  return (
    typeof value === 'object' &&
    value !== null &&
    'asymmetricMatch' in value &&
    typeof value.asymmetricMatch === 'function'
  );
}

function printedMatcher(value: Asymmetric): string {
  const named: unknown = Reflect.get(value, 'toAsymmetricMatcher');
  const name = typeof named === 'function' ? String(Reflect.apply(named, value, [])) : value.constructor.name;
  const isKnown = typeof value.sample === 'object' && value.sample !== null && !name.includes('<');
  return isKnown ? `${name} ${printed(value.sample)}` : name;
}

const MAX_LENGTH = 300;

function cut(text: string): string {
  return text.length > MAX_LENGTH ? `${text.slice(0, MAX_LENGTH)}…` : text;
}
