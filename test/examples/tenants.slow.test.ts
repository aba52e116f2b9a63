import { execFile } from 'node:child_process';
import { expect, inject, test } from 'vitest';
// For the type of what `inject` returns.
import type {} from '../support/global-setup.ts';

// A program of its own uses drizzle-orm 0.45 whatever this run was started for.
test.skipIf(process.env.DRIZZLE === 'v1')(
  'tenants share a queue, whatever becomes of its workers',
  async () => {
    const env = { ...process.env, DATABASE_URL: inject('testServer').url };
    const { code, output, log } = await new Promise<{ code: unknown; output: string; log: string }>(
      (resolve) => {
        execFile(
          process.execPath,
          ['--import', 'tsx', 'examples/tenants/demo.ts'],
          { env },
          (error, stdout, stderr) =>
            resolve({ code: error === null ? 0 : error.code, output: stdout, log: stderr }),
        );
      },
    );
    expect(output).toMatch(/\n\d+ runs of 188 exports; at most 2 at once of a tenant\.\n/);
    expect(output).toMatch(/\n150 entries in 5 accounts, 0 out of order\.\n/);
    expect(output).toMatch(
      /\nNobody had more than two, nobody waited for the large one, and every account is in order\.\n$/,
    );
    expect(code, output + log).toBe(0);
  },
  120_000,
);
