import { inspect } from 'node:util';
import { CommanderError } from 'commander';
import type { ExitCode } from './exit-code.ts';
import { Failure } from './failure.ts';
import { InterruptedError } from './interruption.ts';
import { createProgram } from './program.ts';
import { sentenceOf } from './sentence-of.ts';
import { complain } from './terminal/complain.ts';
import { printable } from './terminal/printable.ts';

/** Runs a command and says how it ended; nothing is thrown past it. */
export async function main(args: readonly string[], version: string): Promise<ExitCode> {
  let code: ExitCode = 0;
  const program = createProgram(version, (ended) => {
    code = ended;
  });
  try {
    await program.parseAsync(args, { from: 'user' });
    return code;
  } catch (error) {
    if (error instanceof CommanderError) return isHelp(error) ? 0 : 2;
    if (error instanceof InterruptedError) return 130;
    complain(`drizzle-queue: ${sentenceOf(error)}`);
    if (isVerbose(args)) process.stderr.write(`${printable(inspect(error))}\n`);
    return error instanceof Failure ? error.exitCode : 1;
  }
}

function isHelp({ code, exitCode }: CommanderError): boolean {
  return exitCode === 0 || code === 'commander.helpDisplayed' || code === 'commander.version';
}

function isVerbose(args: readonly string[]): boolean {
  const end = args.indexOf('--');
  const options = end < 0 ? args : args.slice(0, end);
  return options.includes('--verbose') || /\bdrizzle-queue\b|^\*$/.test(process.env.DEBUG ?? '');
}
