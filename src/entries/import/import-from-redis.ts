import { type Database, QueueError } from '../../index.ts';
import {
  checkText,
  faultPoint,
  MAX_UNIQUE_KEY_BYTES,
  notifyWorkers,
  sleep,
  sqlStateOf,
  transact,
} from '../../internal.ts';
import { type ImportCall, madeOf, withoutDuplicates } from './import-from-table.ts';
import { type ImportReport, type LeftJob, Tally } from './import-report.ts';
import { insertImportedJobs } from './insert-imported-jobs.ts';
import type { ImportedJob } from './new-imported-job.ts';
import { findImportedJobs } from './queries/find-imported-jobs.ts';
import { IMPORT_MARK, type ImportMark, releaseImportedJobs } from './queries/release-imported-jobs.ts';
import type { RedisSource } from './source.ts';
import type { BullmqLists } from './sources/bullmq-lists.ts';

/** Later than any job: such a row is written, and is not let run. */
const NEVER_MS = Date.parse('9999-12-31T00:00:00Z');

/** A silent importer keeps others out for 5 seconds. */
const MAX_LEASE_WAITS = 24;
const LEASE_WAIT_MS = 250;

const UNIQUE_VIOLATION = '23505';
const MAX_RELEASES = 10;

/**
 * Moves the jobs of a system that cannot share a transaction, in batches of four steps:
 *
 * 1. hold: take the jobs from BullMQ's workers, in one script; their data stays.
 * 2. write: insert them here, due in the year 9999, unique by their id there, and marked.
 * 3. drop: remove them there.
 * 4. release: take the mark, and let them run.
 *
 * Each step can be repeated without doubling anything. After a crash, the next import goes on with step 3 for
 * the jobs that are marked here, and then with step 2 for the jobs that are still held there.
 */
export async function importFromRedis(
  db: Database,
  { title, open }: RedisSource,
  call: ImportCall,
): Promise<ImportReport> {
  if (typeof Reflect.get(db, 'rollback') === 'function') {
    throw new TypeError(
      `importJobs: ${title} on Redis cannot take part in a transaction, so the steps of this import ` +
        'commit by themselves. Pass the database instead of a transaction',
    );
  }
  const lists = await open();
  const tally = new Tally(new Map([...call.rules].map(([name, { job }]) => [name, job.kind])));
  if (call.dryRun) return await new RedisImport(db, lists, call, tally, '').look();
  const source = await waitForLease(lists, call.signal ?? new AbortController().signal);
  try {
    return await new RedisImport(db, lists, call, tally, source).move();
  } finally {
    // It ends by itself, too.
    await lists.endLease().catch(() => undefined);
  }
}

async function waitForLease(lists: BullmqLists, signal: AbortSignal): Promise<string> {
  for (let waits = 0; ; waits++) {
    const source = await lists.takeLease();
    if (source !== undefined) return source;
    if (waits === MAX_LEASE_WAITS) {
      throw new QueueError(`importJobs: another importer is running on BullMQ's queue '${lists.queue}'`);
    }
    await sleep(LEASE_WAIT_MS, signal);
    signal.throwIfAborted();
  }
}

class RedisImport {
  readonly #seen = new Set<string>();

  /** @param source what these jobs are called in the rows here */
  constructor(
    readonly db: Database,
    readonly lists: BullmqLists,
    readonly call: ImportCall,
    readonly tally: Tally,
    readonly source: string,
  ) {}

  async look(): Promise<ImportReport> {
    const { waiting, active, held } = await this.lists.list();
    for (const [state, ids] of [...waiting, ['held', held] as const]) {
      for (const batch of this.#batches(ids)) {
        for (const job of await this.#choose(state, batch)) this.tally.addImported(job);
        this.#tell();
      }
    }
    return this.tally.report(true, active);
  }

  async move(): Promise<ImportReport> {
    await this.#finish();
    const { waiting, active } = await this.lists.list();
    for (const [state, ids] of waiting) {
      for (const batch of this.#batches(ids)) {
        const chosen = await this.#choose(state, batch);
        const ids = chosen.map(({ read }) => read.id);
        for (const job of await this.#moveBatch(ids, 'new')) this.tally.addLeft(job);
        this.#tell();
      }
    }
    return this.tally.report(false, active);
  }

  /** Goes on where an importer that died has stopped. */
  async #finish(): Promise<void> {
    const { batchSize, settings } = this.call;
    // What is written here is as good as imported, whatever the mapping says by now.
    for (let after = 0; ; ) {
      const marked = await findImportedJobs(this.db, settings.tables, {
        source: this.source,
        after,
        limit: batchSize,
      });
      const last = marked.at(-1);
      if (last === undefined) break;
      await this.lists.drop(marked.map(({ foreignId }) => foreignId));
      await this.#release(marked);
      after = last.id;
    }
    // What is given back is counted when it is found among the others.
    for (const batch of this.#batches((await this.lists.list()).held)) await this.#moveBatch(batch, 'held');
  }

  /** Returns the jobs that can be imported; counts the others as left. */
  async #choose(state: string, ids: readonly string[]): Promise<readonly ImportedJob[]> {
    const read = await this.lists.look(state, ids);
    for (const { name } of read) if (!this.call.rules.has(name)) this.tally.addUnnamed(name, 1);
    const { made, left } = await madeOf(read, this.call);
    const { fresh, taken } = await withoutDuplicates(this.db, this.call.settings, made, this.#seen);
    for (const job of [...left, ...taken]) this.tally.addLeft(job);
    return fresh.filter((job) => {
      const unfit = this.#unfit(job);
      if (unfit !== undefined) this.tally.addLeft(unfit);
      return unfit === undefined;
    });
  }

  #unfit({ read: { id, name }, job }: ImportedJob): LeftJob | undefined {
    if (job.rule !== undefined) {
      return {
        id,
        name,
        why: 'invalid',
        message: "importJobs: from BullMQ on Redis, unique can only be 'live'",
      };
    }
    try {
      checkText('Its id', this.#keyOf(id), MAX_UNIQUE_KEY_BYTES);
      return undefined;
    } catch (error) {
      return { id, name, why: 'unfit', message: error instanceof Error ? error.message : String(error) };
    }
  }

  /**
   * Does the four steps with the jobs of a batch; returns those that it has given back.
   * @param were `held`: an importer that died may have written them after all
   */
  async #moveBatch(ids: readonly string[], were: 'new' | 'held'): Promise<readonly LeftJob[]> {
    if (ids.length === 0) return [];
    // What an old worker was faster with is not among them.
    const read = await this.lists.hold(ids);
    await faultPoint('import: held');
    // Again: what it says may have changed since, and an importer that died had perhaps other rules.
    const { made, left } = await madeOf(read, this.call);
    const fit = made.filter((job) => this.#unfit(job) === undefined);
    const kept = new Set(fit.map(({ read }) => read.id));
    const others = read.filter(({ id }) => !kept.has(id)).map(({ id }) => id);
    if (others.length > 0) await this.lists.putBack(others);
    const given = [...left, ...made.flatMap((job) => this.#unfit(job) ?? [])];
    if (fit.length === 0) return given;
    const fitIds = fit.map(({ read }) => read.id);
    const rows = await transact(this.db, async (tx) => {
      const marked = fit.map((job) => this.#marked(job));
      const { inserted, duplicates } = await insertImportedJobs(tx, this.call.settings, marked).catch(
        async (error) => {
          // This transaction will not commit: without the next call, BullMQ's workers run them.
          if (were === 'new') await this.lists.putBack(fitIds).catch(() => undefined);
          throw error;
        },
      );
      // Another importer may have taken over from one that was silent for long, and have ended since.
      if (!(await this.lists.holds(fitIds)))
        throw new QueueError('importJobs: another importer has these jobs');
      // A duplicate was written by an importer that has died meanwhile.
      return [
        ...inserted.map(({ newId, job }) => ({ id: newId, queue: job.queue })),
        ...duplicates.map(({ standingId, job }) => ({ id: standingId, queue: job.queue })),
      ];
    });
    await faultPoint('import: written');
    await this.lists.drop(fitIds);
    await faultPoint('import: dropped');
    await this.#release(rows);
    for (const job of fit) this.tally.addImported(job);
    return given;
  }

  #marked(imported: ImportedJob): ImportedJob {
    const { read, job } = imported;
    const { id } = read;
    const runAtMs = job.runAtMs ?? read.runAt.getTime();
    const mark: ImportMark = { source: this.source, id, runAtMs, uniqueKey: job.uniqueKey };
    // Our own text of an object.
    const metadata = { ...JSON.parse(job.metadata), [IMPORT_MARK]: mark };
    const parked = { runAtMs: NEVER_MS, uniqueKey: this.#keyOf(id), metadata: JSON.stringify(metadata) };
    return { ...imported, job: { ...job, ...parked } };
  }

  async #release(rows: readonly { readonly id: number; readonly queue: string }[]): Promise<void> {
    const { tables, wakeUps } = this.call.settings;
    for (const queue of new Set(rows.map(({ queue }) => queue))) {
      const ids = rows.filter((row) => row.queue === queue).map(({ id }) => id);
      await releaseAgain(() => releaseImportedJobs(this.db, tables, { queue, ids }));
      if (wakeUps !== undefined) await notifyWorkers(this.db, tables, queue, wakeUps.channel);
    }
  }

  #keyOf(id: string): string {
    return `${this.source}${id}`;
  }

  *#batches(ids: readonly string[]): Iterable<readonly string[]> {
    const { batchSize, signal } = this.call;
    for (let start = 0; start < ids.length; start += batchSize) {
      signal?.throwIfAborted();
      yield ids.slice(start, start + batchSize);
    }
  }

  #tell(): void {
    const { imported, left } = this.tally;
    this.call.onProgress?.({ imported, left });
  }
}

/** A key that another enqueue has just taken is found by the next try. */
async function releaseAgain(release: () => Promise<unknown>): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      await release();
      return;
    } catch (error) {
      if (sqlStateOf(error) !== UNIQUE_VIOLATION || tries === MAX_RELEASES) throw error;
    }
  }
}
