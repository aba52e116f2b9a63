/**
 * The life of workflows as plain data: what the tables must hold of steps, mailboxes, batches and notes after each thing that can
 * happen. Written from the documentation, as the model of jobs is.
 */

import type { WaitPolicy } from '../../src/features/batches/schema/queue-waits.ts';

export type StepKindOfModel = 'run' | 'sleep' | 'signal' | 'enqueue' | 'wait';
export type EndState = 'completed' | 'discarded' | 'cancelled';

/** When an unheld job is due: at once, in some hours, or when something wakes it; of a held one, whether it was woken. */
export type Run = 'due' | 'later' | 'never' | 'held' | 'woken';

/** A wait that an attempt has said to the database. */
export type Wait =
  | { readonly type: 'time'; readonly run: Run }
  | { readonly type: 'signal'; readonly signal: string; readonly at: number; readonly run: Run }
  | { readonly type: 'batches'; readonly ids: readonly number[]; readonly failFast: boolean };

export interface WorkflowJob {
  readonly id: number;
  readonly queue: string;
  readonly batch: number | null;
  /** `gone`: its row was deleted by hand. */
  state: 'live' | EndState | 'gone';
  workerId: number | null;
  fence: number;
  run: Run;
  blockers: number | null;
  /** Whether it is to end without being run. */
  unwanted: boolean;
  /** When it ended last; see `time`. */
  endedAt: number;
  /** What the attempt that has parked it waits for; `flow`: what has to end before it begins. */
  waits: readonly Wait[] | 'flow';
}

export interface ModelStep {
  readonly name: string;
  readonly kind: StepKindOfModel;
  fence: number;
  ended: boolean;
  output: unknown;
  until: 'passed' | 'ahead' | null;
  /** When it was first recorded, and when it had ended; see `time`. A sleep ends when its time passes. */
  readonly began: number;
  over: number | null;
}

export interface ModelBox {
  readonly sent: number[];
  readonly keys: Set<string>;
  received: number;
  waiting: boolean;
}

export interface ModelBatch {
  readonly id: number;
  readonly flow: number | null;
  total: number;
  pending: number;
  failed: number;
  waiting: 'end' | 'failure' | null;
  unwanted: boolean;
  ended: boolean;
}

export interface ModelWait {
  readonly batch: number;
  readonly job: number;
  readonly policy: WaitPolicy;
}

/** A note: what has become of members since their batch was counted. */
export interface ModelTally {
  readonly batch: number;
  readonly added: number;
  readonly ended: number;
  readonly failed: number;
  readonly unwanted: boolean;
}

/** What a fold does, decided by what it sees. */
export interface ModelFold {
  readonly tallies: readonly ModelTally[];
  readonly batches: readonly number[];
  /** The jobs that it makes due, or tells. */
  readonly targets: readonly number[];
}

/** What a redrive of a flow does, decided by what it sees. */
export interface ModelRedrive {
  readonly redriven: number;
  /** The jobs and batches that it locks. */
  readonly jobs: readonly number[];
  readonly batches: readonly number[];
  readonly commit: () => void;
}

/** A claim of one job, kept by the worker that made it, even when it has long lost the job. */
export interface Attempt {
  readonly id: number;
  readonly queue: string;
  readonly workerId: number;
  readonly fence: number;
  readonly attempt: number;
  /** What it has read. */
  readonly memo: ReadonlyMap<string, Readonly<ModelStep>>;
  /** The names that it has used. */
  readonly names: Set<string>;
  /** How many signals of a name it has taken, or waits for. */
  readonly taken: Map<string, number>;
  /** The batches of the children that it knows. */
  readonly children: Set<number>;
  readonly waits: Wait[];
  /** The job is to end: no handler runs. */
  readonly unwanted: boolean;
  isOver: boolean;
}

export class WorkflowModel {
  readonly jobs = new Map<number, WorkflowJob>();
  readonly steps = new Map<number, Map<string, ModelStep>>();
  readonly boxes = new Map<string, ModelBox>();
  readonly batches = new Map<number, ModelBatch>();
  waits: ModelWait[] = [];
  /** Jobs that were told to end for the failure of one before them. */
  readonly failedBefore = new Set<number>();
  /** Jobs that were told to end with their batch. */
  readonly cancelledWith = new Set<number>();
  tallies: ModelTally[] = [];
  /** Jobs that have spent an attempt. */
  readonly attempted = new Set<number>();
  readonly livingWorkers = new Set<number>();
  /** How many things have happened: of two of them it says which came first. */
  time = 0;
  /** How many members are gone without a note, by their batch. */
  readonly missing = new Map<number, number>();
  /** The jobs of which steps were forgotten that had received signals: others may receive these again. */
  readonly rewound = new Set<number>();
  /** The jobs that have a deadline. */
  readonly timed = new Set<number>();
  /** What an open transaction has locked. */
  lockedJobs: ReadonlySet<number> = new Set();
  lockedBatches: ReadonlySet<number> = new Set();
  lockedBoxes: ReadonlySet<string> = new Set();

  get live(): WorkflowJob[] {
    return [...this.jobs.values()].filter(({ state }) => state === 'live');
  }

  get(id: number): WorkflowJob {
    const job = this.jobs.get(id);
    if (job === undefined) throw new Error(`the model knows no job ${id}`);
    return job;
  }

  batch(id: number): ModelBatch {
    const batch = this.batches.get(id);
    if (batch === undefined) throw new Error(`the model knows no batch ${id}`);
    return batch;
  }

  membersOf(batch: number): WorkflowJob[] {
    return [...this.jobs.values()].filter((job) => job.batch === batch);
  }

  stepsOf(id: number): Map<string, ModelStep> {
    const steps = this.steps.get(id) ?? new Map<string, ModelStep>();
    this.steps.set(id, steps);
    return steps;
  }

  holds({ id, workerId, fence }: Pick<Attempt, 'id' | 'workerId' | 'fence'>): boolean {
    const job = this.jobs.get(id);
    return job?.state === 'live' && job.workerId === workerId && job.fence === fence;
  }

  add(job: Pick<WorkflowJob, 'id' | 'queue' | 'batch' | 'blockers'>, blocked: Run = 'never'): void {
    const isBlocked = job.blockers !== null;
    this.jobs.set(job.id, {
      ...job,
      state: 'live',
      endedAt: 0,
      workerId: null,
      fence: 0,
      run: isBlocked ? blocked : 'due',
      unwanted: false,
      waits: isBlocked ? 'flow' : [],
    });
  }

  open(id: number, members: number, flow: number | null): void {
    const rest = { failed: 0, waiting: null, unwanted: false, ended: members === 0 };
    this.batches.set(id, { id, flow, total: members, pending: members, ...rest });
  }

  isFree({ workerId, id }: WorkflowJob, claimer: number, sweep: boolean): boolean {
    if (this.lockedJobs.has(id)) return false;
    return workerId === null || (sweep && workerId !== claimer && !this.livingWorkers.has(workerId));
  }

  claim(job: WorkflowJob, workerId: number): void {
    job.workerId = workerId;
    job.fence++;
    job.run = 'held';
    job.waits = [];
  }

  /** A member leaves the table: it is noted in the same commit; and that its children are to end, if it is cancelled. */
  end(id: number, state: EndState, at = this.time): void {
    const job = this.get(id);
    job.state = state;
    job.endedAt = at;
    job.unwanted = false;
    this.failedBefore.delete(id);
    this.cancelledWith.delete(id);
    this.attempted.delete(id);
    const failed = state === 'completed' ? 0 : 1;
    if (job.batch !== null) this.#note({ batch: job.batch, ended: 1, failed });
    if (state !== 'cancelled') return;
    for (const { batch, policy, job } of this.waits)
      if (job === id && policy === 'parent') this.#note({ batch, unwanted: true });
  }

  /** Back from its results, due at once. */
  redrive(id: number): void {
    const job = this.get(id);
    job.state = 'live';
    job.workerId = null;
    job.blockers = null;
    job.run = 'due';
    job.waits = [];
    if (job.batch !== null) this.#note({ batch: job.batch, ended: -1, failed: -1 });
  }

  /** It was sleeping, or is held and about to: it runs again at once. */
  wake(id: number): void {
    const job = this.get(id);
    job.run = job.workerId === null ? 'due' : 'woken';
  }

  putBack(job: WorkflowJob, run: Run): void {
    job.workerId = null;
    job.run = run;
  }

  /** After an attempt: what it waited for makes it due no more. */
  rest(job: WorkflowJob, run: Run, attempt: number): void {
    this.putBack(job, run);
    job.blockers = null;
    this.#spent(job, attempt);
  }

  /** Whoever was woken since its claim, or is to end, does not wait. */
  park({ id, waits, attempt }: Attempt): void {
    const job = this.get(id);
    this.#spent(job, attempt - 1);
    const runs = waits.map((wait) => (wait.type === 'batches' ? 'never' : wait.run));
    const run = runs.includes('due') ? 'due' : runs.includes('later') ? 'later' : 'never';
    job.waits = [...waits];
    job.blockers ??= 0;
    this.putBack(job, job.run === 'woken' || job.unwanted ? 'due' : run);
  }

  /** A step that has ended stays as it is. */
  record(
    attempt: Attempt,
    step: Pick<ModelStep, 'name' | 'kind' | 'ended' | 'output' | 'until'>,
    at = this.time,
  ): void {
    const steps = this.stepsOf(attempt.id);
    const found = steps.get(step.name);
    const over = step.ended || (step.kind === 'sleep' && step.until === 'passed') ? at : null;
    if (found === undefined) {
      steps.set(step.name, { ...step, fence: attempt.fence, began: at, over });
      return;
    }
    if (found.ended && found.fence !== attempt.fence) return;
    Object.assign(found, { ended: step.ended, output: step.output, fence: attempt.fence, over });
    found.until ??= step.until;
  }

  box(id: number, signal: string): ModelBox | undefined {
    return this.boxes.get(`${id} ${signal}`);
  }

  send(id: number, signal: string, value: number, key: string | undefined): 'sent' | 'duplicate' | 'gone' {
    if (this.jobs.get(id)?.state !== 'live') return 'gone';
    const box = this.box(id, signal) ?? { sent: [], keys: new Set(), received: 0, waiting: false };
    this.boxes.set(`${id} ${signal}`, box);
    if (key !== undefined && box.keys.has(key)) return 'duplicate';
    if (key !== undefined) box.keys.add(key);
    box.sent.push(value);
    const { workerId, blockers } = this.get(id);
    const isFirst = box.sent.length - box.received === 1;
    if (box.waiting && isFirst && (workerId !== null || blockers !== null)) this.wake(id);
    return 'sent';
  }

  /** Of a job that is held. */
  receive(
    attempt: Attempt,
    { name, signal, at, until, isBehind }: ReceiveOfModel,
  ): 'received' | 'late' | 'waiting' {
    const { id, fence } = attempt;
    const key = `${id} ${signal}`;
    const box = this.boxes.get(key);
    if (box === undefined) this.boxes.set(key, { sent: [], keys: new Set(), received: 0, waiting: true });
    else if (isBehind) box.waiting = true;
    else {
      box.waiting = box.sent.length <= at;
      box.received = Math.max(box.received, Math.min(at + 1, box.sent.length));
    }
    const value = isBehind ? undefined : box?.sent[at];
    const steps = this.stepsOf(id);
    const found = steps.get(name);
    if (found === undefined) {
      const ended = value !== undefined;
      const [began, over] = [this.time, ended ? this.time : null];
      steps.set(name, { name, kind: 'signal', fence, ended, output: value, until, began, over });
      return ended ? 'received' : 'waiting';
    }
    found.fence = fence;
    if (!found.ended && value !== undefined) Object.assign(found, { ended: true, output: value });
    if (!found.ended && until !== null && found.until === 'passed') found.ended = true;
    found.until ??= until;
    if (!found.ended) return 'waiting';
    found.over ??= this.time;
    return found.output === undefined ? 'late' : 'received';
  }

  /** Whether one of the batches is open that the wait needs; only an attempt that holds its job says how it waits. */
  waitFor(attempt: Attempt, ids: readonly number[], failFast: boolean, others: boolean): boolean {
    const batches = ids.map((id) => this.batch(id));
    const open = batches.filter(({ ended }) => !ended).length;
    const isOpen = open > 0 && !(failFast && batches.some(({ failed }) => failed > 0));
    if (!this.holds(attempt)) return isOpen;
    if (!isOpen) return false;
    for (const batch of batches) batch.waiting = failFast || others ? 'failure' : 'end';
    const job = this.get(attempt.id);
    job.blockers = -Math.min(Math.max(-(job.blockers ?? 0), 0) || open, open);
    return true;
  }

  grow(batch: number, members: number): void {
    this.#note({ batch, added: members });
  }

  canGrow(id: number | null): boolean {
    if (id === null || this.batch(id).ended) return false;
    return !this.hasParent(id);
  }

  /** Whether its members are the children of a job. */
  hasParent(id: number): boolean {
    return this.waits.some(
      ({ batch, policy }) => batch === id && (policy === 'parent' || policy === 'detached'),
    );
  }

  /** What a fold of these batches, or of any, does at this moment. */
  planFold(ids: readonly number[] | undefined): ModelFold {
    const tallies = this.tallies.filter(
      ({ batch }) => (ids === undefined || ids.includes(batch)) && !this.lockedBatches.has(batch),
    );
    const batches = [...new Set(tallies.map(({ batch }) => batch))];
    const targets = this.waits.filter(({ batch }) => batches.includes(batch)).map(({ job }) => job);
    return { tallies, batches, targets };
  }

  /** Counts tallies, ends batches, and makes due what waited; returns the batches whose members are to end. */
  fold({ tallies, batches }: ModelFold): number[] {
    const toEnd: number[] = [];
    this.tallies = this.tallies.filter((tally) => !tallies.includes(tally));
    const wakes = new Map<number, { before: number; beside: number; unwanted: boolean; atOnce: boolean }>();
    for (const id of batches) {
      const batch = this.batch(id);
      const of = tallies.filter((tally) => tally.batch === id);
      const sum = (what: 'added' | 'ended' | 'failed') => of.reduce((all, tally) => all + tally[what], 0);
      const isFirst = batch.failed <= 0 || of.some(({ failed }) => failed < 0);
      batch.total += sum('added');
      batch.pending += sum('added') - sum('ended');
      batch.failed += sum('failed');
      if (batch.ended) continue;
      batch.unwanted ||= of.some(({ unwanted }) => unwanted);
      batch.ended = batch.pending <= 0;
      const over = batch.ended;
      if (batch.pending > 0 && (of.some(({ unwanted }) => unwanted) || (sum('added') > 0 && batch.unwanted)))
        toEnd.push(id);
      const failing = sum('failed') > 0 || (over && batch.failed > 0);
      for (const { job, policy } of this.waits.filter((wait) => wait.batch === id)) {
        const cancels = policy === 'cancel' && failing;
        const handlerFails = failing && isFirst && batch.waiting === 'failure';
        const isTold =
          policy === 'run'
            ? over
            : policy === 'cancel'
              ? over || failing
              : (over && batch.waiting !== null) || handlerFails;
        if (!isTold) continue;
        const wake = wakes.get(job) ?? { before: 0, beside: 0, unwanted: false, atOnce: false };
        const isBefore = policy === 'run' || policy === 'cancel';
        wakes.set(job, {
          before: wake.before + (over && isBefore ? 1 : 0),
          beside: wake.beside + (over && !isBefore ? 1 : 0),
          unwanted: wake.unwanted || cancels,
          atOnce: wake.atOnce || cancels || handlerFails,
        });
      }
    }
    for (const [id, { before, beside, unwanted, atOnce }] of wakes) {
      const job = this.get(id);
      if (job.state !== 'live') continue;
      // It is to end already, and no batch has ended.
      if (unwanted && job.unwanted && before + beside === 0) continue;
      if (unwanted && !job.unwanted) this.failedBefore.add(id);
      job.unwanted ||= unwanted;
      // 0: it was woken, or waits for something else.
      if (!job.blockers) continue;
      if ((-beside <= job.blockers && job.blockers <= before) || atOnce) this.wake(id);
      job.blockers =
        job.blockers > 0 ? Math.max(job.blockers - before, 0) : Math.min(job.blockers + beside, 0);
    }
    return toEnd;
  }

  /** Asks for the end of all members of batches that are to end. */
  endMembers(): void {
    for (const job of this.live) {
      if (job.batch === null || job.unwanted) continue;
      const { unwanted, ended } = this.batch(job.batch);
      if (!unwanted || ended) continue;
      job.unwanted = true;
      this.cancelledWith.add(job.id);
      if (job.workerId !== null) continue;
      if (Number(job.blockers) <= 0) job.blockers = null;
      job.run = 'due';
    }
  }

  /** Whether the handler of a job that is not held has been called since it was enqueued or put back. */
  hasBegun({ id }: WorkflowJob): boolean {
    return this.attempted.has(id) || this.stepsOf(id).size > 0;
  }

  /** Whether a job must not begin: something has to end before, of which it has not heard. */
  isBlocked({ id, blockers }: WorkflowJob): boolean {
    if (blockers === null || blockers <= 0) return false;
    return this.waits.some((wait) => wait.job === id && isFlow(wait) && !this.batch(wait.batch).ended);
  }

  /** Whether a job waits, as `finish` asks. */
  waitsNow(job: WorkflowJob): boolean {
    if (job.workerId !== null || job.unwanted || job.blockers === null) return false;
    if (job.run !== 'due') return true;
    return [...this.stepsOf(job.id).values()].some(
      ({ ended, kind, until }) => !ended && (kind !== 'sleep' || until === 'ahead'),
    );
  }

  cancelFlow(flow: number): boolean {
    const open = [...this.batches.values()].filter((batch) => batch.flow === flow && !batch.ended);
    for (const { id } of open) this.#note({ batch: id, unwanted: true });
    return open.length > 0;
  }

  /** Puts back what was discarded or cancelled; what waits for these waits again, unless it has begun. */
  redriveFlow(flow: number): number {
    const batches = [...this.batches.values()].filter((batch) => batch.flow === flow);
    const failed = [...this.jobs.values()].filter(
      ({ state, batch }) =>
        (state === 'discarded' || state === 'cancelled') && batches.some(({ id }) => id === batch),
    );
    for (const batch of batches) {
      batch.unwanted = false;
      const isUncounted = this.tallies.some((tally) => tally.batch === batch.id);
      const cancels = this.waits.some(
        (wait) =>
          wait.batch === batch.id && wait.policy === 'cancel' && failed.some(({ id }) => id === wait.job),
      );
      if (
        failed.some((job) => job.batch === batch.id) ||
        batch.pending > 0 ||
        (batch.failed > 0 && cancels) ||
        isUncounted
      ) {
        this.#note({ batch: batch.id });
        batch.ended = false;
      }
    }
    // What was to end because the flow was cancelled goes on, or waits as before.
    const unbegun = new Set(failed.map(({ id }) => id));
    this.tallies = this.tallies.map((tally) =>
      batches.some(({ id }) => id === tally.batch) ? { ...tally, unwanted: false } : tally,
    );
    for (const job of this.live) {
      if (!batches.some(({ id }) => id === job.batch) || !this.cancelledWith.delete(job.id)) continue;
      job.unwanted = false;
      if (job.workerId !== null) continue;
      if (Number(job.blockers) > 0) unbegun.add(job.id);
      job.blockers = null;
    }
    // Their children wake them no more until they ask again.
    for (const { batch, job, policy } of this.waits) {
      const isChildren = policy === 'parent' || policy === 'detached';
      if (isChildren && failed.some(({ id }) => id === job)) this.batch(batch).waiting = null;
    }
    for (const { id } of failed) this.redrive(id);
    for (const job of this.live) {
      const open = batches.filter(
        ({ id, ended }) =>
          !ended && this.waits.some((wait) => wait.batch === id && wait.job === job.id && isFlow(wait)),
      ).length;
      const isBefore = job.blockers !== null && job.blockers > 0;
      // Claimed although it waits: it is about to be put back.
      if (open > 0 && job.workerId !== null && isBefore) job.blockers = open;
      if (open === 0 || job.workerId !== null) continue;
      // Begun, and waits for something else, or is about to go on.
      if (!unbegun.has(job.id) && !isBefore && (this.hasBegun(job) || job.run !== 'due')) continue;
      // Where it was told before how many to wait for, its time stays.
      const isDoomed = job.unwanted && this.failedBefore.has(job.id);
      if (job.unwanted && !isDoomed) continue;
      const isAnew = !job.blockers || isDoomed;
      this.failedBefore.delete(job.id);
      Object.assign(job, { blockers: open, run: isAnew ? 'never' : job.run, waits: 'flow', unwanted: false });
    }
    return failed.length;
  }

  /** What `redriveFlow` does at this moment, and what it keeps from changing until it is committed. */
  planRedriveFlow(flow: number): ModelRedrive {
    const after = Object.assign(new WorkflowModel(), structuredClone({ ...this }));
    const redriven = after.redriveFlow(flow);
    const before = [...this.tallies];
    const isChanged = <T extends { readonly id: number }>(then: Map<number, T>) => {
      return (now: T) => JSON.stringify(now) !== JSON.stringify(then.get(now.id));
    };
    const jobs = [...after.jobs.values()].filter(isChanged(this.jobs));
    const batches = [...after.batches.values()].filter(isChanged(this.batches));
    const own = [...after.batches.values()].filter((batch) => batch.flow === flow);
    const isOpen = new Set(own.flatMap(({ id, ended }) => (ended ? [] : id)));
    const waiting = after.waits.filter((wait) => isFlow(wait) && isOpen.has(wait.batch));
    const told = [...this.cancelledWith].filter((id) => own.some((batch) => batch.id === this.get(id).batch));
    const [spared, doomed] = [this.cancelledWith, this.failedBefore].map((ids) => [...ids]);
    return {
      redriven,
      jobs: [...new Set([...jobs.map(({ id }) => id), ...waiting.map(({ job }) => job), ...told])],
      batches: [...new Set([...batches, ...own].map(({ id }) => id))],
      commit: () => {
        for (const job of jobs) Object.assign(this.get(job.id), job);
        for (const batch of batches) Object.assign(this.batch(batch.id), batch);
        for (const id of spared ?? []) if (!after.cancelledWith.has(id)) this.cancelledWith.delete(id);
        for (const id of doomed ?? []) if (!after.failedBefore.has(id)) this.failedBefore.delete(id);
        // What was noted since stays as it is.
        const noted = this.tallies.map((tally) => after.tallies[before.indexOf(tally)] ?? tally);
        this.tallies = [...noted, ...after.tallies.slice(before.length)];
      },
    };
  }

  /** Forgets a step, and those that began after it. */
  forget(id: number, from: string): void {
    const steps = this.stepsOf(id);
    const names = [...steps.keys()];
    for (const name of names.slice(names.indexOf(from))) {
      if (steps.get(name)?.kind === 'signal') this.rewound.add(id);
      steps.delete(name);
    }
  }

  /**
   * Another job goes on from a step: it has the steps that had ended when that began, with the signals that these have received,
   * but none whose children had not all ended by then. What was added to a flow has no parent. It may ask for what the job has
   * waited for before it began.
   */
  fork(id: number, from: string, to: number): ModelStep[] {
    const steps = this.stepsOf(id);
    const { began = 0 } = steps.get(from) ?? {};
    const kept = [...steps.values()].filter(
      (step) =>
        step.name !== from &&
        step.over !== null &&
        step.over <= began &&
        (step.kind !== 'enqueue' || !this.hasParent(batchOf(step)) || this.hadEnded(batchOf(step), began)),
    );
    this.add({ id: to, queue: this.get(id).queue, batch: null, blockers: null });
    // It reads its steps at its first claim.
    this.get(to).fence = 1;
    for (const step of kept) this.stepsOf(to).set(step.name, { ...step, fence: 0 });
    const received = kept.filter(({ kind, output }) => kind === 'signal' && output !== undefined);
    for (const { name, output } of received.sort((a, b) => Number(a.over) - Number(b.over))) {
      const key = `${to} ${signalOf(name)}`;
      const box = this.boxes.get(key) ?? { sent: [], keys: new Set(), received: 0, waiting: false };
      this.boxes.set(key, box);
      box.sent.push(Number(output));
      box.received++;
    }
    if (this.rewound.has(id)) this.rewound.add(to);
    const before = this.waits.filter((wait) => wait.job === id && (isFlow(wait) || wait.policy === 'forked'));
    for (const { batch } of before)
      if (this.batch(batch).ended) this.waits.push({ batch, job: to, policy: 'forked' });
    return kept;
  }

  /** Whether all members of a batch had ended then, and that is counted. */
  hadEnded(id: number, then: number): boolean {
    const finished = this.membersOf(id).filter(({ state }) => state !== 'live' && state !== 'gone');
    return this.batch(id).ended && finished.every(({ endedAt }) => endedAt <= then);
  }

  /** The row of a job is deleted by hand. */
  delete(id: number): void {
    const job = this.get(id);
    job.state = 'gone';
    if (job.batch !== null) this.missing.set(job.batch, this.missingOf(job.batch) + 1);
  }

  /** Members that are gone without a note. */
  missingOf(id: number): number {
    return this.missing.get(id) ?? 0;
  }

  recount(id: number): void {
    const missing = this.missingOf(id);
    if (missing > 0) this.#note({ batch: id, ended: missing, failed: missing });
    this.missing.delete(id);
  }

  /** All times of jobs and steps pass. */
  passTime(): void {
    for (const job of this.live) if (job.run === 'later') job.run = 'due';
    for (const steps of this.steps.values())
      for (const step of steps.values()) {
        if (step.until !== 'ahead') continue;
        step.until = 'passed';
        if (step.kind === 'sleep') step.over = this.time;
      }
  }

  #spent({ id }: WorkflowJob, attempts: number): void {
    if (attempts > 0) this.attempted.add(id);
    else this.attempted.delete(id);
  }

  #note(tally: Partial<ModelTally> & Pick<ModelTally, 'batch'>): void {
    this.tallies.push({ added: 0, ended: 0, failed: 0, unwanted: false, ...tally });
  }
}

export interface ReceiveOfModel {
  readonly name: string;
  readonly signal: string;
  readonly at: number;
  readonly until: ModelStep['until'];
  /** Whether the attempt already waits for one of this name. */
  readonly isBehind: boolean;
}

/** The batch of the children that a step has enqueued. */
export function batchOf({ output }: Pick<ModelStep, 'output'>): number {
  return (output as { readonly batch: number }).batch;
}

/** The signal that a step of this name waits for. */
export function signalOf(step: string): string {
  return step.split('-')[0] ?? '';
}

/** Whether a job waits so before it begins. */
export function isFlow({ policy }: ModelWait): boolean {
  return policy === 'run' || policy === 'cancel';
}
