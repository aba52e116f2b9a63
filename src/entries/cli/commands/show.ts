import type { Command } from 'commander';
import type { JobRecord } from '../../../index.ts';
import { idOf } from '../arguments.ts';
import { type Answer, type Context, withProject } from '../context.ts';
import type { ExitCode } from '../exit-code.ts';
import { Failure } from '../failure.ts';
import { ShownValues } from '../shown-values.ts';
import { type FoundSteps, findStepsOf, printSteps } from '../steps.ts';
import { fromNow } from '../terminal/duration.ts';
import type { Output } from '../terminal/output.ts';
import { inLine } from '../terminal/printable.ts';
import { STATE_STYLES } from './list.ts';

/** `show`: all that is known of one job. */
export function addShow(program: Command, end: (code: ExitCode) => void): void {
  const command = program
    .command('show')
    .description('show everything about one job')
    .argument('<id>', 'the job id');
  withProject<object>(command, show, end);
}

async function show({ project, args: [given = ''], output }: Context<object>): Answer {
  const { db, queue } = project;
  const id = idOf(given);
  const job = await queue.find(db, id);
  if (job === undefined) {
    throw new Failure(
      `There is no job ${id}: it never existed, its result was pruned, or it completed with ` +
        'keepResult: false',
    );
  }
  const values = new ShownValues(project);
  const found = await findStepsOf(project, id);
  if (output.json) {
    const steps = found.steps?.map((step) => values.step(job, step)) ?? null;
    const { mailboxes, flow } = found;
    const shownFlow = flow && values.flow(flow);
    await output.document({ job: values.document(job), steps, mailboxes, flow: shownFlow });
  } else await print(output, job, found, values);
  return undefined;
}

async function print(output: Output, job: JobRecord, found: FoundSteps, values: ShownValues): Promise<void> {
  const now = Date.now();
  const moment = (date: Date | null) =>
    date === null ? 'unknown' : `${date.toISOString()} (${fromNow(date, now)})`;
  const facts: [name: string, value: string][] = [
    ['queue', job.queue],
    ['attempt', `${job.attempt} of ${job.maxAttempts}`],
    ['priority', String(job.priority)],
    ['enqueued', moment(job.createdAt)],
    // It has no time: it waits for something else.
    ...(job.state === 'waiting'
      ? []
      : [[job.state === 'scheduled' ? 'due' : 'became due', moment(job.runAt)] as [string, string]]),
  ];
  if ('claimedAt' in job && job.claimedAt !== null)
    facts.push(['claimed', `${moment(job.claimedAt)} by worker ${job.workerId}`]);
  if ('finishedAt' in job) facts.push(['ended', moment(job.finishedAt)]);
  if (job.uniqueKey !== null) facts.push(['unique key', values.text(job, 'uniqueKey', job.uniqueKey)]);
  if (job.group !== null) facts.push(['group', values.text(job, 'group', job.group)]);
  for (const [key, value] of values.ownOf(job)) facts.push([key, values.own(job, key, value)]);
  if ('cancelReason' in job && job.cancelReason !== null)
    facts.push(['cancel requested', values.text(job, 'error', job.cancelReason)]);
  if (found.flow !== null) {
    const { id, total, pending } = found.flow;
    facts.push(['flow', `${id} (${total - pending} of ${total} jobs have ended)`]);
  }
  if ('why' in found) facts.push(['steps', found.why]);

  await output.write(`${output.styled(`Job ${job.id}`, 'bold')} ${inLine(job.kind)} `);
  await output.line(job.state, STATE_STYLES[job.state]);
  const width = Math.max(...facts.map(([name]) => name.length));
  for (const [name, value] of facts) {
    await output.write(`  ${output.styled(name.padEnd(width), 'dim')}  `);
    await output.line(inLine(value));
  }
  const parts: [name: 'payload' | 'metadata' | 'progress' | 'output', value: unknown][] = [
    ['payload', job.payload],
    ['metadata', Object.keys(job.metadata).length === 0 ? null : job.metadata],
    ['progress', 'progress' in job ? job.progress : null],
    ['output', 'output' in job ? job.output : null],
  ];
  for (const [name, value] of parts) {
    if (value === null) continue;
    await output.line(name, 'bold');
    await output.line(value === undefined ? '  not kept' : indented(values.value(job, name, value, 2)));
  }
  await printSteps(output, job, found, values);
  if (job.errors.length > 0) await output.line('errors', 'bold');
  for (const error of job.errors) {
    // A job that was cancelled before its first attempt has none.
    await output.write(error.attempt ? `  attempt ${error.attempt}: ` : '  ');
    const name = values.text(job, 'errorName', error.name);
    await output.line(`${name}: ${values.text(job, 'error', error.message)}`, 'red');
    if (error.stack !== undefined) await output.line(indented(values.text(job, 'error', error.stack)), 'dim');
  }
}

function indented(text: string): string {
  return text.replaceAll(/^/gm, '  ');
}
