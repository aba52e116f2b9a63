import type { Command } from 'commander';
import { wasRefused } from '../../../internal.ts';
import type { Telling } from '../../filter/leave-refused.ts';
import { makeDue } from '../../filter/make-due.ts';
import { actOnFound } from '../act-on-found.ts';
import { actOnIds } from '../act-on-ids.ts';
import { actOnMany, checkNoFilter, type ManyFlags } from '../act-on-many.ts';
import { idsOf } from '../arguments.ts';
import { type Answer, type Context, withProject } from '../context.ts';
import { countJobs } from '../count-jobs.ts';
import type { ExitCode } from '../exit-code.ts';
import { addFilter, listFilter } from '../job-filter.ts';
import type { Project } from '../project/open-project.ts';
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
      return await actOnIds(context, ids, (id) =>
        stateOf(context, id, ['scheduled', 'due'], (job) => job.state === 'waiting' && wasRefused(job)),
      );
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
      act: (ids, _, telling) => runFoundNow(project, ids, telling),
    });
  }
  const filter = listFilter(queue, flags);
  const { limit = Number.POSITIVE_INFINITY } = flags;
  return await actOnMany(context, {
    name: 'run-now',
    count: () => countJobs(db, queue, filter, { states: ['scheduled'], limit: flags.limit }),
    run: async ({ signal, onProgress, refused }) => {
      const sums = { due: 0, left: 0 };
      const note = ({ due, left }: typeof sums) => {
        sums.due += due;
        sums.left += left;
        onProgress({ ...sums });
      };
      const mayGoOn = () => {
        signal.throwIfAborted();
        return true;
      };
      for (let cursor: number | undefined; mayGoOn(); ) {
        const most = Math.min(PAGE, limit - sums.due - sums.left);
        const page = await queue.list(db, { ...filter, state: 'scheduled', cursor, limit: most });
        const ids = page.jobs.map(({ id }) => id);
        await runFoundNow(project, ids, { note, refused, mayGoOn });
        cursor = page.nextCursor;
        if (cursor === undefined || sums.due + sums.left >= limit) break;
      }
      return sums;
    },
  });
}

/** Makes jobs due, and notes how many of them were left. */
async function runFoundNow(
  { db, queue }: Pick<Project, 'db' | 'queue'>,
  ids: readonly number[],
  { note, refused, mayGoOn }: Telling<{ readonly due: number; readonly left: number }>,
): Promise<void> {
  let left = ids.length;
  await makeDue(queue, db, ids, {
    note: (due) => {
      left -= due;
      note({ due, left: 0 });
    },
    refused: (id, error) => {
      left--;
      refused(id, error);
      note({ due: 0, left: 1 });
    },
    mayGoOn,
  });
  note({ due: 0, left });
}
