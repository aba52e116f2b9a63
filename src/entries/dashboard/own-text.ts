/** The value of an own column as `show` is asked about it, and as it is shown. */
export function ownText(value: unknown): string {
  if (value instanceof Date) return value.toISOString();
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}
