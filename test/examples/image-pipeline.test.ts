import { expect, test } from 'vitest';
import { runExample } from './run-example.ts';

// A program of its own uses drizzle-orm 0.45 whatever this run was started for.
test.skipIf(process.env.DRIZZLE === 'v1')(
  'images are made smaller, and what is cancelled leaves nothing, also where its worker was killed',
  async () => {
    const { code, stdout, output } = await runExample('image-pipeline');
    expect(code, output).toBe(0);
    expect(stdout).toContain('✓ Widths of the landscape: 160,320,640,1280,1920\n');
    expect(stdout).toContain('✓ Uploads cancelled, and one too late: true true false\n');
    expect(stdout).not.toContain('✗');
    expect(stdout).toMatch(
      /\nThe storage holds what the manifests name, and nothing of what was cancelled\.\n$/,
    );
  },
  180_000,
);
