import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

/** The tests of the documentation's site in a real Chromium: `npm run test:site`. They build it first. */
export default defineConfig({
  root: fileURLToPath(new URL('../..', import.meta.url)),
  test: {
    include: ['test/site/*.test.ts'],
    globalSetup: ['test/site/support/build-site.ts'],
    pool: 'forks',
    maxWorkers: 1,
    testTimeout: 180_000,
    hookTimeout: 180_000,
  },
});
