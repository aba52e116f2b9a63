import type { Command } from 'commander';
import { idOf, text } from '../arguments.ts';
import { type Answer, type Context, withProject } from '../context.ts';
import type { ExitCode } from '../exit-code.ts';
import { Failure } from '../failure.ts';
import { unknownStep } from '../unknown-step.ts';
import { workflowsOf } from '../workflows-of.ts';

interface Flags {
  readonly from: string;
}

/** `fork`: a new job that goes on from a step of another. */
export function addFork(program: Command, end: (code: ExitCode) => void): void {
  const command = program
    .command('fork')
    .description('enqueue a new job that goes on from a step of another one, live or finished')
    .argument('<id>', 'the id of the other job')
    .requiredOption(
      '--from <step>',
      'the first step that the new job does; it takes over those before',
      text,
    );
  withProject<Flags>(command, fork, end);
}

async function fork({ project, args: [given = ''], flags: { from }, output }: Context<Flags>): Answer {
  const id = idOf(given);
  const workflows = workflowsOf(project);
  const forked = await workflows.fork(project.db, id, { from }).catch(async (error: unknown) => {
    throw new Failure(await unknownStep(project, id, from, error));
  });
  const { steps } = forked;
  if (output.json) await output.document({ id: forked.id, forkedFrom: id, steps });
  else
    await output.line(
      `Enqueued job ${forked.id}, which has ${steps} ${steps === 1 ? 'step' : 'steps'} of job ${id}.`,
    );
  return undefined;
}
