import { readFileSync } from 'node:fs';
import { defineConfig } from 'tsdown';

/** Modules of the sources, and not the declarations that are made of them. */
const sources = (path: RegExp) => (id: string) => path.test(id) && !id.endsWith('.d.ts');

/** Where the schedules are bundled, croner is: its licence goes with it, through other bundlers too. */
const licence = readFileSync(new URL('node_modules/croner/LICENSE', import.meta.url), 'utf8');

/**
 * ESM and CommonJS, each with its own declarations: a CommonJS project that reads ESM declarations meets drizzle-orm's classes
 * twice, with private members that do not match.
 *
 * Each side of the queue is a file of its own, which the main entry only re-exports. A bundler can then leave the workers out of a
 * web app as a whole (`sideEffects: false`); inside one file it must keep what it cannot prove harmless, imports of `node:` first.
 */
export default defineConfig({
  entry: {
    index: 'src/index.ts',
    schema: 'src/schema/index.ts',
    'schema-control': 'src/schema/control/index.ts',
    'schema-metrics': 'src/schema/metrics/index.ts',
    'skip-locked': 'src/skip-locked/index.ts',
  },
  format: ['esm', 'cjs'],
  fixedExtension: false,
  dts: true,
  target: 'node20',
  deps: { neverBundle: [/^drizzle-orm/] },
  outputOptions: {
    banner: ({ name }) => (name === 'schedules' ? `/*! croner\n${licence.replaceAll('*/', '')}*/` : ''),
    codeSplitting: {
      // From what others need to what needs others: a group takes along what its modules import, unless another has it.
      groups: [
        // By themselves: a bundler splits what is loaded later from the rest by files.
        { name: 'errors', test: sources(/\/src\/errors\.ts$/), priority: 6 },
        { name: 'tables', test: sources(/\/src\/schema\/[^/]+$/), priority: 5 },
        { name: 'control-tables', test: sources(/\/src\/schema\/control\//), priority: 4 },
        { name: 'metrics-tables', test: sources(/\/src\/schema\/metrics\//), priority: 3.5 },
        { name: 'rows', test: sources(/\/src\/skip-locked\//), priority: 3 },
        {
          name: 'queue',
          test: sources(/\/src\/(queue\/((create-)?queue|enqueuer)|sql\/server-facts)\.ts$/),
          priority: 2,
        },
        // Not among the workers: a web app sets schedules, too.
        { name: 'schedules', test: sources(/\/src\/schedules\/|\/node_modules\/croner\//), priority: 1.5 },
        { name: 'limits', test: sources(/\/src\/limits\//), priority: 1.4 },
        // Loaded by the first enqueue that debounces, and the like.
        { name: 'key-rules', test: sources(/\/src\/queue\/enqueue-by-rule\.ts$/), priority: 1.2 },
        // Loaded by the first list or redrive. Before the workers, which share a statement with it.
        { name: 'operate', test: sources(/\/src\/queue\/(list|redrive)\.ts$/), priority: 1.1 },
        // What workers share with the figures that a web app asks for.
        {
          name: 'metrics',
          test: sources(
            /\/src\/(queries\/\w+-metrics|sql\/(metrics-tables|summed-metrics)|job\/histogram)\.ts$/,
          ),
          priority: 1.06,
        },
        { name: 'stats', test: sources(/\/src\/queue\/stats\//), priority: 1.05 },
        { name: 'worker', test: sources(/\/src\/worker\//), priority: 1 },
        { name: 'check', test: sources(/\/src\/queue\/check\//), priority: 0 },
      ],
    },
  },
});
