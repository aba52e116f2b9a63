import type { Runner } from '../../../core/sql/executor.ts';
import { Condition } from '../../../core/time/condition.ts';
import { Doubling } from '../../../core/time/doubling.ts';
import { jitter } from '../../../core/time/jitter.ts';
import type { Retries } from '../../../core/time/retries.ts';
import type { BackgroundPart } from '../../../core/worker/base/background.ts';
import type { WorkerEmitter } from '../../../core/worker/base/events.ts';
import { noteFreedGroups } from '../queries/note-groups.ts';
import type { GroupTables } from '../sql/limit-tables.ts';

export interface FreedGroupsOptions {
  readonly db: Runner;
  readonly tables: GroupTables;
  readonly events: WorkerEmitter;
  readonly retries: Pick<Retries, 'sleep'>;
  /** There may be something to claim in this queue. */
  readonly wake: (queue: string) => void;
}

/** Workers may have been declared gone by one that died before it told others of them. */
const INTERVAL_MS = 30_000;
const FIRST_RETRY_MS = 100;

/**
 * Notes the groups whose jobs were held by workers that are gone: at the start, once it is told of such
 * workers, and each half minute. It reads the rows of all groups, which may take seconds: claims do not wait
 * for it, and no two of these looks are under way at once.
 */
export class FreedGroups implements BackgroundPart {
  readonly #options: FreedGroupsOptions;
  /** The queues to look at: one may be told of again while its look is under way. */
  readonly #sought = new Set<string>();
  readonly #queues: string[] = [];
  readonly #told = new Condition();
  #markReady: () => void = () => undefined;
  /** Fulfilled when it has looked at each queue once, or could not. */
  readonly ready = new Promise<void>((resolve) => {
    this.#markReady = resolve;
  });

  constructor(options: FreedGroupsOptions) {
    this.#options = options;
  }

  /** Also looks at this queue; called before it runs. */
  add(queue: string): void {
    this.#queues.push(queue);
    this.#sought.add(queue);
  }

  /** Workers are gone, so jobs of this queue may be free. */
  seek(queue: string): void {
    this.#sought.add(queue);
    this.#told.signal();
  }

  async run(signal: AbortSignal): Promise<void> {
    const { retries } = this.#options;
    const delays = new Doubling(FIRST_RETRY_MS, INTERVAL_MS);
    let allAtMs = performance.now() + jitter(INTERVAL_MS);
    while (!signal.aborted) {
      const hasFailed = await this.#look(signal);
      this.#markReady();
      if (!hasFailed) {
        delays.reset();
        await this.#told.wait(Math.max(allAtMs - performance.now(), 0), signal);
      } else if (await retries.sleep(jitter(delays.next()), signal)) delays.reset();
      if (performance.now() < allAtMs) continue;
      allAtMs = performance.now() + jitter(INTERVAL_MS);
      for (const queue of this.#queues) this.#sought.add(queue);
    }
  }

  /** Returns whether a look has failed: it is still to be made. */
  async #look(signal: AbortSignal): Promise<boolean> {
    const { db, tables, events, wake } = this.#options;
    let hasFailed = false;
    for (const queue of [...this.#sought]) {
      if (signal.aborted) break;
      this.#sought.delete(queue);
      try {
        if ((await noteFreedGroups(db, tables, queue)) > 0) wake(queue);
      } catch (error) {
        this.#sought.add(queue);
        hasFailed = true;
        events.emit('error', { error, during: `looking for jobs of '${queue}' that workers left behind` });
      }
    }
    return hasFailed;
  }
}
