import type postgres from 'postgres';
import { expect } from 'vitest';
import type { ModelBatch, Run, StepKindOfModel, Wait, WorkflowJob, WorkflowModel } from './workflow-model.ts';
import { isFlow } from './workflow-model.ts';

interface JobRow
  extends Pick<WorkflowJob, 'id' | 'queue' | 'batch' | 'workerId' | 'fence' | 'blockers' | 'unwanted'> {
  readonly run: Run;
}

interface StepRow {
  readonly job: number;
  readonly name: string;
  readonly kind: StepKindOfModel;
  readonly ended: boolean;
  readonly output: unknown;
}

interface BoxRow {
  readonly job: number;
  readonly name: string;
  readonly sent: readonly number[];
  readonly received: number;
  readonly waiting: boolean;
}

interface BatchRow extends Omit<ModelBatch, 'ended'> {
  readonly endedAt: string | null;
}

interface TallyRow {
  readonly batch: number;
  readonly added: number;
  readonly ended: number;
  readonly failed: number;
  readonly unwanted: boolean;
}

/** What the tables hold at one moment. */
export interface WorkflowState {
  readonly jobs: readonly JobRow[];
  readonly results: readonly { readonly id: number; readonly state: string; readonly batch: number | null }[];
  readonly steps: readonly StepRow[];
  readonly boxes: readonly BoxRow[];
  readonly batches: readonly BatchRow[];
  readonly waits: readonly { readonly batch: number; readonly job: number; readonly policy: string }[];
  /** The sums of each batch. */
  readonly tallies: readonly TallyRow[];
}

/** Reads all tables in one statement. */
export async function readWorkflows(client: postgres.Sql): Promise<WorkflowState> {
  const [row] = await client<[{ state: { [K in keyof WorkflowState]: WorkflowState[K] | null } }]>`
    select json_build_object(
      'jobs', (select json_agg(json_build_object('id', id, 'queue', queue, 'batch', batch_id, 'workerId', worker_id,
        'fence', fence, 'blockers', blockers, 'unwanted', cancel_reason is not null,
        'run', case when worker_id is not null then case when run_at > claimed_at then 'woken' else 'held' end
          when run_at = 'infinity' then 'never' when run_at > statement_timestamp() then 'later' else 'due' end
        ) order by id) from queue_jobs),
      'results', (select json_agg(json_build_object('id', job_id, 'state', state, 'batch', batch_id) order by job_id)
        from queue_results),
      'steps', (select json_agg(json_build_object('job', job_id, 'name', name, 'kind', kind,
        'ended', ended_at is not null, 'output', output) order by job_id, started_at, name) from queue_steps),
      'boxes', (select json_agg(json_build_object('job', job_id, 'name', name, 'received', received,
        'waiting', waiting, 'sent', jsonb_path_query_array(sent, '$[*].value')) order by job_id, name)
        from queue_mailboxes),
      'batches', (select json_agg(json_build_object('id', id, 'flow', flow_id, 'total', total, 'pending', pending,
        'failed', failed, 'waiting', waiting, 'unwanted', cancel_reason is not null, 'endedAt', ended_at::text)
        order by id) from queue_batches),
      'waits', (select json_agg(json_build_object('batch', batch_id, 'job', job_id, 'policy', policy)
        order by batch_id, job_id) from queue_waits),
      'tallies', (select json_agg(t order by t.batch) from (
        select batch_id as batch, sum(added) as added, sum(ended) as ended, sum(failed) as failed,
          bool_or(cancel_reason is not null) as unwanted
        from queue_tallies group by batch_id) as t)
    ) as state`;
  const { jobs, results, steps, boxes, batches, waits, tallies } = row.state;
  return {
    jobs: jobs ?? [],
    results: results ?? [],
    steps: steps ?? [],
    boxes: boxes ?? [],
    batches: batches ?? [],
    waits: waits ?? [],
    tallies: tallies ?? [],
  };
}

/** The tables hold what the model says. */
export function expectWorkflowsAsModelled(state: WorkflowState, model: WorkflowModel): void {
  const jobs = [...model.jobs.values()];
  expect(state.jobs, 'jobs').toEqual(
    model.live.sort(byId).map(({ state: _, waits: __, endedAt: ___, ...job }) => job),
  );
  expect(state.results, 'results').toEqual(
    jobs
      .filter((job) => job.state !== 'live' && job.state !== 'gone')
      .sort(byId)
      .map(({ id, state, batch }) => ({ id, state, batch })),
  );
  expect(state.steps, 'steps').toEqual(
    [...model.steps.entries()]
      .sort(([a], [b]) => a - b)
      .flatMap(([job, steps]) =>
        [...steps.values()].map(({ name, kind, ended, output = null }) => ({
          job,
          name,
          kind,
          ended,
          output,
        })),
      ),
  );
  expect(state.boxes, 'mailboxes').toEqual(
    [...model.boxes.entries()]
      .map(([key, { keys: _, ...box }]) => {
        const [job, name = ''] = key.split(' ');
        return { job: Number(job), name, ...box };
      })
      .sort((a, b) => a.job - b.job || (a.name < b.name ? -1 : 1)),
  );
  expect(
    state.batches.map(({ endedAt, ...batch }) => ({ ...batch, ended: endedAt !== null })),
    'batches',
  ).toEqual([...model.batches.values()].sort(byId));
  expect(state.waits, 'waits').toEqual([...model.waits].sort((a, b) => a.batch - b.batch || a.job - b.job));
  const noted = new Map<number, TallyRow>();
  for (const { batch, added, ended, failed, unwanted } of model.tallies) {
    const sum = noted.get(batch) ?? { batch, added: 0, ended: 0, failed: 0, unwanted: false };
    noted.set(batch, {
      batch,
      added: sum.added + added,
      ended: sum.ended + ended,
      failed: sum.failed + failed,
      unwanted: sum.unwanted || unwanted,
    });
  }
  expect(state.tallies, 'notes').toEqual([...noted.values()].sort((a, b) => a.batch - b.batch));
}

/** What was seen before, of what must not change. */
export interface SeenBefore {
  readonly steps: Map<string, StepRow>;
  readonly ends: Map<number, string>;
}

/**
 * What must hold whatever the model says of single operations. The fifth, that no job begins before what it waits for has ended, is
 * looked at when jobs are claimed.
 */
export function expectInvariants(state: WorkflowState, model: WorkflowModel, seen: SeenBefore): void {
  const batches = new Map(state.batches.map((batch) => [batch.id, batch]));
  const tallies = new Map(state.tallies.map((tally) => [tally.batch, tally]));
  const boxes = new Map(state.boxes.map((box) => [`${box.job} ${box.name}`, box]));

  // 1. What is parked has something to wait for, all that it waits for.
  for (const { id, run } of state.jobs) {
    if (run !== 'never') continue;
    const { waits } = model.get(id);
    const unmet = (wait: Wait): boolean => {
      if (wait.type === 'time') return false;
      if (wait.type === 'signal') return (boxes.get(`${id} ${wait.signal}`)?.sent.length ?? 0) <= wait.at;
      const of = wait.ids.map((batch) => batches.get(batch));
      return (
        of.some((batch) => batch?.endedAt === null) &&
        !(wait.failFast && of.some((batch) => Number(batch?.failed) > 0))
      );
    };
    const before = state.waits.filter(
      (wait) => wait.job === id && (wait.policy === 'run' || wait.policy === 'cancel'),
    );
    const isUnmet =
      waits === 'flow'
        ? before.some(({ batch }) => batches.get(batch)?.endedAt === null)
        : waits.every(unmet);
    expect(isUnmet, `job ${id}, which is parked, waits for something: ${JSON.stringify(waits)}`).toBe(true);
  }

  for (const { id, total, pending, failed, endedAt } of state.batches) {
    const { added = 0, ended = 0, failed: failing = 0 } = tallies.get(id) ?? {};
    const live = state.jobs.filter(({ batch }) => batch === id).length;
    const gone = model.membersOf(id).filter((job) => job.state === 'gone').length;
    const results = state.results.filter(({ batch }) => batch === id);
    // 2. What is pending is live, or its end is noted and not counted yet; or it is gone without a note.
    expect(pending + added - ended, `batch ${id}: pending`).toBe(live + model.missingOf(id));
    // 7. No result without its note.
    expect(total + added - (pending + added - ended), `batch ${id}: ended`).toBe(
      results.length + gone - model.missingOf(id),
    );
    const failures = results.filter((result) => result.state !== 'completed').length;
    expect(failed + failing, `batch ${id}: failed`).toBe(failures + gone - model.missingOf(id));
    // 6. A batch ends once, with no live member.
    const before = seen.ends.get(id);
    if (endedAt === null) seen.ends.delete(id);
    else if (before === undefined) {
      seen.ends.set(id, endedAt);
      expect(live + ended, `batch ${id} has ended: live members`).toBeLessThanOrEqual(0);
    } else expect(endedAt, `the end of batch ${id}`).toBe(before);
  }

  // 3. A step that has ended never changes. One that was forgotten may be done again.
  const now = new Map(state.steps.map((step) => [`${step.job} ${step.name}`, step]));
  for (const [key, step] of seen.steps) {
    if (now.has(key)) expect(now.get(key), 'a step that has ended').toEqual(step);
    else seen.steps.delete(key);
  }
  for (const [key, step] of now) if (step.ended) seen.steps.set(key, step);

  // 4. What was received is a prefix of what was sent.
  for (const { job, name, sent } of state.boxes) {
    if (model.rewound.has(job)) continue;
    const received = [...model.stepsOf(job).values()].flatMap((step) =>
      step.kind === 'signal' && step.name.startsWith(name) && typeof step.output === 'number'
        ? step.output
        : [],
    );
    expect(
      received.sort((a, b) => a - b),
      `received by job ${job}`,
    ).toEqual(sent.slice(0, received.length));
  }
}

/** 5. No job begins before all that it waits for has ended; one that is to end is not run. */
export function expectMayBegin(state: WorkflowState, model: WorkflowModel, id: number): void {
  const { unwanted, fence } = model.get(id);
  // One that has begun before goes on.
  if (unwanted || fence > 0) return;
  for (const wait of model.waits.filter((wait) => wait.job === id && isFlow(wait))) {
    const batch = state.batches.find(({ id }) => id === wait.batch);
    expect(batch?.endedAt, `job ${id} begins after batch ${wait.batch}`).not.toBeNull();
  }
}

function byId(a: { readonly id: number }, b: { readonly id: number }): number {
  return a.id - b.id;
}
