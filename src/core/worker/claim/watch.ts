import { type DueAnswer, findDue, findDueByKeptPlan } from '../../queries/claim/find-due.ts';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import { perStatement } from '../../sql/one-queue.ts';
import { Condition } from '../../time/condition.ts';
import { jitter } from '../../time/jitter.ts';
import { sleep } from '../../time/sleep.ts';
import type { BackgroundPart } from '../base/background.ts';
import type { WorkerEmitter } from '../base/events.ts';
import { KeptPlans } from '../statements/kept-plans.ts';
import type { WorkerRunner } from '../statements/statements.ts';
import { Alarms } from './alarms.ts';
import type { ClaimGroups } from './claim-groups.ts';

/** An idle queue's loop. */
export interface IdleQueue {
  readonly queue: string;
  /** Where its claims start. */
  readonly lowestFloorMs: number;
  /** `undefined` where its jobs are in no groups. */
  readonly groups: Pick<ClaimGroups, 'findDue'> | undefined;
  /** There may be something to claim. */
  wake(): void;
  /** Nothing was due at `databaseMs`; `endMs` is when the answer came. */
  noteNothing(databaseMs: number, endMs: number): void;
}

export interface WatchOptions {
  readonly runner: WorkerRunner;
  readonly tables: QueueTables;
  readonly kinds: readonly string[];
  /** How often to look, at this moment. */
  readonly intervalMs: () => number;
  readonly events: WorkerEmitter;
}

/** The least time between looks: queues that become idle one after the other are looked at together. */
const GATHER_MS = 10;
/** The most queues that one statement asks about, so that none takes long. */
const MAX_LOOKS = 1_000;
/** With more queues than this, looks in between are only at those that have just become idle. */
const MANY = 100;
/** Looks take at most one part in this many of the time: at many thousand queues one takes long. */
const SHARE = 5;
const MAX_ERROR_PAUSE_MS = 5_000;

/**
 * Watches all idle queues of a worker by one statement instead of a claim for each, when one becomes idle and
 * then every interval. A timer for the next scheduled job starts it on time however seldom that is.
 */
export class Watch implements BackgroundPart {
  readonly #options: WatchOptions;
  readonly #keptPlans: KeptPlans;
  readonly #idle = new Set<IdleQueue>();
  readonly #alarms = new Map<IdleQueue, Alarms>();
  readonly #alarm = new Condition();
  /** Idle for a moment only, and not looked at since. */
  readonly #anew = new Set<IdleQueue>();
  /** Queues that were idle throughout the last look at all, or one since. It has missed the others. */
  readonly #looked = new Set<IdleQueue>();
  /**
   * How long the last look at all idle queues took, and how long the better of the last two: one that had to
   * wait, on a busy machine, says little, and would blind the worker for four times as long.
   */
  #lastTookMs = 0;
  #tookMs = 0;
  /** When the next one is due. */
  #nextMs = Number.NEGATIVE_INFINITY;
  #over = false;

  constructor(options: WatchOptions) {
    this.#options = options;
    this.#keptPlans = new KeptPlans(options);
  }

  /**
   * Watches a queue until something may be due in it; without delay if it was busy (`anew`), or when all were
   * looked at. One woken in vain is not: what made it look due (a job that is locked by an open transaction,
   * say) would do so again. A look that is under way says nothing of a queue that was busy.
   */
  add(idle: IdleQueue, anew: boolean): void {
    this.#idle.add(idle);
    if (!anew && this.#looked.has(idle)) return;
    this.#anew.add(idle);
    this.#alarm.signal();
  }

  remove(idle: IdleQueue): void {
    this.#idle.delete(idle);
    this.#anew.delete(idle);
  }

  /** Looks now at all queues, whatever the interval. */
  look(): void {
    this.#nextMs = Number.NEGATIVE_INFINITY;
    this.#alarm.signal();
  }

  /** Wakes a queue in `inMs` milliseconds, when one of its jobs is known to be due; every call counts. */
  expect(idle: IdleQueue, inMs: number): void {
    if (this.#over) return;
    const alarms = this.#alarms.get(idle) ?? new Alarms(() => idle.wake());
    this.#alarms.set(idle, alarms);
    alarms.add(inMs);
  }

  async run(signal: AbortSignal): Promise<void> {
    let failures = 0;
    let lookedMs = Number.NEGATIVE_INFINITY;
    while (!signal.aborted) {
      const gatherMs = lookedMs + GATHER_MS - performance.now();
      if (gatherMs > 0) await sleep(gatherMs, signal);
      if (signal.aborted) break;
      this.#alarm.clear();
      const intervalMs = Math.max(this.#options.intervalMs(), this.#tookMs * (SHARE - 1));
      let pauseMs = Number.POSITIVE_INFINITY;
      if (this.#idle.size === 0) {
        this.#looked.clear();
      } else {
        try {
          await this.#look(intervalMs, signal);
          failures = 0;
          pauseMs = Math.max(this.#nextMs - performance.now(), 0);
        } catch (error) {
          this.#options.events.emit('error', { error, during: 'looking for due jobs' });
          this.#nextMs = Number.NEGATIVE_INFINITY;
          pauseMs = jitter(Math.min(intervalMs * 2 ** failures++, MAX_ERROR_PAUSE_MS));
          // After the pause, however often they are woken in vain meanwhile.
          for (const idle of this.#idle) this.#looked.add(idle);
        }
        lookedMs = performance.now();
      }
      await this.#alarm.wait(pauseMs, signal);
    }
    this.#over = true;
    for (const alarms of this.#alarms.values()) alarms.clear();
  }

  /** Looks at all idle queues; of many, in between, only at those that have just become idle. */
  async #look(intervalMs: number, signal: AbortSignal): Promise<void> {
    const startMs = performance.now();
    const all = this.#idle.size <= MANY || startMs >= this.#nextMs;
    const idle = [...(all ? this.#idle : this.#anew)];
    this.#anew.clear();
    if (all) this.#looked.clear();
    for (let at = 0; at < idle.length && !signal.aborted; at += MAX_LOOKS) {
      await this.#lookAt(idle.slice(at, at + MAX_LOOKS), intervalMs);
    }
    if (!all) return;
    const endMs = performance.now();
    this.#tookMs = Math.min(endMs - startMs, this.#lastTookMs);
    this.#lastTookMs = endMs - startMs;
    this.#nextMs = endMs + jitter(intervalMs);
  }

  async #lookAt(idle: readonly IdleQueue[], intervalMs: number): Promise<void> {
    const { runner, tables, kinds } = this.#options;
    const byName = new Map(idle.map((queue) => [queue.queue, queue]));
    const plain = idle.filter(({ groups }) => groups === undefined);
    const [groups] = idle.flatMap(({ groups }) => groups ?? []);
    const answers: DueAnswer[] = [];
    if (groups !== undefined) {
      const grouped = idle.filter((queue) => queue.groups !== undefined).map(({ queue }) => queue);
      answers.push(...(await groups.findDue(runner, grouped)));
    }
    const looks = plain.map(({ queue, lowestFloorMs }) => ({ queue, floorMs: lowestFloorMs }));
    const parts = looks.length === 0 ? [] : perStatement(tables, looks);
    for (const [at, part] of parts.entries()) {
      // What becomes due before the next look, with room for its jitter and for a look that takes longer.
      const question = { looks: part, kinds, horizonMs: intervalMs * 2 };
      const anew = () => findDue(runner, tables, question);
      const found =
        part.length > 1
          ? await anew()
          : await this.#keptPlans.send(
              (ifTableIs) => findDueByKeptPlan(runner, tables, { ...question, ifTableIs }),
              anew,
            );
      answers.push(...found);
      // On Citus there is a statement for each queue: what one has found must not wait for the others.
      if (at < parts.length - 1) this.#heedAll(byName, answers.splice(0), intervalMs);
    }
    this.#heedAll(byName, answers, intervalMs);
  }

  #heedAll(byName: ReadonlyMap<string, IdleQueue>, answers: readonly DueAnswer[], intervalMs: number): void {
    const endMs = performance.now();
    for (const answer of answers) {
      const queue = byName.get(answer.queue);
      // It may have been woken while the answer was on its way.
      if (queue === undefined || !this.#idle.has(queue)) continue;
      this.#looked.add(queue);
      this.#heed(queue, answer, endMs, intervalMs);
    }
  }

  #heed(queue: IdleQueue, { dueInMs, nowMs }: DueAnswer, endMs: number, intervalMs: number): void {
    if (dueInMs !== undefined && dueInMs <= 0) {
      queue.wake();
      return;
    }
    // Its last job has ended since this look began, and may have left another one: the next look tells.
    if (this.#anew.has(queue)) return;
    queue.noteNothing(nowMs, endMs);
    // Groups answer whatever the distance.
    if (dueInMs !== undefined && dueInMs <= intervalMs * 2) this.expect(queue, dueInMs);
  }
}
