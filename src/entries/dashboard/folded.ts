/** So many findings of one code stand side by side. */
const FEW = 3;

interface Foldable {
  readonly code: string;
  readonly severity: string;
  readonly value?: number | undefined;
}

/**
 * Findings in their order. Where there are many of one code and severity, such as for queues that are late
 * for one reason, they are together, the largest value first.
 */
export function folded<T extends Foldable>(findings: readonly T[]): [first: T, ...others: T[]][] {
  const groups = new Map<string, [T, ...T[]]>();
  for (const finding of findings) {
    const key = `${finding.severity} ${finding.code}`;
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [finding]);
    else group.push(finding);
  }
  return [...groups.values()].flatMap((group) =>
    group.length > FEW ? [largestFirst(group)] : group.map((one): [T] => [one]),
  );
}

/** Sorting keeps its length. */
function largestFirst<T extends Foldable>(group: [T, ...T[]]): [T, ...T[]] {
  return group.sort((a, b) => (b.value ?? 0) - (a.value ?? 0));
}
