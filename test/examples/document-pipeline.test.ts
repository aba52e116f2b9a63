import { expect, test } from 'vitest';
import { runExample } from './run-example.ts';

// A program of its own uses drizzle-orm 0.45 whatever this run was started for.
test.skipIf(process.env.DRIZZLE === 'v1')(
  'a report joins 500 pages, although some are illegible and a worker is killed',
  async () => {
    const { code, stdout, output } = await runExample('document-pipeline');
    expect(code, output).toBe(0);
    expect(stdout).toContain('✓ Jobs of the flow: 1002\n');
    expect(stdout).toContain('✓ Pages that it says are unread: 96,193,290,387,484\n');
    expect(stdout).not.toContain('✗');
    expect(stdout).toMatch(/\nOne report of 500 pages, although 5 of them were illegible\.\n$/);
  },
  180_000,
);
