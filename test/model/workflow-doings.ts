import { defineJob, defineSignal, unvalidated } from 'drizzle-queue';
import { expect } from 'vitest';
import { claimJobs } from '../../src/core/queries/claim/claim-jobs.ts';
import { removeWorker } from '../../src/core/queries/presence/remove-worker.ts';
import { finishJobs } from '../../src/core/queries/settle/finish-jobs.ts';
import { parkJobs } from '../../src/core/queries/settle/park-jobs.ts';
import { rescheduleJobs } from '../../src/core/queries/settle/reschedule-jobs.ts';
import { Retries } from '../../src/core/time/retries.ts';
import { WorkerEmitter } from '../../src/core/worker/base/events.ts';
import { countBatch } from '../../src/features/batches/queries/count-batch.ts';
import { foldTallies } from '../../src/features/batches/queries/fold-tallies.ts';
import { isBlocked as isBlockedIn } from '../../src/features/batches/queries/is-blocked.ts';
import { tallyMissing } from '../../src/features/batches/queries/tally-missing.ts';
import { waitForBatches } from '../../src/features/batches/queries/wait-for-batches.ts';
import { endAllMembers } from '../../src/features/batches/worker/move-on.ts';
import { receiveSignal } from '../../src/features/workflows/queries/receive-signal.ts';
import { recordOneStep } from '../../src/features/workflows/queries/record-one-step.ts';
import { recordSteps, stepKey } from '../../src/features/workflows/queries/record-steps.ts';
import { StepFinder } from '../../src/features/workflows/worker/step-finder.ts';
import { StepRecorder } from '../../src/features/workflows/worker/step-recorder.ts';
import { storeInWorker } from '../../src/features/workflows/worker/step-store.ts';
import { finishOf, isFinish, isReschedule, settlementOf } from './endings.ts';
import { oneOf } from './one-of.ts';
import type { WorkflowDoings } from './workflow-happenings.ts';
import { batchOf, type ModelStep, type Run, signalOf, type WorkflowJob } from './workflow-model.ts';
import { expectMayBegin } from './workflow-state.ts';
import type { WorkflowAttempt, WorkflowWorld } from './workflow-world.ts';

const HOURS_MS = 10_800_000;
/** So many that no walk uses them up. */
const options = { maxAttempts: 1_000 };
const definitions = {
  mail: defineJob('kept', { queue: 'mail', output: unvalidated<unknown>() }),
  slow: defineJob('kept', { queue: 'slow', output: unvalidated<unknown>() }),
};
/** The same with a deadline, which is over when times pass. */
const timed = {
  mail: defineJob('kept', { queue: 'mail', output: unvalidated<unknown>(), deadlineMs: HOURS_MS }),
  slow: defineJob('kept', { queue: 'slow', output: unvalidated<unknown>(), deadlineMs: HOURS_MS }),
};
const signals = {
  approval: defineSignal('approval', unvalidated<number>()),
  payment: defineSignal('payment', unvalidated<number>()),
};
const BANDS = Array.from({ length: 10 }, (_, priority) => ({ priority, floorMs: Number.NEGATIVE_INFINITY }));

const holderOf = ({ queue, workerId }: WorkflowAttempt) => ({ queue, workerId });

/** How each thing is done, to the database and to the model. */
export function workflowDoings(world: WorkflowWorld): WorkflowDoings {
  const { app, transaction, queue, tables, model, saw, attempts } = world;
  const { db, client } = app;
  const { workflows } = queue;

  async function take(job: WorkflowJob, workerId: number, sweep: boolean): Promise<void> {
    const { id, queue: name } = job;
    const state = await world.read();
    const [claimed] = await claimJobs(db, tables, {
      queue: name,
      kinds: ['kept'],
      workerId,
      bands: BANDS,
      limit: 1,
      ids: [id],
      fromGoneWorkers: sweep,
    });
    expect(claimed?.id).toBe(id);
    if (claimed === undefined) return;
    const isBlocked = (claimed.blockers ?? 0) > 0 && (await isBlockedIn(db, tables, { id, queue: name }));
    expect(isBlocked).toBe(model.isBlocked(job));
    if (!isBlocked) expectMayBegin(state, model, id);
    if (job.workerId !== null) saw('a job taken over');
    model.claim(job, workerId);
    const steps = [...model.stepsOf(id).values()].map((step) => ({ ...step }));
    const taken = new Map<string, number>();
    for (const { kind, name, output } of steps) {
      if (kind !== 'signal' || output === undefined) continue;
      const signal = signalOf(name);
      taken.set(signal, (taken.get(signal) ?? 0) + 1);
    }
    // Those that a step has added to the flow are not waited for.
    const children = steps.filter(({ name }) => name.startsWith('children')).map(batchOf);
    attempts.push({
      ...{ id, queue: name, workerId, fence: claimed.fence, attempt: claimed.attempt, job: claimed, taken },
      memo: new Map(steps.map((step) => [step.name, step])),
      names: new Set(),
      children: new Set(children),
      waits: [],
      unwanted: job.unwanted,
      isOver: false,
    });
    if (job.unwanted) saw('a job claimed that is to end');
    if (steps.length > 0) saw('a job claimed that has steps');
    const attempt = attempts.at(-1);
    if (!isBlocked || attempt === undefined || job.unwanted) return;
    if (model.timed.has(id)) {
      await settle(attempt, 'fail for good');
      saw('a job that waits until its deadline');
    } else {
      // It was put back before it had heard of all that it waited for, and a batch was reopened.
      await park(attempt, null);
      job.waits = 'flow';
    }
  }

  /** Begins a step, unless the attempt has used the name, or it is over. */
  function begin(attempt: WorkflowAttempt, name: string): boolean {
    if (attempt.unwanted || attempt.names.has(name) || attempt.memo.get(name)?.ended === true) return false;
    attempt.names.add(name);
    return true;
  }

  const storeOf = (attempt: WorkflowAttempt, conn: typeof db) => {
    const { signal } = new AbortController();
    const retries = new Retries();
    const holder = holderOf(attempt);
    const events = new WorkerEmitter();
    return storeInWorker(
      {
        ...{ job: attempt.job, holder, environment: { db: conn, tables }, signal },
        completeRan: false,
        databaseNowMs: Date.now(),
        untilTimeoutMs: undefined,
        checkOpen: () => {},
        end: () => {},
        wait: () => {},
        endsAfter: () => {},
        onLeft: () => {},
        noteProgress: () => {},
        inContext: (task) => task(),
      },
      {
        ...{ db: conn, enqueuing: conn, tables, queue: world.workflowsOf, tokens: undefined },
        asking: { retries, events },
        finder: new StepFinder({ db, tables, queue: holder.queue }),
        recorder: new StepRecorder({ db, tables, holder, events, retries }),
      },
    );
  };

  async function enqueueBy(
    attempt: WorkflowAttempt,
    name: string,
    to: 'mail' | 'slow',
    members: number,
    as: 'parent' | 'detached' | 'members',
    conn = db,
  ) {
    const store = storeOf(attempt, conn);
    const entries = Array.from({ length: members }, () => options);
    const jobs = await store.check(definitions[to], entries, name);
    const { id, fence } = attempt;
    const enqueuing = store.enqueue({
      ...{ step: name, jobs, entries, as },
      toStep: (children) => ({
        ...{ id, fence, name, kind: 'enqueue', output: JSON.stringify(children), tookMs: 0, ended: true },
      }),
    });
    return await enqueuing;
  }

  async function fold(places: readonly number[] | undefined, conn = db): Promise<void> {
    const all = [...model.batches.keys()];
    const ids = places?.flatMap((place) => (all.length === 0 ? [] : oneOf(all, place)));
    const planned = model.planFold(ids);
    // It would wait for the transaction that has locked the row of one that waits.
    if (planned.targets.some((id) => model.lockedJobs.has(id))) return;
    const folded = await foldTallies(conn, tables, { ids, channel: undefined, locks: 'briefly' });
    // A redrive of several members notes them together.
    expect(folded.tallies > 0).toBe(planned.tallies.length > 0);
    const busy = (ids ?? [...new Set(model.tallies.map(({ batch }) => batch))]).filter((id) =>
      model.lockedBatches.has(id),
    );
    expect([...folded.busy].sort()).toEqual([...new Set(busy)].sort());
    if (busy.length > 0) saw('a batch that another fold counts left alone');
    expect([...folded.unwanted].sort()).toEqual(noteFold(() => model.fold(planned)).sort());
  }

  function noteFold(fold: () => number[]): number[] {
    const before = new Map(model.live.map((job) => [job.id, { ...job }]));
    const ended = new Set([...model.batches.values()].filter((batch) => batch.ended));
    const toEnd = fold();
    if ([...model.batches.values()].some((batch) => batch.ended && !ended.has(batch))) saw('a batch ended');
    for (const job of model.live) {
      const was = before.get(job.id);
      if (was?.run === 'never' && job.run === 'due')
        saw(job.waits === 'flow' ? 'a job of a flow made due' : 'a parked job made due');
      if (was?.run === 'held' && job.run === 'woken') saw('a job woken before it was parked');
      if (was?.unwanted === false && job.unwanted) saw('a job of a flow cancelled for a failure');
    }
    return toEnd;
  }

  function noteRedrive<T>(redrive: () => T): T {
    const spared = model.live.filter(({ id, unwanted }) => unwanted && model.cancelledWith.has(id));
    const redriven = redrive();
    if (spared.some(({ unwanted }) => !unwanted)) saw('a job that was to end with its flow goes on');
    return redriven;
  }

  async function settle(attempt: WorkflowAttempt, given: Parameters<typeof settlementOf>[1]): Promise<void> {
    const held = holderOf(attempt);
    const isHeld = model.holds(attempt);
    let ending = attempt.unwanted ? 'cancel' : given;
    if (ending === 'fail for good' && isHeld && model.get(attempt.id).unwanted) {
      // Its end was requested after the claim: it is not discarded, and then ends as cancelled.
      const discard = settlementOf(attempt, ending);
      expect(isFinish(discard) && (await finishJobs(db, tables, held, [discard])).size).toBe(0);
      ending = 'cancel';
    }
    const settlement = settlementOf(attempt, ending);
    const settled = isFinish(settlement)
      ? (await finishJobs(db, tables, held, [settlement])).size
      : isReschedule(settlement)
        ? (await rescheduleJobs(db, tables, held, [settlement])).size
        : 0;
    expect(settled).toBe(isHeld ? 1 : 0);
    attempt.isOver = true;
    if (!isHeld) {
      saw('a stale settlement refused');
      return;
    }
    const job = model.get(attempt.id);
    if (ending === 'complete') model.end(job.id, 'completed');
    else if (ending === 'fail for good') model.end(job.id, 'discarded');
    else if (ending === 'cancel') model.end(job.id, 'cancelled');
    else if (isReschedule(settlement)) {
      model.rest(job, ending === 'interrupt' ? 'due' : 'later', settlement.transition.attempt);
    }
    saw(`settled: ${ending}`);
  }

  async function park(attempt: WorkflowAttempt, delayMs: number | null): Promise<void> {
    const { id, fence, job } = attempt;
    const transition = { type: 'park', delayMs, attempt: job.attempt - 1, error: null } as const;
    const { parked } = await parkJobs(db, tables, holderOf(attempt), [{ id, fence, transition }]);
    attempt.isOver = true;
    expect([...parked.keys()]).toEqual(model.holds(attempt) ? [id] : []);
    if (model.holds(attempt)) model.park(attempt);
  }

  /** A job that has waits, or any. */
  const someJob = (index: number, isWaiting: boolean) => {
    const jobs = [...model.jobs.values()];
    return world.job(
      isWaiting ? jobs.filter((job) => job.run === 'never' && job.state === 'live') : jobs,
      index,
    );
  };

  async function send(
    conn: typeof db,
    to: { id: number; signal: keyof typeof signals; key: string | undefined },
  ) {
    const value = ++world.lastValue;
    return {
      value,
      answer: await workflows.signal(conn, { id: to.id }, signals[to.signal], value, { key: to.key }),
    };
  }

  return {
    enqueue: async ({ queue: name }) => {
      await queue.enqueue(db, definitions[name], undefined, options);
      await world.learn(null);
    },

    enqueueFlow: async ({ jobs }) => {
      const { id, jobIds } = await workflows.enqueueFlow(db, (flow) => {
        const nodes: ReturnType<typeof flow.add>[] = [];
        for (const { queue: name, after, onFailure, timed: isTimed } of jobs) {
          const parents = nodes.length === 0 ? [] : after.map((place) => oneOf(nodes, place));
          nodes.push(
            flow.add((isTimed ? timed : definitions)[name], undefined, {
              ...options,
              ...(parents.length > 0 && {
                after: parents,
                onFailure: onFailure === 'run' ? 'run' : 'cancel',
              }),
            }),
          );
        }
      });
      const state = await world.learn(id);
      const batchOf = (job: number) => state.jobs.find((row) => row.id === job)?.batch;
      for (const [place, { after, onFailure, timed: isTimed }] of jobs.entries()) {
        const parents = place === 0 ? [] : after.map((each) => jobIds[each % place]);
        const expected = [...new Set(parents.map((job) => batchOf(Number(job))))].sort(
          (a, b) => Number(a) - Number(b),
        );
        const waits = state.waits.filter(({ job }) => job === jobIds[place]);
        expect(waits.map(({ batch }) => batch)).toEqual(expected);
        for (const { policy } of waits) expect(policy).toBe(onFailure);
        expect(model.get(Number(jobIds[place])).blockers).toBe(
          expected.length === 0 ? null : expected.length,
        );
        if (isTimed) model.timed.add(Number(jobIds[place]));
        if (expected.length > 0)
          expect(model.get(Number(jobIds[place])).run).toBe(isTimed ? 'later' : 'never');
      }
      saw('a flow enqueued');
    },

    enqueueBatch: async ({ queue: name, members }) => {
      const entries = Array.from({ length: members }, () => options);
      const { id } = await workflows.enqueueBatch(db, definitions[name], entries, {
        last: definitions.slow,
        ...options,
      });
      await world.learn(id);
      expect(model.membersOf(id)).toHaveLength(members);
    },

    claim: async ({ worker, queue: name, sweep, limit }) => {
      const workerId = oneOf(world.workerIds, worker);
      const free = model.live.filter((job) => job.queue === name && model.isFree(job, workerId, sweep));
      const due = free.filter(({ workerId, run }) => workerId !== null || run === 'due');
      for (const job of due.slice(0, limit)) await take(job, workerId, sweep);
    },

    record: async ({ attempt: index, stale, place, ended, others }) => {
      const attempt = world.attempt(index, stale);
      const name = `run-${place}`;
      if (attempt === undefined || !begin(attempt, name)) return;
      const value = ended ? ++world.lastValue : undefined;
      const output = value === undefined ? undefined : String(value);
      const { id, fence } = attempt;
      const step = { id, fence, name, kind: 'run', output, tookMs: 0, ended } as const;
      const also = others
        ? attempts.find(
            (one) => one.workerId === attempt.workerId && one.queue === attempt.queue && one.id !== id,
          )
        : undefined;
      const isHeld = model.holds(attempt);
      if (also === undefined || model.lockedJobs.has(also.id)) {
        expect((await recordOneStep(db, tables, holderOf(attempt), step, 'briefly')) !== undefined).toBe(
          isHeld,
        );
      } else {
        // In one statement with another one, as workers do.
        const beside = { ...step, id: also.id, fence: also.fence - 1_000 };
        const recorded = await recordSteps(db, tables, holderOf(attempt), [step, beside], 'briefly');
        expect([...recorded.keys()]).toEqual(isHeld ? [stepKey(step)] : []);
        saw('steps recorded together');
      }
      if (!isHeld) {
        saw('a stale record refused');
        return;
      }
      model.record(attempt, { name, kind: 'run', ended, output: value, until: null });
      saw('a step recorded');
    },

    sleep: async ({ attempt: index, place, hours }) => {
      const attempt = world.attempt(index);
      const name = `sleep-${place}`;
      if (attempt === undefined || !begin(attempt, name)) return;
      const found = attempt.memo.get(name);
      if (found === undefined) {
        const { id, fence } = attempt;
        const delayMs = hours ? HOURS_MS : 0;
        const step = { id, fence, name, kind: 'sleep', delayMs, tookMs: 0, ended: false } as const;
        expect(await recordOneStep(db, tables, holderOf(attempt), step, 'briefly')).toBeDefined();
        model.record(attempt, {
          name,
          kind: 'sleep',
          ended: false,
          output: undefined,
          until: hours ? 'ahead' : 'passed',
        });
      }
      // What had passed when it was read is over.
      if (found?.until === 'passed') return;
      attempt.waits.push({
        type: 'time',
        run: (found?.until ?? (hours ? 'ahead' : 'passed')) === 'ahead' ? 'later' : 'due',
      });
    },

    receive: async ({ attempt: index, signal, place, timeout }) => {
      const attempt = world.attempt(index);
      const name = `${signal}-${place}`;
      if (attempt === undefined || model.lockedBoxes.has(`${attempt.id} ${signal}`) || !begin(attempt, name))
        return;
      const { id, fence } = attempt;
      const at = attempt.taken.get(signal) ?? 0;
      const isBehind = attempt.waits.some((wait) => wait.type === 'signal' && wait.signal === signal);
      const timeoutMs = timeout === 'none' ? undefined : timeout === 'over' ? 0 : HOURS_MS;
      const wanted = { id, fence, name, signal, at, isBehind, timeoutMs };
      const received = await receiveSignal(db, tables, holderOf(attempt), wanted, 'briefly');
      const until = timeout === 'none' ? null : timeout === 'over' ? 'passed' : 'ahead';
      const expected = model.receive(attempt, { name, signal, at, until, isBehind });
      expect(received?.type).toBe(expected);
      const step = model.stepsOf(id).get(name);
      if (received?.type === 'received') {
        expect(received.value).toBe(step?.output);
        attempt.taken.set(signal, at + 1);
      }
      if (received?.type === 'waiting') {
        const run: Run = until === null ? 'never' : step?.until === 'ahead' ? 'later' : 'due';
        // Whatever it is behind decides when it may sleep on.
        attempt.waits.push({ type: 'signal', signal, at: isBehind ? Number.POSITIVE_INFINITY : at, run });
        if (isBehind) saw('a signal waited for behind another wait');
      }
      saw(`a signal: ${expected}`);
    },

    children: async ({ attempt: index, stale, queue: to, place, members, detached }) => {
      const attempt = world.attempt(index, stale);
      const name = `children-${place}`;
      if (attempt === undefined || !begin(attempt, name)) return;
      const isHeld = model.holds(attempt);
      const children = await enqueueBy(attempt, name, to, members, detached ? 'detached' : 'parent');
      expect(children !== undefined).toBe(isHeld);
      await world.learn(null);
      if (children === undefined) {
        saw('children of a stale attempt refused');
        return;
      }
      expect(
        model
          .membersOf(children.batch)
          .map(({ id }) => id)
          .sort((a, b) => a - b),
      ).toEqual([...children.ids]);
      model.record(attempt, { name, kind: 'enqueue', ended: true, output: children, until: null });
      attempt.children.add(children.batch);
      saw('children enqueued');
    },

    grow: async ({ attempt: index, place, members }) => {
      const attempt = world.attempt(index);
      const name = `grown-${place}`;
      if (attempt === undefined || !begin(attempt, name)) return;
      const { batch } = model.get(attempt.id);
      const growing = enqueueBy(attempt, name, 'mail', members, 'members');
      if (batch === null || !model.canGrow(batch)) {
        await expect(growing).rejects.toThrow('does not belong to a flow');
        saw('a batch that does not grow');
        return;
      }
      const children = await growing;
      await world.learn(null);
      model.grow(batch, members);
      model.record(attempt, { name, kind: 'enqueue', ended: true, output: children, until: null });
      saw('a batch has grown');
    },

    waitFor: async ({ attempt: index, stale, which, failFast }) => {
      const attempt = world.attempt(index, stale);
      if (attempt === undefined || attempt.unwanted || attempt.children.size === 0) return;
      const children = [...attempt.children];
      const batchIds = [...new Set(which.map((place) => oneOf(children, place)))];
      if (batchIds.some((id) => model.lockedBatches.has(id))) return;
      const isBesideFailFast = attempt.waits.some(
        (wait) => wait.type === 'batches' && wait.failFast && wait.ids.some((id) => batchIds.includes(id)),
      );
      const { id, fence } = attempt;
      const wait = { id, fence, batchIds, failFast, isBesideFailFast };
      const isHeld = model.holds(attempt);
      const isOpen = await waitForBatches(db, tables, holderOf(attempt), wait, 'briefly');
      const expected = model.waitFor(attempt, batchIds, failFast, isBesideFailFast);
      expect(isOpen).toBe(isHeld ? expected : undefined);
      if (isOpen !== true) return;
      attempt.waits.push({ type: 'batches', ids: batchIds, failFast });
      saw(failFast ? 'waited for batches, or a failure' : 'waited for batches');
    },

    park: async ({ attempt: index, stale }) => {
      const attempt = world.attempt(index, stale);
      if (attempt === undefined || attempt.waits.length === 0) return;
      const runs = attempt.waits.map((wait) => (wait.type === 'batches' ? 'never' : wait.run));
      const delayMs = runs.includes('due') ? 0 : runs.includes('later') ? HOURS_MS : null;
      const isHeld = model.holds(attempt);
      await park(attempt, delayMs);
      if (!isHeld) return;
      saw(`parked: ${model.get(attempt.id).run}`);
    },

    settle: async ({ attempt: index, stale, ending }) => {
      const attempt = world.attempt(index, stale);
      if (attempt !== undefined) await settle(attempt, ending);
    },

    die: async ({ worker }) => {
      const id = oneOf(world.workerIds, worker);
      await removeWorker(db, queue.tables, id);
      model.livingWorkers.delete(id);
      await world.register(worker);
    },

    signal: async ({ job: index, waiting, signal, key }) => {
      const job = someJob(index, waiting);
      if (job === undefined || model.lockedBoxes.has(`${job.id} ${signal}`)) return;
      const { run } = job;
      const { value, answer } = await send(db, { id: job.id, signal, key });
      expect(answer).toBe(model.send(job.id, signal, value, key));
      saw(`signal: ${answer}`);
      if (run === 'never' && job.run === 'due') saw('a signal has made a job due');
    },

    signalWhile: async ({ signal: { job: index, waiting, signal, key }, commit, between }) => {
      const job = someJob(index, waiting);
      if (job === undefined) return;
      const { id } = job;
      const isWaiting = model.box(id, signal)?.waiting === true && job.state === 'live';
      const wasGone = job.state !== 'live';
      const undo = new Error('undo');
      let value = 0;
      const sending = transaction.db.transaction(async (tx) => {
        const sent = await send(tx as never, { id, signal, key });
        value = sent.value;
        const jobs = isWaiting && sent.answer === 'sent' ? [id] : [];
        await world.whileLocked({ jobs, boxes: [`${id} ${signal}`] }, between);
        if (!commit) throw undo;
        return sent.answer;
      });
      if (!commit) return await undone(sending, undo);
      const answer = await sending;
      // It was not live for the sender; it may have been put back in between.
      expect(answer === 'gone').toBe(wasGone);
      if (wasGone) return;
      // The job may have ended in between, which the sender has not seen: nobody reads what it leaves behind.
      if (model.get(id).state !== 'live') {
        await client`delete from queue_mailboxes where job_id = ${id} and name = ${signal}`;
        model.boxes.delete(`${id} ${signal}`);
        return;
      }
      expect(answer).toBe(model.send(id, signal, value, key));
      saw('a signal of a transaction that was open for a while');
    },

    endWhile: async ({ attempt: index, commit, between }) => {
      const attempt = world.attempt(index);
      if (attempt === undefined || attempt.unwanted) return;
      const undo = new Error('undo');
      const endedAt = model.time;
      const ending = transaction.db.transaction(async (tx) => {
        const ended = await finishJobs(tx, tables, holderOf(attempt), [finishOf(attempt, 'complete')]);
        expect(ended.size).toBe(1);
        await world.whileLocked({ jobs: [attempt.id] }, between);
        if (!commit) throw undo;
      });
      if (!commit) return await undone(ending, undo);
      await ending;
      attempt.isOver = true;
      model.end(attempt.id, 'completed', endedAt);
      saw('a member ended by a transaction that was open for a while');
    },

    foldWhile: async ({ commit, between }) => {
      const planned = model.planFold(undefined);
      if (planned.batches.length === 0) return;
      const undo = new Error('undo');
      const folding = transaction.db.transaction(async (tx) => {
        const folded = await foldTallies(tx, tables, { channel: undefined, locks: 'briefly' });
        // A redrive of several members notes them together.
        expect(folded.tallies > 0).toBe(planned.tallies.length > 0);
        await world.whileLocked({ jobs: planned.targets, batches: planned.batches }, between);
        if (!commit) throw undo;
      });
      if (!commit) await undone(folding, undo);
      else {
        await folding;
        noteFold(() => model.fold(planned));
      }
      saw(commit ? 'a fold that was open for a while' : 'a fold rolled back');
    },

    redriveFlowWhile: async ({ flow: index, commit, between }) => {
      const flow = flowAt(index);
      if (flow === undefined) return;
      const planned = model.planRedriveFlow(flow);
      const undo = new Error('undo');
      const redriving = transaction.db.transaction(async (tx) => {
        expect(await workflows.redriveFlow(tx, flow)).toBe(planned.redriven);
        await world.whileLocked(planned, between);
        if (!commit) throw undo;
      });
      if (!commit) return await undone(redriving, undo);
      await redriving;
      noteRedrive(planned.commit);
      saw('a redrive of a flow that was open for a while');
    },

    growWhile: async ({ grow: { attempt: index, place, members }, commit, between }) => {
      const attempt = world.attempt(index);
      const name = `grown-${place}`;
      if (attempt === undefined || !begin(attempt, name)) return;
      const { batch } = model.get(attempt.id);
      if (batch === null || !model.canGrow(batch)) return;
      const undo = new Error('undo');
      const grownAt = model.time;
      let output: unknown;
      const growing = transaction.db.transaction(async (tx) => {
        output = await enqueueBy(attempt, name, 'mail', members, 'members', tx as never);
        await world.whileLocked({ jobs: [attempt.id] }, between);
        if (!commit) throw undo;
      });
      if (!commit) return await undone(growing, undo);
      await growing;
      await world.learn(null);
      model.grow(batch, members);
      model.record(attempt, { name, kind: 'enqueue', ended: true, output, until: null }, grownAt);
      saw('a batch has grown by a transaction that was open for a while');
    },

    cancel: async ({ job: index, force }) => {
      const job = someJob(index, false);
      if (job === undefined) return;
      const answer = await queue.cancel(db, job.id, { force });
      if (job.state !== 'live') return;
      const ends = force || job.workerId === null;
      expect(answer).toEqual({ cancelled: ends ? true : 'requested' });
      saw(job.workerId !== null && force ? 'a held job cancelled by force' : 'a job cancelled');
      if (ends) model.end(job.id, 'cancelled');
      else job.unwanted = true;
    },

    cancelFlow: async ({ flow: index }) => {
      const flow = flowAt(index);
      if (flow === undefined) return;
      expect(await workflows.cancelFlow(db, flow)).toBe(model.cancelFlow(flow));
      saw('a flow cancelled');
    },

    endMembers: async () => {
      // Those that are locked it leaves alone; the model knows none that is left.
      if (model.lockedJobs.size > 0 || model.lockedBatches.size > 0) return;
      const unwanted = [...model.batches.values()].flatMap(({ id, unwanted }) => (unwanted ? id : []));
      await endAllMembers(db, tables, unwanted, undefined);
      model.endMembers();
      if (unwanted.length > 0) saw('members asked to end');
    },

    fold: ({ ids }) => fold(ids),

    redrive: async ({ job: index }) => {
      const discarded = [...model.jobs.values()].filter(({ state }) => state === 'discarded');
      const job = world.job(discarded, index);
      if (job === undefined) return;
      expect(await queue.redrive(db, { id: job.id })).toMatchObject({ redriven: 1 });
      model.redrive(job.id);
      saw(
        job.batch !== null && model.batch(job.batch).ended
          ? 'a member of an ended batch put back'
          : 'a job put back',
      );
    },

    redriveFlow: async ({ flow: index }) => {
      const flow = flowAt(index);
      // It waits for the batches, and for the jobs that wait for them.
      if (flow === undefined || model.lockedBatches.size > 0 || model.lockedJobs.size > 0) return;
      const redriven = noteRedrive(() => model.redriveFlow(flow));
      expect(await workflows.redriveFlow(db, flow)).toBe(redriven);
      saw(redriven > 0 ? 'a flow put back' : 'a flow without failures left as it is');
    },

    redriveFrom: async ({ job: index, step }) => {
      const job = world.job(
        [...model.jobs.values()].filter(({ id, state }) => state !== 'gone' && model.stepsOf(id).size > 0),
        index,
      );
      if (job === undefined) return;
      const from = oneOf([...model.stepsOf(job.id).keys()], step);
      // A signal that is just being sent, of those out of which it has received something.
      const isLocked = [...model.lockedBoxes].some((box) => {
        const [id, signal = ''] = box.split(' ');
        return Number(id) === job.id && (model.box(job.id, signal)?.received ?? 0) > 0;
      });
      const expected =
        job.state === 'completed'
          ? 'completed'
          : isLocked
            ? 'locked'
            : job.state === 'live' && (job.workerId !== null || job.unwanted)
              ? 'running'
              : 'redriven';
      expect(await workflows.redrive(db, job.id, { from })).toBe(expected);
      saw(`redriven from a step: ${expected}`);
      if (expected !== 'redriven') return;
      if (job.state === 'live') model.wake(job.id);
      else model.redrive(job.id);
      model.forget(job.id, from);
    },

    fork: async ({ job: index, step }) => {
      const jobs = [...model.jobs.values()];
      const forkable = jobs.filter(({ id, state }) => state !== 'gone' && model.stepsOf(id).size > 0);
      if (forkable.length === 0) return;
      // Children that had not ended when a later step began, and have since: seldom met by chance.
      const leaving = forkable.filter(({ id }) => endedLater(id).length > 0);
      const isSought = leaving.length > 0 && index % 2 === 0;
      // It waits for no lock.
      const { id, state, workerId } = oneOf(isSought ? leaving : forkable, index);
      const steps = [...model.stepsOf(id).values()];
      const from = oneOf(isSought ? endedLater(id) : steps, step);
      const forked = await workflows.fork(db, id, { from: from.name });
      const kept = model.fork(id, from.name, forked.id);
      expect(forked.steps).toBe(kept.length);
      saw(`a fork of a job: ${state === 'live' && workerId !== null ? 'held' : state}`);
      if (model.box(forked.id, 'approval') ?? model.box(forked.id, 'payment'))
        saw('a fork that has received signals');
      if (kept.some(({ kind }) => kind === 'enqueue')) saw('a fork that has children');
      for (const left of steps.filter(({ kind, began }) => kind === 'enqueue' && began < from.began)) {
        if (kept.some(({ name }) => name === left.name)) continue;
        const isOver = model.batch(batchOf(left)).ended;
        saw(`a fork without children that ${isOver ? 'ended later' : 'have not ended'}`);
      }
      if (model.waits.some(({ job }) => job === forked.id))
        saw('a fork that may ask for what its job had waited for');
    },

    finish: async ({ job: index, waiting }) => {
      const job = someJob(index, waiting);
      if (job === undefined) return;
      const expected =
        job.state !== 'live'
          ? 'gone'
          : job.workerId !== null
            ? 'running'
            : model.waitsNow(job)
              ? 'finished'
              : 'not-waiting';
      const to = { job: definitions[job.queue === 'mail' ? 'mail' : 'slow'], id: job.id };
      expect(await workflows.finish(db, to, 1)).toBe(expected);
      if (expected === 'finished') model.end(job.id, 'completed');
      saw(`finish: ${expected}`);
    },

    deleteRow: async ({ job: index }) => {
      const members = model.live.filter(({ batch }) => batch !== null && !model.batch(batch).ended);
      const job = world.job(members, index);
      if (job === undefined) return;
      await client`delete from queue_jobs where id = ${job.id}`;
      model.delete(job.id);
      saw('a row deleted by hand');
    },

    recount: async ({ batch: index, twice }) => {
      const open = [...model.batches.values()].filter(
        ({ id, ended }) => !ended && !model.lockedBatches.has(id),
      );
      if (open.length === 0) return;
      const { id } = oneOf(open, index);
      const counts = [await countBatch(db, tables, id), ...(twice ? [await countBatch(db, tables, id)] : [])];
      // In an open transaction there may be an end that is not there yet.
      for (const count of counts) {
        expect(count?.missing).toBe(model.missingOf(id));
        if (count !== undefined) await tallyMissing(db, tables, count);
      }
      if (model.missingOf(id) > 0) saw('members counted that were gone');
      model.recount(id);
    },

    timePasses: async () => {
      if (model.lockedJobs.size > 0) return;
      await client`update queue_jobs set run_at = statement_timestamp()
        where isfinite(run_at) and run_at > statement_timestamp() and worker_id is null`;
      await client`update queue_steps set until = statement_timestamp() where until > statement_timestamp()`;
      model.passTime();
    },
  };

  /** The steps before which children were enqueued that have ended after the step began. */
  function endedLater(id: number): ModelStep[] {
    const steps = [...model.stepsOf(id).values()];
    const children = steps.filter(({ kind }) => kind === 'enqueue');
    return steps.filter(({ began }) =>
      children.some((child) => {
        const batch = model.batch(batchOf(child));
        return child.began < began && batch.ended && !model.hadEnded(batch.id, began);
      }),
    );
  }

  function flowAt(index: number): number | undefined {
    const flows = [...new Set([...model.batches.values()].flatMap(({ flow }) => flow ?? []))];
    return flows.length === 0 ? undefined : oneOf(flows, index);
  }
}

/** A transaction is rolled back for that reason; what else has failed in it is thrown. */
async function undone(transaction: Promise<unknown>, undo: Error): Promise<void> {
  const reason = await transaction.then(
    () => new Error('it was committed'),
    (error: unknown) => error,
  );
  if (reason !== undo) throw reason;
}
