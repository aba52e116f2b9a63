import { createInterface } from 'node:readline';
import { misused } from '../failure.ts';
import { InterruptedError } from '../interruption.ts';

/**
 * Asks before something is done. Returns `true` for the answers `y` and `yes` only.
 *
 * @param dryRun what the command does with `--dry-run`
 * @throws Failure without a terminal on which a user can answer
 * @throws InterruptedError for Ctrl-C
 */
export async function confirm(question: string, yes: boolean, dryRun = 'only count'): Promise<boolean> {
  if (yes) return true;
  if (!process.stdin.isTTY || !process.stderr.isTTY)
    throw misused(
      `${question} This is not a terminal, so it cannot ask: pass --yes, or --dry-run to ${dryRun}`,
    );
  const reader = createInterface({ input: process.stdin, output: process.stderr });
  try {
    return await new Promise<boolean>((resolve, reject) => {
      reader.once('SIGINT', () => reject(new InterruptedError()));
      // The end of the input, Ctrl-D, does not count as yes.
      reader.once('close', () => resolve(false));
      reader.question(`${question} [y/N] `, (answer) => resolve(/^\s*y(es)?\s*$/i.test(answer)));
    });
  } finally {
    reader.close();
    process.stdin.unref?.();
  }
}
