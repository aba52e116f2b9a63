import type { Command } from 'commander';
import type { Queue, QueueCounts, QueueStats, QueueVitals } from '../../../index.ts';
import { pauseMs } from '../arguments.ts';
import { endWithReaders } from '../broken-pipe.ts';
import { type Answer, type Context, withProject } from '../context.ts';
import type { ExitCode } from '../exit-code.ts';
import { pauseFor, untilInterrupted } from '../interruption.ts';
import { ShownValues } from '../shown-values.ts';
import { duration } from '../terminal/duration.ts';
import type { Cell } from '../terminal/output.ts';
import { inLine, printable } from '../terminal/printable.ts';

interface Flags {
  readonly watch?: boolean;
  readonly every?: number;
}

/** `status`: how much there is to do, who does it, and what alerts say. */
export function addStatus(program: Command, end: (code: ExitCode) => void): void {
  const command = program
    .command('status')
    .description('show the backlog, its age, the workers and what is wrong')
    .option('-w, --watch', 'refresh until Ctrl-C')
    .option('--every <duration>', 'how often --watch refreshes (default: 1s)', pauseMs);
  withProject<Flags>(command, status, end);
}

async function status(context: Context<Flags>): Answer {
  const { flags, output } = context;
  if (flags.watch !== true) {
    const seen = await look(context);
    if (output.json) await output.document(documentOf(seen));
    else for (const line of picture(context, seen, new Map())) await output.write(`${line}\n`);
    return undefined;
  }
  endWithReaders();
  const { signal, forget } = untilInterrupted();
  const draws = output.isTerminal && !output.json;
  const dues = new Map<string, number[]>();
  // Also where a second Ctrl-C ends the process at once.
  const restore = () => void process.stdout.write(END_PICTURE);
  if (draws) {
    process.once('exit', restore);
    await output.write(BEGIN_PICTURE);
  }
  try {
    while (!signal.aborted) {
      const seen = await look(context);
      if (output.json) await output.record(documentOf(seen));
      else {
        for (const { queue, due } of seen.stats.queues)
          dues.set(queue, [...(dues.get(queue) ?? []), due].slice(-SAMPLES));
        const lines = picture(context, seen, dues).flatMap((line) => line.split('\n'));
        await output.write(draws ? drawn(lines, output.lines) : `${lines.join('\n')}\n\n`);
      }
      await pauseFor(flags.every ?? 1_000, signal);
    }
  } finally {
    if (draws) {
      process.off('exit', restore);
      await output.write(END_PICTURE);
    }
    forget();
  }
  return undefined;
}

/** Without a cursor, and without breaks in lines that are too long: they would move all that stands below. */
const BEGIN_PICTURE = '\u001b[?25l\u001b[?7l\u001b[2J';
const END_PICTURE = '\u001b[?7h\u001b[?25h';
const HOME = '\u001b[H';
const CLEAR_LINE = '\u001b[K';
const CLEAR_BELOW = '\u001b[J';
/** How many of the last figures a sparkline shows. */
const SAMPLES = 24;

/** As many lines as there is room for, over those of before. */
function drawn(lines: readonly string[], room: number): string {
  const all = lines.slice(0, Math.max(1, room - 1)).map((line) => `${line}${CLEAR_LINE}\n`);
  return `${HOME}${all.join('')}${CLEAR_BELOW}`;
}

interface Seen {
  readonly stats: QueueStats;
  readonly vitals: QueueVitals;
}

async function look({ project }: Context<Flags>): Promise<Seen> {
  const { db, queue } = project;
  const values = new ShownValues(project);
  const stats = await queue.stats(db);
  const vitals = await queue.vitals(db);
  return { stats, vitals: { ...vitals, vitals: vitals.vitals.map((vital) => values.finding(vital)) } };
}

function documentOf({ stats, vitals }: Seen) {
  const { countedAt, tookMs, estimated, queues, kinds, rates } = stats;
  return {
    countedAt,
    tookMs,
    estimated,
    queues,
    kinds,
    rates: rates === undefined ? null : { minutes: rates.minutes, kinds: rates.kinds },
    severity: vitals.severity,
    vitals: vitals.vitals,
  };
}

function picture(
  context: Context<Flags>,
  seen: Seen,
  dues: ReadonlyMap<string, readonly number[]>,
): string[] {
  const { output, project } = context;
  const { stats } = seen;
  const time = stats.countedAt.toISOString().slice(11, 19);
  const watched = dues.size > 0;
  const head = ['QUEUE', 'DUE', 'RUNNING', 'SCHEDULED', 'WAITING', 'OLDEST DUE', 'DONE/MIN', 'WORKERS', ''];
  const rows = stats.queues.map((each) => rowOf(each, stats, watched ? (dues.get(each.queue) ?? []) : []));
  const lines = [
    output.styled(`The queues of ${project.source}, counted at ${time} UTC`, 'dim'),
    '',
    ...(rows.length === 0
      ? [
          'No queue has live jobs, a worker or a pause.',
          'Jobs that have ended: npx drizzle-queue list --state completed',
        ]
      : output.rows(head, rows, new Set([1, 2, 3, 4, 5, 6, 7]))),
  ];
  if (stats.estimated)
    lines.push('', output.styled('≥ at least, ≈ estimated: counting all would take too long', 'dim'));
  if (stats.rates === undefined) lines.push('', output.styled(noRates(project.queue), 'dim'));
  const wrong = seen.vitals.vitals.filter(({ severity }) => severity === 'error' || severity === 'warning');
  for (const { severity, message, fix } of wrong) {
    const style = severity === 'error' ? 'red' : 'yellow';
    lines.push('', `${output.styled(`${severity}:`, style)} ${inLine(message)}`, `  ${printable(fix)}`);
  }
  return lines;
}

function noRates({ metrics }: Queue): string {
  return metrics === undefined
    ? 'No rates: the queue has no metrics table'
    : 'No rates: the metrics table could not be read; doctor says whether it is missing';
}

/** If jobs are due but the oldest is unknown, looking for it timed out. */
function oldestText({ due, oldestDueMs, precision }: QueueCounts): string {
  if (oldestDueMs !== undefined) return duration(oldestDueMs);
  return due > 0 || precision === 'unknown' ? '?' : '–';
}

function rowOf(each: QueueCounts, stats: QueueStats, dues: readonly number[]): Cell[] {
  const { queue, due, running, scheduled, waiting, oldestDueMs, pausedAt, workers, precision } = each;
  const mark = { exact: '', 'at-least': '≥ ', estimated: '≈ ', unknown: '? ' }[precision];
  const count = (jobs: number): Cell => ({
    text: `${mark}${jobs.toLocaleString('en')}`,
    style: jobs === 0 ? 'dim' : undefined,
  });
  const perMinute = stats.rates?.kinds
    .filter((rate) => rate.queue === queue)
    .reduce((sum, rate) => sum + rate.perMinute, 0);
  const served: Cell = { text: String(workers), style: workers === 0 && due > 0 ? 'red' : undefined };
  const paused =
    pausedAt === undefined ? '' : `paused ${duration(stats.countedAt.getTime() - pausedAt.getTime())}`;
  return [
    { text: queue, style: 'bold' },
    count(due),
    count(running),
    count(scheduled),
    count(waiting),
    { text: oldestText(each), style: lateStyle(oldestDueMs) },
    { text: perMinute === undefined ? '–' : perMinute.toLocaleString('en', { maximumFractionDigits: 1 }) },
    served,
    paused === '' ? { text: sparkline(dues) } : { text: paused, style: 'yellow' },
  ];
}

function lateStyle(oldestDueMs = 0): Cell['style'] {
  return oldestDueMs > 600_000 ? 'red' : oldestDueMs > 60_000 ? 'yellow' : undefined;
}

const BARS = '▁▂▃▄▅▆▇█';

/** The last figures as small bars, the newest at the right. */
function sparkline(values: readonly number[]): string {
  const most = Math.max(1, ...values);
  return values.map((value) => BARS[Math.round((value / most) * (BARS.length - 1))]).join('');
}
