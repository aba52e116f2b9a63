import type { Context } from './context.ts';
import { type Counted, counted } from './count-jobs.ts';
import type { ExitCode } from './exit-code.ts';
import { misused } from './failure.ts';
import { InterruptedError, untilInterrupted } from './interruption.ts';
import { type FilterFlags, isFilter } from './job-filter.ts';
import { sentenceOf } from './sentence-of.ts';
import { complain } from './terminal/complain.ts';
import { confirm } from './terminal/confirm.ts';
import { ProgressLine } from './terminal/progress-line.ts';

/** The options of what acts on many jobs. */
export interface ManyFlags extends FilterFlags {
  readonly all?: boolean;
  readonly yes?: boolean;
  readonly dryRun?: boolean;
}

interface Running<TSums> {
  readonly signal: AbortSignal;
  onProgress(sums: TSums): void;
  /** Says that the database refuses to change a job: then the command has not succeeded. */
  refused(id: number, error: unknown): void;
}

/** Something that is done with many jobs. */
export interface Act<TSums extends Readonly<Record<string, number>>> {
  /** Such as `cancel`. */
  readonly name: string;
  count(): Promise<Counted>;
  /** Does it in batches, until the signal is aborted. */
  run(options: Running<TSums>): Promise<TSums>;
}

/**
 * Does something with all jobs that fit: counts them, asks, and shows how far it is. Ctrl-C ends it before
 * the next batch. What was done stays, and is said, also where an error has ended it.
 */
export async function actOnMany<TSums extends Readonly<Record<string, number>>>(
  { flags, output }: Context<ManyFlags>,
  act: Act<TSums>,
): Promise<ExitCode> {
  checkMeant(act.name, flags);
  const { yes = false, dryRun = false } = flags;
  // With `--yes`, and without a terminal to show it on, the count is not worth the wait.
  const found = yes && !dryRun && !process.stderr.isTTY ? undefined : await act.count();
  if (dryRun) {
    if (output.json) await output.document({ dryRun: true, ...found });
    else await output.line(found === undefined ? '' : `${act.name} would affect ${counted(found)}.`);
    return 0;
  }
  // Where the count has ended before the jobs did, there may be some.
  if (found?.jobs === 0 && !found.isLeast) {
    if (output.json) await output.document({ matched: 0 });
    else await output.line('No matching jobs.');
    return 0;
  }
  const question = `${act.name} ${found === undefined ? 'them' : counted(found)}?`;
  if (!(await confirm(question, yes))) {
    complain('Nothing was done.');
    return 1;
  }
  return await go(act, found?.jobs ?? 0, output);
}

async function go<TSums extends Readonly<Record<string, number>>>(
  act: Act<TSums>,
  about: number,
  output: Context<unknown>['output'],
): Promise<ExitCode> {
  const progress = new ProgressLine(about);
  const { signal, forget } = untilInterrupted();
  let sums: TSums | undefined;
  let code: ExitCode = 0;
  const said = (of: TSums) =>
    Object.entries(of)
      .map(([name, jobs]) => `${jobs.toLocaleString('en')} ${name}`)
      .join(', ');
  const total = (of: TSums) => Object.values(of).reduce((sum, jobs) => sum + jobs, 0);
  try {
    sums = await act.run({
      signal,
      onProgress: (done) => {
        sums = done;
        progress.show(total(done), said(done));
      },
      refused: (id, error) => {
        progress.end();
        complain(`Job ${id} was not changed: ${sentenceOf(error)}`);
        code = 1;
      },
    });
  } catch (error) {
    progress.end();
    const isInterrupted = error instanceof InterruptedError;
    const what = sums === undefined ? 'nothing was done' : said(sums);
    if (isInterrupted) complain(`Interrupted: ${what}; the others were not changed.`);
    else if (sums !== undefined) complain(`Failed. Before that: ${what}.`);
    if (output.json) await output.document({ stopped: isInterrupted ? 'interrupted' : 'failed', ...sums });
    if (!isInterrupted) throw error;
    return 130;
  } finally {
    forget();
  }
  progress.end();
  if (output.json) await output.document({ ...sums });
  else await output.line(said(sums));
  return code;
}

/** Every job must be asked for by that name: a variable of a shell that was empty must not mean it. */
function checkMeant(name: string, flags: ManyFlags): void {
  const filters = isFilter(flags);
  if (flags.all === true && filters) throw misused(`${name}: --all and a filter cannot be combined`);
  if (flags.all !== true && !filters)
    throw misused(`${name}: give the ids of jobs, a filter such as --kind, or --all for every job`);
}

/** For a command that was given ids, where options of a filter would be ignored. */
export function checkNoFilter(name: string, flags: ManyFlags): void {
  if (flags.all === true || isFilter(flags) || flags.limit !== undefined)
    throw misused(`${name}: ids and a filter cannot be combined`);
}
