import type { Command } from 'commander';
import type { JobRecord } from '../../index.ts';
import { integer } from '../arguments.ts';
import { type Answer, type Context, withProject } from '../context.ts';
import type { ExitCode } from '../exit-code.ts';
import { addFilter, type FilterFlags, listFilter } from '../job-filter.ts';
import { fromNow } from '../terminal/duration.ts';
import type { Cell, Output, Style } from '../terminal/output.ts';
import { json } from '../terminal/printable.ts';

interface Flags extends FilterFlags {
  readonly cursor?: number;
  readonly searchLimit?: number;
}

const PAGE = 500;
const DEFAULT_LIMIT = 50;

/** `list`: jobs, live and ended, newest first. */
export function addList(program: Command, end: (code: ExitCode) => void): void {
  const command = addFilter(program.command('list').description('jobs, live and ended, newest first'), [
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
    'limit',
  ])
    .option('--cursor <id>', 'go on after a page that has ended here', integer(1, Number.MAX_SAFE_INTEGER))
    .option('--search-limit <ids>', 'look through so many of the newest ids', integer(1, 10_000_000));
  withProject<Flags>(command, list, end);
}

async function list({ project: { db, queue }, flags, output }: Context<Flags>): Answer {
  const filter = { ...listFilter(queue, flags), searchLimit: flags.searchLimit };
  let { cursor, limit: left = DEFAULT_LIMIT } = flags;
  let [isFirst, truncated] = [true, false];
  const writer = output.json ? jsonWriter(output) : tableWriter(output);
  // Page by page, so that a million jobs take no more memory than a page.
  do {
    const page = await queue.list(db, { ...filter, cursor, limit: Math.min(PAGE, left) });
    await writer.jobs(page.jobs, isFirst);
    isFirst &&= page.jobs.length === 0;
    left -= page.jobs.length;
    cursor = page.nextCursor;
    truncated = page.truncated;
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

function jsonWriter(output: Output): Writer {
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
        await output.write(`${isNext ? ',' : ''}\n    ${json(job)}`);
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
/** Longer payloads are cut where the width of a terminal does not. */
const PAYLOAD = 400;

function tableWriter(output: Output): Writer {
  return {
    async jobs(jobs, isFirst) {
      if (jobs.length === 0) return;
      const now = Date.now();
      const rows = jobs.map((job) => rowOf(job, now));
      const lines = output.rows(HEAD, rows, new Set([0, 4]));
      for (const line of isFirst ? lines : lines.slice(1)) await output.write(`${line}\n`);
    },
    async end({ nextCursor, truncated, isEmpty }) {
      if (isEmpty) await output.line('No job fits.');
      if (nextCursor === undefined) return;
      const why = truncated ? 'The search has stopped at its limit' : 'There are more';
      await output.line(`${why}: --cursor ${nextCursor} goes on.`, 'dim');
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
export function payloadText({ payload }: JobRecord): string {
  return payload === undefined ? 'not kept' : json(payload);
}

export function rowOf(job: JobRecord, nowMs: number): Cell[] {
  const { id, state, queue, kind, attempt, maxAttempts } = job;
  const when = 'finishedAt' in job ? job.finishedAt : 'claimedAt' in job ? job.claimedAt : job.runAt;
  const payload = payloadText(job);
  return [
    { text: String(id), style: 'bold' },
    { text: state, style: STATE_STYLES[state] },
    { text: queue },
    { text: kind },
    { text: `${attempt}/${maxAttempts}` },
    { text: when === null ? '–' : fromNow(when, nowMs) },
    { text: payload.length > PAYLOAD ? `${payload.slice(0, PAYLOAD)}…` : payload, style: 'dim' },
  ];
}
