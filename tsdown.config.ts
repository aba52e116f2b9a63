import { readdirSync, readFileSync } from 'node:fs';
import { dirname, relative, resolve } from 'node:path';
import { transform } from 'esbuild';
import { defineConfig, type Rolldown } from 'tsdown';

type Plugin = Rolldown.Plugin;

/** The files that apps import, by the names that they have in the package. */
const ENTRIES: Record<string, string> = {
  index: 'src/index.ts',
  schema: 'src/core/schema/index.ts',
  'schema-control': 'src/features/control/index.ts',
  'schema-metrics': 'src/features/metrics/schema/index.ts',
  'schema-workflows': 'src/features/workflows/schema/index.ts',
  'skip-locked': 'src/skip-locked/index.ts',
  testing: 'src/entries/testing/index.ts',
  opentelemetry: 'src/entries/opentelemetry/index.ts',
  dashboard: 'src/entries/dashboard/index.ts',
  config: 'src/entries/config/index.ts',
  import: 'src/entries/import/index.ts',
  shards: 'src/entries/shards/index.ts',
};

const entryOf = (file: string): string | undefined =>
  Object.keys(ENTRIES).find((name) => ENTRIES[name] === file);

/** Only the dashboard's chunk is minified: nobody debugs it in their app, and everybody downloads it. */
const minifyPages: Plugin = {
  name: 'minify-pages',
  // After the last change of the bundler, which prints what it gets from a plugin anew.
  async generateBundle({ format }, chunks) {
    for (const chunk of Object.values(chunks)) {
      if (chunk.type !== 'chunk' || chunk.name !== 'dashboard-pages' || !/\.c?js$/.test(chunk.fileName))
        continue;
      const { code } = await transform(chunk.code, {
        minify: true,
        legalComments: 'inline',
        format: format === 'cjs' ? 'cjs' : 'esm',
        target: 'node20',
      });
      chunk.code = code;
    }
  },
};

/** Modules of the sources, and not the declarations that are made of them. */
const sources = (path: RegExp) => (id: string) => path.test(id) && !id.endsWith('.d.ts');

/** The licence of a package that is bundled, as a comment: it goes with it, through other bundlers too. */
const licenceOf = (name: string) => {
  const folder = new URL(`node_modules/${name}/`, import.meta.url);
  const file = readdirSync(folder).find((each) => /^licen[cs]e(\.\w+)?$/i.test(each)) ?? 'LICENSE';
  return `/*! ${name}\n${readFileSync(new URL(file, folder), 'utf8').replaceAll('*/', '')}*/\n`;
};

/** What is bundled, by the chunk that it is bundled into. */
const BUNDLED: Readonly<Record<string, readonly string[]>> = {
  schedules: ['croner'],
  'dashboard-pages': ['hono', 'uplot', 'idiomorph'],
  cli: ['commander', 'string-width', 'get-east-asian-width', 'strip-ansi', 'ansi-regex'],
};

/**
 * Where what the entries share is written: a file without a hash, which a person can open and a stack trace can name. Code has the
 * name of its group, declarations that of their main module, or of the entry that this is.
 */
const chunkFile = ({ name, moduleIds }: Rolldown.PreRenderedChunk, format: string): string => {
  const code = format === 'cjs' ? 'cjs' : 'js';
  if (!name.endsWith('.d')) return `chunks/${name}.${code}`;
  const [, file = ''] = /\/(src\/.+)\.d\.ts$/.exec(moduleIds.at(-1) ?? '') ?? [];
  const module = entryOf(`${file}.ts`) ?? name.slice(0, -'.d'.length);
  return `chunks/${module}.d.${code.replace('js', 'ts')}`;
};

/** What the command takes from the package is what an app imports from it: the same files, and the same classes. */
const ownEntries: Plugin = {
  name: 'own-entries',
  resolveId(specifier, importer) {
    if (importer === undefined || !specifier.startsWith('.')) return null;
    const name = entryOf(relative(import.meta.dirname, resolve(dirname(importer), specifier)));
    return name === undefined ? null : { id: `./${name}.js`, external: true };
  },
};

/**
 * ESM and CommonJS, each with its own declarations: a CommonJS project that reads ESM declarations meets drizzle-orm's classes
 * twice, with private members that do not match.
 *
 * Each side of the queue is a file of its own, which the main entry only re-exports. A bundler can then leave the workers out of a
 * web app as a whole (`sideEffects: false`); inside one file it must keep what it cannot prove harmless, imports of `node:` first.
 */
const library = defineConfig({
  entry: ENTRIES,
  format: ['esm', 'cjs'],
  fixedExtension: false,
  dts: true,
  target: 'node20',
  deps: { neverBundle: [/^drizzle-orm/, '@electric-sql/pglite', /^@opentelemetry\//] },
  plugins: [minifyPages],
  outputOptions: (_, format) => ({
    chunkFileNames: (chunk) => chunkFile(chunk, format),
    banner: ({ name }) => (BUNDLED[name] ?? []).map(licenceOf).join(''),
    codeSplitting: {
      // From what others need to what needs others: a group takes along what its modules import, unless another has it.
      groups: [
        // By themselves: a bundler splits what is loaded later from the rest by files.
        { name: 'errors', test: sources(/\/src\/errors\.ts$/), priority: 6 },
        { name: 'wait-errors', test: sources(/\/src\/core\/queue\/wait\/wait-errors\.ts$/), priority: 5.5 },
        { name: 'tables', test: sources(/\/src\/core\/schema\/[^/]+$/), priority: 5 },
        { name: 'control-tables', test: sources(/\/src\/features\/control\/(?!control-entry)/), priority: 4 },
        { name: 'metrics-tables', test: sources(/\/src\/features\/metrics\/schema\//), priority: 3.5 },
        { name: 'workflow-tables', test: sources(/\/src\/features\/workflows\/schema\//), priority: 3.4 },
        { name: 'rows', test: sources(/\/src\/skip-locked\//), priority: 3 },
        {
          name: 'queue',
          test: sources(
            /\/src\/(core\/(queue\/(queue|enqueuer)|sql\/statement-context)|entries\/main\/create-queue)\.ts$/,
          ),
          priority: 2,
        },
        // Not among the workers: a web app sets schedules, too.
        {
          name: 'schedules',
          test: sources(/\/src\/features\/schedules\/[^/]+$|\/node_modules\/croner\//),
          priority: 1.5,
        },
        // What limits share with what is loaded later, which would take the limits along.
        {
          name: 'fragments',
          test: sources(
            /\/src\/(core\/(time\/.+|sql\/.+|runtime|queries\/presence\/(is-citus|has-large-ids)|worker\/base\/refusal)|features\/(control\/control-entry|limits\/sql\/(due-in-group|group-rows|limit-tables)))\.ts$/,
          ),
          priority: 1.45,
        },
        { name: 'limits', test: sources(/\/src\/features\/limits\/[^/]+$/), priority: 1.4 },
        // Loaded by the first enqueue that debounces, and the like.
        { name: 'key-rules', test: sources(/\/src\/features\/keys\/enqueue-by-rule\.ts$/), priority: 1.2 },
        // What workers share with the figures and the check that a web app asks for.
        {
          name: 'metrics',
          test: sources(
            /\/src\/(features\/metrics\/(queries\/.+|sql\/(metrics-tables|summed-metrics)|job\/histogram)|core\/drivers\/single-connection)\.ts$/,
          ),
          priority: 1.06,
        },
        {
          name: 'stats',
          test: sources(/\/src\/(core\/queue\/stats\/|features\/metrics\/rates\.ts$)/),
          priority: 1.05,
        },
        // Loaded by the first wait.
        { name: 'waiting', test: sources(/\/src\/core\/queue\/wait\//), priority: 1.15 },
        // Loaded by the first list, redrive and the like. Before the workers, which share statements with it.
        {
          name: 'operate',
          test: sources(/\/src\/core\/queue\/operate\/(list|redrive|run-now|cancel(-many)?)\.ts$/),
          priority: 1.1,
        },
        // Not among the workers: who traces enqueues has it, and needs none of those.
        { name: 'outcome', test: sources(/\/src\/core\/job\/outcome\.ts$/), priority: 1.04 },
        {
          name: 'worker',
          test: sources(
            /\/src\/(core\/worker\/|features\/((?!workflows)\w+\/worker|batch-handlers)\/|entries\/main\/(create-worker|drain|worker-additions)\.ts$)/,
          ),
          priority: 1,
        },
        // After all that it shares with others: only an app that has workflows loads it.
        { name: 'workflows', test: sources(/\/src\/features\/workflows\//), priority: 0.9 },
        // A web app that chooses a shard needs no worker.
        { name: 'shard-of', test: sources(/\/src\/entries\/shards\/(?!index)[^/]+$/), priority: 0.7 },
        { name: 'shard-workers', test: sources(/\/src\/entries\/shards\/workers\//), priority: 0.6 },
        // With the statements that only it uses.
        {
          name: 'dashboard-pages',
          test: sources(/\/src\/entries\/(dashboard|filter)\/|\/node_modules\/hono\//),
          priority: 0.5,
        },
        // Loaded by the first look at groups. A file that it shared with the limits, esbuild would load in any app.
        {
          name: 'groups',
          test: sources(/\/src\/features\/limits\/queries\/find-groups\.ts$/),
          priority: 0.4,
        },
        {
          name: 'check',
          test: sources(
            /\/src\/(core\/queue\/check\/|features\/(keys|metrics)\/missing-|entries\/main\/features-to-check)/,
          ),
          priority: 0,
        },
      ],
    },
  }),
});

/** The command `drizzle-queue`: one program, which nobody imports. */
const command = defineConfig({
  entry: { cli: 'src/entries/cli/bin.ts' },
  format: 'esm',
  platform: 'node',
  dts: false,
  fixedExtension: false,
  clean: false,
  target: 'node20',
  deps: { neverBundle: [/^drizzle-orm/] },
  plugins: [ownEntries],
  outputOptions: { banner: ({ name }) => (BUNDLED[name] ?? []).map(licenceOf).join('') },
});

export default [library, command].flat();
