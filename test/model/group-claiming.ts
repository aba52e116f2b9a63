import { expect } from 'vitest';
import type { ClaimedJob } from '../../src/core/queries/claim/claim-jobs.ts';
import type { Runner } from '../../src/core/sql/executor.ts';
import { admitGroups, MAX_NOTES } from '../../src/features/limits/queries/admit-groups.ts';
import { claimGroupedJobs } from '../../src/features/limits/queries/claim-grouped-jobs.ts';
import { noteFreedGroups } from '../../src/features/limits/queries/note-groups.ts';
import { AT_ONCE, groupClaimOf } from '../queries/support/groups.ts';
import { expectAllowed, RUN, startable } from './group-rules.ts';
import type { Happenings } from './happenings.ts';
import type { ModelJob } from './model-job.ts';
import type { World } from './world.ts';

/** A claim's own part of what happens. */
export type GroupClaimStep = Pick<
  Happenings['claim'],
  'kinds' | 'limit' | 'sweep' | 'folds' | 'beginning'
> & {
  readonly queue: string;
};

/**
 * Tries in which a claim must take something of what may start. A group that has taken a job of cost 7 waits for as many turns
 * of each other one, of one with a share of 3 for three times as many; and a claim of one job looks at one group.
 */
const TRIES = 80;

/** A start that counts against rates, to be undone if its claim is. */
export interface Undoing {
  undo(): void;
}

/** Claims jobs of groups as a worker does, and as the rules say. */
export async function claimGroups(
  world: World,
  db: Runner,
  claim: GroupClaimStep,
  workerId: number,
): Promise<void> {
  for (let tries = 0; tries < TRIES; tries++) {
    await world.compare();
    const asked = { ...claim, workerId, fromUs: world.nowUs, pending: world.pending };
    const must = startable(world.model, asked);
    await prepare(world, db, { ...claim, sweep: claim.sweep || tries > 0 });
    const claimed = await send(world, db, claim, workerId);
    await judge(world, claim, workerId, claimed);
    if (claimed.length > 0 || must.length === 0) return;
    world.saw('a claim that took nothing of what may start');
    if (tries < TRIES - 1) continue;
    expect.fail(
      `nothing is claimed, though these may start: ${must.map(({ id, group }) => `${id} of ${group}`)}`,
    );
  }
}

/** Claims in a transaction, and says what it has taken, which counts when that commits. */
export async function claimGroupsWhile(
  world: World,
  { claim, commit, claimed: meanwhile }: Happenings['claimWhile'],
  workerId: number,
): Promise<void> {
  const { transaction, model } = world;
  const undone = new Error('undo');
  await prepare(world, world.app.db, claim);
  await world.compare();
  let finish = async (): Promise<void> => undefined;
  const claiming = transaction.db.transaction(async (tx) => {
    const claimed = await send(world, tx, claim, workerId);
    const jobs = jobsOf(world, claimed);
    const starts = await expectRules(world, claim, workerId, jobs);
    world.pending = jobs;
    const locked = await lockedJobs(world);
    for (const { id } of jobs) expect(locked, 'a claim locks what it takes').toContain(id);
    await world.whileLocked(locked, meanwhile);
    world.pending = undefined;
    if (!commit) {
      starts.undo();
      throw undone;
    }
    finish = async () => take(world, claim, workerId, claimed);
  });
  if (commit) await claiming;
  else await expect(claiming).rejects.toBe(undone);
  await finish();
  if (model.live.length > 0) world.saw(commit ? 'a claim beside others' : 'a claim rolled back');
}

/** The jobs whose rows a transaction has locked: a claim also those that a rate has kept it from taking. */
async function lockedJobs({ app, model }: World): Promise<number[]> {
  const free = await app.client<{ id: string }[]>`select id from queue_jobs for update skip locked`;
  const ids = new Set(free.map(({ id }) => Number(id)));
  return model.live.flatMap(({ id }) => (ids.has(id) ? [] : id));
}

/** What a claim has taken whose answer was lost, by the tables: the order does not matter to who begins none or all. */
export async function learnClaim(world: World, claim: GroupClaimStep, workerId: number): Promise<void> {
  const { app, model } = world;
  const rows = await app.client<{ id: string; fence: string }[]>`
    select id, fence from queue_jobs where queue = ${claim.queue} and worker_id = ${workerId}`;
  const fences = new Map(rows.map(({ id, fence }) => [Number(id), Number(fence)]));
  const jobs = model.live.filter(({ id, fence }) => (fences.get(id) ?? 0) > fence);
  const inOrder = jobs.sort(
    (a, b) => a.priority - b.priority || Number(a.runAt) - Number(b.runAt) || a.id - b.id,
  );
  await expectRules(world, claim, workerId, inOrder);
  model.take(inOrder, { ...claim, workerId, nowUs: world.nowUs });
}

/** As a worker does before a claim, where others are gone, and where there are many notes. */
export async function prepare(
  world: World,
  db: Runner,
  { queue, sweep, folds }: Pick<GroupClaimStep, 'queue' | 'sweep' | 'folds'>,
): Promise<void> {
  const { tables } = world.groupsOf(queue);
  if (sweep) await noteFreedGroups(db, tables, queue);
  while (folds && (await admitGroups(db, tables, queue)) >= MAX_NOTES);
}

export async function send(
  world: World,
  db: Runner,
  { queue, kinds, limit, beginning }: GroupClaimStep,
  workerId: number,
): Promise<readonly ClaimedJob[]> {
  const { tables, limits, serial } = world.groupsOf(queue);
  const claim = groupClaimOf(workerId, {
    queue,
    kinds,
    limit,
    beginning: beginningOf(beginning),
    starts: AT_ONCE,
    limits: { ...limits, run: serial === undefined ? undefined : RUN },
  });
  const { jobs } = await claimGroupedJobs(db, tables, claim);
  return jobs;
}

async function judge(
  world: World,
  claim: GroupClaimStep,
  workerId: number,
  claimed: readonly ClaimedJob[],
): Promise<void> {
  await expectRules(world, claim, workerId, jobsOf(world, claimed));
  take(world, claim, workerId, claimed);
}

/** A claim keeps to all rules; what it starts counts from now on. */
async function expectRules(
  world: World,
  claim: GroupClaimStep,
  workerId: number,
  jobs: readonly ModelJob[],
): Promise<Undoing> {
  const { model, pending, nowUs: fromUs } = world;
  const toUs = await world.now();
  expectAllowed(model, jobs, { ...claim, workerId, fromUs, toUs, pending });
  const undo: (() => void)[] = [];
  for (const job of jobs) {
    for (const { rate, model: starts } of model.groups.ratesOf(job)) {
      const start = { cost: Math.min(job.cost, rate.limit), fromUs, toUs };
      starts.add(start);
      undo.push(() => starts.remove(start));
    }
  }
  for (const job of jobs) {
    for (const { rate, model: starts } of model.groups.ratesOf(job)) {
      expect(starts.least(rate, toUs), `starts of ${rate.limit} in ${rate.perMs} ms`).toBeLessThanOrEqual(
        rate.limit,
      );
    }
    if (job.cost > 1 && model.groups.ratesOf(job).length > 0) world.saw('a cost counted');
    if (job.workerId !== null) world.saw('a job of a group taken over');
  }
  if (jobs.length > 1) world.saw('several claimed of groups');
  return { undo: () => undo.forEach((one) => void one()) };
}

function take(world: World, claim: GroupClaimStep, workerId: number, claimed: readonly ClaimedJob[]): void {
  const { model, claims } = world;
  const jobs = jobsOf(world, claimed);
  // They come in no order of their own.
  const beginning = beginningOf(claim.beginning);
  model.take(jobs, { ...claim, beginning, workerId, nowUs: world.nowUs });
  expect(claimed.map(({ id, attempt, fence, begun }) => ({ id, attempt, fence, begun }))).toEqual(
    jobs.map(({ id, attempt, fence, begun }) => ({ id, attempt, fence, begun })),
  );
  for (const job of claimed) {
    const { id, queue, fence, attempt } = job;
    claims.add({ id, queue, workerId, fence, attempt, job });
  }
}

function jobsOf({ model }: World, claimed: readonly ClaimedJob[]): ModelJob[] {
  return claimed.map(({ id }) => {
    const job = model.jobs.get(id);
    if (job === undefined) throw new Error(`a claim took ${id}, which nobody knows`);
    return job;
  });
}

function beginningOf(beginning: GroupClaimStep['beginning']): 0 | 1 {
  return beginning === 1 ? 1 : 0;
}
