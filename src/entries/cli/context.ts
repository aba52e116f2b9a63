import type { Command } from 'commander';
import { closedInTime } from './closed-in-time.ts';
import type { ExitCode } from './exit-code.ts';
import { openProject, type Project } from './project/open-project.ts';
import { Output } from './terminal/output.ts';

/** The options that every command has. */
export interface CommonFlags {
  readonly config?: string;
  readonly url?: string;
  readonly envFile?: readonly string[];
  readonly json?: boolean;
  readonly verbose?: boolean;
  readonly shard?: string;
}

/** What one run of a command has: its arguments and options, and where to write. */
export interface Call<TFlags> {
  readonly args: readonly string[];
  readonly flags: TFlags & CommonFlags;
  readonly output: Output;
}

/** A call of a command that uses the database. */
export interface Context<TFlags> extends Call<TFlags> {
  readonly project: Project;
}

/** How a command ended; 0 unless it says. */
export type Answer = Promise<ExitCode | undefined>;

/** Gives a command what it does, without a database. */
export function call<TFlags>(
  command: Command,
  run: (call: Call<TFlags>) => Answer,
  end: (code: ExitCode) => void,
): Command {
  return command.action(async () => {
    // commander has parsed them by the options of the very command.
    const flags = command.optsWithGlobals() as TFlags & CommonFlags;
    const output = new Output({ json: flags.json === true });
    end((await run({ args: command.args, flags, output })) ?? 0);
  });
}

/** Gives a command what it does with the database, which is closed however that ends. */
export function withProject<TFlags>(
  command: Command,
  run: (context: Context<TFlags>) => Answer,
  end: (code: ExitCode) => void,
): Command {
  return call<TFlags>(command, (called) => inProject(called, run), end);
}

/**
 * Opens the database for one call.
 *
 * @param all whether the command is about all of several databases, if `--shard` names none
 */
export async function inProject<TFlags>(
  called: Call<TFlags>,
  run: (context: Context<TFlags>) => Answer,
  { all = false }: { readonly all?: boolean } = {},
): Answer {
  const { config, url, shard, envFile = [] } = called.flags;
  const project = await openProject({ config, url, shard, envFile, all });
  try {
    return await run({ ...called, project });
  } finally {
    await closedInTime(() => project.close());
  }
}
