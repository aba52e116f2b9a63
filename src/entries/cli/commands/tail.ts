import type { Command } from 'commander';
import { sql } from 'drizzle-orm';
import type { Database, JobRecord, JobState } from '../../../index.ts';
import { type EndPlace, findEndedJobs, findEndOfEnds } from '../../../internal.ts';
import { pauseMs } from '../arguments.ts';
import { endWithReaders } from '../broken-pipe.ts';
import { type Answer, type Context, withProject } from '../context.ts';
import type { ExitCode } from '../exit-code.ts';
import { pauseFor, untilInterrupted } from '../interruption.ts';
import { addFilter, FINAL_STATES, type FilterFlags, searchOf } from '../job-filter.ts';
import { ShownValues } from '../shown-values.ts';
import { duration } from '../terminal/duration.ts';
import { payloadText, STATE_STYLES } from './list.ts';

interface Flags extends FilterFlags {
  readonly every?: number;
}

/** How many results one statement reads. */
const READ = 1_000;

/** `tail`: jobs as they end. */
export function addTail(program: Command, end: (code: ExitCode) => void): void {
  const command = addFilter(
    program.command('tail').description('print jobs as they end, until Ctrl-C'),
    ['kind', 'queue', 'group', 'state', 'payload', 'where', 'filter'],
    FINAL_STATES,
  ).option('--every <duration>', 'how often to poll (default: 1s)', pauseMs);
  withProject<Flags>(command, tail, end);
}

type Ended = Extract<JobRecord, { finishedAt: Date }>;

async function tail(context: Context<Flags>): Answer {
  endWithReaders();
  const { project, flags, output } = context;
  const { db, queue } = project;
  const { tables } = queue;
  const values = new ShownValues(project);
  const search = searchOf(queue, flags, FINAL_STATES);
  const { signal, forget } = untilInterrupted();
  try {
    let place = await databaseTime(db);
    // What was read behind the place from which it is read again. A job that ends again, after a redrive, is
    // another end.
    let seen = new Set<string>();
    while (!signal.aborted) {
      // Before the look: what it does not see yet is behind this.
      const open = await findEndOfEnds(db, tables);
      const read = new Set<string>();
      for (let from = place; ; ) {
        const page = await findEndedJobs(db, tables, { search, after: from, limit: READ });
        for (const job of page.records) {
          if (!('finishedAt' in job)) continue;
          const key = `${job.id} ${job.finishedAt.getTime()}`;
          read.add(key);
          if (seen.has(key)) continue;
          if (output.json) await output.record({ job: values.document(job) });
          else await output.write(lineOf(context, values, job));
        }
        from = page.last;
        if (page.read === READ && !signal.aborted) continue;
        // Never back: a transaction that was idle is seen again, and what it still writes ends later.
        place = later(earlier(from, open), place);
        break;
      }
      seen = read;
      await pauseFor(flags.every ?? 1_000, signal);
    }
  } finally {
    forget();
  }
  return undefined;
}

function earlier(one: EndPlace, other: EndPlace): EndPlace {
  return one.endedUs <= other.endedUs ? one : other;
}

function later(one: EndPlace, other: EndPlace): EndPlace {
  return one.endedUs >= other.endedUs ? one : other;
}

/** Jobs end by the database's clock. */
async function databaseTime(db: Database): Promise<EndPlace> {
  const answer: unknown = await db.execute(
    sql`select (extract(epoch from statement_timestamp()) * 1000000)::float8 as now`,
  );
  const rows: unknown = Array.isArray(answer) ? answer : Reflect.get(Object(answer), 'rows');
  const [row]: readonly unknown[] = Array.isArray(rows) ? rows : [];
  return { endedUs: Number(Reflect.get(Object(row), 'now')), id: 0 };
}

function lineOf({ output }: Context<Flags>, values: ShownValues, job: Ended): string {
  const state: JobState = job.state;
  const ran =
    job.claimedAt === null ? '' : ` in ${duration(job.finishedAt.getTime() - job.claimedAt.getTime())}`;
  const error = state === 'completed' ? undefined : job.errors.at(-1);
  const why =
    error === undefined
      ? ''
      : ` ${values.text(job, 'errorName', error.name)}: ${values.text(job, 'error', error.message)}`;
  const [line] = output
    .rows(
      ['', '', '', ''],
      [
        [
          { text: job.finishedAt.toISOString().slice(11), style: 'dim' },
          { text: state.padEnd(9), style: STATE_STYLES[state] },
          { text: String(job.id), style: 'bold' },
          { text: `${job.queue} ${job.kind}${ran}${why === '' ? ` ${payloadText(job, values)}` : why}` },
        ],
      ],
      new Set(),
    )
    .slice(1);
  return `${line}\n`;
}
