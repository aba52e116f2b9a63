/** A wrong value in a message; some objects cannot become a text. */
export function shown(value: unknown): string {
  return Object(value) === value ? `a value of type ${typeof value}` : String(value);
}
