import type { Command } from 'commander';
import type { QueueConfig } from '../../config/define-config.ts';
import { durationMs, integer, several } from '../arguments.ts';
import { outliveReaders } from '../broken-pipe.ts';
import { configOf, definitionsOf, handlersOf } from '../configured.ts';
import { type Answer, type Context, call, inProject } from '../context.ts';
import type { ExitCode } from '../exit-code.ts';
import { Failure, misused } from '../failure.ts';
import { nearest } from '../nearest.ts';
import type { Project } from '../project/open-project.ts';
import { restartOnChange, stopWithParent } from '../restart-on-change.ts';

interface Flags {
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
    .option('--drain [duration]', 'stop when no job is due, or after a time (default: 50s)', durationMs);
  call<Flags>(
    command,
    async (called) => (called.flags.watch === true ? await restartOnChange() : await inProject(called, work)),
    end,
  );
}

async function work({ project, flags, output }: Context<Flags>): Answer {
  const config = configOf(project, 'work');
  const handlers = await handlersOf(config);
  if (handlers.length === 0) throw new Failure('There is nothing to do: queue.config.ts has no handlers');
  const { createWorker, drain } = await project.load.entry();
  const { queue } = project;
  await checkQueues(project, config, flags.queue ?? []);
  const options = { ...config.worker, ...narrowed(config, flags), queue, handlers };
  outliveReaders();
  if (flags.drain !== undefined) {
    const { shutdownTimeoutMs: _, listen: __, ...rest } = options;
    const deadlineMs = flags.drain === true ? DRAIN_MS : flags.drain;
    const result = await drain(project.db, { ...rest, deadlineMs });
    if (output.json) await output.document({ ...result });
    else
      await output.line(
        `${result.completed} completed, ${result.failed} failed, ${result.discarded} discarded`,
      );
    return result.empty ? 0 : 1;
  }
  const worker = createWorker(project.db, options);
  const forget = stopWithParent(() => void worker.stop());
  try {
    await worker.run();
  } finally {
    forget();
  }
  return undefined;
}

/** A misspelt name would be served without end, and without a job. @throws Failure naming the nearest one */
async function checkQueues(
  { db, queue }: Project,
  config: QueueConfig,
  names: readonly string[],
): Promise<void> {
  if (names.length === 0) return;
  const defined = [...(await definitionsOf(config)).values()].map((job) => job.queue);
  const known = [...new Set([...defined, ...Object.keys(config.worker?.queues ?? {})])];
  for (const name of names) {
    if (known.includes(name)) continue;
    // An enqueue may name any queue; then there are jobs of it.
    if ((await queue.list(db, { queue: name, limit: 1 })).jobs.length > 0) continue;
    const close = nearest(name, known);
    throw misused(
      `work: there is no queue '${name}'${close === undefined ? '' : ` (did you mean ${close}?)`}. ` +
        `The config has ${known.join(', ')}, and the database has no job of '${name}'. ` +
        'To serve a new queue, name it in `worker.queues` of queue.config.ts',
    );
  }
}

function narrowed({ worker }: QueueConfig, { queue: names, concurrency }: Flags) {
  return {
    ...(concurrency !== undefined && { concurrency }),
    ...(names !== undefined && {
      queues: Object.fromEntries(
        names.map((name) => [
          name,
          { ...worker?.queues?.[name], ...(concurrency !== undefined && { concurrency }) },
        ]),
      ),
    }),
  };
}
