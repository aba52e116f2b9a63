import { rmSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

let bundled: Promise<string> | undefined;

/**
 * The program of the measured processes as plain JavaScript; answers its path. tsx would wrap every function that is made while
 * it runs, in order to keep names, and that is a cost that no user of the library has.
 */
export function bundleChild(): Promise<string> {
  bundled ??= bundle();
  return bundled;
}

async function bundle(): Promise<string> {
  // Within node_modules: what it imports is found from there.
  const outdir = fileURLToPath(new URL(`../node_modules/.cache/child-${process.pid}`, import.meta.url));
  await build({
    entryPoints: [fileURLToPath(new URL('../child/main.ts', import.meta.url))],
    outdir,
    outExtension: { '.js': '.mjs' },
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node22',
    packages: 'external',
    sourcemap: true,
    tsconfig: fileURLToPath(new URL('../../tsconfig.json', import.meta.url)),
    logLevel: 'warning',
  });
  process.once('exit', () => rmSync(outdir, { recursive: true, force: true }));
  return `${outdir}/main.mjs`;
}
