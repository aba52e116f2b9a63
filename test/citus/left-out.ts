/** Tests that are not run on a cluster, and why. `npm run test:citus` prints those of a slice at its end. */
export interface LeftOut {
  readonly reason: string;
  /** Files, or a `describe` or a test in one: `file > describe > test`. */
  readonly tests: readonly string[];
}

export const LEFT_OUT: readonly LeftOut[] = [];

export const SEPARATOR = ' > ';

/** The files that are left out wholly. */
export function filesLeftOut(): string[] {
  return LEFT_OUT.flatMap(({ tests }) => tests.filter((name) => !name.includes(SEPARATOR)));
}

/** Why a test is left out; `undefined`: it is run. @param path of its file, then the names that lead to it */
export function leftOut(
  path: readonly string[],
): { readonly reason: string; readonly by: string } | undefined {
  const places = path.map((_, index) => path.slice(0, index + 1).join(SEPARATOR));
  for (const { reason, tests } of LEFT_OUT) {
    const by = tests.find((name) => places.includes(name));
    if (by !== undefined) return { reason, by };
  }
  return undefined;
}
