const MAX_TEXT = 60;

/** A wrong value for an error message. Never throws, though some values cannot become a text. */
export function shown(value: unknown): string {
  try {
    if (value instanceof Date) return 'an invalid or out-of-range Date';
    const text = String(value);
    const cut = text.length > MAX_TEXT ? `${text.slice(0, MAX_TEXT)}…` : text;
    return typeof value === 'string' ? `'${cut}'` : cut;
  } catch {
    return `a value of type ${typeof value}`;
  }
}
