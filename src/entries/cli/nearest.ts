/** The name that the user may have meant; `undefined` where none is close. */
export function nearest(given: string, names: readonly string[]): string | undefined {
  const close = names
    .map((name) => ({ name, changes: changesBetween(given, name) }))
    .filter(({ name, changes }) => changes <= Math.max(2, Math.floor(name.length / 3)))
    .sort((a, b) => a.changes - b.changes);
  return close[0]?.name;
}

/** How many characters must be put in, taken out or exchanged (Levenshtein). */
function changesBetween(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (let i = 1; i <= from.length; i++) {
    const next = [i];
    for (let j = 1; j <= to.length; j++) {
      const same = from[i - 1] === to[j - 1] ? 0 : 1;
      next.push(Math.min((row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1, (row[j - 1] ?? 0) + same));
    }
    row = next;
  }
  return row[to.length] ?? 0;
}
