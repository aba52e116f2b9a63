import type { Command } from 'commander';
import type { CancelFilter, JobRecord } from '../../../index.ts';
import { given } from '../../../internal.ts';
import { cancelFound } from '../../filter/cancel-found.ts';
import { actOnFound } from '../act-on-found.ts';
import { actOnIds } from '../act-on-ids.ts';
import { actOnMany, checkNoFilter, type ManyFlags } from '../act-on-many.ts';
import { idsOf, text } from '../arguments.ts';
import { type Answer, type Context, withProject } from '../context.ts';
import { countJobs } from '../count-jobs.ts';
import type { ExitCode } from '../exit-code.ts';
import { addFilter, LIVE_STATES, listFilter } from '../job-filter.ts';
import { ownFilter } from '../own-filter.ts';

interface Flags extends ManyFlags {
  readonly reason?: string;
  readonly force?: boolean;
}

/** `cancel`: ends jobs by id, or all live ones that fit. */
export function addCancel(program: Command, end: (code: ExitCode) => void): void {
  const command = program
    .command('cancel')
    .description('cancel jobs: by id, or all live jobs that match a filter; asks first')
    .argument('[ids...]', 'the job ids')
    .option('--all', 'every live job');
  addFilter(
    command,
    [
      'kind',
      'queue',
      'group',
      'state',
      'payload',
      'createdAfter',
      'createdBefore',
      'where',
      'filter',
      'limit',
    ],
    LIVE_STATES,
  )
    .option('--reason <text>', 'the reason, kept with the job and given to its handler', text)
    .option('--force', 'end running jobs at once, without waiting for their handlers')
    .option('-y, --yes', 'do not ask for confirmation')
    .option('--dry-run', 'only count the jobs');
  withProject<Flags>(command, cancel, end);
}

async function cancel(context: Context<Flags>): Answer {
  const { project, args, flags } = context;
  const { db, queue } = project;
  const { reason, force } = flags;
  if (args.length > 0) {
    checkNoFilter('cancel', flags);
    const ids = idsOf(args);
    if (flags.dryRun === true) return await actOnIds(context, ids, (id) => stateOf(context, id, LIVE_STATES));
    return await actOnIds(context, ids, async (id) => {
      const result = await queue.cancel(db, id, { reason, force });
      // A running job that is asked to end never runs again.
      if (result.cancelled === false) return { done: false, outcome: result.reason };
      return { done: true, outcome: result.cancelled === true ? 'cancelled' : 'requested' };
    });
  }
  if (flags.filter !== undefined) {
    const none = { cancelled: 0, requested: 0, locked: 0, refused: 0 };
    return await actOnFound(context, {
      name: 'cancel',
      action: force === true ? 'force' : 'cancel',
      none,
      act: async (ids, { state }, { note, refused, mayGoOn }) => {
        await cancelFound(
          queue,
          db,
          { ids, state },
          { reason, force },
          {
            note: (done) => note({ ...none, ...done }),
            refused: (id, error) => {
              refused(id, error);
              note({ ...none, refused: 1 });
            },
            mayGoOn,
          },
        );
      },
    });
  }
  const { payload, createdAfter, createdBefore, kind, group, state, limit } = flags;
  const filter = given({ kind, queue: flags.queue, group, payload, createdAfter, createdBefore, limit });
  const own = ownFilter(queue, flags.where);
  const live = LIVE_STATES.find((each) => each === state);
  const meant: CancelFilter = { ...own, ...filter, ...(live !== undefined && { state: live }) };
  const found = { ...listFilter(queue, flags), state: undefined };
  const states = live === undefined ? LIVE_STATES : [live];
  return await actOnMany(context, {
    name: 'cancel',
    count: () => countJobs(db, queue, found, { states, limit }),
    run: async ({ signal, onProgress }) => {
      const which: CancelFilter =
        flags.all === true ? { all: true, ...(limit !== undefined && { limit }) } : meant;
      return {
        ...(await queue.cancelMany(db, which, {
          reason,
          force,
          signal,
          onProgress: (sums) => onProgress({ ...sums }),
        })),
      };
    },
  });
}

/** What a dry run says of one job: its state, and whether that is one of these, or the job one of those. */
export async function stateOf(
  { project: { db, queue } }: Context<unknown>,
  id: number,
  states: readonly string[],
  those: (job: JobRecord) => boolean = () => false,
): Promise<{ readonly done: boolean; readonly outcome: string }> {
  const job = await queue.find(db, id);
  const state = job?.state ?? 'not-found';
  return { done: states.includes(state) || (job !== undefined && those(job)), outcome: state };
}
