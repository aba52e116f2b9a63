import { expect, test } from 'vitest';
import { depth } from '../support/depth.ts';
import { runExample } from './run-example.ts';

const LETTERS = depth(3_000, 100_000);
/** Every thousandth address does not exist. */
const RECORDED = LETTERS - LETTERS / 1_000;
const PATIENCE_MS = depth(160_000, 600_000);

// A program of its own uses drizzle-orm 0.45 whatever this run was started for.
test.skipIf(process.env.DRIZZLE === 'v1')(
  'each customer has one letter, and there is one report, although a worker is killed',
  async () => {
    const { code, stdout, output } = await runExample('mailing', { LETTERS: String(LETTERS) }, PATIENCE_MS);
    expect(code, output).toBe(0);
    expect(stdout).toContain(`✓ Letters recorded: ${RECORDED}\n✓ … to different customers: ${RECORDED}\n`);
    expect(stdout).toContain('✓ Reports: 1\n✓ … written after the last letter: true\n');
    expect(stdout).not.toContain('✗');
    expect(stdout).toMatch(/\nEach customer with a mailbox has one letter, and there is one report\.\n$/);
  },
  PATIENCE_MS + 20_000,
);
