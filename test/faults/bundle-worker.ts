import { rmSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const root = fileURLToPath(new URL('../..', import.meta.url));

let bundled: Promise<string> | undefined;

/**
 * The worker program as plain JavaScript; answers its path. Compiled once: processes are started by the dozen here, and a loader would
 * take two seconds of each one's life, which no user's worker loses when it is started again.
 */
export function bundleWorker(): Promise<string> {
  bundled ??= bundle();
  return bundled;
}

async function bundle(): Promise<string> {
  // Within node_modules: what it imports is found from there.
  const outfile = `${root}node_modules/.cache/ledger-worker-${process.pid}.mjs`;
  await build({
    entryPoints: [`${root}test/faults/fixtures/ledger-worker.ts`],
    outfile,
    bundle: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    packages: 'external',
    alias: {
      'drizzle-queue/schema/control': `${root}src/schema/control/index.ts`,
      'drizzle-queue': `${root}src/index.ts`,
    },
    tsconfig: `${root}tsconfig.json`,
    logLevel: 'warning',
  });
  process.once('exit', () => rmSync(outfile, { force: true }));
  return outfile;
}
