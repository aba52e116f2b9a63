import { expect, test } from 'vitest';
import { runExample } from './run-example.ts';

// A program of its own uses drizzle-orm 0.45 whatever this run was started for.
test.skipIf(process.env.DRIZZLE === 'v1')(
  'tenants share a queue, whatever becomes of its workers',
  async () => {
    const { code, stdout, output } = await runExample('tenants');
    expect(code, output).toBe(0);
    expect(stdout).toMatch(/\n\d+ runs of 188 exports\.\n/);
    expect(stdout).toContain('✓ Exports of a tenant at once, at most: 2\n');
    expect(stdout).toContain('✓ Entries booked: 150\n✓ … out of order: 0\n');
    expect(stdout).not.toContain('✗');
    expect(stdout).toMatch(
      /\nNobody had more than two, nobody waited for the large one, and every account is in order\.\n$/,
    );
  },
  180_000,
);
