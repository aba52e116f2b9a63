import type { Command } from 'commander';
import type { FlowGroup, FlowState, ListedFlow } from '../../../index.ts';
import { idOf, integer, oneOf } from '../arguments.ts';
import { type Answer, type Context, withProject } from '../context.ts';
import type { ExitCode } from '../exit-code.ts';
import { Failure } from '../failure.ts';
import { ShownValues } from '../shown-values.ts';
import { duration, fromNow } from '../terminal/duration.ts';
import type { Cell, Style } from '../terminal/output.ts';
import { inLine } from '../terminal/printable.ts';
import { workflowsOf } from '../workflows-of.ts';
import { STATE_STYLES } from './list.ts';

interface Flags {
  readonly state?: FlowState;
  readonly limit?: number;
  readonly cursor?: number;
}

/** `flows`: jobs that wait for each other, and batches. */
export function addFlows(program: Command, end: (code: ExitCode) => void): void {
  const command = program
    .command('flows')
    .description('list flows and batches, newest first')
    .option('--state <state>', 'open, failed or completed', oneOf('open', 'failed', 'completed'))
    .option('--limit <count>', 'list this many (default: 50)', integer(1, 1_000))
    .option('--cursor <id>', 'continue after the previous page', integer(1, Number.MAX_SAFE_INTEGER));
  withProject<Flags>(command, list, end);
  const actions: readonly [name: string, what: string, act: (context: Context<object>) => Answer][] = [
    ['show', 'show the jobs of a flow in groups, and what they wait for', show],
    ['cancel', 'end all jobs of a flow that have not ended', cancel],
    ['redrive', 'put the discarded and cancelled jobs of a flow back', redrive],
  ];
  for (const [name, what, act] of actions)
    withProject<object>(
      command.command(name).description(what).argument('<id>', 'the flow id, which `show` prints for a job'),
      act,
      end,
    );
}

async function list({ project, flags, output }: Context<Flags>): Answer {
  const { state, limit, cursor } = flags;
  const workflows = workflowsOf(project);
  const { flows, nextCursor, truncated } = await workflows.flows(project.db, { state, limit, cursor });
  if (output.json) {
    const values = new ShownValues(project);
    const shown = flows.map((flow) => values.flow(flow));
    await output.document({ flows: shown, nextCursor: nextCursor ?? null, truncated });
    return undefined;
  }
  const now = Date.now();
  if (flows.length === 0) await output.line('No matching flows.');
  else {
    const head = ['ID', 'STATE', 'ENDED', 'FAILED', 'ENQUEUED', 'TOOK', 'KINDS'];
    await output.table(
      head,
      flows.map((flow) => rowOf(flow, now)),
      new Set([0, 2, 3]),
    );
  }
  if (nextCursor === undefined) return undefined;
  const why = truncated ? 'The search stopped at its limit' : 'There are more flows';
  await output.line(`${why}. Continue with --cursor ${nextCursor}.`, 'dim');
  return undefined;
}

const FLOW_STYLES: Readonly<Record<FlowState, Style>> = { open: 'cyan', failed: 'red', completed: 'green' };

function rowOf(
  { id, state, kinds, total, pending, failed, createdAt, endedAt }: ListedFlow,
  nowMs: number,
): Cell[] {
  return [
    { text: String(id), style: 'bold' },
    { text: state, style: FLOW_STYLES[state] },
    { text: `${total - pending}/${total}` },
    { text: String(failed) },
    { text: fromNow(createdAt, nowMs) },
    { text: endedAt === null ? '–' : duration(endedAt.getTime() - createdAt.getTime()) },
    { text: kinds.join(', '), style: 'dim' },
  ];
}

async function show({ project, args: [given = ''], output }: Context<object>): Answer {
  const id = idOf(given, 'flow');
  const graph = await workflowsOf(project).flowGraph(project.db, id);
  if (graph === undefined) throw noFlow(id);
  const values = new ShownValues(project);
  if (output.json) {
    const groups = graph.groups.map(({ batchId: _, afterBatches: __, ...group }) => group);
    await output.document({ flow: values.flow({ ...graph, groups }) });
    return undefined;
  }
  const { total, pending, failed, cancelReason, createdAt, endedAt, groups, isWhole } = graph;
  const now = Date.now();
  await output.write(`${output.styled(`Flow ${id}:`, 'bold')} `);
  const counts = `${total - pending} of ${total} jobs have ended${failed === 0 ? '' : `, ${failed} failed`}`;
  await output.line(counts, failed > 0 ? 'red' : pending > 0 ? 'cyan' : 'green');
  await output.line(`  enqueued ${fromNow(createdAt, now)}`);
  if (endedAt !== null) await output.line(`  took ${duration(endedAt.getTime() - createdAt.getTime())}`);
  if (cancelReason !== null) {
    const why = values.text(undefined, 'error', cancelReason);
    await output.line(inLine(`  cancelled: ${why}`));
  }
  const names = new Map(groups.map((group) => [group.key, nameOf(group)]));
  for (const group of groups) {
    await output.write(`  ${output.styled(inLine(nameOf(group)), 'bold')}: `);
    const states = Object.entries(group.states ?? {}).map(([state, count]) =>
      // The library's states, which index both.
      output.styled(`${count} ${state}`, STATE_STYLES[state as keyof typeof STATE_STYLES]),
    );
    await output.write(states.length === 0 ? `${group.jobs - group.pending} ended` : states.join(', '));
    const after = group.after.map((key) => names.get(key) ?? 'others');
    const anyway = group.onFailure === 'run' ? ', also when some fail' : '';
    await output.line(after.length === 0 ? '' : inLine(`; after ${after.join(', ')}${anyway}`));
  }
  if (!isWhole) await output.line('The flow is too large: some groups are left out.', 'dim');
  return undefined;
}

function nameOf({ kind, jobs }: FlowGroup): string {
  return `${kind ?? 'jobs without results'}${jobs === 1 ? '' : ` × ${jobs}`}`;
}

async function cancel({ project, args: [given = ''], output }: Context<object>): Answer {
  const id = idOf(given, 'flow');
  const workflows = workflowsOf(project);
  if ((await workflows.flow(project.db, id)) === undefined) throw noFlow(id);
  const cancelled = await workflows.cancelFlow(project.db, id);
  if (output.json) await output.document({ id, cancelled });
  else await output.line(cancelled ? `Flow ${id} is being cancelled.` : `All jobs of flow ${id} have ended.`);
  return undefined;
}

async function redrive({ project, args: [given = ''], output }: Context<object>): Answer {
  const id = idOf(given, 'flow');
  const workflows = workflowsOf(project);
  if ((await workflows.flow(project.db, id)) === undefined) throw noFlow(id);
  const redriven = await workflows.redriveFlow(project.db, id);
  if (output.json) await output.document({ id, redriven });
  else await output.line(`Put back ${redriven} ${redriven === 1 ? 'job' : 'jobs'} of flow ${id}.`);
  return undefined;
}

function noFlow(id: number): Failure {
  return new Failure(`There is no flow ${id}: it never existed, or the results of its jobs were pruned`);
}
