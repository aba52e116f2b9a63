import { fileURLToPath } from 'node:url';
import { mergeConfig } from 'vitest/config';
import base from '../../vitest.config.ts';

/** The importers against the real peers: `npm run test:import`. Without a redis-server those of BullMQ on Redis are skipped, and say so. */
export default mergeConfig(
  { resolve: base.resolve ?? {} },
  {
    root: fileURLToPath(new URL('../..', import.meta.url)),
    test: {
      include: ['test/import/*.test.ts'],
      globalSetup: ['test/support/global-setup.ts', 'test/import/global-setup.ts'],
      pool: 'forks' as const,
      maxWorkers: 2,
      testTimeout: 180_000,
      hookTimeout: 180_000,
    },
  },
);
