/**
 * The check at the end of each program.
 *
 * @throws Error naming the numbers from 1 to `count` that are missing in `taken`, or there more than once
 */
export function checkTakenOnce(taken: readonly number[], count: number): void {
  const times = new Map<number, number>();
  for (const number of taken) times.set(number, (times.get(number) ?? 0) + 1);
  const missing = Array.from({ length: count }, (_, index) => index + 1).filter((n) => !times.has(n));
  const repeated = [...times].filter(([, n]) => n > 1).map(([number]) => number);
  const strange = [...times.keys()].filter((n) => !Number.isInteger(n) || n < 1 || n > count);
  if (missing.length + repeated.length + strange.length === 0) return;
  throw new Error(
    `Not every item was taken exactly once. Missing: ${list(missing)}; more than once: ${list(repeated)}; unknown: ${list(strange)}`,
  );
}

function list(numbers: readonly number[]): string {
  return numbers.length === 0 ? 'none' : numbers.join(', ');
}
