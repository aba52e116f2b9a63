import type { Command } from 'commander';
import type { JobDefinition } from '../../../index.ts';
import type { ImportProgress, ImportReport } from '../../import/index.ts';
import { integer, several, text } from '../arguments.ts';
import { configOf, definitionsOf } from '../configured.ts';
import { type Answer, type Context, withProject } from '../context.ts';
import type { ExitCode } from '../exit-code.ts';
import { misused } from '../failure.ts';
import { openSource, type SourceFlags, SYSTEMS } from '../import-source.ts';
import { InterruptedError, untilInterrupted } from '../interruption.ts';
import { nearest } from '../nearest.ts';
import { complain } from '../terminal/complain.ts';
import { confirm } from '../terminal/confirm.ts';
import type { Output } from '../terminal/output.ts';
import { ProgressLine } from '../terminal/progress-line.ts';

interface Flags extends SourceFlags {
  readonly map?: readonly string[];
  readonly batchSize?: number;
  readonly dryRun?: boolean;
  readonly yes?: boolean;
}

/** How many of the jobs that are left are shown with the reason; `--json` shows all that the report has. */
const SHOWN_LEFT = 10;

/** `import`: moves the jobs that wait in another system. */
export function addImport(program: Command, end: (code: ExitCode) => void): void {
  const command = program
    .command('import')
    .description('move waiting jobs from another queue system to the definitions of queue.config.ts')
    .argument('<system>', SYSTEMS.join(', '))
    .option('--map <name=kind>', 'the kind that jobs of a name become; may be repeated', several)
    .option('--schema <schema>', 'the Postgres schema of its tables', text)
    .option('--queue <queue>', "BullMQ's queue", text)
    .option('--redis <url>', "the URL of BullMQ's Redis; uses the bullmq that is installed", text)
    .option('--table <table>', 'a table of your own', text)
    .option('--where <sql>', 'an SQL condition for the rows that wait', text)
    .option('--column <column=sql>', 'the SQL for id, payload, name, runAt, priority, attempts, …', several)
    .option('--name <name>', 'the name of all rows, if no column has it', text)
    .option('--batch-size <jobs>', 'how many jobs to import per batch (default: 1000)', integer(1, 10_000))
    .option('-y, --yes', 'do not ask for confirmation')
    .option('--dry-run', 'change nothing; show what would be imported and what would be left');
  withProject<Flags>(command, importAll, end);
}

async function importAll({ project, args: [system = ''], flags, output }: Context<Flags>): Answer {
  const mapping = mappingOf(await definitionsOf(configOf(project, 'import')), flags.map ?? []);
  const { from, importJobs } = await project.load.import();
  const { source, close } = await openSource(from, system, flags);
  const { db, queue } = project;
  const { batchSize, dryRun = false, yes = false } = flags;
  const sized = { queue, ...(batchSize !== undefined && { batchSize }) };
  try {
    // With `--yes` there is no question, so the plan is not worth the wait.
    const plan =
      yes && !dryRun ? undefined : await importJobs(db, source, mapping, { ...sized, dryRun: true });
    if (plan !== undefined && (dryRun || !output.json)) await show(plan, output);
    if (dryRun) return 0;
    const many = plan === undefined ? 'them' : `${plan.imported.toLocaleString('en')} jobs`;
    if (!(await confirm(`import ${many}?`, yes))) {
      complain('Nothing was done.');
      return 1;
    }
    return await go(plan?.imported ?? 0, output, (options) =>
      importJobs(db, source, mapping, { ...sized, ...options }),
    );
  } finally {
    await close();
  }
}

interface Running {
  readonly signal: AbortSignal;
  onProgress(sums: ImportProgress): void;
}

/** Imports, and says what was done: also where Ctrl-C or an error has ended it. */
async function go(
  about: number,
  output: Output,
  run: (options: Running) => Promise<ImportReport>,
): Promise<ExitCode> {
  const progress = new ProgressLine(about);
  const { signal, forget } = untilInterrupted();
  let done: ImportProgress = { imported: 0, left: 0 };
  let report: ImportReport;
  try {
    report = await run({
      signal,
      onProgress: (sums) => {
        done = sums;
        progress.show(sums.imported, 'imported');
      },
    });
  } catch (error) {
    progress.end();
    const isInterrupted = error instanceof InterruptedError;
    const imported = `${done.imported.toLocaleString('en')} imported`;
    if (isInterrupted) complain(`Interrupted: ${imported}; the others were not moved.`);
    else if (done.imported > 0) complain(`Failed. Before that: ${imported}.`);
    if (output.json) await output.document({ stopped: isInterrupted ? 'interrupted' : 'failed', ...done });
    if (!isInterrupted) throw error;
    return 130;
  } finally {
    forget();
  }
  progress.end();
  return await show(report, output);
}

/** Every definition under its own kind, and under the names of `--map`. */
function mappingOf(
  definitions: ReadonlyMap<string, JobDefinition>,
  maps: readonly string[],
): Record<string, { readonly job: JobDefinition }> {
  const rules = new Map([...definitions].map(([kind, job]) => [kind, { job }]));
  const mapped = new Set<string>();
  for (const map of maps) {
    const [, name = '', kind = ''] = /^(.+)=(.+)$/.exec(map) ?? [];
    if (name === '') throw misused(`--map takes name=kind, as in --map send-email=send-mail; got ${map}`);
    if (mapped.has(name)) throw misused(`--map has ${name} twice`);
    mapped.add(name);
    const job = definitions.get(kind);
    if (job === undefined) {
      const close = nearest(kind, [...definitions.keys()]);
      const hint = close === undefined ? '' : ` (did you mean ${close}?)`;
      throw misused(`queue.config.ts has no definition of '${kind}'${hint}`);
    }
    rules.set(name, { job });
  }
  return Object.fromEntries(rules);
}

async function show(report: ImportReport, output: Output): Promise<ExitCode> {
  if (output.json) {
    await output.document({ ...report });
    return 0;
  }
  const { dryRun, names, leftJobs, left, active } = report;
  const count = (jobs: number) => ({ text: jobs.toLocaleString('en') });
  await output.table(
    ['NAME', 'KIND', 'WAITING', 'DELAYED', 'RETRYING', 'LEFT'],
    names.map(({ name, kind, waiting, delayed, retrying, left }) => [
      { text: name },
      { text: kind ?? '–' },
      ...[waiting, delayed, retrying, left].map(count),
    ]),
    new Set([2, 3, 4, 5]),
  );
  for (const { id, name, why, message } of leftJobs.slice(0, SHOWN_LEFT)) {
    await output.line(`left: ${name} ${id} (${why}): ${message}`);
  }
  if (leftJobs.length > SHOWN_LEFT) await output.line('left: more jobs; --json shows them all');
  if (report.bounded > 0) {
    await output.line(
      `${report.bounded.toLocaleString('en')} of them had more than 10,000 attempts there ` +
        'and now have 10,000, the maximum.',
      'yellow',
    );
  }
  const said = `${report.imported.toLocaleString('en')} ${dryRun ? 'would be imported' : 'imported'}`;
  await output.line(
    `${said}, ${left.toLocaleString('en')} left, ${active.toLocaleString('en')} held by its workers.`,
  );
  return 0;
}
