import { dirname, resolve } from 'node:path';
import type { Command } from 'commander';
import type { Database, DrainResult, Logger } from '../../../index.ts';
import { given } from '../../../internal.ts';
import type { QueueConfig } from '../../config/define-config.ts';
import type { Shard, ShardSettings } from '../../shards/index.ts';
import { integer, several, workMs } from '../arguments.ts';
import { configOf, definitionsOf, handlersOf } from '../configured.ts';
import { type Answer, type CommonFlags, type Context, call, inProject } from '../context.ts';
import type { ExitCode } from '../exit-code.ts';
import { Failure, misused } from '../failure.ts';
import { untilInterrupted } from '../interruption.ts';
import { nearest } from '../nearest.ts';
import { findConfig } from '../project/find-upwards.ts';
import type { Project } from '../project/open-project.ts';
import { isWatched, restartOnChange, stopWithParent } from '../restart-on-change.ts';
import { sentenceOf } from '../sentence-of.ts';
import { complain } from '../terminal/complain.ts';
import type { Output } from '../terminal/output.ts';

interface Flags extends CommonFlags {
  readonly watch?: boolean;
  readonly drain?: number | true;
  readonly queue?: readonly string[];
  readonly concurrency?: number;
}

const DRAIN_MS = 50_000;

/** `work`: a worker of the config's handlers. */
export function addWork(program: Command, end: (code: ExitCode) => void): void {
  const command = program
    .command('work')
    .description('run the handlers of queue.config.ts, until Ctrl-C or SIGTERM')
    .option('-w, --watch', 'restart when a file of the app changes, for development')
    .option('-q, --queue <queue>', 'serve this queue only; may be repeated', several)
    .option('-c, --concurrency <jobs>', 'how many jobs of a queue run at once', integer(1, 10_000))
    .option('--drain [duration]', 'stop when no job is due, or after a time (default: 50s)', workMs);
  call<Flags>(
    command,
    async (called) =>
      // The child has the same arguments: it tells by its environment that it is not the one to watch.
      called.flags.watch === true && !isWatched()
        ? await restartOnChange(foldersOf(called.flags))
        : await inProject(called, work, { all: true }),
    end,
  );
}

/** Where an app's files are: here, and below its config, which may be in a folder above or elsewhere. */
function foldersOf({ config }: CommonFlags): string[] {
  const cwd = process.cwd();
  const path = config === undefined ? findConfig('queue', cwd) : resolve(config);
  return path === undefined ? [cwd] : [cwd, dirname(path)];
}

async function work({ project, flags, output }: Context<Flags>): Answer {
  const config = configOf(project, 'work');
  // Another one would be without what the app has given its own, such as its schema and the size of its pool.
  if (flags.url !== undefined) {
    throw misused(
      'work runs handlers with the db of queue.config.ts, and takes no --url: ' +
        'change the address that this db reads, for example DATABASE_URL',
    );
  }
  const handlers = await handlersOf(config);
  if (handlers.length === 0) throw new Failure('There is nothing to do: queue.config.ts has no handlers');
  const { db, queue, shards, load } = project;
  await checkQueues(project, config, flags.queue ?? []);
  const settings = settingsOf(config, flags);
  const { createWorker, drain } = await load.entry();
  if (flags.drain !== undefined) {
    const deadlineMs = flags.drain === true ? DRAIN_MS : flags.drain;
    const { signal, forget } = untilInterrupted();
    const parentGone = new AbortController();
    const forgetParent = stopWithParent(() => parentGone.abort());
    const ended = AbortSignal.any([signal, parentGone.signal]);
    const drainOf = async (place: Shard, name?: string) => {
      const { shutdownTimeoutMs: _, listen: __, ...rest } = settings(name);
      return await drain(place.db, { ...rest, queue: place.queue, handlers, deadlineMs, signal: ended });
    };
    try {
      const result = shards === undefined ? await drainOf({ db, queue }) : await drainAll(shards, drainOf);
      await tell(output, result);
      if (result.empty) return 0;
      return signal.aborted ? 130 : 1;
    } finally {
      forgetParent();
      forget();
    }
  }
  const forShard = (name: string) => ({
    ...(isWatched() && { log: forDevelopment(`${name}: `) }),
    ...settings(name),
  });
  const worker =
    shards === undefined
      ? createWorker(db, { ...(isWatched() && { log: forDevelopment() }), ...settings(), queue, handlers })
      : (await load.shards()).createWorkers(shards, { handlers, each: forShard });
  const forget = stopWithParent(() => void worker.stop());
  try {
    await worker.run();
  } finally {
    forget();
  }
  return undefined;
}

/**
 * Also says that an attempt has failed: who writes a handler would otherwise wait for its last one.
 *
 * @param whose what each line begins with, such as the name of a shard
 */
function forDevelopment(whose = ''): Logger {
  const say = (_: object, message: string) => complain(`${whose}drizzle-queue: ${message}`);
  return {
    debug: () => {},
    info: say,
    warn: say,
    error: say,
    isLevelEnabled: (level) => level !== 'debug',
  };
}

async function tell(output: Output, result: DrainResult): Promise<void> {
  if (output.json) await output.document({ ...result });
  else
    await output.line(
      `${result.completed} completed, ${result.failed} failed, ${result.discarded} discarded`,
    );
}

/** All databases at the same time; one that fails is reported, and the others are still drained. */
async function drainAll(
  shards: Readonly<Record<string, Shard>>,
  drainOf: (place: Shard, name: string) => Promise<DrainResult>,
): Promise<DrainResult> {
  const total = { completed: 0, failed: 0, discarded: 0, snoozed: 0, cancelled: 0, interrupted: 0 };
  let empty = true;
  await Promise.all(
    Object.entries(shards).map(async ([name, place]) => {
      try {
        const result = await drainOf(place, name);
        for (const count of Object.keys(total) as (keyof typeof total)[]) total[count] += result[count];
        empty &&= result.empty;
      } catch (error) {
        empty = false;
        complain(`${name}: ${sentenceOf(error)}`);
      }
    }),
  );
  return { ...total, empty };
}

/** A misspelt name would be served without end, and without a job. @throws Failure naming the nearest one */
async function checkQueues(project: Project, config: QueueConfig, names: readonly string[]): Promise<void> {
  if (names.length === 0) return;
  const defined = [...(await definitionsOf(config)).values()].map((job) => job.queue);
  const known = [...new Set([...defined, ...Object.keys(config.worker?.queues ?? {})])];
  for (const name of names) {
    if (known.includes(name)) continue;
    // An enqueue may name any queue; then there are jobs of it.
    if (await hasJobs(project, name)) continue;
    const close = nearest(name, known);
    throw misused(
      `work: there is no queue '${name}'${close === undefined ? '' : ` (did you mean ${close}?)`}. ` +
        `The config has ${known.join(', ')}, and the database has no job of '${name}'. ` +
        'To serve a new queue, name it in `worker.queues` of queue.config.ts',
    );
  }
}

/** Whether one of the databases that the command is about has jobs of a queue. */
async function hasJobs({ db, queue, shards }: Project, name: string): Promise<boolean> {
  for (const place of shards === undefined ? [{ db, queue }] : Object.values(shards)) {
    if ((await place.queue.list(place.db, { queue: name, limit: 1 })).jobs.length > 0) return true;
  }
  return false;
}

/** The settings of a worker, or of that of a shard: what the config says, and then the options. */
function settingsOf(config: QueueConfig, flags: Flags): (shard?: string) => ShardSettings<Database> {
  return (shard) => {
    if (config.shards === undefined) return { ...config.worker, ...narrowed(config.worker, flags) };
    const { each, name, ...shared } = config.worker ?? {};
    // As createWorkers names them: metrics tell workers apart by their names.
    const named = name === undefined ? {} : { name: shard === undefined ? name : `${name}/${shard}` };
    const own = { ...shared, ...named, ...(shard !== undefined && given(each?.(shard) ?? {})) };
    return { ...own, ...narrowed(own, flags) };
  };
}

function narrowed(
  worker: Pick<ShardSettings<Database>, 'queues'> | undefined,
  { queue: names, concurrency }: Flags,
) {
  // A queue of the config may have a concurrency of its own, before which the option goes.
  const own = concurrency === undefined ? {} : { concurrency };
  const configured = concurrency === undefined ? undefined : worker?.queues && Object.keys(worker.queues);
  const served = names ?? configured;
  return {
    ...own,
    ...(served !== undefined && {
      queues: Object.fromEntries(served.map((name) => [name, { ...worker?.queues?.[name], ...own }])),
    }),
  };
}
