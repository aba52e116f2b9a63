/**
 * Runs the tests, one run after the other, and closes with one line about all of them: `npm test`, `npm run test:all`.
 *
 * - without an argument: what is fast. drizzle-orm 0.45 in full, and of 1.0 what differs.
 * - `--all`: everything, the slow tests and 1.0 in full, too.
 * - `--all --rest`: the slow tests of 0.45, and of 1.0 those of what may differ.
 * - `--all --repeated`: what says again what those have said: races of a dozen processes, and the rest of 1.0.
 */
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Counts } from './support/count-reporter.ts';
import { summary } from './support/summary.ts';

interface Run {
  readonly title: string;
  /** A program of `node_modules/.bin`, and its arguments. */
  readonly command: readonly [program: string, ...args: string[]];
  readonly env?: Readonly<Record<string, string>>;
}

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
/**
 * Races of many processes take the machine from the tests beside them, and their SQL is the same on both majors; so are
 * its plans, and what a million jobs cost.
 */
const NO_CROWDS = [
  'test/limits/*processes.slow.test.ts',
  'test/queries/*plan*.slow.test.ts',
  'test/dashboard/cost.slow.test.ts',
  'test/dashboard/truth.slow.test.ts',
].flatMap((path) => ['--exclude', path]);
/** Each of these takes the whole machine: many processes, or payloads of megabytes. They run one after the other. */
const CROWDS = [
  'test/limits/processes.slow.test.ts',
  'test/limits/group-processes.slow.test.ts',
  'test/integration/processes.slow.test.ts',
  'test/integration/race.slow.test.ts',
  'test/worker/claim/aging-in-workers.slow.test.ts',
  'test/dashboard/cost.slow.test.ts',
];
const NOT_SLOW = ['--exclude', '**/*.slow.test.ts'];
const FULL = { DEPTH: 'full' };
const V1 = { DRIZZLE: 'v1' };

const TYPES = ['vitest', 'run', '--typecheck.enabled', '--typecheck.only'] as const;

/** One after the other; what stands in a list of its own at the same time, since a compiler uses one core. */
const fast: readonly (readonly Run[])[] = [
  [{ title: 'lint', command: ['biome', 'check', '--error-on-warnings'] }],
  [
    { title: 'types with drizzle-orm 0.45', command: TYPES },
    { title: 'types with drizzle-orm 1.0', command: TYPES, env: V1 },
    { title: 'types of what runs in browsers', command: ['tsc', '-p', 'tsconfig.browser.json'] },
  ],
  [{ title: 'drizzle-orm 0.45', command: ['vitest', 'run', ...NOT_SLOW] }],
  [
    {
      title: 'drizzle-orm 1.0: what differs',
      command: ['vitest', 'run', ...NOT_SLOW, ...DIFFERS],
      env: V1,
    },
  ],
];

/** What apps compile with that have not gone over to TypeScript 7: three times as slow. */
const TYPESCRIPT_5 = { TYPESCRIPT: '5' };

const rest: readonly (readonly Run[])[] = [
  [
    { title: 'types by TypeScript 5 with drizzle-orm 0.45', command: TYPES, env: TYPESCRIPT_5 },
    { title: 'types by TypeScript 5 with drizzle-orm 1.0', command: TYPES, env: { ...TYPESCRIPT_5, ...V1 } },
  ],
  [
    {
      title: 'drizzle-orm 0.45: the slow tests, and those with a depth at the full one',
      command: [
        'vitest',
        'run',
        '.slow.test.ts',
        'test/model/',
        'test/fuzz/',
        'test/schedules/timing.test.ts',
        ...CROWDS.flatMap((path) => ['--exclude', path]),
      ],
      env: FULL,
    },
  ],
  [
    {
      title: 'drizzle-orm 1.0: the slow tests of what differs',
      command: ['vitest', 'run', '--exclude', '**/!(*.slow).test.ts', ...DIFFERS],
      env: V1,
    },
  ],
];

/**
 * Races that others of fewer processes have shown, and, with 1.0, what is the same with both majors as far as anybody
 * knows.
 */
const repeated: readonly (readonly Run[])[] = [
  [
    {
      title: 'drizzle-orm 0.45: what takes the whole machine',
      command: ['vitest', 'run', '--no-file-parallelism', ...CROWDS],
      env: FULL,
    },
  ],
  [
    {
      title: 'drizzle-orm 1.0: the others',
      command: ['vitest', 'run', ...NOT_SLOW, ...DIFFERS.flatMap((path) => ['--exclude', `${path}**`])],
      // How deep the models and races go does not depend on the major.
      env: V1,
    },
  ],
  [
    {
      title: 'drizzle-orm 1.0: the other slow tests',
      command: [
        'vitest',
        'run',
        '.slow.test.ts',
        ...NO_CROWDS,
        ...DIFFERS.flatMap((path) => ['--exclude', `${path}**`]),
      ],
      env: V1,
    },
  ],
];

// Vitest writes colours into files and pipes, too.
const plain = process.stdout.isTTY || process.env.FORCE_COLOR !== undefined ? {} : { NO_COLOR: '1' };
const steps = chosen(process.argv.slice(2));
const counts: Counts[] = [];
const folder = mkdtempSync(join(tmpdir(), 'drizzle-queue-tests-'));
try {
  for (const together of steps) {
    counts.push(...(await Promise.all(together.map((run) => carryOut(run, together.length > 1)))));
  }
} finally {
  rmSync(folder, { recursive: true });
}
const { line, ok } = summary(counts);
console.log(`\n${line}`);
process.exitCode = ok ? 0 : 1;

function chosen(args: readonly string[]): readonly (readonly Run[])[] {
  switch (args.join(' ')) {
    case '':
      return fast;
    case '--all':
      return [...fast, ...rest, ...repeated];
    case '--all --rest':
      return rest;
    case '--all --repeated':
      return repeated;
    default:
      throw new Error(
        `Usage: npm test, npm run test:all, npm run test:all -- --rest or --repeated; got ${args.join(' ')}`,
      );
  }
}

/** Starts a run and waits for its end; one that is not alone says what it has to say then. */
async function carryOut({ title, command: [program, ...args], env }: Run, beside: boolean): Promise<Counts> {
  console.log(`\n── ${title}\n`);
  const path = join(folder, `${randomUUID()}.json`);
  const started = spawn(join('node_modules/.bin', program), args, {
    env: { ...process.env, ...plain, ...env, TEST_COUNTS: path },
    stdio: beside ? ['ignore', 'pipe', 'pipe'] : 'inherit',
    shell: process.platform === 'win32',
  });
  const output: Buffer[] = [];
  for (const stream of [started.stdout, started.stderr]) stream?.on('data', (data) => output.push(data));
  // A terminal's Ctrl-C reaches both.
  const end = () => started.kill();
  process.once('SIGTERM', end);
  const [code] = await once(started, 'close');
  process.off('SIGTERM', end);
  if (beside) process.stdout.write(Buffer.concat([Buffer.from(`\n── ${title}: done\n`), ...output]));
  const written = countsIn(path);
  // Neither a linter nor a run that breaks off counts anything.
  if (written === undefined) return { passed: code === 0 ? 1 : 0, failed: code === 0 ? 0 : 1, skipped: 0 };
  return code === 0 ? written : { ...written, failed: Math.max(1, written.failed) };
}

function countsIn(path: string): Counts | undefined {
  try {
    return JSON.parse(readFileSync(path, 'utf8'));
  } catch {
    return undefined;
  }
}
