import { configDefaults, defineConfig } from 'vitest/config';
import base from './vitest.config.ts';

/** One fault of each kind, for `FAULTS=landing`: what runs before a change lands. */
const LANDING = ['kill', 'frozen', 'silence', 'network', 'server-restart', 'limits', 'schedules'];

/**
 * The fault suite, `npm run test:faults`: one file at a time, since they measure. `FAULTS=short` runs fewer rounds, and
 * `FAULTS=landing` also fewer files. `STRESS=1` runs four busy loops beside it.
 */
export default defineConfig({
  ...base,
  test: {
    ...base.test,
    include:
      process.env.FAULTS === 'landing'
        ? LANDING.map((name) => `test/faults/${name}.test.ts`)
        : ['test/faults/**/*.test.ts'],
    exclude: configDefaults.exclude,
    fileParallelism: false,
    // What they measure is printed as it comes.
    disableConsoleIntercept: true,
  },
});
