import type { Command } from 'commander';
import type { JobState, ListFilter, Queue } from '../../index.ts';
import { given, type JobSearch, ownColumnsOf, ownWanted } from '../../internal.ts';
import { filterOf } from '../filter/filter.ts';
import { integer, jsonValue, oneOf, several, text, time } from './arguments.ts';
import { misused } from './failure.ts';
import { ownFilter } from './own-filter.ts';

export const LIVE_STATES = ['waiting', 'scheduled', 'due', 'running'] as const;
export const FINAL_STATES = ['completed', 'discarded', 'cancelled'] as const;
export const STATES: readonly State[] = [...LIVE_STATES, 'retrying', ...FINAL_STATES];

/** One of those, or that a live job has failed and waits for its next attempt. */
export type State = JobState | 'retrying';

export function isLive(state: State): boolean {
  return state === 'retrying' || LIVE_STATES.some((each) => each === state);
}

/** What options can say of the jobs that are meant. */
export interface FilterFlags {
  readonly kind?: string;
  readonly queue?: string;
  readonly group?: string;
  readonly state?: State;
  readonly payload?: unknown;
  readonly createdAfter?: Date;
  readonly createdBefore?: Date;
  readonly finishedAfter?: Date;
  readonly finishedBefore?: Date;
  readonly where?: readonly string[];
  readonly limit?: number;
  readonly filter?: string;
}

export type FilterName = keyof FilterFlags;

/** Adds the options of a filter to a command. */
export function addFilter(
  command: Command,
  names: readonly FilterName[],
  states: readonly State[] = STATES,
): Command {
  const add: Readonly<Record<FilterName, () => Command>> = {
    kind: () => command.option('-k, --kind <kind>', 'only jobs of this kind', text),
    queue: () => command.option('-q, --queue <queue>', 'only jobs of this queue', text),
    group: () => command.option('--group <group>', 'only jobs of this group of the queue', text),
    state: () =>
      command.option(
        '-s, --state <state>',
        `only jobs in this state: ${states.join(', ')}`,
        oneOf(...states),
      ),
    payload: () =>
      command.option('--payload <json>', 'only jobs whose payload contains this JSON (jsonb @>)', jsonValue),
    createdAfter: () =>
      command.option('--created-after <time>', 'enqueued since: a time, or an age such as 2h', time),
    createdBefore: () => command.option('--created-before <time>', 'enqueued before', time),
    finishedAfter: () => command.option('--finished-after <time>', 'ended since', time),
    finishedBefore: () => command.option('--finished-before <time>', 'ended before', time),
    where: () =>
      command.option(
        '--where <column=value>',
        'only jobs whose own column has this value; may be repeated',
        several,
      ),
    filter: () =>
      command.option(
        '-f, --filter <words>',
        'a filter as in the dashboard, such as "kind:send-receipt after:2h payload.orderId:42"',
        text,
      ),
    limit: () =>
      command.option('-n, --limit <jobs>', 'at most this many jobs', integer(1, Number.MAX_SAFE_INTEGER)),
  };
  for (const name of names) add[name]();
  return command;
}

/** A filter of `queue.list`, of options; without a limit. */
export function listFilter(queue: Queue, flags: FilterFlags): ListFilter {
  const { kind, group, state, payload, where } = flags;
  if (group !== undefined && flags.queue === undefined)
    throw misused('--group needs --queue: a group belongs to a queue');
  const { createdAfter, createdBefore, finishedAfter, finishedBefore } = flags;
  return {
    ...ownFilter(queue, where),
    kind,
    queue: flags.queue,
    group,
    state,
    payload,
    createdAfter,
    createdBefore,
    finishedAfter,
    finishedBefore,
  };
}

/**
 * The same as what a statement of ours looks for.
 *
 * @param states those that the command is about: with another one it would wait forever
 */
export function searchOf(queue: Queue, flags: FilterFlags, states: readonly State[] = STATES): JobSearch {
  const { kind, group, state, payload, createdAfter, createdBefore } = listFilter(queue, flags);
  const own = ownWanted(ownColumnsOf(queue.tables.queueJobs), ownFilter(queue, flags.where));
  const words = wordsOf(queue, flags);
  const twice = (['state', 'kind', 'queue', 'group', 'createdAfter', 'createdBefore'] as const).find(
    (name) => words?.[name] !== undefined && flags[name] !== undefined,
  );
  if (twice !== undefined) throw misused(`--filter and an option both set ${twice}: set it once`);
  if (words?.state !== undefined && !states.includes(words.state))
    throw misused(`--filter: the state must be one of ${states.join(', ')} here, not ${words.state}`);
  return {
    kind,
    queue: flags.queue,
    group,
    state,
    createdAfter,
    createdBefore,
    ...given(words ?? {}),
    payload: [...(payload === undefined ? [] : [[JSON.stringify(payload)]]), ...(words?.payload ?? [])],
    own: [...own, ...(words?.own ?? [])],
  };
}

/** What the words of `--filter` ask for; `undefined`: there are none. @throws Failure naming the word */
export function wordsOf(queue: Queue, { filter }: FilterFlags): JobSearch | undefined {
  if (filter === undefined) return undefined;
  const { search, problems, words } = filterOf(filter, ownColumnsOf(queue.tables.queueJobs), () => true);
  // A variable of a shell that was empty must not mean every job.
  if (words.length === 0 && problems.length === 0) throw misused('--filter is empty');
  if (problems.length > 0) throw misused(`--filter: ${problems.join(' ')}`);
  return search;
}

/** Whether options say anything about which jobs are meant. */
export function isFilter(flags: FilterFlags): boolean {
  const { limit: _, ...rest } = flags;
  const names: readonly FilterName[] = ['kind', 'queue', 'group', 'state', 'payload', 'where', 'filter'];
  const times: readonly FilterName[] = ['createdAfter', 'createdBefore', 'finishedAfter', 'finishedBefore'];
  return [...names, ...times].some((name) => rest[name as keyof typeof rest] !== undefined);
}
