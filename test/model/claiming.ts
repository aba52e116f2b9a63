import { expect } from 'vitest';
import { beginFreeJobs, beginJobs } from '../../src/core/queries/begin/begin-jobs.ts';
import { type Claim, type ClaimedJob, claimJobs } from '../../src/core/queries/claim/claim-jobs.ts';
import { type ClaimPlace, findOverlooked, type Reach } from '../../src/core/queries/claim/find-overlooked.ts';
import { releaseUnknown } from '../queries/support/release-unknown.ts';
import {
  claimGroups,
  claimGroupsWhile,
  learnClaim,
  prepare,
  send as sendGroupClaim,
} from './group-claiming.ts';
import type { Doings, Happenings } from './happenings.ts';
import { LostAnswer } from './interrupted.ts';
import type { ModelClaim } from './model-job.ts';
import { oneOf } from './one-of.ts';
import type { World } from './world.ts';

/** As if claims had passed all that is due. */
const EVERYTHING = new Array<Reach>(10).fill({
  floorMs: Number.POSITIVE_INFINITY,
  endMs: Number.POSITIVE_INFINITY,
});
/** Few enough that most sweeps take several. */
const SLICE = 3;
const BANDS = Array.from({ length: 10 }, (_, priority) => ({ priority, floorMs: Number.NEGATIVE_INFINITY }));

/** By which id a claim is made. */
function claimant(
  { everyWorkerId, workerIds }: World,
  { worker, byOneOfThePast }: Happenings['claim'],
): number {
  return oneOf(byOneOfThePast ? everyWorkerId : workerIds, worker);
}

/** Claims from the start, or what a sweep finds, slice by slice, by its ids. */
async function claimJobsAs(
  workerId: number,
  { workers, tables }: World,
  { worker, sweep, queue, kinds, limit, beginning }: Happenings['claim'],
): Promise<ClaimedJob[]> {
  const { db } = oneOf(workers, worker);
  const claim = { queue, kinds, workerId, bands: BANDS };
  if (!sweep) return claimJobs(db, tables, { ...claim, limit, beginning, fromGoneWorkers: false });
  const claimed: ClaimedJob[] = [];
  let after: ClaimPlace | undefined;
  do {
    const looks = [{ queue, passed: EVERYTHING, after }];
    const { found, stopped } = await findOverlooked(db, tables, { looks, kinds, workerId, slice: SLICE });
    // One after the other: those that are locked do not count.
    for (const { id } of found.get(queue) ?? []) {
      if (claimed.length === limit) break;
      // Only the first of all that are claimed here may begin at once.
      const first = claimed.length === 0 ? firstOnly(beginning) : beginning && 0;
      const one = { ...claim, ids: [id], limit: 1, beginning: first, fromGoneWorkers: true };
      claimed.push(...(await claimJobs(db, tables, one)));
    }
    after = stopped?.after;
  } while (after !== undefined && claimed.length < limit);
  return claimed;
}

/** A sweep claims in no order, so it begins no more than the first. */
export function firstOnly(beginning: Claim['beginning']): 0 | 1 | undefined {
  return typeof beginning === 'object' ? 0 : beginning;
}

/** Claims as a worker does, and as the model says: by its own id, or by another. */
export async function claim(world: World, claim: Happenings['claim'], as?: number): Promise<void> {
  const { model, claims, saw } = world;
  if (model.groups.isGrouped(claim.queue)) {
    const { db } = oneOf(world.workers, claim.worker);
    await claimGroups(world, db, claim, as ?? claimant(world, claim));
    return;
  }
  // A claim goes by times that the model may not know yet.
  await world.compare();
  const workerId = as ?? claimant(world, claim);
  const held = model.live.filter((job) => job.workerId !== null);
  const takenOver = new Set(held.map(({ id }) => id));
  const takenOverUnbegun = new Set(held.filter(({ begun }) => !begun).map(({ id }) => id));
  const modelled: ModelClaim = { ...claim, workerId, nowUs: world.nowUs };
  if (model.claimable(modelled).some(({ id }) => model.locked.has(id)))
    saw('a job left alone that a transaction has locked');
  const jobs = await claimJobsAs(workerId, world, claim);
  const expected = model.claim(modelled);
  expect(jobs.map(({ id, attempt, fence, begun }) => ({ id, attempt, fence, begun }))).toEqual(
    expected.map(({ id, attempt, fence, begun }) => ({ id, attempt, fence, begun })),
  );
  for (const job of jobs) {
    const { id, queue, fence, attempt } = job;
    claims.add({ id, queue, workerId, fence, attempt, job });
    if (takenOver.has(id)) saw('a job taken over from a worker that is gone');
    if (takenOverUnbegun.has(id)) saw('a job taken over that had not begun');
    if (!job.begun) saw('a job claimed without beginning');
    else if (typeof claim.beginning === 'object' && attempt === job.maxAttempts)
      saw('a last attempt begun by its claim');
    if (attempt > job.maxAttempts) saw('a job claimed beyond its attempts');
  }
  const isGone = !model.livingWorkers.has(workerId);
  if (isGone && jobs.length > 0) saw('claimed by a worker that is gone');
  const ownLeft = model.live.filter(
    (job) => job.workerId === workerId && job.queue === claim.queue && !expected.includes(job),
  );
  if (
    isGone &&
    claim.sweep &&
    jobs.length < claim.limit &&
    ownLeft.some(({ kind }) => claim.kinds.includes(kind))
  )
    saw('a worker that is gone left alone what it holds');
  if (jobs.length > 1) saw('several claimed');
  if (jobs.length === claim.limit) saw('a claim reached its limit');
}

/** How workers come to have jobs, and give back what they do not know to have. */
export function claiming(
  world: World,
): Pick<Doings, 'claim' | 'claimTwice' | 'claimWhile' | 'begin' | 'beginFree' | 'claimLost' | 'release'> {
  const { workers, tables, model, claims, saw } = world;
  return {
    claim: (to) => claim(world, to),

    claimTwice: async (to) => {
      await claim(world, to);
      await claim(world, { ...to, worker: to.worker + 1, sweep: true });
    },

    claimWhile: async (to) => {
      const { claim } = to;
      if (model.groups.isGrouped(claim.queue)) await claimGroupsWhile(world, to, claimant(world, claim));
    },

    begin: async ({ attempt, late, twice }) => {
      const one = late ? claims.any(attempt) : undefined;
      const together = one === undefined ? claims.ofOneWorker(attempt) : [one];
      const [first] = together;
      if (first === undefined) return;
      const { db } = world.app;
      const begun = new Set(together.filter((claimed) => model.begin(claimed)).map(({ id }) => id));
      for (let times = twice ? 2 : 1; times > 0; times--)
        expect(await beginJobs(db, tables, first, together)).toEqual(begun);
      saw(begun.size > 0 ? 'begun' : 'a job that is not held does not begin');
    },

    beginFree: async ({ attempt }) => {
      const together = claims.ofOneWorker(attempt);
      const [first] = together;
      if (first === undefined) return;
      const isLocked = (claimed: (typeof together)[number]) =>
        model.locked.has(claimed.id) && model.holds(claimed);
      const locked = new Set(together.filter(isLocked).map(({ id }) => id));
      const begun = new Set(
        together.filter((claimed) => !isLocked(claimed) && model.begin(claimed)).map(({ id }) => id),
      );
      expect(await beginFreeJobs(world.app.db, tables, first, together)).toEqual({ begun, locked });
      if (locked.size > 0) saw('a locked job does not begin');
    },

    claimLost: async ({ claim, answered }) => {
      await world.compare();
      const workerId = claimant(world, claim);
      const lost = new LostAnswer();
      const { queue, kinds, limit, sweep, worker } = claim;
      const beginning = sweep ? firstOnly(claim.beginning) : claim.beginning;
      const where = { queue, kinds, bands: BANDS, fromGoneWorkers: sweep };
      const inOne = { ...where, workerId, limit, beginning };
      const isGrouped = model.groups.isGrouped(queue);
      // Who begins with its claim is known by the order that it says.
      const inGroups = { ...claim, beginning: 0 as const };
      const { db: claimer } = oneOf(workers, worker);
      if (isGrouped) await prepare(world, claimer, claim);
      const send = isGrouped
        ? () => sendGroupClaim(world, claimer, inGroups, workerId)
        : () => claimJobs(claimer, tables, inOne);
      const claiming = world.interrupted(send, {
        'claim: answered': async () => {
          if (isGrouped) await learnClaim(world, inGroups, workerId);
          else model.claim({ ...claim, workerId, nowUs: world.nowUs });
          await world.takeAll(answered);
          throw lost;
        },
      });
      await expect(claiming).rejects.toBe(lost);
      // As a worker does after it: it gives back what it does not know to hold.
      const except = claims.unsettled.filter(
        (claimed) => claimed.workerId === workerId && claimed.queue === claim.queue,
      );
      const expected = model.release(workerId, claim.queue, except);
      const { db } = oneOf(workers, claim.worker);
      const ids = { after: 0 };
      expect(await releaseUnknown(db, { queue: claim.queue, workerId, except, ids }, tables)).toBe(expected);
      if (expected > 0) saw('jobs of a lost answer given back');
    },

    release: async ({ worker, queue, except, earlier }) => {
      const workerId = oneOf(world.workerIds, worker);
      const { id = 0, fence = 0 } = world.anyJob(except) ?? {};
      const known = [{ id, fence: earlier ? fence - 1 : fence }];
      const expected = model.release(workerId, queue, known);
      const { db } = oneOf(workers, worker);
      const held = { queue, workerId, except: known, ids: { after: 0 } };
      expect(await releaseUnknown(db, held, tables)).toBe(expected);
      if (expected > 0) saw('jobs released');
    },
  };
}
