import { defineConfig } from 'tsdown';

/**
 * ESM and CommonJS, each with its own declarations: a CommonJS project that reads ESM declarations meets drizzle-orm's classes
 * twice, with private members that do not match.
 */
export default defineConfig({
  entry: { index: 'src/index.ts', schema: 'src/schema/index.ts', 'skip-locked': 'src/skip-locked/index.ts' },
  format: ['esm', 'cjs'],
  fixedExtension: false,
  dts: true,
  target: 'node20',
  deps: { neverBundle: [/^drizzle-orm/] },
});
