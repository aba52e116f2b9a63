import type { FlowRecord, Workflows } from '../../index.ts';
import { type JobRecord, type MailboxRecord, MissingMigrationError, type StepRecord } from '../../index.ts';
import { stepState } from '../dashboard/step-state.ts';
import type { Project } from './project/open-project.ts';
import type { ShownValues } from './shown-values.ts';
import { duration, fromNow } from './terminal/duration.ts';
import type { Output, Style } from './terminal/output.ts';
import { inLine } from './terminal/printable.ts';

/** The steps of a job, its mailboxes and its flow; without them, why there are none. */
export type FoundSteps =
  | {
      readonly steps: readonly StepRecord[];
      readonly mailboxes: readonly MailboxRecord[];
      /** `null` for a job that is in none. */
      readonly flow: FlowRecord | null;
    }
  | { readonly steps: null; readonly mailboxes: null; readonly flow: null; readonly why: string };

/** What the workflows of a job's queue know of it. */
export async function findStepsOf({ db, queue, config }: Project, id: number): Promise<FoundSteps> {
  // createQueue has put it there, or nothing.
  const workflows = queue.workflows as Workflows | undefined;
  if (workflows === undefined) {
    const lacks =
      config === undefined
        ? 'this database has no tables of workflows'
        : 'the queue of queue.config.ts has no workflows';
    return { steps: null, mailboxes: null, flow: null, why: `none: ${lacks}` };
  }
  try {
    const [steps, mailboxes] = [await workflows.steps(db, id), await workflows.mailboxes(db, id)];
    const flowId = await workflows.flowOf(db, id);
    const flow = flowId === undefined ? undefined : await workflows.flow(db, flowId);
    return { steps, mailboxes, flow: flow ?? null };
  } catch (error) {
    if (!(error instanceof MissingMigrationError)) throw error;
    const why = "unknown: the tables of 'drizzle-queue/schema/workflows' are missing in this database";
    return { steps: null, mailboxes: null, flow: null, why };
  }
}

const STYLES: Readonly<Record<ReturnType<typeof stepState>['tone'], Style | undefined>> = {
  good: 'green',
  bad: 'red',
  busy: 'cyan',
  later: 'yellow',
  plain: 'dim',
};

/** Prints the steps of a job in the order in which they began, and the signals that it has not received. */
export async function printSteps(
  output: Output,
  job: JobRecord,
  { steps, mailboxes }: FoundSteps,
  values: ShownValues,
): Promise<void> {
  if (steps !== null && steps.length > 0) await output.line('steps', 'bold');
  const now = Date.now();
  for (const step of steps ?? []) await printStep(output, job, step, values, now);
  const unheard = (mailboxes ?? []).filter(({ sent, received }) => sent > received);
  if (unheard.length > 0) await output.line('signals that were not received', 'bold');
  for (const { signal, sent, received, updatedAt } of unheard) {
    await output.line(`  ${inLine(signal)}: ${sent - received}, ${fromNow(updatedAt, now)}`);
  }
}

async function printStep(
  output: Output,
  job: JobRecord,
  step: StepRecord,
  values: ShownValues,
  now: number,
): Promise<void> {
  const { name, kind, signal, attempts, error, until, startedAt, endedAt } = step;
  const isLive = !('finishedAt' in job);
  const facts = { kind, hasOutput: step.output !== undefined, hasFailed: error !== null, endedAt };
  const state = stepState(facts, isLive);
  const told = [
    ...(endedAt === null ? [] : [`took ${duration(endedAt.getTime() - startedAt.getTime())}`]),
    ...(attempts > 1 ? [`${attempts} tries`] : []),
    `began ${fromNow(startedAt, now)}`,
    ...(signal === null || signal === name ? [] : [`signal '${signal}'`]),
    ...(endedAt !== null || until === null ? [] : [`until ${until.toISOString()} (${fromNow(until, now)})`]),
  ];
  await output.write(`  ${inLine(values.ofStep(job, 'step', name, name))} (${inLine(kind)}) `);
  await output.write(output.styled(state.text, STYLES[state.tone]));
  await output.line(inLine(`: ${told.join(', ')}`));
  if (step.output !== undefined) await output.line(inLine(`    ${values.stepOutput(job, step)}`));
  if (error === null) return;
  const errorName = values.ofStep(job, 'errorName', error.name, name);
  await output.line(`    ${errorName}: ${values.ofStep(job, 'error', error.message, name)}`, 'red');
}
