import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import type { Combination } from './combinations.ts';

/**
 * The program that shows the behaviours, with the library and one drizzle-orm in it, as JavaScript that every runtime can load;
 * answers its path. The drivers' packages stay outside.
 */
export async function bundle(drizzle: Combination['drizzle']): Promise<string> {
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
    external: ['@electric-sql/pglite', '@neondatabase/serverless', 'bun', 'bun:*', 'pg', 'postgres', 'ws'],
    alias: drizzle === '1.0' ? { 'drizzle-orm': 'drizzle-orm-v1' } : {},
    sourcemap: true,
    tsconfig: fileURLToPath(new URL('../../tsconfig.json', import.meta.url)),
    logLevel: 'warning',
  });
  return `${outdir}/main.mjs`;
}
