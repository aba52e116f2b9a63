import { expect, test } from 'vitest';
import { runExample } from './run-example.ts';

// A program of its own uses drizzle-orm 0.45 whatever this run was started for.
test.skipIf(process.env.DRIZZLE === 'v1')(
  'orders are fulfilled or taken back, each step of them once, however often the workers are killed',
  async () => {
    const { code, stdout, output } = await runExample('order-fulfilment', { KILLS: '4' });
    expect(code, output).toBe(0);
    expect(stdout).toContain('✓ Charges, one for each order: 80\n');
    expect(stdout).toContain('✓ Mails with a link, one for each expensive order: 40\n');
    expect(stdout).toMatch(/✓ Refunds, one for each order that was not: [1-9]\d*\n/);
    expect(stdout).not.toContain('✗');
    expect(stdout).toMatch(/\nEvery charge, reservation, parcel and refund is where it belongs\.\n$/);
  },
  180_000,
);
