import type { ClaimedJob } from '../../core/queries/claim/claim-jobs.ts';
import { allowManyListeners, onNextTurn } from '../../core/runtime.ts';
import { REFUSED_MS } from '../../core/worker/begin/beginnings.ts';
import type { Gathered, GatheredOptions } from '../../core/worker/begin/gathered.ts';
import { isAfterDeath, isLastAfterDeath, mostInBatch } from '../../core/worker/begin/precious-attempt.ts';
import { missed } from '../../core/worker/begin/too-late.ts';
import type { Attempt } from '../../core/worker/run/attempt.ts';
import { executeJob } from '../../core/worker/run/execute-job.ts';
import type { BatchHandler } from '../../core/worker/run/handler.ts';
import { Batch } from './batch.ts';
import { Gathering } from './gathering.ts';
import { recordBatch } from './record-batch.ts';
import { SlotUse } from './slot-use.ts';

/** What a worker holds of one queue when at least one of its handlers is a batch handler. */
export class GatheredBatches implements Gathered {
  readonly serves = true;
  readonly #options: GatheredOptions;
  readonly #use: SlotUse;
  /** By kind and size: after a death a job is in a batch with few others, and only such ones. */
  readonly #gatherings = new Map<string, Gathering<Attempt>>();
  /** Jobs of batches that have a slot and whose beginning is being recorded. */
  readonly #beginning = new Set<Attempt>();
  /** By kind, how many last attempts after a death have ended here. */
  readonly #survivors = new Map<string, number>();
  readonly #stopping = new AbortController();
  /** Whether a batch that may kill the worker is about to be called. */
  #dangerous = false;
  #sharing = 0;

  constructor(options: GatheredOptions) {
    this.#options = options;
    this.#use = new SlotUse([...options.handlers.values()], options.holder.queue);
    // Each batch that waits for the server listens to it.
    allowManyListeners(this.#stopping.signal);
  }

  gathers(kind: string): boolean {
    return this.#options.handlers.get(kind)?.batch !== undefined;
  }

  get sharing(): number {
    return this.#sharing;
  }

  get waiting(): Attempt[] {
    return [...this.#gatherings.values()].flatMap(({ attempts }) => attempts);
  }

  get waitsSinceMs(): number {
    let sinceMs = Number.POSITIVE_INFINITY;
    for (const { readySinceMs } of this.#gatherings.values()) sinceMs = Math.min(sinceMs, readySinceMs);
    return sinceMs;
  }

  /** The jobs of batches that have been ready since then. Others, of other kinds or sizes, may gather on. */
  late(sinceMs: number): Attempt[] {
    const late = [...this.#gatherings.values()].filter(({ readySinceMs }) => readySinceMs <= sinceMs);
    return late.flatMap(({ attempts }) => attempts);
  }

  get beginning(): Iterable<Attempt> {
    return this.#beginning;
  }

  get gathered(): number {
    let size = 0;
    for (const gathering of this.#gatherings.values()) size += gathering.size;
    return size;
  }

  get jobsPerSlot(): number {
    return this.#use.jobsPerSlot;
  }

  /** How many jobs to claim with `free` slots and this many jobs ahead; some of them fill batches. */
  demand(free: number, ahead: number): number {
    let open = 0;
    let filled = 0;
    for (const { size, fill } of this.#gatherings.values()) {
      if (size > 0) open++;
      filled += fill;
    }
    // Each batch that gathers may be filled, though there may not be a slot for each.
    const slots = free > 0 ? Math.max(free, open) : 0;
    // Fractions of numbers such as 100 add up to a little more than they are.
    const missing = Math.ceil((slots - filled) * this.jobsPerSlot - 1e-6);
    // Refilled when half empty, so that a claim is worth its round trip.
    return missing < -ahead / 2 ? 0 : missing + ahead;
  }

  add(attempts: readonly Attempt[]): readonly Attempt[] {
    this.#use.note(attempts.map(({ handler }) => handler));
    const rest: Attempt[] = [];
    for (const attempt of attempts) {
      const { handler, job, unwanted } = attempt;
      // An attempt that ends without running does not wait for a batch.
      if (handler.batch === undefined || unwanted || job.attempt > job.maxAttempts) rest.push(attempt);
      else this.#gatheringOf(handler, job).add(attempt);
    }
    return rest;
  }

  #gatheringOf(handler: BatchHandler, job: ClaimedJob): Gathering<Attempt> {
    const maxSize = mostInBatch(job, handler.batch.maxSize, this.#survivors.get(job.kind) ?? 0);
    const afterDeath = isAfterDeath(job);
    const key = `${maxSize} ${afterDeath} ${job.kind}`;
    const onDue = this.#options.proceed;
    const gathering = this.#gatherings.get(key) ?? new Gathering({ handler, maxSize, afterDeath, onDue });
    this.#gatherings.set(key, gathering);
    return gathering;
  }

  drop(attempts: ReadonlySet<Attempt>): void {
    for (const gathering of this.#gatherings.values()) gathering.drop(attempts);
  }

  flush(): void {
    for (const gathering of this.#gatherings.values()) gathering.flush();
  }

  stop(): void {
    this.#stopping.abort();
  }

  get isReady(): boolean {
    return this.#next !== undefined;
  }

  get next(): readonly ClaimedJob[] {
    return this.#next?.nextBatch.map(({ job }) => job) ?? [];
  }

  /**
   * Whether there is a batch that waits for a slot, that the limits of the queue let begin, and whose first
   * job is ahead of this one in the queue.
   */
  isBefore(attempt: Attempt | undefined): boolean {
    const first = this.#nextToBegin?.first;
    return first !== undefined && (attempt === undefined || compare(first.job, attempt.job) < 0);
  }

  #mostOf(gathering: Gathering<Attempt>): number {
    const { gate } = this.#options;
    const attempts = gathering.nextBatch;
    return gate === undefined ? attempts.length : gate.mostTogether(attempts.map(({ job }) => job));
  }

  get #next(): Gathering<Attempt> | undefined {
    return this.#firstOf(() => true);
  }

  /** One that lacks starts of its kind does not hold up those of others. */
  get #nextToBegin(): Gathering<Attempt> | undefined {
    return this.#firstOf((gathering) => this.#mostOf(gathering) > 0);
  }

  #firstOf(isAsked: (gathering: Gathering<Attempt>) => boolean): Gathering<Attempt> | undefined {
    let next: Gathering<Attempt> | undefined;
    for (const gathering of this.#gatherings.values()) {
      const { isReady, first, afterDeath } = gathering;
      if (!isReady || first === undefined) continue;
      // What has begun and is not called would die with it.
      if (this.#dangerous || (afterDeath && this.#beginning.size > 0)) continue;
      if (next?.first !== undefined && compare(first.job, next.first.job) >= 0) continue;
      if (isAsked(gathering)) next = gathering;
    }
    return next;
  }

  begin(): void {
    const next = this.#nextToBegin;
    const most = next === undefined ? 0 : this.#mostOf(next);
    // Its starts may have become void since the look.
    if (next === undefined || most === 0) return;
    const attempts = new Set(next.take(most));
    const untilMs = this.#options.gate?.beginBatch([...attempts].map(({ job }) => job));
    for (const attempt of attempts) {
      this.#options.running.add(attempt);
      this.#beginning.add(attempt);
    }
    this.#sharing += attempts.size - 1;
    this.#dangerous = next.afterDeath;
    void this.#run(next.handler, attempts, untilMs);
  }

  /**
   * @param attempts of one batch, which has its slot until the last of them has left
   * @param untilMs after this the starts of a rate that it has spent are void
   */
  async #run(
    handler: BatchHandler,
    attempts: Set<Attempt>,
    untilMs = Number.POSITIVE_INFINITY,
  ): Promise<void> {
    const { events, mayBegin, prefetch, proceed } = this.#options;
    const { lost, locked, refused } = await recordBatch(this.#options, [...attempts], this.#stopping.signal);
    for (const attempt of lost) this.#leave(attempts, attempt);
    for (const { job } of lost) events.emit('lost', { job });
    this.#putBack(attempts, locked);
    this.#putBack(attempts, refused, REFUSED_MS);
    if (!mayBegin() || performance.now() >= untilMs) this.#putBack(attempts, [...attempts]);
    this.#putBack(attempts, missed(attempts));
    for (const attempt of attempts) this.#beginning.delete(attempt);
    // A handler that kills its worker at once does so before the next ones begin.
    if (this.#dangerous) onNextTurn(() => this.#noteCalled());
    if (attempts.size > 0) {
      const startMs = performance.now();
      const over = this.#execute(handler, attempts);
      // A batch after a death has waited for the record alone.
      if (!this.#dangerous) proceed();
      await over;
      prefetch.note(performance.now() - startMs);
    }
    proceed();
  }

  #noteCalled(): void {
    this.#dangerous = false;
    this.#options.proceed();
  }

  /** Resolves when the attempts of all jobs have ended, even if the handler goes on. */
  async #execute(handler: BatchHandler, attempts: Set<Attempt>): Promise<void> {
    const startMs = performance.now();
    const members = [...attempts];
    const batch = new Batch(handler, members);
    for (const attempt of members) attempt.batch = batch;
    await Promise.all(
      members.map(async (attempt) => {
        const outcome = await executeJob(attempt);
        batch.leave(attempt);
        this.#noteEnd(attempt.job);
        void this.#options.endings.conclude(attempt, outcome, performance.now() - startMs);
        this.#leave(attempts, attempt);
      }),
    );
  }

  #putBack(attempts: Set<Attempt>, back: readonly Attempt[], delayMs?: number): void {
    for (const attempt of back) {
      this.#options.endings.giveBack(attempt, delayMs);
      this.#leave(attempts, attempt);
    }
  }

  #leave(attempts: Set<Attempt>, attempt: Attempt): void {
    attempts.delete(attempt);
    this.#beginning.delete(attempt);
    this.#options.running.delete(attempt);
    // The last one leaves the slot with it.
    if (attempts.size > 0) this.#sharing--;
  }

  #noteEnd(job: ClaimedJob): void {
    if (!isLastAfterDeath(job)) return;
    this.#survivors.set(job.kind, (this.#survivors.get(job.kind) ?? 0) + 1);
  }
}

/** In the order of the queue. */
function compare(a: ClaimedJob, b: ClaimedJob): number {
  return a.priority - b.priority || a.runAt.getTime() - b.runAt.getTime() || a.id - b.id;
}
