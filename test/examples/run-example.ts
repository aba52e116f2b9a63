import { execFile } from 'node:child_process';
import { inject } from 'vitest';
// For the type of what `inject` returns.
import type {} from '../support/global-setup.ts';

const PATIENCE_MS = 160_000;

/**
 * Runs the demo of an example in a process of its own, as one does by hand, on the server of the tests.
 *
 * @param patienceMs below the time that the test has, so that what the demo has said is in the failure
 */
export function runExample(
  name: string,
  env: Readonly<Record<string, string>> = {},
  patienceMs = PATIENCE_MS,
): Promise<{ readonly code: unknown; readonly stdout: string; readonly output: string }> {
  return new Promise((resolve) => {
    execFile(
      process.execPath,
      ['--import', 'tsx', `examples/${name}/demo.ts`],
      { env: { ...process.env, ...env, DATABASE_URL: inject('testServer').url }, timeout: patienceMs },
      (error, stdout, stderr) =>
        resolve({
          code: error === null ? 0 : (error.code ?? error.signal),
          stdout,
          output: `${stdout}${stderr}`,
        }),
    );
  });
}
