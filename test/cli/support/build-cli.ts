import { randomBytes } from 'node:crypto';
import { cp, mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type BuildOptions, build } from 'esbuild';
import { afterAll, beforeAll } from 'vitest';

const root = fileURLToPath(new URL('../../..', import.meta.url));

/** Where the command and its projects are, while the tests run. */
export interface BuiltCli {
  /** The command's file. */
  readonly bin: string;
  /** Makes the folder of an app that has this package, drizzle-orm, drivers and tsx, with these files. */
  project(files?: Readonly<Record<string, string>>): Promise<string>;
}

const ENTRIES = {
  index: 'index.ts',
  schema: 'core/schema/index.ts',
  'schema-control': 'features/control/index.ts',
  'schema-metrics': 'features/metrics/schema/index.ts',
  'schema-workflows': 'features/workflows/schema/index.ts',
  dashboard: 'entries/dashboard/index.ts',
  config: 'entries/config/index.ts',
  import: 'entries/import/index.ts',
  shards: 'entries/shards/index.ts',
  cli: 'entries/cli/bin.ts',
};

/**
 * Builds the package as an app has it, once for a file of tests: a folder in `node_modules`, so that imports of
 * this package are its public entries, and those of others are found above it.
 */
export function useCli(): BuiltCli {
  // Within the repository, for the packages that stand above it.
  const folder = join(root, 'node_modules/.cache', `cli-${process.pid}-${randomBytes(3).toString('hex')}`);
  const home = join(folder, 'node_modules/drizzle-queue');
  let projects = 0;
  beforeAll(async () => {
    const common: BuildOptions = {
      absWorkingDir: join(root, 'src'),
      bundle: true,
      platform: 'node',
      target: 'node20',
      jsx: 'transform',
      jsxFactory: 'h',
      jsxFragment: 'Fragment',
      external: ['drizzle-orm', 'drizzle-orm/*', '@electric-sql/pglite', '@opentelemetry/api'],
      outdir: join(home, 'dist'),
      logLevel: 'error',
    };
    await build({
      ...common,
      entryPoints: ENTRIES,
      splitting: true,
      format: 'esm',
      // commander is CommonJS.
      banner: {
        js: "import { createRequire as requireFrom } from 'node:module'; const require = requireFrom(import.meta.url);",
      },
    });
    // What the apps here load by `require`.
    const { index, config } = ENTRIES;
    await build({
      ...common,
      entryPoints: { index, config },
      format: 'cjs',
      outExtension: { '.js': '.cjs' },
    });
    await mkdir(home, { recursive: true });
    await cp(join(root, 'package.json'), join(home, 'package.json'));
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));
  return {
    bin: join(home, 'dist/cli.js'),
    async project(files = {}) {
      const directory = join(folder, `project-${projects++}`);
      await mkdir(directory, { recursive: true });
      for (const [path, text] of Object.entries({ 'package.json': '{ "type": "module" }', ...files })) {
        await mkdir(join(directory, path, '..'), { recursive: true });
        await writeFile(join(directory, path), text);
      }
      return directory;
    },
  };
}
