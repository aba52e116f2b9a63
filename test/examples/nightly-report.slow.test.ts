import { expect, test } from 'vitest';
import { runExample } from './run-example.ts';

// A program of its own uses drizzle-orm 0.45 whatever this run was started for.
test.skipIf(process.env.DRIZZLE === 'v1')(
  'the nightly report adds up, whatever becomes of its workers',
  async () => {
    const { code, stdout, output } = await runExample('nightly-report');
    expect(code, output).toBe(0);
    expect(stdout).toMatch(/\n✓ Reports, one for each night: (\d+)\n✓ Jobs that wrote them: \1\n/);
    expect(stdout).toMatch(/\n✓ Sales in the reports: [1-9]\d*\n✓ … and their cents: [1-9]\d*\n/);
    expect(stdout).not.toContain('✗');
    expect(stdout).toMatch(/\nEvery night has its one report, and every sale is in one\.\n$/);
  },
  180_000,
);
