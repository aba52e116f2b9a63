/**
 * A deep copy of a value that was parsed from JSON. Anything but a plain object or an array, such as what a
 * driver's own parser makes, is not copied. `structuredClone` takes ten times as long. It is not recursive,
 * since Postgres stores deep JSON.
 */
export function copyJson<T>(value: T): T;
export function copyJson(value: unknown): unknown {
  if (!isContainer(value)) return value;
  const copy = shallowCopy(value);
  const open = [copy];
  for (let at = open.pop(); at !== undefined; at = open.pop()) {
    for (const key of Object.keys(at)) {
      const inner = at[key];
      if (!isContainer(inner)) continue;
      const own = shallowCopy(inner);
      // A key named __proto__ is its own already, from the shallow copy.
      at[key] = own;
      open.push(own);
    }
  }
  return copy;
}

type Container = Record<string, unknown>;

function isContainer(value: unknown): value is Container {
  if (typeof value !== 'object' || value === null) return false;
  if (Array.isArray(value)) return true;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

function shallowCopy(value: Container): Container {
  // The elements of an array have keys as well.
  return Array.isArray(value) ? (value.slice() as unknown as Container) : { ...value };
}
