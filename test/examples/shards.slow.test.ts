import { expect, test } from 'vitest';
import { runExample } from './run-example.ts';

// A program of its own uses drizzle-orm 0.45 whatever this run was started for.
test.skipIf(process.env.DRIZZLE === 'v1')(
  'tenants in four databases have their invoices, whatever becomes of one database and one process',
  async () => {
    const { code, stdout, output } = await runExample('shards');
    expect(code, output).toBe(0);
    expect(stdout).toContain('✓ Databases with tenants: 4\n');
    expect(stdout).toMatch(/✓ Invoices of the others while eu2 was down: \d+\n/);
    expect(stdout).toContain('✓ … with a second one: 0\n');
    expect(stdout).not.toContain('✗');
    expect(stdout).toMatch(
      /\nEvery order has its one invoice, and a database that was down has cost the others nothing\.\n$/,
    );
  },
  180_000,
);
