import type { Runner } from '../../../core/sql/executor.ts';
import { jitter } from '../../../core/time/jitter.ts';
import { sleep } from '../../../core/time/sleep.ts';
import type { BackgroundPart } from '../../../core/worker/base/background.ts';
import type { WorkerEmitter } from '../../../core/worker/base/events.ts';
import { isAboutTheServer } from '../../../core/worker/base/refusal.ts';
import type { Until } from '../../../core/worker/base/until.ts';
import { cancelBatches } from '../queries/cancel-batches.ts';
import { countBatch } from '../queries/count-batch.ts';
import { deleteLeftBatches } from '../queries/delete-left-batches.ts';
import { findAnyPlace } from '../queries/find-any-place.ts';
import { findOpenBatches } from '../queries/find-open-batches.ts';
import { tallyMissing } from '../queries/tally-missing.ts';
import type { TablesOfBatches } from '../sql/batch-tables.ts';
import { PARENT_CANCELLED } from '../sql/tallied-ends.ts';
import { endAllMembers, endUnclaimedJobs, wakeAllWaiters } from './move-on.ts';

const FIRST_WITHIN_MS = 10_000;
/** Between two rounds through the batches. */
const ROUND_EVERY_MS = 60_000;
const SLICE = 1_000;
/** It works for this part of the time. */
const SHARE = 1 / 100;
const RECOUNTING = 'counting batches again';

/**
 * Looks after batches once a minute. It recounts the open ones, since members may be gone without a tally. It
 * asks again for the end of members that were locked, and for that of children that were just being enqueued
 * while their parent ended as cancelled. It ends what no claim takes, makes due what a fold could not, and
 * deletes batches that are no longer needed.
 */
export class Recounting implements BackgroundPart {
  readonly #db: Runner;
  readonly #tables: TablesOfBatches;
  readonly #channel: string | undefined;
  readonly #events: WorkerEmitter;
  readonly #fold: (batchId: number) => void;
  readonly #until: Until;
  /** `undefined`: anywhere. A drain may be all that looks, and be over before the first slice is. */
  #after: number | undefined;

  constructor(options: {
    readonly db: Runner;
    readonly tables: TablesOfBatches;
    readonly channel: string | undefined;
    readonly events: WorkerEmitter;
    readonly fold: (batchId: number) => void;
    /** Whether it ends when nothing is due. */
    readonly until: Until;
  }) {
    this.#db = options.db;
    this.#tables = options.tables;
    this.#channel = options.channel;
    this.#events = options.events;
    this.#fold = options.fold;
    this.#until = options.until;
    this.#after = options.until === 'empty' ? undefined : 0;
  }

  async run(signal: AbortSignal): Promise<void> {
    if (this.#until === 'stopped') await sleep(Math.random() * FIRST_WITHIN_MS, signal);
    while (!signal.aborted) await sleep(jitter(await this.#look(signal)), signal);
  }

  /** Looks at a slice. Never rejects; returns how many milliseconds to rest. */
  async #look(signal: AbortSignal): Promise<number> {
    const startMs = performance.now();
    const [db, tables, channel] = [this.#db, this.#tables, this.#channel];
    try {
      const { queueBatches } = tables;
      const isAnywhere = this.#after === undefined;
      const after = this.#after ?? (await findAnyPlace(db, tables, queueBatches, queueBatches.id));
      const { all, unwanted, orphaned, toRecount, last } = await findOpenBatches(db, tables, after, SLICE);
      for (const id of toRecount) {
        await this.#recount(id);
        if (signal.aborted) break;
      }
      if (orphaned.length > 0) await cancelBatches(db, tables, orphaned, PARENT_CANCELLED);
      for (const id of orphaned) this.#fold(id);
      await endAllMembers(db, tables, unwanted, channel, signal).catch((error) => {
        // One row refuses it: the rest of the look does not wait for that.
        if (isAboutTheServer(error)) throw error;
        this.#events.emit('error', { error, during: RECOUNTING });
      });
      const unclaimed = await endUnclaimedJobs(db, tables, all, unwanted, signal);
      for (const id of unclaimed.batchIds) this.#fold(id);
      const { refusals } = await wakeAllWaiters(db, tables, all, channel, signal);
      for (const error of [...unclaimed.refusals, ...refusals])
        this.#events.emit('error', { error, during: RECOUNTING });
      await deleteLeftBatches(db, tables, { after, until: last });
      this.#after = last ?? 0;
      // That was a part of a round.
      if (last === undefined && isAnywhere) return 0;
      if (last === undefined) return ROUND_EVERY_MS;
      return Math.min((performance.now() - startMs) * (1 / SHARE - 1), ROUND_EVERY_MS);
    } catch (error) {
      this.#events.emit('error', { error, during: RECOUNTING });
      return ROUND_EVERY_MS;
    }
  }

  /** One that is locked, or refuses it, keeps back none of those behind it. */
  async #recount(id: number): Promise<void> {
    const [db, tables] = [this.#db, this.#tables];
    try {
      const members = await countBatch(db, tables, id);
      if (members !== undefined && (await tallyMissing(db, tables, members))) this.#fold(id);
    } catch (error) {
      if (isAboutTheServer(error)) throw error;
      this.#events.emit('error', { error, during: RECOUNTING });
    }
  }
}
