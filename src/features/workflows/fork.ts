import { checkDefinition, type JobDefinition, type PayloadInput } from '../../core/job/definition.ts';
import { NO_GROUP } from '../../core/job/group.ts';
import { checkOptions, namesOf } from '../../core/job/known-options.ts';
import { checkId, checkText } from '../../core/job/limits.ts';
import { type NewJob, newJob } from '../../core/job/new-job.ts';
import { type EnqueueSettings, insertOneAround } from '../../core/queue/enqueue/enqueue-around.ts';
import type { OwnColumn } from '../../core/schema/own-columns.ts';
import type { Executor } from '../../core/sql/executor.ts';
import { faultPoint } from '../../core/sql/fault-point.ts';
import { textOf } from '../../core/sql/own-values.ts';
import { QueueError } from '../../errors.ts';
import { MAX_MADE_NAME_BYTES } from './job/step-names.ts';
import { copySteps } from './queries/copy-steps.ts';
import { findJobWithStep, type JobWithStep } from './queries/find-job-with-step.ts';
import type { TablesOfWorkflows } from './sql/workflow-tables.ts';
import { unknownStep } from './unknown-step.ts';

/** Options of {@link Workflows.fork}. */
export interface ForkOptions<TJob extends JobDefinition = JobDefinition> {
  /** The first step that the new job does itself. What had ended when it began is taken over. */
  readonly from: string;
  /** The definition of the job; needed with a `payload`. @default of any kind */
  readonly job?: TJob | undefined;
  /** @default that of the job, which a completed job with `keepResult: 'outcome'` no longer has */
  readonly payload?: PayloadInput<TJob> | undefined;
}

/** The job that a fork has enqueued. */
export interface ForkedJob {
  readonly id: number;
  /** How many steps it has taken over. */
  readonly steps: number;
}

const OPTIONS = namesOf<ForkOptions>({ from: true, job: true, payload: true });

/** Checks the options, and enqueues the job. To be called in a transaction. */
export async function fork<TJob extends JobDefinition>(
  tx: Executor,
  tables: TablesOfWorkflows,
  settings: EnqueueSettings,
  id: number,
  options: ForkOptions<TJob>,
): Promise<ForkedJob> {
  checkForkOptions(id, options);
  const { from, job } = options;
  const found = await findJobWithStep(tx, tables, id, from);
  if (found === undefined) throw new QueueError(`fork: there is no job ${id}, or its result is not kept`);
  const { queue, kind } = found;
  if (job !== undefined && job.kind !== kind) {
    throw new QueueError(`fork: job ${id} is of the kind '${kind}', not '${job.kind}'`);
  }
  if (!found.hasStep) throw await unknownStep(tx, tables, 'fork', { queue, id, from });
  const made = await forkedJob(found, settings, id, options);
  const shown: unknown = options.payload ?? JSON.parse(made.payload);
  const enqueued = await insertOneAround(tx, settings, made, shown);
  // Without a unique key nothing stands in its way.
  const to = Number(enqueued.id);
  await faultPoint('fork: inserted');
  const steps = await copySteps(tx, tables, { queue, id, from, to });
  if (steps === undefined) throw await unknownStep(tx, tables, 'fork', { queue, id, from });
  return { id: to, steps };
}

/** @throws TypeError before anything is sent */
export function checkForkOptions(id: number, options: ForkOptions): void {
  checkId('fork', id);
  const { from, job, payload } = checkOptions('fork: options', options, OPTIONS);
  checkText('fork: from', from, MAX_MADE_NAME_BYTES);
  if (job !== undefined) checkDefinition('fork', job);
  else if (payload !== undefined) {
    throw new TypeError('fork: a payload needs the definition of its job: { from, job, payload }');
  }
}

async function forkedJob<TJob extends JobDefinition>(
  found: JobWithStep,
  { own, maxPayloadBytes }: Pick<EnqueueSettings, 'own' | 'maxPayloadBytes'>,
  id: number,
  { job, payload }: ForkOptions<TJob>,
): Promise<NewJob> {
  const { queue, kind, priority, maxAttempts, metadata } = found;
  const group = found.group === NO_GROUP ? undefined : found.group;
  const same = {
    ...(group !== undefined && { group }),
    ...(found.cost !== undefined && { cost: found.cost }),
    ...(own.length > 0 && { own: ownTexts(own, found) }),
  };
  if (job !== undefined && payload !== undefined) {
    // The checks of an enqueue, and group and cost by the new payload where the definition says so.
    const made = await newJob(job, payload, { queue, priority, maxAttempts }, maxPayloadBytes);
    return { ...same, ...made, metadata };
  }
  if (found.payload === undefined) {
    throw new QueueError(`fork: the payload of job ${id} is not kept: give one, with { from, job, payload }`);
  }
  const when = { delayMs: 0, runAtMs: null, uniqueKey: null };
  return { ...same, ...when, queue, kind, payload: found.payload, priority, maxAttempts, metadata };
}

function ownTexts(own: readonly OwnColumn[], { kind, own: values }: JobWithStep): (string | null)[] {
  return own.map((column) => textOf(column, values[column.key], `fork('${kind}')`));
}
