import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import type { Drizzle } from './combinations.ts';

/** The names of the versions that are not installed as `drizzle-orm`. */
const INSTALLED = { '0.34': 'drizzle-orm-oldest', '1.0': 'drizzle-orm-v1' } as const;

/**
 * The program that shows the behaviours, with the library and one drizzle-orm in it, as JavaScript that every runtime can load;
 * answers its path. The drivers' packages stay outside.
 */
export async function bundle(drizzle: Drizzle): Promise<string> {
  // Within node_modules: what it imports is found from there.
  const outdir = fileURLToPath(new URL(`node_modules/.cache/${drizzle}`, import.meta.url));
  await build({
    entryPoints: [fileURLToPath(new URL('program/main.ts', import.meta.url))],
    outdir,
    outExtension: { '.js': '.mjs' },
    bundle: true,
    // A driver is loaded when it is asked for: Bun's cannot be loaded by Node.js.
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    // The oldest has none for Bun's SQL.
    external: [
      'drizzle-orm-oldest/bun-sql',
      '@electric-sql/pglite',
      '@neondatabase/serverless',
      'bun',
      'bun:*',
      'pg',
      'postgres',
      'ws',
    ],
    alias: drizzle === '0.45' ? {} : { 'drizzle-orm': INSTALLED[drizzle] },
    // The sources import what is installed in this folder only.
    nodePaths: [fileURLToPath(new URL('node_modules', import.meta.url))],
    sourcemap: true,
    tsconfig: fileURLToPath(new URL('../../tsconfig.json', import.meta.url)),
    logLevel: 'warning',
  });
  return `${outdir}/main.mjs`;
}
