import { expect } from 'vitest';
import type { JobModel } from './job-model.ts';
import { inOrder, known, type ModelJob } from './model-job.ts';

/** The most of a group that a claim takes where its jobs run one after the other. */
export const RUN = 3;

/** A claim of jobs of groups, as rules judge it. */
export interface JudgedClaim {
  readonly queue: string;
  readonly kinds: readonly string[];
  readonly limit: number;
  readonly workerId: number;
  /** Before and after the claim. */
  readonly fromUs: number;
  readonly toUs: number;
  /** What another claim has taken whose transaction is open, if there is one. */
  readonly pending: readonly ModelJob[] | undefined;
}

type Asked = Omit<JudgedClaim, 'toUs'>;

/** The jobs of a group that are due and held by nobody alive, in their order. */
function dueIn(model: JobModel, group: string, { queue, fromUs }: Asked): ModelJob[] {
  return model.live
    .filter((job) => job.queue === queue && job.group === group && known(job.runAt) <= fromUs)
    .filter(({ workerId }) => workerId === null || !model.livingWorkers.has(workerId))
    .sort(inOrder);
}

/** How many of its jobs are held by workers that live. */
export function heldIn(model: JobModel, queue: string, group: string): number {
  return model.live.filter(
    (job) =>
      job.queue === queue &&
      job.group === group &&
      job.workerId !== null &&
      model.livingWorkers.has(job.workerId),
  ).length;
}

/** The groups that have live jobs. */
export function groupsOf(model: JobModel, queue: string): string[] {
  return [...new Set(model.live.flatMap((job) => (job.queue === queue ? (job.group ?? []) : [])))];
}

/** A claim took nothing that it may not take. */
export function expectAllowed(model: JobModel, claimed: readonly ModelJob[], claim: JudgedClaim): void {
  expect(claimed.length, 'no more than were asked for').toBeLessThanOrEqual(claim.limit);
  for (const group of new Set(claimed.map(({ group }) => group))) {
    expect(group, 'a job without a group is in no claim').not.toBeNull();
    if (group === null) continue;
    const taken = claimed.filter((job) => job.group === group);
    const pending = (claim.pending ?? []).filter(
      (job) => job.queue === claim.queue && job.group === group,
    ).length;
    const held = heldIn(model, claim.queue, group) + pending;
    const due = dueIn(model, group, claim).filter(({ workerId }) => workerId !== claim.workerId);
    for (const job of taken) {
      expect(due, 'due, and held by nobody').toContain(job);
      expect(claim.kinds).toContain(job.kind);
      expect(model.locked, 'locked by nobody').not.toContain(job.id);
    }
    if (model.groups.serialOf(claim.queue) === undefined) {
      const most = model.groups.concurrencyOf(claim.queue, group);
      expect(held + taken.length, `held in '${group}'`).toBeLessThanOrEqual(most);
      continue;
    }
    expect(held, `'${group}' runs one after the other`).toBe(0);
    expect(model.groups.stopped(claim.queue, group, claim.toUs), `'${group}' is stopped`).not.toBe('yes');
    expect(taken.length).toBeLessThanOrEqual(RUN);
    const first = dueIn(model, group, claim).slice(0, taken.length);
    expect(
      taken.map(({ id }) => id),
      `the first of '${group}', in order`,
    ).toEqual(first.map(({ id }) => id));
  }
}

/** What surely may start: the first job of each group of which a claim must take something, sooner or later. */
export function startable(model: JobModel, claim: Asked): ModelJob[] {
  // Its groups are locked, and who else knows which.
  if (claim.pending !== undefined) return [];
  const groups = groupsOf(model, claim.queue);
  const allDue = groups.flatMap((group) => dueIn(model, group, claim));
  return groups.flatMap((group) => {
    const due = dueIn(model, group, claim);
    const mayTake = ({ id, kind, workerId }: ModelJob) =>
      claim.kinds.includes(kind) && !model.locked.has(id) && workerId !== claim.workerId;
    const isSerial = model.groups.serialOf(claim.queue) !== undefined;
    const first = isSerial ? due[0] : due.find(mayTake);
    if (first === undefined || !mayTake(first)) return [];
    if (heldIn(model, claim.queue, group) >= model.groups.concurrencyOf(claim.queue, group)) return [];
    if (model.groups.stopped(claim.queue, group, claim.fromUs) !== 'no') return [];
    const isFree = allDue
      .filter((job) => job.group === group || mayTake(job))
      .flatMap((job) => model.groups.ratesOf({ ...job, group }))
      .every(({ rate, model }) => {
        const dearest = Math.max(...allDue.map(({ cost }) => Math.min(cost, rate.limit)));
        return model.most(rate, claim.fromUs) + dearest <= rate.limit;
      });
    return isFree ? [first] : [];
  });
}
