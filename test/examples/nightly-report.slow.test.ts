import { execFile } from 'node:child_process';
import { expect, inject, test } from 'vitest';
// For the type of what `inject` returns.
import type {} from '../support/global-setup.ts';

// A program of its own uses drizzle-orm 0.45 whatever this run was started for.
test.skipIf(process.env.DRIZZLE === 'v1')(
  'the nightly report adds up, whatever becomes of its workers',
  async () => {
    const env = { ...process.env, DATABASE_URL: inject('testServer').url };
    const { code, output, log } = await new Promise<{ code: unknown; output: string; log: string }>(
      (resolve) => {
        execFile(
          process.execPath,
          ['--import', 'tsx', 'examples/nightly-report/demo.ts'],
          { env },
          (error, stdout, stderr) =>
            resolve({ code: error === null ? 0 : error.code, output: stdout, log: stderr }),
        );
      },
    );
    expect(output).toMatch(/\n(\d+) reports of \1 nights, \1 jobs\.\n/);
    expect(output).toMatch(/\n(\d+) sales of (\d+) cents; in the reports \1 of \2\.\n/);
    expect(output).toMatch(/\nEvery night has its one report, and every sale is in one\.\n$/);
    expect(code, output + log).toBe(0);
  },
  90_000,
);
