import { fileURLToPath } from 'node:url';
import { configDefaults, defineConfig } from 'vitest/config';
import { changedFiles } from '../support/changed-files.ts';
import { leftOut } from './landing.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
/** Before a change lands: without the apps of frameworks that it does not change. */
const landing = process.env.PACKAGE === 'landing';

/** The tests of the packed library: `npm run test:package`. Nothing here imports the sources; what is tested is the tarball. */
export default defineConfig({
  root,
  test: {
    include: ['test/package/*.test.ts'],
    exclude: [...configDefaults.exclude, ...(landing ? leftOut(changedFiles(root)) : [])],
    globalSetup: ['test/support/global-setup.ts', 'test/package/global-setup.ts'],
    pool: 'forks',
    maxWorkers: 2,
    // An install downloads what the cache does not have, and a build of Next.js takes what it takes.
    testTimeout: 600_000,
    hookTimeout: 600_000,
  },
});
