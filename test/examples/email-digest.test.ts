import { expect, test } from 'vitest';
import { runExample } from './run-example.ts';

// A program of its own uses drizzle-orm 0.45 whatever this run was started for.
test.skipIf(process.env.DRIZZLE === 'v1')(
  'each tenant has one mail for each morning, although a worker is killed whose mail was taken',
  async () => {
    const { code, stdout, output } = await runExample('email-digest');
    expect(code, output).toBe(0);
    expect(stdout).toContain("✓ Tenants whose next digest is due at eight o'clock there: 12\n");
    expect(stdout).toContain('✓ Mails received twice, since their sender was killed: 1\n');
    expect(stdout).not.toContain('✗');
    expect(stdout).toMatch(
      /\nEach tenant that can be reached has one mail for each morning with events, and each of these is in one\.\n$/,
    );
  },
  180_000,
);
