import { configDefaults, defineConfig } from 'vitest/config';
import base from './vitest.config.ts';

/**
 * The fault suite, `npm run test:faults`: one file at a time, since they measure. `FAULTS=short` for fewer rounds; `STRESS=1` beside four
 * processes that spin.
 */
export default defineConfig({
  ...base,
  test: {
    ...base.test,
    include: ['test/faults/**/*.test.ts'],
    globalSetup: ['test/support/global-setup.ts', 'test/faults/busy-loops.ts'],
    exclude: configDefaults.exclude,
    fileParallelism: false,
    // What they measure is printed as it comes.
    disableConsoleIntercept: true,
  },
});
