import type { Command } from 'commander';
import { type Answer, type Context, withProject } from '../context.ts';
import type { ExitCode } from '../exit-code.ts';
import { misused } from '../failure.ts';
import { complain } from '../terminal/complain.ts';

/** `pause` and `resume` of queues. */
export function addPause(program: Command, end: (code: ExitCode) => void): void {
  for (const verb of ['pause', 'resume'] as const) {
    const description =
      verb === 'pause'
        ? 'pause queues: their jobs do not start until they are resumed'
        : 'resume queues: their jobs start again';
    const command = program.command(verb).description(description).argument('<queues...>', 'the queue names');
    withProject<object>(command, (context) => change(context, verb), end);
  }
}

async function change({ project, args, output }: Context<object>, verb: 'pause' | 'resume'): Answer {
  const { db, queue } = project;
  if (args.includes('')) throw misused(`${verb}: the name of a queue is empty`);
  const queues: { queue: string; changed: boolean }[] = [];
  try {
    for (const name of new Set(args)) {
      const changed = await queue[verb](db, name);
      queues.push({ queue: name, changed });
      const paused = verb === 'pause';
      if (!output.json)
        await output.line(
          changed
            ? `${name} is ${paused ? 'paused' : 'resumed'}`
            : `${name} was ${paused ? 'already paused' : 'not paused'}`,
        );
      // A queue may be paused before its first job, and a misspelt one stops nothing.
      if (paused && (await queue.list(db, { queue: name, limit: 1 })).jobs.length === 0)
        complain(`No job is in '${name}': is this the name of the queue?`);
    }
  } finally {
    // Those before an error, too.
    if (output.json) await output.document({ queues });
  }
  return undefined;
}
