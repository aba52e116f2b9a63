const MAX_TEXT = 60;

/**
 * A wrong value as a message shows it: short, and whatever it is. Never throws: an object may have no way to become a text, or one
 * that throws in its turn, and then the caller would hear of that instead of the mistake.
 */
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
