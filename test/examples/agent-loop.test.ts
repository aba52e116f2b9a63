import { expect, test } from 'vitest';
import { runExample } from './run-example.ts';

// A program of its own uses drizzle-orm 0.45 whatever this run was started for.
test.skipIf(process.env.DRIZZLE === 'v1')(
  'agents go on where they were, and no turn is paid for twice, although their worker is killed',
  async () => {
    const { code, stdout, output } = await runExample('agent-loop');
    expect(code, output).toBe(0);
    expect(stdout).toMatch(/\n[1-9]\d* requests were repeated after a kill, and billed once\.\n/);
    expect(stdout).toContain('✓ Turns billed by the model: 60\n✓ … and recorded as steps: 60\n');
    expect(stdout).toContain('✓ Cents in the books of the tickets: 180\n');
    expect(stdout).not.toContain('✗');
    expect(stdout).toMatch(/\nNo turn was paid for twice, although the worker was killed 5 times\.\n$/);
  },
  180_000,
);
