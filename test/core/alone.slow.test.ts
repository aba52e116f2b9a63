import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, realpath, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { build } from 'esbuild';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { useTestDatabase } from '../support/test-database.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const run = promisify(execFile);

/** The core, and what it may import. */
const SOURCES = ['src/core', 'src/skip-locked', 'src/errors.ts', 'test/core/entry.ts'];

/** What the sources and the behaviours import, each under the name by which it is imported. */
const PACKAGES: Readonly<Record<string, string>> = {
  'drizzle-orm': process.env.DRIZZLE === 'v1' ? 'drizzle-orm-v1' : 'drizzle-orm',
  '@types/node': '@types/node',
  pg: 'pg',
  postgres: 'postgres',
  zod: 'zod',
};

const TSCONFIG = {
  extends: join(root, 'tsconfig.json'),
  compilerOptions: {
    noEmit: false,
    outDir: 'out',
    rootDir: '.',
    rewriteRelativeImportExtensions: true,
    typeRoots: ['node_modules/@types'],
    // Those of the repository lead to the whole library.
    paths: {},
  },
  include: ['src', 'test'],
  exclude: [],
};

const database = useTestDatabase();
let folder: string;

beforeAll(async () => {
  folder = await realpath(await mkdtemp(join(tmpdir(), 'drizzle-queue-core-')));
  for (const path of SOURCES) await cp(join(root, path), join(folder, path), { recursive: true });
  for (const [name, installed] of Object.entries(PACKAGES)) {
    const link = join(folder, 'node_modules', name);
    await mkdir(dirname(link), { recursive: true });
    await symlink(join(root, 'node_modules', installed), link);
  }
  await writeFile(join(folder, 'package.json'), JSON.stringify({ type: 'module' }));
  await writeFile(join(folder, 'tsconfig.json'), JSON.stringify(TSCONFIG));
});

afterAll(() => rm(folder, { recursive: true, force: true }));

/** What the compiler says of the files in the folder; nothing when they compile. */
async function compile(): Promise<string> {
  const tsc = join(root, 'node_modules/typescript-7/bin/tsc');
  return await run(process.execPath, [tsc, '-p', folder], { maxBuffer: 10_000_000 }).then(
    () => '',
    ({ stdout }) => String(stdout),
  );
}

test('a core that imports a feature does not compile alone', async () => {
  const wrong = join(folder, 'src/core/queue/wrong.ts');
  await writeFile(wrong, `export { limitsIn } from '../../features/limits/limits-in.ts';\n`);
  expect(await compile()).toContain(`Cannot find module '../../features/limits/limits-in.ts'`);
  await rm(wrong);
});

test('the core compiles alone, and does what every queue does', async () => {
  expect(await compile()).toBe('');
  const program = join(folder, 'program.mjs');
  const { metafile } = await build({
    entryPoints: [join(root, 'test/core/program.ts')],
    outfile: program,
    bundle: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    external: Object.keys(PACKAGES),
    alias: {
      'drizzle-queue': join(folder, 'out/test/core/entry.js'),
      'drizzle-queue/skip-locked': join(folder, 'out/src/skip-locked/index.js'),
    },
    // Its paths lead to the whole library.
    tsconfigRaw: {},
    logLevel: 'warning',
    metafile: true,
  });
  // Nothing of the library but what was compiled.
  const inputs = Object.keys(metafile.inputs).map((path) => resolve(path));
  expect(inputs.filter((path) => path.startsWith(join(root, 'src')))).toEqual([]);
  const { stdout } = await run(process.execPath, ['--disable-warning=DrizzleQueueWarning', program], {
    env: { ...process.env, DATABASE_URL: database.url },
    maxBuffer: 10_000_000,
  });
  const shown: readonly { readonly name: string; readonly failed?: string }[] = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  expect(shown.filter(({ failed }) => failed !== undefined)).toEqual([]);
  const names = shown.map(({ name }) => name);
  // A list that was filtered too much would show nothing.
  expect(names.length).toBeGreaterThanOrEqual(25);
  expect(names).toEqual(
    expect.arrayContaining([
      'enqueues with the transaction, or not at all',
      'drains: every job completed, with its output',
      'fails, retries, snoozes, discards, and puts back',
      'complete(tx) commits the end of the job with the handler’s writes, or neither',
      'schedules and cancels',
      'a worker that listens holds a session lock, and takes it again when its connection was lost',
    ]),
  );
});
