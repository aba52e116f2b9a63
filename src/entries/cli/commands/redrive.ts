import type { Command } from 'commander';
import type { RedriveFilter } from '../../../index.ts';
import { given } from '../../../internal.ts';
import { redriveFound } from '../../filter/redrive-found.ts';
import { actOnFound } from '../act-on-found.ts';
import { actOnIds } from '../act-on-ids.ts';
import { actOnMany, checkNoFilter, type ManyFlags } from '../act-on-many.ts';
import { idsOf, text } from '../arguments.ts';
import { type Answer, type Context, withProject } from '../context.ts';
import { countJobs } from '../count-jobs.ts';
import type { ExitCode } from '../exit-code.ts';
import { misused } from '../failure.ts';
import { addFilter, listFilter } from '../job-filter.ts';
import { ownFilter } from '../own-filter.ts';
import { complain } from '../terminal/complain.ts';
import { unknownStep } from '../unknown-step.ts';
import { workflowsOf } from '../workflows-of.ts';
import { stateOf } from './cancel.ts';

const STATES = ['discarded', 'cancelled'] as const;
/** The states of jobs that can go on from a step. */
const STATES_FROM = [...STATES, 'waiting', 'scheduled', 'due'] as const;
const SEARCH_ALL = 10_000_000;

interface Flags extends ManyFlags {
  readonly from?: string;
}

/** `redrive`: puts discarded jobs back, by id, or all that fit. */
export function addRedrive(program: Command, end: (code: ExitCode) => void): void {
  const command = program
    .command('redrive')
    .alias('retry')
    .description('run discarded jobs again: by id, or all that match a filter; asks first')
    .argument('[ids...]', 'the job ids')
    .option('--all', 'every discarded job');
  addFilter(
    command,
    ['kind', 'queue', 'state', 'finishedAfter', 'finishedBefore', 'where', 'filter', 'limit'],
    STATES,
  )
    .option('--from <step>', 'by id: go on from a step that the job has recorded, also if it waits', text)
    .option('-y, --yes', 'do not ask for confirmation')
    .option('--dry-run', 'only count the jobs');
  withProject<Flags>(command, redrive, end);
}

async function redrive(context: Context<Flags>): Answer {
  const { project, args, flags } = context;
  const { db, queue } = project;
  if (args.length > 0) {
    const { state: _, ...filter } = flags;
    checkNoFilter('redrive', filter);
    // By its id a cancelled job is meant as well, unless another state is asked for.
    const states = STATES.filter((state) => state === (flags.state ?? state));
    const ids = idsOf(args);
    if (flags.from !== undefined) return await redriveFrom(context, ids, flags.from);
    if (flags.dryRun === true) return await actOnIds(context, ids, (id) => stateOf(context, id, states));
    return await actOnIds(context, ids, async (id) => {
      const found = (await queue.find(db, id))?.state;
      const state = states.find((each) => each === found) ?? states[0];
      const { redriven, duplicates } = await queue.redrive(db, { id, ...(state && { state }) });
      if (redriven > 0) return { done: true, outcome: 'redriven' };
      return { done: false, outcome: duplicates > 0 ? 'duplicate' : (found ?? 'not-found') };
    });
  }
  if (flags.from !== undefined) throw misused('redrive: --from needs the ids of jobs');
  const { kind, state, finishedAfter, finishedBefore, limit } = flags;
  if (flags.filter !== undefined) {
    if ((finishedAfter ?? finishedBefore) !== undefined)
      throw misused('redrive: --filter and --finished-after or --finished-before cannot be combined');
    const none = { redriven: 0, duplicates: 0, refused: 0 };
    return await actOnFound(context, {
      name: 'redrive',
      action: 'redrive',
      none,
      act: async (ids, search, { note, refused, mayGoOn }) => {
        const state = search.state === 'cancelled' ? search.state : 'discarded';
        await redriveFound(
          queue,
          db,
          { ids, state },
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
  const own = ownFilter(queue, flags.where);
  const filter = { ...own, ...given({ kind, queue: flags.queue, finishedAfter, finishedBefore }) };
  const meant: RedriveFilter = { ...filter, ...(state === 'cancelled' && { state }) };
  const isAll = flags.all === true || Object.keys(filter).length === 0;
  const found = { ...listFilter(queue, flags), state: undefined, searchLimit: SEARCH_ALL };
  return await actOnMany(context, {
    name: 'redrive',
    count: () =>
      countJobs(db, queue, found, { states: [state === 'cancelled' ? state : 'discarded'], limit }),
    run: async ({ signal, onProgress }) => {
      const which: RedriveFilter = {
        ...meant,
        ...(isAll && { all: true }),
        ...(limit !== undefined && { limit }),
      };
      return {
        ...(await queue.redrive(db, which, {
          batchSize: 1_000,
          signal,
          onProgress: (sums) => onProgress({ ...sums }),
        })),
      };
    },
  });
}

/** Lets jobs do a step again, and all later ones. */
async function redriveFrom(context: Context<Flags>, ids: readonly number[], from: string): Answer {
  const { project, flags } = context;
  if (flags.state !== undefined) throw misused('redrive: --from and --state cannot be combined');
  const workflows = workflowsOf(project);
  if (flags.dryRun === true) return await actOnIds(context, ids, (id) => stateOf(context, id, STATES_FROM));
  return await actOnIds(context, ids, async (id) => {
    try {
      const became = await workflows.redrive(project.db, id, { from });
      return { done: became === 'redriven', outcome: became === 'gone' ? 'not-found' : became };
    } catch (error) {
      complain(await unknownStep(project, id, from, error));
      return { done: false, outcome: 'no-step' };
    }
  });
}
