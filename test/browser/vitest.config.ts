import { fileURLToPath } from 'node:url';
import { mergeConfig } from 'vitest/config';
import base from '../../vitest.config.ts';

/** The tests in a real Chromium: `npm run test:browser`. Where there is none they are skipped, and say so. */
export default mergeConfig(
  { resolve: base.resolve ?? {} },
  {
    root: fileURLToPath(new URL('../..', import.meta.url)),
    test: {
      include: ['test/browser/*.test.ts'],
      globalSetup: ['test/support/global-setup.ts'],
      pool: 'forks' as const,
      maxWorkers: 1,
      testTimeout: 120_000,
      hookTimeout: 120_000,
    },
  },
);
