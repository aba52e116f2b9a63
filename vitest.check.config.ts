import { configDefaults, defineConfig } from 'vitest/config';
import { filesWithoutServer } from './test/support/files-without-server.ts';
import base from './vitest.config.ts';

/** The tests that need no server and no other process, for `npm run check`. */
export default defineConfig({
  ...base,
  test: {
    ...base.test,
    include: filesWithoutServer(),
    exclude: configDefaults.exclude,
    globalSetup: [],
    // They wait for nothing, and loading the sources for each file anew would take most of the time.
    maxWorkers: 2,
    isolate: false,
  },
});
