import type { Command } from 'commander';
import type { JobRecord } from '../../../index.ts';
import { listJobs } from '../../../internal.ts';
import { integer } from '../arguments.ts';
import { endWithReaders } from '../broken-pipe.ts';
import { type Answer, type Context, withProject } from '../context.ts';
import type { ExitCode } from '../exit-code.ts';
import { misused } from '../failure.ts';
import { addFilter, type FilterFlags, isLive, searchOf } from '../job-filter.ts';
import { ShownValues } from '../shown-values.ts';
import { fromNow } from '../terminal/duration.ts';
import type { Cell, Output, Style } from '../terminal/output.ts';
import { json } from '../terminal/printable.ts';

interface Flags extends FilterFlags {
  readonly cursor?: number;
  readonly searchLimit?: number;
}

const PAGE = 500;
/** How many ids `queue.list` looks through where no index serves the filter. */
const SEARCH_LIMIT = 100_000;
const DEFAULT_LIMIT = 50;

/** `list`: jobs, live and ended, newest first. */
export function addList(program: Command, end: (code: ExitCode) => void): void {
  const command = addFilter(program.command('list').description('list jobs, live and ended, newest first'), [
    'kind',
    'queue',
    'group',
    'state',
    'payload',
    'createdAfter',
    'createdBefore',
    'finishedAfter',
    'finishedBefore',
    'where',
    'filter',
    'limit',
  ])
    .option('--cursor <id>', 'continue after the previous page', integer(1, Number.MAX_SAFE_INTEGER))
    .option('--search-limit <ids>', 'search this many of the newest ids', integer(1, 10_000_000));
  withProject<Flags>(command, list, end);
}

async function list({ project, flags, output }: Context<Flags>): Answer {
  endWithReaders();
  const { db, queue } = project;
  const { finishedAfter, finishedBefore, searchLimit } = flags;
  const search = searchOf(queue, flags);
  const { state } = search;
  if (state !== undefined && isLive(state) && (finishedAfter ?? finishedBefore) !== undefined)
    throw misused(`--finished-after and --finished-before apply only to ended jobs, and --state is ${state}`);
  const searches =
    [search.createdAfter, search.createdBefore, finishedAfter, finishedBefore].some(
      (time) => time !== undefined,
    ) || search.payload.length > 0;
  const wanted = {
    kind: undefined,
    queue: undefined,
    state,
    search,
    finished:
      (finishedAfter ?? finishedBefore) ? { after: finishedAfter, before: finishedBefore } : undefined,
    searchLimit: searchLimit ?? (searches ? SEARCH_LIMIT : undefined),
  };
  let { cursor, limit: left = DEFAULT_LIMIT } = flags;
  let [isFirst, truncated] = [true, false];
  const values = new ShownValues(project);
  const writer = output.json ? jsonWriter(output, values) : tableWriter(output, values);
  // Page by page, so that a million jobs take no more memory than a page.
  do {
    const limit = Math.min(PAGE, left);
    const page = await listJobs(db, queue.tables, { ...wanted, before: cursor, limit: limit + 1 });
    const jobs = page.records.slice(0, limit);
    await writer.jobs(jobs, isFirst);
    isFirst &&= jobs.length === 0;
    left -= jobs.length;
    const isFull = page.records.length > limit;
    truncated = !isFull && page.unsearched !== undefined;
    // The next page's ids are below its cursor.
    cursor = isFull ? jobs.at(-1)?.id : page.unsearched === undefined ? undefined : page.unsearched + 1;
  } while (left > 0 && cursor !== undefined && !truncated);
  await writer.end({ nextCursor: cursor, truncated, isEmpty: isFirst });
  return undefined;
}

interface End {
  readonly nextCursor: number | undefined;
  readonly truncated: boolean;
  readonly isEmpty: boolean;
}

interface Writer {
  jobs(jobs: readonly JobRecord[], isFirst: boolean): Promise<void>;
  end(how: End): Promise<void>;
}

function jsonWriter(output: Output, values: ShownValues): Writer {
  let opened = false;
  const open = async () => {
    if (!opened) await output.write('{\n  "version": 1,\n  "jobs": [');
    opened = true;
  };
  return {
    async jobs(jobs, isFirst) {
      await open();
      let isNext = !isFirst;
      for (const job of jobs) {
        await output.write(`${isNext ? ',' : ''}\n    ${json(values.document(job))}`);
        isNext = true;
      }
    },
    async end({
      nextCursor = null,
      truncated,
    }: Omit<End, 'nextCursor'> & { nextCursor?: number | null | undefined }) {
      await open();
      await output.write(`\n  ],\n  "nextCursor": ${nextCursor},\n  "truncated": ${truncated}\n}\n`);
    },
  };
}

const HEAD = ['ID', 'STATE', 'QUEUE', 'KIND', 'ATTEMPT', 'WHEN', 'PAYLOAD'];
/** A terminal shows no more of a payload; a file or another program gets all of it. */
const PAYLOAD = 400;

function tableWriter(output: Output, values: ShownValues): Writer {
  return {
    async jobs(jobs, isFirst) {
      if (jobs.length === 0) return;
      const now = Date.now();
      const most = output.isTerminal ? PAYLOAD : Number.POSITIVE_INFINITY;
      const rows = jobs.map((job) => rowOf(job, values, now, most));
      const lines = output.rows(HEAD, rows, new Set([0, 4]));
      for (const line of isFirst ? lines : lines.slice(1)) await output.write(`${line}\n`);
    },
    async end({ nextCursor, truncated, isEmpty }) {
      if (isEmpty) await output.line('No matching jobs.');
      if (nextCursor === undefined) return;
      const why = truncated ? 'The search stopped at its limit' : 'There are more jobs';
      await output.line(`${why}. Continue with --cursor ${nextCursor}.`, 'dim');
    },
  };
}

export const STATE_STYLES: Readonly<Record<JobRecord['state'], Style | undefined>> = {
  waiting: 'dim',
  scheduled: 'cyan',
  due: 'yellow',
  running: 'bold',
  completed: 'green',
  discarded: 'red',
  cancelled: 'dim',
};

/** The payload in a line; as JSON it is left out where it is not kept. */
export function payloadText(job: JobRecord, values: ShownValues): string {
  return job.payload === undefined ? 'not kept' : values.value(job, 'payload', job.payload);
}

function rowOf(job: JobRecord, values: ShownValues, nowMs: number, most: number): Cell[] {
  const { id, state, queue, kind, attempt, maxAttempts } = job;
  const when = 'finishedAt' in job ? job.finishedAt : 'claimedAt' in job ? job.claimedAt : job.runAt;
  const payload = payloadText(job, values);
  return [
    { text: String(id), style: 'bold' },
    { text: state, style: STATE_STYLES[state] },
    { text: queue },
    { text: kind },
    { text: `${attempt}/${maxAttempts}` },
    { text: when === null ? '–' : fromNow(when, nowMs) },
    { text: payload.length > most ? `${payload.slice(0, most)}…` : payload, style: 'dim' },
  ];
}
