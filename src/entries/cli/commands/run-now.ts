import type { Command } from 'commander';
import { findRunnable, isAboutAccess, isAboutTheServer } from '../../../internal.ts';
import { actOnFound } from '../act-on-found.ts';
import { actOnIds } from '../act-on-ids.ts';
import { actOnMany, checkNoFilter, type ManyFlags } from '../act-on-many.ts';
import { idsOf } from '../arguments.ts';
import { type Answer, type Context, withProject } from '../context.ts';
import { countJobs } from '../count-jobs.ts';
import type { ExitCode } from '../exit-code.ts';
import { addFilter, listFilter } from '../job-filter.ts';
import type { Project } from '../project/open-project.ts';
import { sentenceOf } from '../sentence-of.ts';
import { complain } from '../terminal/complain.ts';
import { stateOf } from './cancel.ts';

const PAGE = 500;

/** `run-now`: makes scheduled jobs due, by id, or all that fit. */
export function addRunNow(program: Command, end: (code: ExitCode) => void): void {
  const command = program
    .command('run-now')
    .description('make scheduled jobs due now: by id, or all that match a filter; asks first')
    .argument('[ids...]', 'the job ids')
    .option('--all', 'every scheduled job');
  addFilter(command, [
    'kind',
    'queue',
    'group',
    'payload',
    'createdAfter',
    'createdBefore',
    'where',
    'filter',
    'limit',
  ])
    .option('-y, --yes', 'do not ask for confirmation')
    .option('--dry-run', 'only count the jobs');
  withProject<ManyFlags>(command, runNow, end);
}

async function runNow(context: Context<ManyFlags>): Answer {
  const { project, args, flags } = context;
  const { db, queue } = project;
  if (args.length > 0) {
    checkNoFilter('run-now', flags);
    const ids = idsOf(args);
    if (flags.dryRun === true)
      return await actOnIds(context, ids, (id) => stateOf(context, id, ['scheduled', 'due']));
    return await actOnIds(context, ids, async (id) => {
      const result = await queue.runNow(db, id);
      return result.due ? { done: true, outcome: 'due' } : { done: false, outcome: result.reason };
    });
  }
  if (flags.filter !== undefined) {
    return await actOnFound(context, {
      name: 'run-now',
      action: 'run-now',
      none: { due: 0, left: 0 },
      act: (ids) => makeDue(project, ids),
    });
  }
  const filter = listFilter(queue, flags);
  const { limit = Number.POSITIVE_INFINITY } = flags;
  return await actOnMany(context, {
    name: 'run-now',
    count: () => countJobs(db, queue, filter, { states: ['scheduled'], limit: flags.limit }),
    run: async ({ signal, onProgress }) => {
      const sums = { due: 0, left: 0 };
      for (let cursor: number | undefined; ; ) {
        signal.throwIfAborted();
        const most = Math.min(PAGE, limit - sums.due - sums.left);
        const page = await queue.list(db, { ...filter, state: 'scheduled', cursor, limit: most });
        const ids = page.jobs.map(({ id }) => id);
        const { due, left } = await makeDue(project, ids);
        sums.due += due;
        sums.left += left;
        onProgress({ ...sums });
        cursor = page.nextCursor;
        if (cursor === undefined || sums.due + sums.left >= limit) return sums;
      }
    },
  });
}

/**
 * Makes jobs due, queue by queue: what is done in one is not undone where the database refuses a job of the
 * next, and workers may claim it at once.
 */
async function makeDue(
  project: Pick<Project, 'db' | 'queue'>,
  ids: readonly number[],
): Promise<{ readonly due: number; readonly left: number }> {
  const jobs = await findRunnable(project.db, project.queue.tables, ids);
  let due = 0;
  for (const name of new Set(jobs.map(({ queue }) => queue))) {
    const ofQueue = jobs.filter(({ queue }) => queue === name).map(({ id }) => id);
    due += await makeDueInQueue(project, ofQueue);
  }
  return { due, left: ids.length - due };
}

/**
 * Those of one queue are one statement. Where the database refuses one of them, that one is left, and each
 * half is tried by itself. Returns how many are due.
 */
async function makeDueInQueue(
  { db, queue }: Pick<Project, 'db' | 'queue'>,
  ids: readonly number[],
): Promise<number> {
  try {
    return (await queue.runNowMany(db, ids)).due;
  } catch (error) {
    if (isAboutTheServer(error) || isAboutAccess(error)) throw error;
    if (ids.length === 1) {
      complain(`Job ${ids[0]} was left: ${sentenceOf(error)}`);
      return 0;
    }
    const half = Math.ceil(ids.length / 2);
    const first = await makeDueInQueue({ db, queue }, ids.slice(0, half));
    return first + (await makeDueInQueue({ db, queue }, ids.slice(half)));
  }
}
