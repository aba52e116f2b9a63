import type { OwnColumns } from '../../../core/schema/index.ts';
import { createWorker, type Database, type Worker } from '../../../index.ts';
import {
  checkObject,
  checkText,
  type EveryKind,
  given,
  LINES,
  MAX_NAME_BYTES,
  printed,
  printWorker,
  processName,
  shown,
} from '../../../internal.ts';
import { checkShards, type Shard } from '../shard.ts';
import type { WorkersOptions } from './options.ts';
import { Workers } from './workers.ts';

/**
 * A worker for each of several databases, with the same handlers, to be started and stopped as one. A handler
 * gets the database of its job as `db`. Settings count for each shard by itself: `concurrency: 10` is ten
 * jobs of a queue from each database at once.
 *
 * Under concurrency: the workers share nothing but the process, so a database that is slow, down or gone
 * delays no job of another. Any number of processes may work on the same shards.
 *
 * ```ts
 * const workers = createWorkers(shards, { handlers });
 * await workers.run();
 * ```
 *
 * @param shards by name; the same object fits `shardOf`, and `createDashboard({ queues: shards })`
 * @throws TypeError when there is no shard, or two of them have the same queue
 * @throws UnknownKindError | RangeError | TypeError as `createWorker` does
 */
export function createWorkers<
  TName extends string,
  TDb extends Database,
  TOwn extends OwnColumns,
  THandled extends string = string,
  TKind extends string = string,
>(
  shards: Readonly<Record<TName, Shard<TDb, TOwn>>>,
  options: WorkersOptions<TName, NoInfer<TDb>, TOwn, THandled, TKind> & EveryKind<THandled, TKind>,
): Workers<TName> {
  const what = 'createWorkers';
  // From here on the types of own columns do not matter.
  checkShards(what, shards as unknown as Readonly<Record<string, Shard>>);
  const { each, log, name: base = processName(), ...shared } = checkObject(`${what}: options`, options);
  if (each !== undefined && typeof each !== 'function') {
    throw new TypeError(`${what}: each must be a function from the name of a shard, got ${shown(each)}`);
  }
  if (log !== undefined && log !== false) {
    throw new TypeError(
      `${what}: log can only be false. Give each shard a logger that knows its name: ` +
        'each: (shard) => ({ log: logger.child({ shard }) })',
    );
  }
  checkText(`${what}: name`, base, MAX_NAME_BYTES);
  const printing: (readonly [string, Worker])[] = [];
  const made = Object.entries<Shard<TDb, TOwn>>(shards).map(([name, { db, queue }]) => {
    // Its name is one of those that the type says.
    const own = each === undefined ? {} : checkObject(`${what}: what each returns`, each(name as TName));
    const settings = { ...shared, log, name: `${base}/${name}`, ...given(own) };
    const prints = settings.log === undefined;
    // As in createWorker: that the handlers fit was checked at the call.
    const ofShard = { ...settings, queue, ...(prints && { log: false }) } as unknown;
    const worker = createWorker<Database, OwnColumns>(db, ofShard as Parameters<typeof createWorker>[1]);
    if (prints) printing.push([name, worker]);
    return [name, worker] as const;
  });
  // Made of the names of the shards.
  const workers = new Workers(Object.fromEntries(made) as Record<TName, Worker>);
  for (const [name, worker] of printing) {
    printWorker(worker, 'stopped', `${name}: `);
    worker.onOwn('error', (told) => {
      if (!workers.hears('error')) console.error(printed(`${name}: ${LINES.error(told)?.message}`));
    });
  }
  return workers;
}
