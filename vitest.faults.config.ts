import { configDefaults, defineConfig } from 'vitest/config';
import base from './vitest.config.ts';

/** The fault suite, `npm run test:faults`: one file at a time, since they measure; `FAULTS=short` for fewer rounds. */
export default defineConfig({
  ...base,
  test: {
    ...base.test,
    include: ['test/faults/**/*.test.ts'],
    exclude: configDefaults.exclude,
    fileParallelism: false,
    // What they measure is printed as it comes.
    disableConsoleIntercept: true,
  },
});
