import { fileURLToPath } from 'node:url';
import { configDefaults, defineConfig } from 'vitest/config';
import base from '../../vitest.config.ts';
import { filesLeftOut } from './left-out.ts';

/** The tests of a slice on a cluster: `npm run test:citus`, which says which slices there are. */
export default defineConfig({
  ...base,
  root: fileURLToPath(new URL('../..', import.meta.url)),
  test: {
    ...base.test,
    exclude: [...configDefaults.exclude, '**/*.v1.test.ts', '**/*.slow.test.ts', ...filesLeftOut()],
    // The nodes may be on this machine: each has to be asked about every statement.
    maxWorkers: 3,
    setupFiles: ['test/citus/leave-out.ts'],
    reporters: ['default', './test/citus/left-out-reporter.ts'],
  },
});
