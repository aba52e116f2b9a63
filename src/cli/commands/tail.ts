import type { Command } from 'commander';
import { sql } from 'drizzle-orm';
import type { Database, JobRecord, JobState } from '../../index.ts';
import { integer, pauseMs } from '../arguments.ts';
import { type Answer, type Context, withProject } from '../context.ts';
import type { ExitCode } from '../exit-code.ts';
import { pauseFor, untilInterrupted } from '../interruption.ts';
import { addFilter, FINAL_STATES, type FilterFlags, listFilter } from '../job-filter.ts';
import { duration } from '../terminal/duration.ts';
import { payloadText, STATE_STYLES } from './list.ts';

interface Flags extends FilterFlags {
  readonly every?: number;
  readonly searchLimit?: number;
}

/** A transaction that ended a job may commit a little after the time that it wrote. */
const OVERLAP_MS = 10_000;
const PAGE = 1_000;

/** `tail`: jobs as they end. */
export function addTail(program: Command, end: (code: ExitCode) => void): void {
  const command = addFilter(
    program.command('tail').description('jobs as they end, until Ctrl-C'),
    ['kind', 'queue', 'group', 'state', 'payload', 'where'],
    FINAL_STATES,
  )
    .option('--every <duration>', 'how often to look (default: 1s)', pauseMs)
    .option(
      '--search-limit <ids>',
      'look among so many of the newest ids (default: 100000)',
      integer(1, 10_000_000),
    );
  withProject<Flags>(command, tail, end);
}

type Ended = Extract<JobRecord, { finishedAt: Date }>;

async function tail(context: Context<Flags>): Answer {
  const { project, flags, output } = context;
  const { db, queue } = project;
  const filter = { ...listFilter(queue, flags), searchLimit: flags.searchLimit };
  const { signal, forget } = untilInterrupted();
  try {
    const began = await databaseTime(db);
    // A job that ends again, after a redrive, is another end.
    const seen = new Map<string, number>();
    let newest = began;
    while (!signal.aborted) {
      const since = new Date(Math.max(began, newest - OVERLAP_MS));
      const ended: Ended[] = [];
      for (let cursor: number | undefined; ; ) {
        const page = await queue.list(db, { ...filter, finishedAfter: since, cursor, limit: PAGE });
        for (const job of page.jobs) if ('finishedAt' in job && !seen.has(keyOf(job))) ended.push(job);
        cursor = page.nextCursor;
        if (cursor === undefined || page.truncated || signal.aborted) break;
      }
      ended.sort((a, b) => a.finishedAt.getTime() - b.finishedAt.getTime() || a.id - b.id);
      for (const job of ended) {
        seen.set(keyOf(job), job.finishedAt.getTime());
        newest = Math.max(newest, job.finishedAt.getTime());
        if (output.json) await output.record({ job });
        else await output.write(lineOf(context, job));
      }
      for (const [key, at] of seen) if (at < newest - 2 * OVERLAP_MS) seen.delete(key);
      await pauseFor(flags.every ?? 1_000, signal);
    }
  } finally {
    forget();
  }
  return undefined;
}

function keyOf({ id, finishedAt }: Ended): string {
  return `${id} ${finishedAt.getTime()}`;
}

/** Jobs end by the database's clock. */
async function databaseTime(db: Database): Promise<number> {
  const answer: unknown = await db.execute(
    sql`select (extract(epoch from statement_timestamp()) * 1000)::float8 as now`,
  );
  const rows: unknown = Array.isArray(answer) ? answer : Reflect.get(Object(answer), 'rows');
  const [row]: readonly unknown[] = Array.isArray(rows) ? rows : [];
  return Math.floor(Number(Reflect.get(Object(row), 'now')));
}

function lineOf({ output }: Context<Flags>, job: Ended): string {
  const state: JobState = job.state;
  const ran =
    job.claimedAt === null ? '' : ` in ${duration(job.finishedAt.getTime() - job.claimedAt.getTime())}`;
  const error = state === 'completed' ? undefined : job.errors.at(-1);
  const why = error === undefined ? '' : ` ${error.name}: ${error.message}`;
  const [line] = output
    .rows(
      ['', '', '', ''],
      [
        [
          { text: job.finishedAt.toISOString().slice(11, 23), style: 'dim' },
          { text: state.padEnd(9), style: STATE_STYLES[state] },
          { text: String(job.id), style: 'bold' },
          { text: `${job.queue} ${job.kind}${ran}${why === '' ? ` ${payloadText(job)}` : why}` },
        ],
      ],
      new Set(),
    )
    .slice(1);
  return `${line}\n`;
}
