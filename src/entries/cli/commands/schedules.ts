import type { Command } from 'commander';
import type { ScheduleRecord, Schedules } from '../../../index.ts';
import { type Answer, type Context, withProject } from '../context.ts';
import type { ExitCode } from '../exit-code.ts';
import { Failure } from '../failure.ts';
import type { Project } from '../project/open-project.ts';
import { ShownValues } from '../shown-values.ts';
import { duration, fromNow } from '../terminal/duration.ts';

/** `schedules`: what fires when, and what can be done with a schedule. */
export function addSchedules(program: Command, end: (code: ExitCode) => void): void {
  const command = program.command('schedules').description('list the schedules, and when each fires next');
  withProject<object>(command, list, end);
  const actions: readonly [name: string, what: string, act: (context: Context<object>) => Answer][] = [
    ['pause', 'pause a schedule until it is resumed', (context) => toggle(context, 'pause')],
    ['resume', 'resume a schedule', (context) => toggle(context, 'resume')],
    ['run', 'enqueue the job of a schedule now; its ticks stay as they are', run],
    ['remove', 'remove a schedule; a schedule that workers declare comes back', remove],
  ];
  for (const [name, what, act] of actions)
    withProject<object>(
      command.command(name).description(what).argument('<name>', 'the schedule name'),
      act,
      end,
    );
}

async function list({ project, output }: Context<object>): Answer {
  const schedules = schedulesOf(project);
  const all: ScheduleRecord[] = [];
  for (let cursor: string | undefined; ; ) {
    const page = await schedules.list(project.db, { cursor, limit: 1_000 });
    all.push(...page.schedules);
    cursor = page.nextCursor;
    if (cursor === undefined) break;
  }
  const values = new ShownValues(project);
  if (output.json) {
    await output.document({ schedules: all.map((schedule) => values.schedule(schedule)) });
    return undefined;
  }
  if (all.length === 0) {
    await output.line('No schedules.');
    return undefined;
  }
  const now = Date.now();
  const rows = all.map(({ name, kind, cron, every, timeZone, nextAt, lastAt, pausedAt }) => [
    { text: values.text(undefined, 'schedule', name), style: 'bold' as const },
    { text: kind },
    { text: cron === null ? `every ${duration(every ?? 0)}` : `${cron} (${timeZone})` },
    pausedAt === null
      ? { text: nextAt === null ? 'never' : fromNow(nextAt, now) }
      : { text: 'paused', style: 'yellow' as const },
    { text: lastAt === null ? '–' : fromNow(lastAt, now), style: 'dim' as const },
  ]);
  await output.table(['NAME', 'KIND', 'WHEN', 'NEXT', 'LAST'], rows, new Set());
  return undefined;
}

async function toggle(
  { project, args: [name = ''], output }: Context<object>,
  verb: 'pause' | 'resume',
): Answer {
  const changed = await schedulesOf(project)[verb](project.db, name);
  const isPause = verb === 'pause';
  if (output.json) await output.document({ name, changed });
  else if (changed) await output.line(`${name} is ${isPause ? 'paused' : 'resumed'}`);
  else await output.line(`${name} was ${isPause ? 'already paused' : 'not paused'}`);
  return undefined;
}

async function run({ project, args: [name = ''], output }: Context<object>): Answer {
  const { id, duplicate, outcome } = await schedulesOf(project).runNow(project.db, name);
  if (output.json) await output.document({ name, id, duplicate, outcome });
  else
    await output.line(duplicate ? `Job ${id} of ${name} is still live.` : `Enqueued job ${id} of ${name}.`);
  return undefined;
}

async function remove({ project, args: [name = ''], output }: Context<object>): Answer {
  const removed = await schedulesOf(project).remove(project.db, name);
  if (output.json) await output.document({ name, removed });
  else await output.line(removed ? `${name} was removed` : `There is no schedule ${name}`);
  return removed ? 0 : 1;
}

function schedulesOf({ queue }: Project): Schedules {
  // createQueue has put it there, or nothing.
  const schedules = queue.schedules as Schedules | undefined;
  if (schedules !== undefined) return schedules;
  throw new Failure(
    'This queue has no schedules: createQueue({ schedules: schedulesIn(queueSchedules) }), with the table ' +
      "of 'drizzle-queue/schema/control'",
  );
}
