import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

/** The tests of the packed library: `npm run test:package`. Nothing here imports the sources; what is tested is the tarball. */
export default defineConfig({
  root: fileURLToPath(new URL('../..', import.meta.url)),
  test: {
    include: ['test/package/*.test.ts'],
    globalSetup: ['test/support/global-setup.ts', 'test/package/global-setup.ts'],
    pool: 'forks',
    maxWorkers: 2,
    // An install downloads what the cache does not have, and a build of Next.js takes what it takes.
    testTimeout: 600_000,
    hookTimeout: 600_000,
  },
});
