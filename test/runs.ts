/** One command of a run of the tests, and what repeats what failed in it. */
export interface Run {
  readonly title: string;
  /** A program below `node_modules`, and its arguments. */
  readonly command: readonly [program: string, ...args: string[]];
  readonly env?: Readonly<Record<string, string>>;
  /** Whether its output is worth nothing unless it fails. */
  readonly quiet?: boolean;
  /** The command for a contributor who wants to see the failures alone, given the files with failures. */
  readonly again: (failedFiles: readonly string[]) => string;
}

/** Runs that follow each other. Those in a list of their own run at the same time, since a compiler uses one core. */
export type Steps = readonly (readonly Run[])[];

/** What may differ between two majors of drizzle-orm, beside types: tables, drizzle-kit, SQL and drivers. */
const DIFFERS = [
  'test/schema/',
  'test/kit/',
  'test/queries/sql.test.ts',
  'test/drivers/prepared.test.ts',
  'test/integration/drivers.test.ts',
  'test/integration/relational',
  'test/support/drizzle-version.test.ts',
];
/** Of these, what shows that the others need no repetition: the same text of every statement, and the same tables. */
const PROVES_THE_SAME = ['test/schema/', 'test/queries/sql.test.ts', 'test/support/drizzle-version.test.ts'];
const DIFFERS_TOO = DIFFERS.filter((path) => !PROVES_THE_SAME.includes(path));
const NOT_DIFFERS = DIFFERS.flatMap((path) => ['--exclude', `${path}**`]);
/**
 * Races of many processes take the machine from the tests beside them, and their SQL is the same on both majors; so are
 * its plans, and what a million jobs cost.
 */
const NO_CROWDS = [
  'test/limits/*processes.slow.test.ts',
  'test/queries/*plan*.slow.test.ts',
  'test/dashboard/cost.slow.test.ts',
  'test/dashboard/truth.slow.test.ts',
];
/** Each of these takes the whole machine: many processes, or payloads of megabytes. They run one after the other. */
const CROWDS = [
  'test/limits/processes.slow.test.ts',
  'test/limits/group-processes.slow.test.ts',
  'test/integration/processes.slow.test.ts',
  'test/integration/race.slow.test.ts',
  'test/worker/claim/aging-in-workers.slow.test.ts',
  'test/dashboard/cost.slow.test.ts',
  'test/workflows/large-batch.slow.test.ts',
];
const TYPES = ['--typecheck.enabled', '--typecheck.only'];
const NOT_SLOW = ['--exclude', '**/*.slow.test.ts'];
/**
 * Whole apps, properties over many random cases, what repeats itself for each driver or table, and what waits for real
 * time to pass: a second or more for each test, such as the window of a rate, the silence of a server, or what a worker
 * at rest asks. They run before a change lands.
 */
const LONG = [
  'test/access/control.test.ts',
  'test/cli/init.test.ts',
  'test/dashboard/lookups.test.ts',
  'test/drivers/pooled-by-transaction.test.ts',
  'test/examples/',
  'test/fuzz/',
  'test/integration/drivers.test.ts',
  'test/limits/rated-groups.test.ts',
  'test/limits/still.test.ts',
  'test/limits/turns.test.ts',
  'test/model/',
  'test/queries/find-ended-jobs.test.ts',
  'test/queries/group-joins.test.ts',
  'test/queries/group-races.test.ts',
  'test/queries/hot.test.ts',
  'test/queue/check.test.ts',
  'test/queue/other-tables.test.ts',
  'test/queue/stats/stats.test.ts',
  'test/queue/wait-notified.test.ts',
  'test/schedules/drivers.test.ts',
  'test/shards/processes.test.ts',
  'test/shards/workers.test.ts',
  'test/skip-locked/stale-statistics.test.ts',
  'test/support/test-database.test.ts',
  'test/testing/steps.test.ts',
  'test/upgrades/side-by-side.test.ts',
  'test/worker/attempt/bad-rows.test.ts',
  'test/worker/attempt/batch-complete.test.ts',
  'test/worker/attempt/deadline.test.ts',
  'test/worker/attempt/given-back.test.ts',
  'test/worker/attempt/hanging-schema.test.ts',
  'test/worker/attempt/prefetch.test.ts',
  'test/worker/attempt/progress.test.ts',
  'test/worker/backlogs.test.ts',
  'test/worker/claim/late-commits.test.ts',
  'test/worker/claim/many-queues.test.ts',
  'test/worker/claim/polling-rate.test.ts',
  'test/worker/claim/refused-claims.test.ts',
  'test/worker/claim/sweeper.test.ts',
  'test/worker/claim/watch.test.ts',
  'test/worker/completed-by-handler.test.ts',
  'test/worker/drain.test.ts',
  'test/worker/ended-pool.test.ts',
  'test/worker/fair-use.test.ts',
  'test/worker/group-promises.test.ts',
  'test/worker/limits/lease.test.ts',
  'test/worker/nodes-of-citus.test.ts',
  'test/worker/presence/listener.test.ts',
  'test/worker/presence/liveness.test.ts',
  'test/worker/presence/returns.test.ts',
  'test/worker/presence/session.test.ts',
  'test/worker/prune-keys.test.ts',
  'test/worker/rates.test.ts',
  'test/worker/run-next-left-behind.test.ts',
  'test/worker/silence.test.ts',
  'test/worker/statements/statements.test.ts',
  'test/worker/stop.test.ts',
  'test/worker/upkeep/cancel.test.ts',
  'test/worker/upkeep/firing.test.ts',
  'test/workflows/cut-commit.test.ts',
  'test/workflows/deploys.test.ts',
  'test/workflows/fan-in.test.ts',
  'test/workflows/folding.test.ts',
  'test/workflows/limited.test.ts',
];
const NOT_LONG = LONG.flatMap((path) => ['--exclude', path.endsWith('/') ? `${path}**` : path]);
/** Minutes each: plans and claims over tables with a million rows. They run on GitHub. */
const LARGE = ['test/queries/*plan*.slow.test.ts', 'test/worker/claim/aging.slow.test.ts'];
const without = (paths: readonly string[]) => paths.flatMap((path) => ['--exclude', path]);
const FULL = { DEPTH: 'full' };
const V1 = { DRIZZLE: 'v1' };
/** What apps compile with that have not gone over to TypeScript 7: three times as slow. */
const TYPESCRIPT_5 = { TYPESCRIPT: '5' };

const LINT: Run = {
  title: 'format and lint',
  command: ['@biomejs/biome/bin/biome', 'check', '--error-on-warnings'],
  quiet: true,
  again: () => 'npm run lint',
};
const BROWSER_TYPES: Run = {
  title: 'types of what runs in browsers',
  command: ['typescript-7/bin/tsc', '-p', 'tsconfig.browser.json'],
  again: () => 'npx tsc -p tsconfig.browser.json',
};

/**
 * The compiler alone, which also finds a wrong `expectTypeOf`. Vitest compiles the same files to name the tests, in
 * three times the time.
 */
const COMPILE: Run = {
  title: 'types with drizzle-orm 0.45',
  command: ['typescript-7/bin/tsc', '--noEmit', '-p', '.'],
  again: () => 'npx tsc --noEmit -p .',
};
const COMPILE_V1: Run = {
  title: 'types with drizzle-orm 1.0',
  command: ['typescript-7/bin/tsc', '--noEmit', '-p', 'tsconfig.v1.json'],
  again: () => 'npx tsc --noEmit -p tsconfig.v1.json',
};

/** A run of Vitest with these arguments and variables. */
function tests(title: string, args: readonly string[], env: Readonly<Record<string, string>> = {}): Run {
  const variables = Object.entries(env).map(([name, value]) => `${name}=${value} `);
  return {
    title,
    command: ['vitest/vitest.mjs', 'run', ...args],
    env,
    // Vitest says each time that it may change how it tests types.
    quiet: args.includes('--typecheck.only'),
    again: (failedFiles) =>
      `${variables.join('')}npx vitest run ${[...args.filter((arg) => TYPES.includes(arg)), ...failedFiles].join(' ')}`.trimEnd(),
  };
}

/** One after the other: `npm test`. */
const fast: Steps = [
  [LINT, COMPILE, BROWSER_TYPES],
  [tests('drizzle-orm 0.45', [...NOT_SLOW, ...NOT_LONG])],
  [tests('drizzle-orm 1.0: tables and statements', [...NOT_SLOW, ...PROVES_THE_SAME], V1)],
];

/** What needs no server and little time: `npm run check`. */
const check: Steps = [
  [LINT, BROWSER_TYPES, COMPILE],
  [tests('what needs no server', ['--config', 'vitest.check.config.ts'])],
];

/** What `.ci/run` runs beside the fast tests. */
const landing: Steps = [
  [
    tests('drizzle-orm 0.45: the slow tests', [
      '.slow.test.ts',
      ...LONG,
      ...without(CROWDS),
      ...without(LARGE),
    ]),
  ],
  [COMPILE_V1, tests('drizzle-orm 1.0: what else differs', [...NOT_SLOW, ...DIFFERS_TOO], V1)],
];

/** All slow tests but those that take the whole machine, at the full depth. */
const rest: Steps = [
  [
    tests(
      'drizzle-orm 0.45: the slow tests, and those with a depth at the full one',
      ['.slow.test.ts', ...LONG, 'test/schedules/timing.test.ts', ...without(CROWDS)],
      FULL,
    ),
  ],
  [COMPILE_V1, tests('drizzle-orm 1.0: what else differs', [...NOT_SLOW, ...DIFFERS_TOO], V1)],
  [
    tests(
      'drizzle-orm 1.0: the slow tests of what differs',
      ['--exclude', '**/!(*.slow).test.ts', ...DIFFERS],
      V1,
    ),
  ],
];

/**
 * Races that others of fewer processes have shown, what the compiler before TypeScript 7 says, and of drizzle-orm 1.0
 * what is the same with both majors as far as is known. The same text of the SQL is held by test/queries/sql.test.ts,
 * which `npm test` runs with both.
 */
const repeated: Steps = [
  [
    tests('types by TypeScript 5 with drizzle-orm 0.45', TYPES, TYPESCRIPT_5),
    tests('types by TypeScript 5 with drizzle-orm 1.0', TYPES, { ...TYPESCRIPT_5, ...V1 }),
  ],
  [tests('drizzle-orm 0.45: what takes the whole machine', ['--no-file-parallelism', ...CROWDS], FULL)],
  // How deep the models and races go does not depend on the major.
  [tests('drizzle-orm 1.0: the others', [...NOT_SLOW, ...NOT_DIFFERS], V1)],
  [
    tests(
      'drizzle-orm 1.0: the other slow tests',
      ['.slow.test.ts', ...without(NO_CROWDS), ...NOT_DIFFERS],
      V1,
    ),
  ],
];

/** What the arguments of `test/run.ts` ask for. */
export function runsOf(args: readonly string[]): Steps {
  switch (args.join(' ')) {
    case '':
      return fast;
    case '--check':
      return check;
    case '--all':
      return [...fast, ...rest, ...repeated];
    case '--all --landing':
      return landing;
    case '--all --rest':
      return rest;
    case '--all --repeated':
      return repeated;
    default:
      throw new Error(
        `Usage: npm test, npm run check, npm run test:all, npm run test:all -- --landing, --rest or --repeated; got ${args.join(' ')}`,
      );
  }
}
