import { rmSync } from 'node:fs';
import { basename } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const root = fileURLToPath(new URL('../..', import.meta.url));

const bundled = new Map<string, Promise<string>>();

/**
 * A worker program of `test/` as plain JavaScript; answers its path. Compiled once: processes are started by the dozen here, and a loader would
 * take two seconds of each one's life, which no user's worker loses when it is started again.
 */
export function bundleWorker(program = 'faults/fixtures/ledger-worker.ts'): Promise<string> {
  const known = bundled.get(program) ?? bundle(program);
  bundled.set(program, known);
  return known;
}

async function bundle(program: string): Promise<string> {
  // Within node_modules: what it imports is found from there.
  const outfile = `${root}node_modules/.cache/${basename(program, '.ts')}-${process.pid}.mjs`;
  await build({
    entryPoints: [`${root}test/${program}`],
    outfile,
    bundle: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    packages: 'external',
    alias: {
      'drizzle-queue/schema/control': `${root}src/features/control/index.ts`,
      'drizzle-queue/schema/metrics': `${root}src/features/metrics/schema/index.ts`,
      'drizzle-queue/schema/workflows': `${root}src/features/workflows/schema/index.ts`,
      'drizzle-queue/schema': `${root}src/core/schema/index.ts`,
      'drizzle-queue': `${root}src/index.ts`,
    },
    tsconfig: `${root}tsconfig.json`,
    logLevel: 'warning',
  });
  process.once('exit', () => rmSync(outfile, { force: true }));
  return outfile;
}
