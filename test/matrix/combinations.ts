/** What the matrix is made of: each axis with its values. */
export const axes = {
  drizzle: ['0.34', '0.45', '1.0'],
  driver: ['postgres.js', 'node-postgres', 'neon-serverless', 'neon-http', 'PGlite', 'Bun SQL'],
  runtime: ['Node 20', 'Node 22', 'Node 24', 'Bun'],
  postgres: ['14', '15', '16', '17', '18', 'PGlite'],
} as const;

type Axis = keyof typeof axes;

/** One value of each axis. */
export type Combination = { readonly [A in Axis]: (typeof axes)[A][number] };

export type Drizzle = Combination['drizzle'];
export type Driver = Combination['driver'];
export type Runtime = Combination['runtime'];
export type Postgres = Combination['postgres'];

/**
 * Whether the combination exists: Bun's SQL needs Bun and a newer drizzle-orm than the oldest, which for neon-http wants a package of
 * Neon's from before 1.0; PGlite brings its own server.
 */
export function exists({ drizzle, driver, runtime, postgres }: Combination): boolean {
  if (drizzle === '0.34' && (driver === 'Bun SQL' || driver === 'neon-http')) return false;
  if ((driver === 'PGlite') !== (postgres === 'PGlite')) return false;
  // On Bun the drivers for Node.js that people use there.
  return runtime === 'Bun' ? driver !== 'neon-serverless' && driver !== 'neon-http' : driver !== 'Bun SQL';
}

/** Every combination that exists. */
export function fullProduct(): Combination[] {
  return axes.drizzle
    .flatMap((drizzle) =>
      axes.driver.flatMap((driver) =>
        axes.runtime.flatMap((runtime) =>
          axes.postgres.map((postgres): Combination => ({ drizzle, driver, runtime, postgres })),
        ),
      ),
    )
    .filter(exists);
}

/**
 * Few of the combinations, in which every pair of values that occurs in any of them occurs: most of what breaks breaks by one value,
 * or by two that meet. Greedy, so not the fewest; always the same.
 */
export function pairwise(all: readonly Combination[]): Combination[] {
  const open = new Set(all.flatMap(pairsOf));
  const chosen: Combination[] = [];
  while (open.size > 0) {
    let best: Combination | undefined;
    let bestNews = 0;
    for (const combination of all) {
      const news = pairsOf(combination).filter((pair) => open.has(pair)).length;
      if (news > bestNews) {
        best = combination;
        bestNews = news;
      }
    }
    // Every open pair is one of some combination.
    if (best === undefined) break;
    chosen.push(best);
    for (const pair of pairsOf(best)) open.delete(pair);
  }
  return chosen;
}

/** The pairs of values in a combination, each as a text. */
export function pairsOf(combination: Combination): string[] {
  const values = Object.entries(combination).map(([axis, value]) => `${axis} ${value}`);
  return values.flatMap((one, index) => values.slice(index + 1).map((other) => `${one} × ${other}`));
}

/** Such as `drizzle 1.0, node-postgres, Node 22, PostgreSQL 16`. */
export function titleOf({ drizzle, driver, runtime, postgres }: Combination): string {
  const server = postgres === 'PGlite' ? [] : [`PostgreSQL ${postgres}`];
  return [`drizzle ${drizzle}`, driver, runtime, ...server].join(', ');
}
