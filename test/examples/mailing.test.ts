import { expect, test } from 'vitest';
import { runExample } from './run-example.ts';

// A program of its own uses drizzle-orm 0.45 whatever this run was started for.
test.skipIf(process.env.DRIZZLE === 'v1')(
  'each customer has one letter, and there is one report, although a worker is killed',
  async () => {
    const { code, stdout, output } = await runExample('mailing', { LETTERS: '3000' });
    expect(code, output).toBe(0);
    expect(stdout).toContain('✓ Letters recorded: 2997\n✓ … to different customers: 2997\n');
    expect(stdout).toContain('✓ Reports: 1\n✓ … written after the last letter: true\n');
    expect(stdout).not.toContain('✗');
    expect(stdout).toMatch(/\nEach customer has one letter, and there is one report\.\n$/);
  },
  180_000,
);
