import type { Runner } from '../../../core/sql/executor.ts';
import { jitter } from '../../../core/time/jitter.ts';
import { sleep } from '../../../core/time/sleep.ts';
import type { BackgroundPart } from '../../../core/worker/base/background.ts';
import type { WorkerEmitter } from '../../../core/worker/base/events.ts';
import type { Until } from '../../../core/worker/base/until.ts';
import { findAnyPlace } from '../../batches/queries/find-any-place.ts';
import { deleteLeftRows } from '../queries/delete-left-rows.ts';
import { findLeftRows, type PlaceOfRow, type WorkflowTable } from '../queries/find-left-rows.ts';
import type { TablesOfWorkflows } from '../sql/workflow-tables.ts';

const FIRST_WITHIN_MS = 10_000;
/** Between two rounds through a table. */
const ROUND_EVERY_MS = 60_000;
const SLICE = 1_000;
/** A worker reads for this part of the time, and for ten times as much while it finds rows to delete. */
const SHARE = 1 / 100;
const BUSY_SHARE = 1 / 10;
const PRUNING = 'pruning steps';

/**
 * Deletes the steps and signals of jobs that are gone: their result was pruned, or was not kept. It walks
 * through the tables slice by slice, since nothing says which jobs have just gone.
 */
export class StepPruning implements BackgroundPart {
  readonly #db: Runner;
  readonly #tables: TablesOfWorkflows;
  readonly #events: WorkerEmitter;
  readonly #until: Until;
  readonly #after: Record<WorkflowTable, PlaceOfRow | undefined> = {
    queueSteps: undefined,
    queueMailboxes: undefined,
  };

  constructor(db: Runner, tables: TablesOfWorkflows, events: WorkerEmitter, until: Until) {
    this.#db = db;
    this.#tables = tables;
    this.#events = events;
    this.#until = until;
  }

  async run(signal: AbortSignal): Promise<void> {
    await Promise.all([this.#walk('queueSteps', signal), this.#walk('queueMailboxes', signal)]);
  }

  async #walk(table: WorkflowTable, signal: AbortSignal): Promise<void> {
    // A drain may be all that looks, and be over before the first slice is.
    if (this.#until === 'empty') await this.#beginAnywhere(table);
    else await sleep(Math.random() * FIRST_WITHIN_MS, signal);
    while (!signal.aborted) await sleep(jitter(await this.#look(table)), signal);
  }

  async #beginAnywhere(table: WorkflowTable): Promise<void> {
    try {
      const looked = this.#tables[table];
      const jobId = await findAnyPlace(this.#db, this.#tables, looked, looked.jobId);
      this.#after[table] = { jobId, queue: '', name: '' };
    } catch (error) {
      this.#events.emit('error', { error, during: PRUNING });
    }
  }

  /** Looks at a slice. Never rejects; returns how many milliseconds to rest. */
  async #look(table: WorkflowTable): Promise<number> {
    const startMs = performance.now();
    try {
      const after = this.#after[table];
      const { gone, last } = await findLeftRows(this.#db, this.#tables, table, after, SLICE);
      for (const [queue, ids] of gone) await deleteLeftRows(this.#db, this.#tables, table, queue, ids);
      this.#after[table] = last;
      if (last === undefined) return ROUND_EVERY_MS;
      const tookMs = performance.now() - startMs;
      return Math.min(tookMs * (1 / (gone.size > 0 ? BUSY_SHARE : SHARE) - 1), ROUND_EVERY_MS);
    } catch (error) {
      this.#events.emit('error', { error, during: PRUNING });
      return ROUND_EVERY_MS;
    }
  }
}
