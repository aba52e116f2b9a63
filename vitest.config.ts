import { fileURLToPath } from 'node:url';
import { configDefaults, defineConfig } from 'vitest/config';

/** `DRIZZLE=v1` runs the same tests with drizzle-orm 1.0, whose package is installed under another name. */
const drizzleV1 = process.env.DRIZZLE === 'v1';

const source = (path: string): string => fileURLToPath(new URL(`src/${path}`, import.meta.url));

export default defineConfig({
  resolve: {
    alias: [
      { find: /^drizzle-queue$/, replacement: source('index.ts') },
      { find: /^drizzle-queue\/config$/, replacement: source('entries/config/index.ts') },
      { find: /^drizzle-queue\/import$/, replacement: source('entries/import/index.ts') },
      { find: /^drizzle-queue\/shards$/, replacement: source('entries/shards/index.ts') },
      { find: /^drizzle-queue\/schema$/, replacement: source('core/schema/index.ts') },
      { find: /^drizzle-queue\/schema\/control$/, replacement: source('features/control/index.ts') },
      { find: /^drizzle-queue\/schema\/metrics$/, replacement: source('features/metrics/schema/index.ts') },
      {
        find: /^drizzle-queue\/schema\/workflows$/,
        replacement: source('features/workflows/schema/index.ts'),
      },
      { find: /^drizzle-queue\/dashboard$/, replacement: source('entries/dashboard/index.ts') },
      { find: /^drizzle-queue\/skip-locked$/, replacement: source('skip-locked/index.ts') },
      { find: /^drizzle-queue\/testing$/, replacement: source('entries/testing/index.ts') },
      { find: /^drizzle-queue\/opentelemetry$/, replacement: source('entries/opentelemetry/index.ts') },
      ...(drizzleV1 ? [{ find: /^drizzle-orm(?=\/|$)/, replacement: 'drizzle-orm-v1' }] : []),
    ],
  },
  test: {
    include: ['test/**/*.test.ts'],
    // The first need a tarball: `npm run test:package`. The second kill and block, and measure how long it takes to
    // recover: `npm run test:faults`. And what exists in one of the two majors only is tested in a file of its own.
    // Files named `*.slow.test.ts` are left out by `npm test`, see test/run.ts.
    exclude: [
      ...configDefaults.exclude,
      'test/package/**',
      // It needs a Chromium: `npm run test:browser`.
      'test/browser/**',
      // It builds the site, and needs a Chromium: `npm run test:site`.
      'test/site/**',
      // It installs the peers: `npm run test:import`.
      'test/import/**',
      'test/faults/**',
      drizzleV1 ? '**/*.v0.test.ts' : '**/*.v1.test.ts',
      // It alters plain tables in ways that partitioned ones do not take; what it says of those has tests of its own in it.
      ...(process.env.PARTITIONS ? ['test/queue/check.test.ts'] : []),
    ],
    // test/run.ts prints the progress of all its runs by itself.
    reporters: [process.env.TEST_PROGRESS === undefined ? 'default' : './test/support/progress-reporter.ts'],
    silent: 'passed-only',
    globalSetup: ['test/support/global-setup.ts', 'test/support/busy-loops.ts'],
    pool: 'forks',
    // Each process loads the sources once instead of once per file: half of the processor time.
    isolate: false,
    // Tests expect the warnings of the library; Node.js would print them all the same.
    execArgv: ['--disable-warning=DrizzleQueueWarning'],
    // Twice the two cores of a small machine: many files wait more than they work. Not more on larger ones: all
    // share one server, and tests of concurrency need some of the machine's power for themselves.
    maxWorkers: 4,
    // Far more than a test takes: a busy machine is no failure.
    testTimeout: 120_000,
    // Some fill a table with a million rows.
    hookTimeout: 180_000,
    // Part of a run with --typecheck only.
    typecheck: {
      // TypeScript 7 takes a third of the time; `TYPESCRIPT=5` is for the one that builds.
      checker: source(`../node_modules/typescript${process.env.TYPESCRIPT === '5' ? '' : '-7'}/bin/tsc`),
      include: ['test/types/**/*.test-d.ts'],
      tsconfig: drizzleV1 ? './tsconfig.v1.json' : './tsconfig.json',
    },
  },
});
